"""Checks that changed modules have the meaning of their originals.

The argument is a JSON file: a list of [name, whether line numbers are kept, original source, changed source].
Prints a JSON object with the problems, the number of functions and the number of functions with other bytecode.
"""

import ast, json, re, sys

SUFFIX = re.compile(r"_(?:val|cur|tmp|obj)$")
INSERTED = {ast.dump(ast.parse(text).body[0]) for text in ("[]", "{}", "not []", "(lambda: None)")}
BODIES = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


class Normalizer(ast.NodeTransformer):
    def __init__(self, words):
        self.words = words

    def visit_Name(self, node):
        if node.id not in self.words:
            node.id = SUFFIX.sub("", node.id)
        return node

    def visit_Expr(self, node):
        if ast.dump(node) in INSERTED:
            return None
        return self.generic_visit(node)


def normalize(source, words):
    tree = Normalizer(words).visit(ast.parse(source))
    for node in ast.walk(tree):
        if isinstance(node, BODIES) and ast.get_docstring(node, clean=False) is not None:
            value = node.body[0].value
            value.value = value.value.rstrip(" ")
    return tree


def lines(tree):
    return [(type(node).__name__, node.lineno) for node in ast.walk(tree) if isinstance(node, ast.stmt)]


def bytecode(code):
    for constant in code.co_consts:
        if hasattr(constant, "co_code"):
            if not constant.co_name.startswith("<"):
                yield constant.co_code
            yield from bytecode(constant)


problems, functions, changed_functions = [], 0, 0
for name, is_kept, original, changed in json.load(open(sys.argv[1], encoding="utf-8")):
    words = set(re.findall(r"\w+", original))
    try:
        code = compile(changed, name, "exec", dont_inherit=True)
    except (SyntaxError, ValueError) as error:
        problems.append(f"{name}: {error}")
        continue
    before, after = normalize(original, words), normalize(changed, words)
    if ast.dump(before) != ast.dump(after):
        problems.append(f"{name}: another syntax tree")
    if is_kept and lines(before) != lines(after):
        problems.append(f"{name}: moved lines")
    old = list(bytecode(compile(original, name, "exec", dont_inherit=True)))
    new = list(bytecode(code))
    functions += len(old)
    changed_functions += sum(a != b for a, b in zip(old, new))
report = {"problems": problems, "functions": functions, "changed_functions": changed_functions}
print(json.dumps(report))
