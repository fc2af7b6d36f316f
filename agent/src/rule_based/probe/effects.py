# Tells which statements of an issue may change more than the names that they bind, and runs statements without the others.
import ast
import builtins
import json
import os
import select
import signal
import sys
import time
import warnings

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
LAZY = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp, ast.Await, ast.Yield, ast.YieldFrom)
# Builtins that show something, or only look at their arguments.
HARMLESS = {"print", "pprint", "help", "dir", "type", "id", "len", "repr", "str", "isinstance", "issubclass", "callable",
            "hasattr", "vars", "range"}
# Modules of the standard library whose functions change at most their arguments.
PURE_MODULES = {"abc", "ast", "array", "base64", "binascii", "bisect", "builtins", "calendar", "cmath", "collections", "copy",
                "csv", "dataclasses", "datetime", "difflib", "dis", "enum", "fractions", "functools", "hashlib", "heapq", "html",
                "inspect", "itertools", "json", "keyword", "math", "ntpath", "numbers", "operator", "posixpath", "pprint", "re",
                "statistics", "string", "struct", "textwrap", "time", "traceback", "types", "typing", "unicodedata", "uuid",
                "zlib"}
# Beginnings of the names of functions that look something up, such as `os.getcwd` and `logging.getLogger`.
QUERIES = ("get", "is", "list", "exists")
NOTHING, POSSIBLE, CERTAIN = range(3)
# Maximum seconds for running statements without others.
REHEARSAL = 20


def running(node):
    """The parts of a statement that run with it: not the bodies of functions that it defines."""
    todo = [node]
    while todo:
        part = todo.pop()
        yield part
        later = part.body if isinstance(part, FUNCTIONS + (ast.Lambda,)) else []
        later = later if isinstance(later, list) else [later]
        todo += [child for child in ast.iter_child_nodes(part) if child not in later]


def root(node):
    """The name that an expression such as `a.b[0].c()` begins with, or None."""
    while isinstance(node, (ast.Attribute, ast.Subscript, ast.Call)):
        node = node.func if isinstance(node, ast.Call) else node.value
    return getattr(node, "id", None)


def resolved(node):
    """The object that a name, or an attribute of a module or class, stands for, and its owner. Runs no code."""
    names = []
    while isinstance(node, ast.Attribute):
        names.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name):
        return None, None
    owner = thing = space.get(node.id, getattr(builtins, node.id, None))
    while names and isinstance(thing, (type(sys), type)):
        owner, thing = thing, getattr(thing, names.pop(), None)
    return (None if names else thing), owner


def is_standard(name):
    module = sys.modules.get(name)
    place = getattr(module, "__file__", None)
    if module is None or place is None:
        return module is not None and not hasattr(module, "__path__")
    return place.startswith(os.path.dirname(os.__file__) + os.sep) and "-packages" not in place


def acts_on_process(call):
    """Whether it calls the standard library for more than a value: `os.chdir`, `random.seed`, `locale.setlocale`."""
    owner = resolved(call.func)[1]
    name = getattr(call.func, "attr", getattr(call.func, "id", ""))
    if owner is None or isinstance(owner, type) or name.startswith(QUERIES):
        return False
    is_module = isinstance(owner, type(sys))
    module = owner.__name__ if is_module else getattr(owner, "__module__", None) or type(owner).__module__
    top = str(module).split(".")[0]
    return is_standard(top) and top.lstrip("_") not in PURE_MODULES


def effect(node, own, later, shown=False, silent=True):
    """Whether a statement may change more than the names that it binds.

    This is certain if nothing else explains the statement: its value is not shown, and no later statement reads what it
    binds or changes. `own` has the names that the issue binds, except by imports; `later` those that later statements read.
    """
    calls = [part for part in running(node) if isinstance(part, ast.Call)]
    busy = [call for call in calls if getattr(call.func, "id", None) not in HARMLESS]
    lazy = any(isinstance(part, LAZY) for part in running(node))

    def explained(names):
        return POSSIBLE if later.intersection(names) else CERTAIN

    if isinstance(node, ast.Delete):
        return CERTAIN
    if isinstance(node, FUNCTIONS + (ast.ClassDef,)):
        bases = [base for base in getattr(node, "bases", []) if not hasattr(builtins, getattr(base, "id", ""))]
        is_plain = not (busy or bases or node.decorator_list or getattr(node, "keywords", []))
        return NOTHING if is_plain else explained([node.name])
    if any(acts_on_process(call) for call in busy):
        return CERTAIN
    if isinstance(getattr(node, "body", getattr(node, "cases", None)), list):
        inner = []
        for child in ast.iter_child_nodes(node):
            body = getattr(child, "body", [])
            inner += [child] if isinstance(child, ast.stmt) else body if isinstance(body, list) else []
        return max([effect(part, own, later) for part in inner] + [POSSIBLE])
    if isinstance(node, (ast.Assign, ast.AugAssign, ast.AnnAssign)):
        parts = [part for target in getattr(node, "targets", None) or [node.target] for part in ast.walk(target)]
        targets = [part for part in parts if isinstance(getattr(part, "ctx", None), ast.Store)]
        bound = [part.id for part in targets if isinstance(part, ast.Name)]
        changed = [root(part) for part in targets if isinstance(part, (ast.Attribute, ast.Subscript))]
        if any(name not in own for name in changed):
            return CERTAIN
        if busy or changed:
            return explained(bound + changed)
        return POSSIBLE if lazy or isinstance(node, ast.AugAssign) else NOTHING
    if not isinstance(node, ast.Expr) or not busy:
        return POSSIBLE if busy or lazy else NOTHING
    if node.value not in busy or shown and not silent:
        return POSSIBLE
    receiver = root(node.value) if isinstance(node.value.func, ast.Attribute) else None
    return explained([receiver]) if receiver in own else CERTAIN


