# Runs the code of an issue statement by statement and prints what each statement did, as one line of JSON.
import ast
import contextlib
import errno
import importlib
import io
import json
import linecache
import os
import re
import signal
import socket
import sys
import textwrap
import warnings

ROOT = os.getcwd()
SKIPPED = {"test", "tests", "testing", "doc", "docs", "examples", "example", "build", "bin", "tools", "scripts",
           "benchmarks", "asv_bench", "release", "extras", "setup", "conftest", "utils", "licenses", "ci"}
ALIASES = {
    "np": "import numpy as np", "pd": "import pandas as pd", "plt": "import matplotlib.pyplot as plt",
    "mpl": "import matplotlib as mpl", "xr": "import xarray as xr", "sns": "import seaborn as sns",
    "so": "import seaborn.objects as so", "sp": "import sympy as sp", "sm": "import sympy as sm",
    "u": "from astropy import units as u", "nx": "import networkx as nx", "da": "import dask.array as da",
    "tm": "import pandas._testing as tm", "mock": "from unittest import mock",
}
HOMES = ["typing", "collections", "datetime", "pathlib", "io", "decimal", "fractions", "functools", "itertools",
         "contextlib", "dataclasses", "enum", "abc", "textwrap", "unittest.mock"]
GREEK = {"alpha", "beta", "delta", "epsilon", "theta", "kappa", "lamda", "mu", "nu", "phi", "psi", "rho", "sigma",
         "tau", "omega", "xi", "eta"}
SYMBOL = re.compile(r"[A-Za-z]{1,2}_?\d?$")


def packages():
    found = []
    for base in (ROOT, os.path.join(ROOT, "src"), os.path.join(ROOT, "lib")):
        for name in sorted(os.listdir(base)) if os.path.isdir(base) else []:
            stem, ending = os.path.splitext(name)
            if stem.lower() in SKIPPED or not stem.isidentifier():
                continue
            if os.path.isfile(os.path.join(base, name, "__init__.py")) or (base != ROOT and ending == ".py"):
                found.append(stem)
    public = [name for name in found if not name.startswith("_")]
    return public + [name for name in found if name.startswith("_")]


def quiet_import(name):
    try:
        with contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return importlib.import_module(name)
    except BaseException:
        return None


class Slow(BaseException):
    pass


def too_slow(*_):
    raise Slow()


PACKAGES = packages()
MODULES = {name: quiet_import(name) for name in PACKAGES}
space = {"__name__": "__main__", "__builtins__": __builtins__}
stars = {}      # name -> module, for names that a star import brought
added = []      # [name, line that binds it], in order
missing = []


def resolve(name, called):
    """The line that binds a name, or None."""
    given = CASE["imports"].get(name)
    if given:
        return given
    if name in MODULES and MODULES[name]:
        return "import " + name
    symbolic = None
    for package in PACKAGES:
        module = MODULES[package]
        if module is None:
            continue
        if hasattr(module, name):
            return "from %s import %s" % (package, name)
        if symbolic is None and hasattr(module, "Symbol") and hasattr(module, "symbols"):
            symbolic = package
    if name in ALIASES and quiet_import(ALIASES[name].split()[1]):
        return ALIASES[name]
    if symbolic and (SYMBOL.match(name) or name in GREEK):
        space.setdefault("__symbolic__", symbolic)
        maker = "Function" if called else "symbols"
        if maker not in space:
            line = "from %s import %s" % (symbolic, maker)
            exec(line, space)
            added.append([maker, line])
        return "%s = %s('%s')" % (name, maker, name)
    for home in HOMES + [m for m in ("numpy", "pandas") if m in sys.modules]:
        if hasattr(quiet_import(home), name):
            return "from %s import %s" % (home, name)
    if name.isidentifier() and name not in SKIPPED and quiet_import(name):
        return "import " + name
    return None


def supply(name, called):
    line = resolve(name, called)
    if line is None:
        if name not in missing:
            missing.append(name)
        return False
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            exec(line, space)
    except Exception:
        return False
    if [name, line] not in added:
        added.append([name, line])
    return True


