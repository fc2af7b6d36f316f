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


def read(name):
    """The text of a file in the root; empty if there is none."""
    try:
        with io.open(os.path.join(ROOT, name), encoding="utf-8") as file:
            return file.read()
    except (OSError, ValueError):
        return ""


def set_up_django():
    """Loads the apps as the tests of the repository do. Returns whether the code of the issue need not do it."""
    if any("settings.configure(" in step["source"] for step in CASE["steps"]):
        return False
    options = "\n".join(map(read, ("pytest.ini", "pyproject.toml", "tox.ini", "setup.cfg")))
    named = re.search(r"(?m)(?:^DJANGO_SETTINGS_MODULE\s*=\s*[\"']?|--ds[= ])([\w.]+)", options)
    if named:
        os.environ.setdefault("DJANGO_SETTINGS_MODULE", named.group(1))
    elif os.path.isfile("django/test/runner.py"):
        # Django's own tests need these settings.
        os.environ.setdefault("DJANGO_SETTINGS_MODULE", "test_sqlite")
        sys.path.append("tests")
    django = quiet_import("django") if "DJANGO_SETTINGS_MODULE" in os.environ else None
    try:
        with contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            django.setup()
        return True
    except BaseException:
        return False
    finally:
        if "tests" in sys.path:
            sys.path.remove("tests")


HAS_DJANGO = set_up_django()
PACKAGES = packages()
MODULES = {name: quiet_import(name) for name in PACKAGES}
space = {"__name__": "__main__", "__builtins__": __builtins__}
stars = {}      # name -> module, for names that a star import brought
added = []      # [name, line that binds it], in order
missing = []
filters = []    # the filters of warnings, once the code of the issue has changed them
made_by = {}        # name -> what made its value
invocations = {}    # the same, if a test runner invoked a command
unbound = set()     # names that failed statements would have bound
ABSENT = object()   # the value of a statement that did not run


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
            if not isinstance(part.ctx, ast.Store):
                reads.append(part.id)
            if not isinstance(part.ctx, ast.Load):
                writes.append(part.id)
        elif isinstance(part, (ast.FunctionDef, ast.ClassDef, getattr(ast, "AsyncFunctionDef", ast.ClassDef))):
            writes.append(part.name)
        elif isinstance(part, ast.alias):
            writes.append((part.asname or part.name).split(".")[0])
        elif isinstance(part, ast.AugAssign):
            reads.append(root(part.target))
        if isinstance(part, ast.Call) and isinstance(part.func, ast.Name):
            called.append(part.func.id)
    writes += [root(target) for target in getattr(node, "targets", []) + [getattr(node, "target", None)]]
    call = getattr(node, "value", None)
    if isinstance(node, ast.Expr) and isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute):
        writes.append(root(call))
    return sorted(set(reads) - {None}), sorted(set(writes) - {None}), called


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
        if type(thing).__name__ == "module":
            continue
        place = place_of(thing)
        # A variable is called otherwise in the tests; its class is not.
        name = type(thing).__name__ if not callable(thing) else getattr(part, "id", None) or part.attr
        if place and [name, place] not in found:
            found.append([name, place])
    return found[:8]


def place_of(thing):
    """The file of the repository that defines an object or its class."""
    name = getattr(thing, "__module__", None)
    if not isinstance(name, str):
        name = getattr(type(thing), "__module__", None)
    module = thing if type(thing).__name__ == "module" else sys.modules.get(name)
    return inside(getattr(module, "__file__", None) or "/")


def invoked_by(call):
    """The command that `CliRunner().invoke(command, ["--option"])` runs, with its options, or None."""
    command = call.args[0] if call.args else None
    is_runner = getattr(call.func, "attr", "") == "invoke" and "runner" in str(root(call)).lower()
    if not is_runner or not isinstance(command, ast.Name) or not callable(space.get(command.id)):
        return None
    parts = [part for argument in call.args[1:] for part in ast.walk(argument)]
    texts = [part.value if hasattr(part, "value") else getattr(part, "s", None) for part in parts]
    options = [re.match(r"--?([A-Za-z][\w-]*)", text) for text in texts if isinstance(text, str)]
    return {"names": [command.id], "keywords": [option.group(1).replace("-", "_") for option in options if option]}