def process_state():
    """The state that must not leak from a test, by name."""
    try:
        folder = os.getcwd()
    except OSError:
        folder = None
    return {"environ": dict(os.environ), "folder": folder}


def patched(node, text):
    """The statement with pytest's `monkeypatch`, which undoes it after the test; empty if there is no such form."""
    try:
        return ["monkeypatch." + line for line in monkeypatches(node, lambda part: ast.get_source_segment(text, part))]
    except AttributeError:  # before Python 3.8
        return []


def monkeypatches(node, source):
    def is_environ(part):
        return resolved(part)[0] is os.environ

    targets = node.targets if isinstance(node, (ast.Assign, ast.Delete)) else []
    target = targets[0] if len(targets) == 1 else None
    if isinstance(target, ast.Subscript) and is_environ(target.value):
        key = target.slice.value if type(target.slice).__name__ == "Index" else target.slice
        is_new = isinstance(node, ast.Assign)
        return ["setenv(%s, %s)" % (source(key), source(node.value)) if is_new else "delenv(%s)" % source(key)]
    if isinstance(target, ast.Attribute) and isinstance(node, ast.Assign):
        module = resolved(target.value)[0]
        if isinstance(module, type(sys)):
            more = "" if hasattr(module, target.attr) else ", raising=False"
            return ['setattr(%s, "%s", %s%s)' % (source(target.value), target.attr, source(node.value), more)]
    call = node.value if isinstance(node, ast.Expr) else None
    if not isinstance(call, ast.Call) or any(isinstance(part, ast.Starred) for part in call.args):
        return []
    arguments = [source(part) for part in call.args]
    if resolved(call.func)[0] is os.chdir and arguments:
        return ["chdir(%s)" % arguments[0]]
    if not isinstance(call.func, ast.Attribute) or not is_environ(call.func.value):
        return []
    environ, method = source(call.func.value), call.func.attr
    if method == "setdefault" and len(arguments) == 2:
        return ["setenv(%s, %s.get(%s, %s))" % (arguments[0], environ, arguments[0], arguments[1])]
    if method == "pop" and arguments:
        return ["delenv(%s, raising=False)" % arguments[0]]
    pairs = [('"%s"' % part.arg, part.value) if part.arg else (None, None) for part in call.keywords]
    for part in call.args:
        pairs += zip(map(source, part.keys), part.values) if isinstance(part, ast.Dict) and None not in part.keys else [(None, None)]
    is_known = method == "update" and all(name for name, _ in pairs)
    return ["setenv(%s, %s)" % (name, source(value)) for name, value in pairs] if is_known else []


def rehearsal(run_statements):
    """Copies this process as it is now, and returns a function that runs numbered statements in the copy.

    It returns what the last one did, on one line, or None: the time is up, or the copy is gone.
    """
    requests, answers = os.pipe(), os.pipe()
    deadline = time.time() + REHEARSAL
    try:
        with warnings.catch_warnings():
            # Python warns if there are threads.
            warnings.simplefilter("ignore")
            copy = os.fork()
    except OSError:
        return lambda numbers: None
    if copy == 0:
        os.close(requests[1])
        for line in os.fdopen(requests[0]):
            pid, failed = os.fork(), 1
            if pid == 0:
                # The alarm of a statement that hangs ends the process.
                signal.signal(signal.SIGALRM, signal.SIG_DFL)
                try:
                    os.write(answers[1], run_statements(json.loads(line)).encode() + b"\n")
                    failed = 0
                finally:
                    os._exit(failed)
            if os.waitpid(pid, 0)[1] != 0:
                os.write(answers[1], b"\n")
        os._exit(0)
    os.close(requests[0])
    os.close(answers[1])

    def did(numbers):
        try:
            os.write(requests[1], json.dumps(numbers).encode() + b"\n")
            ready = select.select([answers[0]], [], [], max(0, deadline - time.time()))[0]
            return os.read(answers[0], 4096).decode().strip() or None if ready else None
        except OSError:
            return None

    return did