def repaired(source):
    for quote in "\u201c\u201d":
        source = source.replace(quote, '"')
    for quote in "\u2018\u2019":
        source = source.replace(quote, "'")
    lines = []
    for line in source.split("\n"):
        if re.match(r"\s*(%|!|\?)\w", line):
            continue
        printed = re.match(r"(\s*)print\s+([^=(\s].*|\(.*\)\s*%.*)$", line)
        if printed:
            line = "%sprint(%s)" % (printed.group(1), printed.group(2))
        lines.append(line)
    return "\n".join(lines)


def parse(source):
    for text in (source, repaired(source)):
        try:
            return ast.parse(text), text
        except SyntaxError as error:
            problem = error
    return None, str(problem)


def groups(tree, source):
    """Statements with their first and last lines; statements that share a line stay together."""
    starts = [min([n.lineno] + [d.lineno for d in getattr(n, "decorator_list", [])]) for n in tree.body]
    total = len(source.split("\n"))
    out = []
    for i, node in enumerate(tree.body):
        following = starts[i + 1] - 1 if i + 1 < len(starts) else total
        last = getattr(node, "end_lineno", None) or following
        if out and starts[i] <= out[-1][2]:
            out[-1][0].append(node)
            out[-1][2] = max(last, out[-1][2])
        else:
            out.append([[node], starts[i], last])
    return out


def names(node):
    """Names that a statement reads, and names that it binds or changes."""
    reads, writes, called = [], [], []
    for part in ast.walk(node):
        if isinstance(part, ast.Name):
            (reads if isinstance(part.ctx, ast.Load) else writes).append(part.id)
        elif isinstance(part, (ast.FunctionDef, ast.ClassDef, getattr(ast, "AsyncFunctionDef", ast.ClassDef))):
            writes.append(part.name)
        elif isinstance(part, ast.alias):
            writes.append((part.asname or part.name).split(".")[0])
        if isinstance(part, ast.Call) and isinstance(part.func, ast.Name):
            called.append(part.func.id)
    targets = list(getattr(node, "targets", [])) + [getattr(node, "target", None)]
    for target in targets:
        while isinstance(target, (ast.Attribute, ast.Subscript)):
            target = target.value
        if isinstance(target, ast.Name):
            writes.append(target.id)
    if isinstance(node, ast.Expr):
        target = node.value
        if isinstance(target, ast.Call) and isinstance(target.func, ast.Attribute):
            target = target.func
            while isinstance(target, (ast.Attribute, ast.Subscript)):
                target = target.value
            if isinstance(target, ast.Name):
                writes.append(target.id)
    return sorted(set(reads)), sorted(set(writes)), called


def inside(path):
    path = os.path.abspath(path)
    for base in (ROOT + os.sep,):
        if path.startswith(base) and "site-packages" not in path:
            return path[len(base):]
    return None


def outside(error):
    """The world outside is what failed: the network, or a file that only the author of the issue has."""
    seen, queue = set(), [error]
    while queue:
        error = queue.pop()
        if not isinstance(error, BaseException) or id(error) in seen:
            continue
        seen.add(id(error))
        if isinstance(error, (socket.gaierror, socket.herror, ConnectionRefusedError)):
            return True
        if isinstance(error, OSError) and error.errno in (errno.ENETUNREACH, errno.EHOSTUNREACH, errno.ENETDOWN):
            return True
        if type(error) is FileNotFoundError and isinstance(error.filename, str):
            name = os.path.basename(error.filename)
            if name and any(name in step["source"] for step in CASE["steps"]):
                return True
        queue += [error.__cause__, error.__context__, getattr(error, "reason", None)] + list(error.args)
    return False


def raised(error):
    frames, trace, own = [], error.__traceback__, True
    while trace is not None:
        code = trace.tb_frame.f_code
        place = inside(code.co_filename) if not code.co_filename.startswith("<") else None
        own = code.co_filename == "<issue>"
        if place:
            frames.append([place, code.co_name])
        trace = trace.tb_next
    kind = type(error)
    return {"type": kind.__name__, "message": str(error)[:300], "own": own, "frames": frames[-8:], "outside": outside(error),
            "bases": [c.__name__ for c in kind.__mro__ if c.__name__ not in ("object", "BaseException")]}