def subject(nodes, error):
    """What a statement is about: the outermost call that may enter the repository, and the keywords of that call."""
    parts = [part for node in nodes for part in ast.walk(node)]
    calls = [part for part in parts if isinstance(part, ast.Call)]
    read = [part.id for part in parts if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Load)]
    for invoked in [invoked_by(call) for call in calls] + [invocations.get(name) for name in read]:
        if invoked:
            return invoked
    for call in calls:
        thing, owner = resolved(call.func)
        method = getattr(call.func, "attr", None)
        if thing is None and owner is not None and type(owner).__name__ != "module":
            thing, owner = getattr(type(owner), method, None), type(owner)
        if (thing or owner) is not None and not place_of(thing or owner):
            continue
        base = call.func.value if method else None
        made = getattr(getattr(base, "func", None), "id", "")
        if isinstance(owner, type) and method:
            named = [owner.__name__, method]
        elif method:
            named = [made, method] if made[:1].isupper() else [method]
        else:
            named = [call.func.id if callable(thing) and isinstance(call.func, ast.Name) else type(thing).__name__]
        return {"names": named, "keywords": [keyword.arg for keyword in call.keywords if keyword.arg]}
    entered = [name for _, name in error["frames"] if name.isidentifier() and not name.startswith("__")] if error else []
    owned = [part for part in parts if isinstance(part, ast.Name) and place_of(space.get(part.id))]
    attributes = [part.attr for part in parts if isinstance(part, ast.Attribute) and part.value in owned]
    kinds = [type(space[part.id]).__name__ for part in owned]
    called = [getattr(call.func, "attr", None) or getattr(call.func, "id", "") for call in calls]
    named = entered[:1] or [kind for kind in kinds if kind not in ("module", "type")][:1] + attributes[:1]
    made = [made_by[name] for name in read if made_by.get(name)]
    if made and not named:
        return made[0]
    return {"names": named or called[:1]} if named or called else {}


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


def print_form(value):
    """What `print` writes for a value."""
    try:
        return str(value) + "\n"
    except Exception:
        return ""


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


def spaceless(text):
    return text.replace(" ", "").strip()


def alike(text, shown):
    """The form that equals a text of the issue except for white space, and how far they are equal; may be empty."""
    wanted = text.strip()
    for form, shape in shown:
        if wanted and "".join(shape.split()) == "".join(text.split()):
            return {"same": form, "exact": shape == text, "lines": stripped(shape) == stripped(text),
                    "ends": shape.strip() == wanted, "spaces": spaceless(shape) == spaceless(text)}
    return {}


def check(text, value, printed):
    """How a text of the issue stands to what came."""
    found = {"same": None, "evaluates": False, "equal": None}
    found["padded"] = isinstance(value, str) and value != value.strip("\n")
    wanted = text.strip()
    shown = forms(value) if value is not None or not printed else []
    found.update(alike(text, shown + [("printed", printed)]))
    output = dict(shown).get("str", "") + printed
    found["part"] = bool(wanted) and wanted in output
    try:
        used = []
        other = evaluated(text, used)
        found["part"] = found["part"] or bool(other) and isinstance(other, str) and other in output
        if not callable(other) or isinstance(other, type) or callable(value) or hasattr(other, "func"):
            # The name of a class stands for one of its kind, where a value is meant.
            if not isinstance(other, type) or isinstance(value, type):
                found.update(evaluates=True, equal=equal(value, other), kind=type(other).__name__)
            found["exception"] = isinstance(other, type) and issubclass(other, BaseException)
    except BaseException:
        pass
    return found


@contextlib.contextmanager
def kept_filters():
    """Shows all warnings, until the code of the issue chooses otherwise. Its choice also holds for later statements."""
    warnings.simplefilter("always")
    if filters:
        warnings.filters[:] = filters
    before = list(warnings.filters)
    try:
        yield
    finally:
        if list(warnings.filters) != before:
            filters[:] = warnings.filters


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
            with contextlib.redirect_stdout(printed), warnings.catch_warnings(record=True) as caught, kept_filters():
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
        if not lost or lost.group(1) in unbound or not supply(lost.group(1), lost.group(1) in called):
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


DEFINITIONS = ("Import", "ImportFrom", "FunctionDef", "ClassDef")
DROPPED = re.compile(r"(init_printing|init_session|pprint_use_unicode)\(|(from __future__ import|import IPython)"
                     + (r"|django\.setup\(|os\.environ\b.*DJANGO_SETTINGS_MODULE" if HAS_DJANGO else ""))


