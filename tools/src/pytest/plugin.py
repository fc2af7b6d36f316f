"""Writes what happens in a pytest session to a file, one JSON object a line.

Loaded with -p on the command line, so that sessions which tests start do not load it. Runs on Python 3.6
and pytest 3.0 and everything later. It names facts (outcomes, frames, messages); what they mean is decided
by whoever reads the file.
"""

import _thread
import json
import linecache
import os
import sys
import sysconfig
import threading
import time

import _pytest
import pytest

# Kept because tests may replace the modules' attributes (fake file systems, frozen time).
_open, _read, _write, _close, _unlink, _getpid = os.open, os.read, os.write, os.close, os.unlink, os.getpid
_exit, _start_thread, _allocate_lock = os._exit, _thread.start_new_thread, _thread.allocate_lock
_dumps = json.dumps
_now = time.time

_SETTINGS = json.loads(os.environ.pop("TESTWRIGHT_PYTEST"))
_WORKSPACE = _SETTINGS["workspace"]
_PID = _getpid()
_HERE = os.path.dirname(os.path.abspath(__file__))
_PYTEST = tuple(int(part) for part in pytest.__version__.split(".")[:2])
_MESSAGE = 6000
_CAPTURED = 8000

# Processes that tests start must not find this folder.
if _SETTINGS["pythonpath"] is None:
    os.environ.pop("PYTHONPATH", None)
else:
    os.environ["PYTHONPATH"] = _SETTINGS["pythonpath"]
sys.path[:] = [entry for entry in sys.path if os.path.abspath(entry or ".") != _HERE]