def homes(node):
    found = []
    for part in ast.walk(node):
        thing = None
        if isinstance(part, ast.Name):
            thing = space.get(part.id)
        elif isinstance(part, ast.Attribute):
            base = part.value
            owner = space.get(base.id) if isinstance(base, ast.Name) else None
            thing = getattr(type(owner), part.attr, None) if owner is not None else None
            if type(owner).__name__ == "module":
                thing = getattr(owner, part.attr, None)
            thing = getattr(thing, "fget", thing)
        name = getattr(thing, "__module__", None)
        if type(thing).__name__ == "module":
            continue
        if not isinstance(name, str):
            name = getattr(type(thing), "__module__", None)
        place = inside(getattr(sys.modules.get(name), "__file__", None) or "/")
        if place and [getattr(part, "id", None) or part.attr, place] not in found:
            found.append([getattr(part, "id", None) or part.attr, place])
    return found[:8]


def forms(value):
    """The texts as which a value may be shown."""
    out = []
    for form in (repr, str):
        try:
            out.append((form.__name__, form(value)))
        except Exception:
            pass
    if getattr(sys.modules.get("sympy"), "pretty", None):
        for unicode in (True, False):
            try:
                out.append(("pretty", sys.modules["sympy"].pretty(value, use_unicode=unicode)))
            except Exception:
                pass
    return out


def evaluated(text, used):
    """The value of an expected output, with the lines that it needs."""
    code = compile(text.strip(), "<expected>", "eval")
    for _ in range(12):
        try:
            return eval(code, space)
        except NameError as error:
            name = re.search(r"name '(\w+)'", str(error))
            if not name or not supply(name.group(1), (name.group(1) + "(") in text):
                raise
            used.append(name.group(1))
    raise NameError(text)


def equal(value, other):
    try:
        if type(value).__module__.split(".")[0] == "numpy" and hasattr(value, "shape"):
            return bool(sys.modules["numpy"].array_equal(value, other))
        return bool(value == other)
    except Exception:
        return None


def stripped(text):
    return [line.rstrip() for line in textwrap.dedent(text).strip("\n").split("\n")]


def check(text, value, printed):
    """How a text of the issue stands to what came."""
    found = {"same": None, "evaluates": False, "equal": None}
    wanted = text.strip()
    shown = forms(value) if value is not None or not printed else []
    for form, shape in shown + [("printed", printed)]:
        if wanted and "".join(shape.split()) == "".join(text.split()):
            found.update(same=form, exact=shape == text, lines=stripped(shape) == stripped(text))
            break
    try:
        used = []
        other = evaluated(text, used)
        if not callable(other) or isinstance(other, type) or callable(value) or hasattr(other, "func"):
            # The name of a class stands for one of its kind, where a value is meant.
            if not isinstance(other, type) or isinstance(value, type):
                found.update(evaluates=True, equal=equal(value, other), kind=type(other).__name__)
            found["exception"] = isinstance(other, type) and issubclass(other, BaseException)
    except BaseException:
        pass
    return found


def run(nodes, source, number, report):
    node = nodes[-1]
    single = len(nodes) == 1
    value, error, printed = None, None, io.StringIO()
    mark = "<issue>"
    linecache.cache[mark] = (len(source), None, source.splitlines(True), mark)
    called = names(node)[2]
    for attempt in range(15):
        error, value = None, None
        printed = io.StringIO()
        signal.setitimer(signal.ITIMER_REAL, CASE["seconds"])
        try:
            with contextlib.redirect_stdout(printed), warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                if single and isinstance(node, ast.Expr):
                    value = eval(compile(ast.Expression(node.value), mark, "eval"), space)
                else:
                    try:
                        module = ast.Module(nodes, [])
                        code = compile(module, mark, "exec")
                    except TypeError:
                        code = compile(ast.Module(nodes), mark, "exec")
                    exec(code, space)
        except Slow:
            report["slow"] = True
        except BaseException as problem:
            error = problem
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
        lost = type(error) is NameError and re.search(r"name '(\w+)'", str(error))
        if not (lost and supply(lost.group(1), lost.group(1) in called)):
            break
    if error is not None:
        report["raised"] = raised(error)
    if caught:
        report["warned"] = [[w.category.__name__, str(w.message)[:150]] for w in caught[:3]]
    if value is not None:
        space["_"] = value
        if number:
            space["_%d" % number] = value
    return value, printed.getvalue()