def prepared():
    """The statements of all steps: what is known before they run, their nodes, and the names that they bind."""
    statements, bound = [], set()
    for index, step in enumerate(CASE["steps"]):
        tree, text = parse(step["source"])
        if tree is None:
            statements.append(({"step": index, "syntax": text}, [], set(), text))
            continue
        parts = groups(tree, text)
        for nodes, first, last in parts:
            source = "\n".join(text.split("\n")[first - 1:last]).strip("\n")
            if DROPPED.match(source):
                continue
            if len(nodes) > 1 and hasattr(ast, "get_source_segment"):
                source = "\n".join(ast.get_source_segment(text, node) for node in nodes)
            report = {"step": index, "source": source, "last": last == parts[-1][2]}
            changed = rewritten(nodes[-1], source) if len(nodes) == 1 else source
            if changed != source:
                report["source"] = changed
                nodes = ast.parse(changed).body
            report["kind"] = type(nodes[-1]).__name__ if len(nodes) == 1 else "Several"
            inner = nodes[-1].value if isinstance(nodes[-1], ast.Expr) else None
            if isinstance(inner, ast.Call) and getattr(inner.func, "id", "") in ("print", "pprint") and "pprint" not in bound:
                if len(inner.args) == 1 and not inner.keywords and not isinstance(inner.args[0], getattr(ast, "Starred", ())):
                    whole = source.strip()
                    segment = getattr(ast, "get_source_segment", lambda *_: None)(text, inner.args[0])
                    report["shown"] = (segment or whole[whole.index("(") + 1:whole.rindex(")")]).strip()
                    nodes = [ast.Expr(ast.parse("(%s\n)" % report["shown"], mode="eval").body)]
                    report["kind"] = "Print"
            uses = [names(node) for node in nodes]
            report["reads"] = sorted(set(name for use in uses for name in use[0]))
            report["writes"] = sorted(set(name for use in uses for name in use[1]))
            new = set(part.id for node in nodes for part in ast.walk(node)
                      if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store))
            new.update(node.name for node in nodes if isinstance(node, FUNCTIONS + (ast.ClassDef,)))
            bound.update(report["writes"])
            if "*" in report["writes"]:
                bound.update(dir(sys.modules.get(getattr(nodes[-1], "module", None))))
            statements.append((report, nodes, new, text))
    return statements


def outcome(report, value, printed):
    """What a statement did, on one line, without addresses."""
    failure = report.get("raised")
    try:
        shown = repr(value)[:500]
    except Exception as error:
        shown = type(error).__name__
    did = [failure["type"], failure["message"]] if failure else [type(value).__name__, shown, printed[:500]]
    return re.sub("0x[0-9a-fA-F]+", "0x", json.dumps(did + [report.get("slow")]))[:3000]


def dependencies(statements, target):
    """The statements before one that it needs by name, or that are certain to have an effect, and whether others may have
    one. None if it needs the value of the statement before."""
    needed, found, others = set(statements[target][0]["reads"]), [], False
    for number in range(target - 1, -1, -1):
        report = statements[number][0]
        if "syntax" in report or "slow" in report or "blocked" in report or "raised" in report and "in_repr" not in report:
            continue
        if report.get("effect") == "certain" or "*" in report["writes"] or needed.intersection(report["writes"]):
            if report["kind"] in DEFINITIONS + ("Assign",):
                needed.difference_update(report["writes"])
            needed.update(report["reads"])
            found.insert(0, number)
        else:
            others = others or "effect" in report
    return None if any(re.match(r"_\d*$", name) for name in needed) else (found, others)


def classify(statements, loading):
    """Marks the statements that may have an effect. `loading` are the imports that loaded modules."""
    own = set()
    for number, (report, nodes, new, _) in enumerate(statements):
        if "syntax" in report:
            continue
        step = CASE["steps"][report["step"]]
        later = set(name for other in statements[number + 1:] for name in other[0].get("reads", []))
        shown = step["prompt"] or report["kind"] == "Print" or report["last"] and step["stated"]
        silent = report["kind"] != "Print" and report.get("none", True)
        if report["kind"] in ("Import", "ImportFrom"):
            level = POSSIBLE if number in loading else NOTHING
        else:
            level = CERTAIN if "leaks" in report else max(effect(node, own, later, shown, silent) for node in nodes)
            own.update(new)
        if level:
            report["effect"] = ("possible", "certain")[level - 1]


def columns():
    """The line length that black or ruff is configured for, or None."""
    project, ruff, hooks = read("pyproject.toml"), read("ruff.toml") + read(".ruff.toml"), read(".pre-commit-config.yaml")
    if not (re.search(r"(?m)^\[tool\.(black|ruff)\b", project) or ruff or re.search(r"/black\b|ruff-format", hooks)):
        return None
    length = re.search(r"(?m)^line[-_]length\s*=\s*(\d+)", project + "\n" + ruff) or re.search(r"--line-length\W+(\d+)", hooks)
    return int(length.group(1)) if length else 88


