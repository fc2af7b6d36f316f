"""Checks that changed modules have the meaning of their originals.

The argument is a JSON file: a list of [name, whether line numbers are kept, original source, changed source].
Prints a JSON object with the problems, the number of functions and the number of functions with other bytecode.
"""

import ast, json, re, sys

SUFFIX = re.compile(r"_(?:val|cur|tmp|obj)$")
EXPRESSIONS = (
    "[] and divmod(1000, 7)[0].real < oct(1000) + 1",
    "{} and (ascii(1000).count if hash(1000)[1] - 3 != 1000 else bin)",
    "not [] or callable(1000).imag == bin(1000)[1:] + -hash(7)",
    "[] and (lambda: 1000) > memoryview(1000)[2].size * 3",
)
DEFINITIONS = (
    "import colorsys as spare_1000",
    "import fileinput as spare_1000",
    "def extra_1000(): return extra_1000",
    "class Extra_1000: size = 1000",
)
METHOD = re.compile(r"\._extra_1000 = lambda self: self\n")
WORDS = " (as before)"
BODIES = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def text(node):
    return re.sub(r"[0-9]{4}", "1000", ast.unparse(node))


UNUSED = tuple(f"[] and ({source})" for source in EXPRESSIONS)
INSERTED = {text(ast.parse(source)) for source in EXPRESSIONS + DEFINITIONS + UNUSED}


class Normalizer(ast.NodeTransformer):
    def __init__(self, words):
        self.words = words

    def visit_Module(self, node):
        while node.body and isinstance(node.body[-1], ast.Try) and METHOD.search(text(node.body[-1])):
            del node.body[-1]
        added = [part for part in node.body[-3:] if text(part) in INSERTED]
        node.body = [part for part in node.body if part not in added]
        return self.generic_visit(node)

    def visit_Call(self, node):
        moves_value = isinstance(node.func, ast.Lambda) and not node.args
        return self.visit(node.func.body) if moves_value else self.generic_visit(node)

    def visit_Name(self, node):
        if node.id not in self.words:
            node.id = SUFFIX.sub("", node.id)
        return node

    def visit_Expr(self, node):
        if isinstance(node.value, ast.BoolOp) and text(node) in INSERTED:
            return None
        return self.generic_visit(node)

    def visit_If(self, node):
        if isinstance(node.test, ast.BoolOp) and text(node.test) in INSERTED:
            return None
        return self.generic_visit(node)


def normalize(source, words):
    tree = Normalizer(words).visit(ast.parse(source))
    for node in ast.walk(tree):
        if isinstance(node, BODIES) and ast.get_docstring(node, clean=False) is not None:
            value = node.body[0].value
            if value.value.endswith(WORDS):
                value.value = value.value[: -len(WORDS)]
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