def star(node):
    if isinstance(node, ast.ImportFrom) and node.names[0].name == "*" and not node.level:
        module = quiet_import(node.module)
        public = getattr(module, "__all__", None) or [n for n in dir(module) if not n.startswith("_")]
        for name in public:
            stars[name] = node.module


def used_stars(reads):
    out = []
    for name in reads:
        module = stars.get(name)
        if module and space.get(name) is getattr(sys.modules.get(module), name, None):
            out.append([module, name])
    return out


def rewritten(node, text):
    """`var('a b')` binds names in a way that only works at a prompt."""
    call = node.value if isinstance(node, ast.Expr) else None
    if isinstance(call, ast.Call) and getattr(call.func, "id", "") == "var" and call.args:
        try:
            listed = ast.literal_eval(call.args[0])
            bound = re.split(r"[,\s]+", listed.strip())
            if all(n.isidentifier() for n in bound):
                return "%s = symbols(%s%s)" % (", ".join(bound), repr(listed),
                                               "".join(", %s=True" % k.arg for k in call.keywords))
        except Exception:
            pass
    return text


DROPPED = re.compile(r"(init_printing|init_session|pprint_use_unicode)\(|(from __future__ import|import IPython)")


def main():
    signal.signal(signal.SIGALRM, too_slow)
    statements = []
    for index, step in enumerate(CASE["steps"]):
        tree, text = parse(step["source"])
        if tree is None:
            statements.append({"step": index, "syntax": text})
            continue
        for nodes, first, last in groups(tree, text):
            lines = text.split("\n")[first - 1:last]
            source = "\n".join(lines).strip("\n")
            if DROPPED.match(source):
                continue
            changed = rewritten(nodes[-1], source) if len(nodes) == 1 else source
            if changed != source:
                source = changed
                nodes = ast.parse(source).body
            last_one = last == groups(tree, text)[-1][2]
            report = {"step": index, "source": source, "last": last_one}
            node = nodes[-1]
            report["kind"] = type(node).__name__ if len(nodes) == 1 else "Several"
            inner = node.value if isinstance(node, ast.Expr) else None
            if isinstance(inner, ast.Call) and getattr(inner.func, "id", "") in ("print", "pprint") and "pprint" not in space:
                if len(inner.args) == 1 and not inner.keywords and not isinstance(inner.args[0], getattr(ast, "Starred", ())):
                    whole = source.strip()
                    report["shown"] = whole[whole.index("(") + 1:whole.rindex(")")].strip()
                    node = ast.parse(report["shown"], mode="eval")
                    nodes = [ast.Expr(node.body)]
                    report["kind"] = "Print"
            for part in nodes:
                star(part)
            reads, writes = set(), set()
            for part in nodes:
                more = names(part)
                reads.update(more[0])
                writes.update(more[1])
            value, printed = run(nodes, source, step.get("number"), report)
            report["reads"], report["writes"] = sorted(reads), sorted(writes)
            report["stars"] = used_stars(reads)
            report["homes"] = homes(nodes[-1])
            if "raised" not in report and "slow" not in report:
                try:
                    report["value"] = repr(value)[:160]
                except Exception as problem:
                    report["raised"] = raised(problem)
                    report["in_repr"] = True
                report["type"] = type(value).__name__
                report["none"] = value is None
                if printed:
                    report["printed"] = printed[:200]
            if last_one:
                report["checks"] = [check(text, value, printed) for text in step["texts"]]
            statements.append(report)
            if "raised" in report and not step["prompt"]:
                break
    out = {"packages": PACKAGES, "symbolic": space.get("__symbolic__"), "missing": missing, "added": added, "statements": statements}
    line = json.dumps(out, separators=(",", ":"))
    if len(line) > 9000:
        for report in statements:
            for key in ("value", "printed", "warned", "homes"):
                if not report.get("checks"):
                    report.pop(key, None)
        line = json.dumps(out, separators=(",", ":"))
    # The one control character that JSON leaves as it is, and that an answer would show as something else.
    sys.stdout.write("\n@@probe " + line.replace("\x7f", "\\u007f") + "\n")


main()