def _emit(event, **facts):
    if _getpid() != _PID:
        return  # a child that a test forked and that found its way back into the session
    facts["event"] = event
    line = (_dumps(facts) + "\n").encode("ascii", "replace")
    fd = _open(_SETTINGS["report"], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        while line:
            line = line[_write(fd, line) :]
    finally:
        _close(fd)


def _cut(text, most):
    if len(text) <= most:
        return text
    half = most // 2
    return "%s\n[... %d characters left out ...]\n%s" % (text[:half], len(text) - 2 * half, text[-half:])


# Where code lies


def _package_folder(module):
    return os.path.dirname(os.path.abspath(module.__file__))


def _internal_folders():
    folders = [_package_folder(_pytest)]
    for name in ("pluggy", "unittest"):
        module = sys.modules.get(name)
        if module is not None:
            folders.append(_package_folder(module))
    return folders


_ROOTS = [root.rstrip(os.sep) + os.sep for root in {_WORKSPACE, os.path.realpath(_WORKSPACE)}]
_STANDARD = [
    path.rstrip(os.sep) + os.sep
    for path in {sysconfig.get_paths()["stdlib"], os.path.dirname(os.path.abspath(os.__file__))}
]
_INTERNAL = [folder + os.sep for folder in _internal_folders()]
_RUNNER = [
    folder + os.sep for folder in (_package_folder(_pytest), _HERE, os.path.dirname(_SETTINGS["children"]["hook"]))
] + [folder for folder in _INTERNAL if folder.endswith(os.sep + "pluggy" + os.sep)]


def _relative(path):
    for root in _ROOTS:
        if path.startswith(root):
            return path[len(root) :]
    return None


def _locate(filename):
    """(base, name): base is "workspace" or "external", and name is relative to it."""
    if filename.startswith("<"):
        return "external", filename
    path = os.path.abspath(filename)
    for folder in ("site-packages", "dist-packages"):
        mark = os.sep + folder + os.sep
        if mark in path:
            return "external", path.rpartition(mark)[2]
    for name in (path, os.path.realpath(path)):
        inside = _relative(name)
        if inside is not None:
            return "workspace", inside
    for root in _STANDARD:
        if path.startswith(root):
            return "external", path[len(root) :]
    return "external", path


def _within(filename, folders):
    path = os.path.abspath(filename)
    return any(path.startswith(folder) for folder in folders)


def _path(node):
    path = getattr(node, "path", None) or getattr(node, "fspath", None)
    return None if path is None else str(path)


def _id(node):
    """The node id relative to the workspace, whatever pytest took for its root folder."""
    name, bracket, parameters = node.nodeid.partition("[")
    head, colons, tail = name.replace("::()", "").partition("::")
    path = _path(node)
    if path is not None:
        inside = _relative(path)
        if inside is None:
            inside = _relative(os.path.realpath(path))
        if inside is not None:
            head = inside
    return head + colons + tail + bracket + parameters


# What was raised


def _class_name(cls):
    module = getattr(cls, "__module__", None)
    name = getattr(cls, "__qualname__", cls.__name__)
    return name if module in (None, "builtins", "__main__") else "%s.%s" % (module, name)


def _message(error):
    if type(error).__name__ == "FixtureLookupError":
        return getattr(error, "msg", None) or "fixture %r not found" % getattr(error, "argname", "?")
    try:
        return str(error)
    except Exception as broken:
        return "<%s: its str() raised %s>" % (type(error).__name__, type(broken).__name__)


def _entries(traceback):
    entries = []
    while traceback is not None:
        entries.append((traceback.tb_frame, traceback.tb_lineno))
        traceback = traceback.tb_next
    return entries


def _below_the_runner(entries, path):
    """Without the frames above the test (or fixture, or module) and without those of the runner."""
    for index, (frame, _) in enumerate(entries):
        if path is not None and os.path.abspath(frame.f_code.co_filename) == path:
            entries = entries[index:]
            break
    else:
        index = 0
        while index < len(entries) and _within(entries[index][0].f_code.co_filename, _INTERNAL):
            index += 1
        entries = entries[index:]
    return [
        entry
        for entry in entries
        if not entry[0].f_code.co_filename.startswith("<frozen ")
        and (
            not _within(entry[0].f_code.co_filename, _RUNNER)
            # pytest may itself be the code under test
            or (_locate(entry[0].f_code.co_filename)[0] == "workspace")
        )
    ]


def _frame(frame, line):
    code = frame.f_code
    base, name = _locate(code.co_filename)
    linecache.checkcache(code.co_filename)
    return {
        "base": base,
        "file": name,
        "line": line or 0,
        "function": getattr(code, "co_qualname", code.co_name),
        "code": linecache.getline(code.co_filename, line or 0, frame.f_globals).strip()[:300],
        "hidden": frame.f_locals.get("__tracebackhide__") is True,
    }


def _cause(error):
    if error.__cause__ is not None:
        return "caused by", error.__cause__
    if error.__context__ is not None and not error.__suppress_context__:
        return "raised while handling", error.__context__
    return None


def _failure(error, traceback=None, path=None):
    entries = _below_the_runner(_entries(traceback or error.__traceback__), path)
    if len(entries) > 60:
        entries = entries[:20] + entries[-40:]
    frames = [_frame(*entry) for entry in entries]
    if isinstance(error, SyntaxError) and error.filename and error.lineno:
        base, name = _locate(error.filename)
        text = (error.text or "").strip()[:300]
        frames.append(
            {"base": base, "file": name, "line": error.lineno, "function": "<module>", "code": text, "hidden": False}
        )
    cause = _cause(error)
    if cause is not None:
        cause = "%s %s: %s" % (cause[0], _class_name(type(cause[1])), _cut(_message(cause[1]), 600))
    name = getattr(error, "name", None)
    return {
        "exception": _class_name(type(error)),
        "kinds": [cls.__name__ for cls in type(error).__mro__],
        "message": _cut(_message(error), _MESSAGE),
        "name": name if isinstance(name, str) else None,
        "cause": cause,
        "frames": frames,
    }


def _import_failure(error):
    """The exception beneath what pytest wraps around a module or conftest.py that cannot be imported."""
    kind = type(error).__name__
    if kind == "ConftestImportFailure":
        cause = getattr(error, "cause", None)
        wrapped = getattr(error, "excinfo", None)
        if cause is None and wrapped is not None:
            cause = wrapped[1] if isinstance(wrapped, tuple) else wrapped.value
        return cause or error.__cause__ or error.__context__ or error
    if kind == "CollectError":
        inner = error.__cause__ or error.__context__
        return inner if inner is not None else error
    return error


def _collection_error(node_id, error, path):
    inner = _import_failure(error)
    conftest = getattr(error, "path", None)
    if type(error).__name__ == "ConftestImportFailure" and conftest is not None:
        path = str(conftest)
        base, name = _locate(path)
        node_id = name if base == "workspace" else path
    _emit("collection_error", id=node_id, failure=_failure(inner, path=path))


# Which files ran


class _Profile(object):
    def __init__(self):
        self.files = set()

    def begin(self):
        self.files = set()
        threading.setprofile(self._called)
        sys.setprofile(self._called)

    def end(self):
        sys.setprofile(None)
        threading.setprofile(None)
        return self.files

    def _called(self, frame, event, arg):
        if event == "call":
            code = frame.f_code
            if code.co_filename not in self.files and code.co_name != "<module>":
                self.files.add(code.co_filename)
                if _getpid() != _PID:
                    _CHILDREN.note(code.co_filename)


class _Monitor(object):
    """The same by sys.monitoring (Python 3.12): each function is reported once a test."""

    TOOL = 4

    def __init__(self):
        self.files = set()
        monitoring = sys.monitoring
        monitoring.use_tool_id(self.TOOL, "testwright")
        monitoring.register_callback(self.TOOL, monitoring.events.PY_START, self._called)

    def begin(self):
        self.files = set()
        sys.monitoring.set_events(self.TOOL, sys.monitoring.events.PY_START)
        sys.monitoring.restart_events()

    def end(self):
        sys.monitoring.set_events(self.TOOL, 0)
        return self.files

    def _called(self, code, offset):
        if code.co_filename not in self.files and code.co_name != "<module>":
            self.files.add(code.co_filename)
            if _getpid() != _PID:
                _CHILDREN.note(code.co_filename)
        return sys.monitoring.DISABLE


def _contents(path):
    fd = _open(path, os.O_RDONLY)
    try:
        return b"".join(iter(lambda: _read(fd, 65536), b""))
    finally:
        _close(fd)


class _Children(object):
    """What runs in processes that a test starts: see children.py. Each test has a file of its own for it."""

    def __init__(self):
        self.tests = 0
        self.facts = self.end_spread = None
        self.note = lambda name: None
        self.code = {"__name__": "testwright_children", "__file__": _SETTINGS["children"]["hook"]}
        exec(compile(_contents(self.code["__file__"]), self.code["__file__"], "exec"), self.code)

    def begin(self):
        self.tests += 1
        self.facts = os.path.join(_SETTINGS["children"]["facts"], str(self.tests))
        self.end_spread = None
        try:
            _close(_open(self.facts, os.O_WRONLY | os.O_CREAT, 0o600))
        except OSError:
            return  # then they are not seen, which is no reason to fail
        self.note = self.code["notes"](self.facts, tuple(_ROOTS))
        self.end_spread = self.code["spread"]("\n".join([self.facts] + _ROOTS))

    def end(self):
        if self.end_spread is None:
            return set()
        self.end_spread()
        try:
            found = _contents(self.facts)
            _unlink(self.facts)  # processes that live on write no more
        except OSError:
            return set()
        return set(os.fsdecode(line) for line in found.split(b"\n")[:-1])


def _tracer():
    if not _SETTINGS["trace"]:
        return None
    try:
        return _Monitor()
    except (AttributeError, ValueError):
        return _Profile()


_TRACER = _tracer()
# What the driver that measures coverage wants to be told, once.
_FIRST_TEST = [sys.__dict__.pop("_testwright_first_test")] if hasattr(sys, "_testwright_first_test") else []
_CHILDREN = _Children() if _SETTINGS["trace"] else None


def _begin_trace(item):
    if _TRACER is not None and any(_is_asked(_id(item), t) for t in _SETTINGS["trace"]):
        item._testwright_traced = True
        _CHILDREN.begin()
        _TRACER.begin()


def _end_trace(item):
    # A child that a test forked and that found its way back into the session leaves the trace to its parent.
    if not getattr(item, "_testwright_traced", False) or _getpid() != _PID:
        return
    item._testwright_traced = False
    found = set()
    for filename in _TRACER.end() | _CHILDREN.end():
        base, name = _locate(filename)
        if base == "workspace":
            found.add(name)
    _emit("executed", id=_id(item), files=sorted(found))


# Hooks


@pytest.hookimpl(hookwrapper=True, tryfirst=True)
def pytest_load_initial_conftests(early_config):
    known = early_config.known_args_namespace
    if getattr(known, "cov_source", None):
        known.cov_source = []  # measuring is not our business, and its thresholds are no outcome
    outcome = yield
    if outcome.excinfo is not None:
        error = outcome.excinfo[1]
        if type(error).__name__ == "ConftestImportFailure":
            _collection_error("conftest.py", error, None)


@pytest.hookimpl(hookwrapper=True, tryfirst=True)
def pytest_cmdline_main(config):
    """Takes back what the repository's own options would do to this one run."""
    quiet = {
        # in one process
        "numprocesses": None,
        "dist": "no",
        "tx": [],
        "looponfail": False,
        "forked": False,
        # all of the tests asked for, once
        "maxfail": 0,
        "lf": False,
        "failedfirst": False,
        "newfirst": False,
        "stepwise": False,
        "reruns": None,
        "collectonly": False,
        # nobody is there to answer, and nothing is written into the tree
        "usepdb": False,
        "trace": False,
        "xmlpath": None,
        "resultlog": None,
        "htmlpath": None,
    }
    for name, value in quiet.items():
        if hasattr(config.option, name):
            setattr(config.option, name, value)
    yield


def pytest_sessionstart(session):
    if hasattr(session.config, "workerinput") or hasattr(session.config, "slaveinput"):
        return
    cache = getattr(session.config, "cache", None)
    if type(getattr(cache, "_cachedir", None)).__name__ == "LocalPath" and _PYTEST < (3, 2):
        # The ini option cache_dir, which is set on the command line, came with 3.2.
        cache._cachedir = type(cache._cachedir)(_SETTINGS["cache"])
    _emit("session", pytest=pytest.__version__, python=".".join(map(str, sys.version_info[:3])))


@pytest.hookimpl(hookwrapper=True, tryfirst=True)
def pytest_make_collect_report(collector):
    outcome = yield
    if outcome.excinfo is not None:
        if not isinstance(outcome.excinfo[1], (KeyboardInterrupt, SystemExit)):
            _collection_error(_id(collector), outcome.excinfo[1], _path(collector))
        return
    report = outcome.get_result()
    if report.failed:
        call = getattr(report, "call", None)
        if call is not None and call.excinfo is not None:
            _collection_error(_id(collector), call.excinfo.value, _path(collector))
        else:
            text = _cut(str(report.longrepr), _MESSAGE)
            empty = {"exception": "CollectError", "kinds": [], "message": text, "name": None, "cause": None, "frames": []}
            _emit("collection_error", id=_id(collector), failure=empty)
    elif report.skipped and report.longrepr is not None:
        _emit("collection_skipped", id=_id(collector), reason=_skip_reason(report))


def _skip_reason(report):
    where = report.longrepr
    reason = str(where[2]) if isinstance(where, tuple) and len(where) == 3 else ""
    return _cut(reason[len("Skipped: ") :] if reason.startswith("Skipped: ") else reason, 600)


def _is_asked(node_id, asked):
    return node_id == asked or node_id.startswith((asked + "::", asked + "[", asked.rstrip("/") + "/"))


@pytest.hookimpl(hookwrapper=True, tryfirst=True)
def pytest_collection_modifyitems(items):
    asked = _SETTINGS["ids"]
    ids = [_id(item) for item in items]
    _emit("asked", missing=[a for a in asked + _SETTINGS["first"] if not any(_is_asked(i, a) for i in ids)])
    seen = set()
    kept = []
    for item, node_id in zip(items, ids):
        if id(item) not in seen and any(_is_asked(node_id, a) for a in asked):
            seen.add(id(item))
            kept.append(item)
    items[:] = kept
    yield
    if _SETTINGS["reversed"]:
        items.reverse()
    if _SETTINGS["first"]:
        items.sort(key=lambda item: not _is_first(item))


def _is_first(item):
    return any(_is_asked(_id(item), first) for first in _SETTINGS["first"])


class _Limit(object):
    """Seconds for the tests that come after the first ones: what has not begun by then does not run, and one that
    takes half as long again is ended, and pytest with it."""

    def __init__(self, seconds):
        self.seconds, self.begun, self.running = seconds, None, None

    def before(self, item):
        self.running = _id(item)
        if self.seconds is not None and self.begun is None and not _is_first(item):
            self.begun = _now()
            # One for the whole time that is left, whichever test it finds running. Not faulthandler's timer, which
            # pytest stops at each failure, nor a threading.Timer, which tests see among the threads.
            _start_thread(self._end, (_held_lock(), self.seconds * 1.5))

    def _end(self, never, seconds):
        never.acquire(True, seconds)
        _emit("limit", id=self.running)
        _exit(1)

    def after(self, item):
        self.running = None
        if self.begun is not None and _now() - self.begun > self.seconds and not item.session.shouldstop:
            _emit("limit", id=None)
            item.session.shouldstop = "the time for further tests is over"


def _held_lock():
    lock = _allocate_lock()
    lock.acquire()
    return lock


_LIMIT = _Limit(_SETTINGS["rest_seconds"])


def pytest_deselected(items):
    _emit("deselected", ids=[_id(item) for item in items])


def pytest_collection_finish(session):
    _emit("collected", ids=[_id(item) for item in session.items])


@pytest.hookimpl(hookwrapper=True, tryfirst=True)
def pytest_runtest_protocol(item):
    if _FIRST_TEST:
        _FIRST_TEST.pop()()
    _emit("start", id=_id(item))
    _LIMIT.before(item)
    _begin_trace(item)
    yield
    _end_trace(item)
    _emit("end", id=_id(item))
    _LIMIT.after(item)


@pytest.hookimpl(hookwrapper=True, tryfirst=True)
def pytest_runtest_teardown(item):
    _end_trace(item)
    yield


@pytest.hookimpl(hookwrapper=True, tryfirst=True)
def pytest_runtest_makereport(item, call):
    outcome = yield
    report = outcome.get_result()
    # Strict xfail marks and unittest's expectedFailure: reported as failures without an exception.
    text = report.longrepr if isinstance(report.longrepr, str) else ""
    unexpected = report.outcome == "failed" and text.startswith(("[XPASS(strict)]", "Unexpected success"))
    facts = {
        "id": _id(item),
        "when": report.when,
        "outcome": report.outcome,
        "xfail": hasattr(report, "wasxfail") or unexpected,
        "unexpected": unexpected,
        "seconds": float(getattr(report, "duration", 0.0) or 0.0),
        "failure": None,
        "captured": "",
    }
    if report.outcome == "failed" and not unexpected:
        if call.excinfo is not None:
            facts["failure"] = _failure(call.excinfo.value, call.excinfo.tb, _path(item))
        else:
            text = _cut(str(report.longrepr), _MESSAGE)
            facts["failure"] = {
                "exception": "Failed", "kinds": [], "message": text, "name": None, "cause": None, "frames": [],
            }
        sections = ["--- %s ---\n%s" % (title, body) for title, body in report.sections]
        facts["captured"] = _cut("\n".join(sections), _CAPTURED)
    elif report.outcome == "skipped" and not facts["xfail"]:
        facts["captured"] = _skip_reason(report)
    _emit("phase", **facts)


def pytest_internalerror(excrepr):
    _emit("internal_error", text=_cut(str(excrepr), _MESSAGE))


def pytest_sessionfinish(session, exitstatus):
    _emit("finish", exit=int(exitstatus))