def main():
    signal.signal(signal.SIGALRM, too_slow)
    statements = prepared()

    def last_of(numbers):
        for number in numbers:
            report, nodes = statements[number][:2]
            for node in nodes:
                star(node)
            done = {}
            value, printed = run(nodes, report["source"], CASE["steps"][report["step"]].get("number"), done)
        return outcome(done, value, printed)

    rehearse = rehearsal(last_of)
    outcomes, loading, broken = {}, set(), {}
    block, output = None, ""    # what the statements of a block printed so far
    for number, (report, nodes, new, text) in enumerate(statements):
        if "syntax" in report:
            continue
        step = CASE["steps"][report["step"]]
        value, printed = ABSENT, ""
        if report["step"] in broken:
            report["blocked"] = broken[report["step"]]
        else:
            state, modules = process_state(), set(sys.modules)
            lines = patched(nodes[0], text) if len(nodes) == 1 else []
            report.update({"patched": lines} if lines else {})
            for node in nodes:
                star(node)
            value, printed = run(nodes, report["source"], step.get("number"), report)
            outcomes[number] = outcome(report, value, printed)
            places = [getattr(sys.modules[name], "__file__", None) or "" for name in set(sys.modules) - modules]
            if any("-packages" in place or inside(place) for place in places):
                loading.add(number)
            # A variable may be set to the value that it has here.
            leaks = [name for name, now in sorted(process_state().items())
                     if now != state[name] or name == "environ" and any("env(" in line for line in lines)]
            report.update({"leaks": leaks} if leaks else {})
            if report["kind"] in ("Expr", "Print"):
                # A call changes neither the module nor the class that it is made through.
                fixed = (type(sys), type)
                report["writes"] = [name for name in report["writes"] if not isinstance(space.get(name), fixed)]
        report["stars"] = used_stars(report["reads"])
        report["homes"] = homes(nodes[-1])
        error = report.get("raised")
        if error and error["type"] == "NameError" and error["own"]:
            lost = re.search(r"name '(\w+)'", error["message"])
            causes = [i for i in range(number) if lost and lost.group(1) in statements[i][2] and i in outcomes
                      and "raised" in statements[i][0]]
            if causes:
                report["blocked"] = statements[causes[-1]][0].get("blocked", causes[-1])
        if error is None and "slow" not in report and "blocked" not in report:
            try:
                report["value"] = repr(value)[:160]
            except Exception as problem:
                report["raised"] = raised(problem)
                report["in_repr"] = True
            report["type"] = type(value).__name__
            report["none"] = value is None
            if printed:
                report["printed"] = printed[:200]
        if step["block"] is None or step["block"] != block:
            block, output = step["block"], ""
        shown = printed + print_form(value) if report["kind"] == "Print" and value is not ABSENT else printed
        report["prints"] = bool(shown)
        output += shown
        if report["last"]:
            report["printed_checks"] = [alike(text, [("printed", output)]) for text in step["printed"]]
        if error:
            unbound.update(new)
        if report["kind"] == "Assign":
            is_call = isinstance(nodes[-1].value, ast.Call)
            made_by.update((name, subject(nodes, error) if is_call else None) for name in new)
            invocations.update((name, invoked_by(nodes[-1].value) if is_call else None) for name in new)
        if report["last"] or error:
            report["subject"] = subject(nodes, report.get("raised"))
        if report["last"]:
            report["checks"] = [check(text, value, printed) for text in step["texts"]]
        if "raised" in report and not step["prompt"]:
            broken.setdefault(report["step"], number)
    classify(statements, loading)
    for number, (report, _, _, _) in enumerate(statements):
        is_tested = "raised" in report or report.get("last") and report["kind"] not in DEFINITIONS
        if is_tested and number in outcomes and "slow" not in report and "blocked" not in report:
            needed = dependencies(statements, number)
            report["apart"] = needed is not None and (
                not needed[1] or rehearse(needed[0] + [number]) == outcomes[number])
    # What is left out is false or empty.
    reports = [{key: value for key, value in report.items() if value or key == "step"} for report, _, _, _ in statements]
    out = {"packages": PACKAGES, "symbolic": space.get("__symbolic__"), "missing": missing, "added": added, "columns": columns(),
           "statements": reports}
    line = json.dumps(out, separators=(",", ":"))
    if len(line) > 9000:
        for report in reports:
            for key in ("value", "printed", "warned", "homes"):
                if not report.get("checks"):
                    report.pop(key, None)
        line = json.dumps(out, separators=(",", ":"))
    # The one control character that JSON leaves as it is, and that an answer would show as something else.
    sys.stdout.write("\n@@probe " + line.replace("\x7f", "\\u007f") + "\n")


main()
