"""Records the events of a pytest session (see testwright_record).

Loaded with -p on the command line, so that sessions inside tests do not load it. Runs on Python 3.6 and later, and
pytest 3.0 and later.
"""

import _thread
import collections
import os
import sys
import time

import _pytest
import pytest
from testwright_collection_failure import record_conftest, record_failure
from testwright_extensions import named_by
from testwright_guard import Guard
from testwright_process_state import flush, loaded
from testwright_record import (
    CAPTURED,
    MESSAGE,
    SETTINGS,
    Asked,
    become,
    cut,
    emit,
    failure,
    hide,
    is_own,
    locate,
    relative,
    set_runner,
)
from testwright_trace import Trace

# Saved, because tests may replace the modules' attributes (fake file systems, frozen time).
_exit, _fork = os._exit, os.fork
_start_thread, _allocate_lock = _thread.start_new_thread, _thread.allocate_lock
_now = time.time

_PYTEST = tuple(int(part) for part in pytest.__version__.split(".")[:2])

hide()
_OTHERS = [module for module in map(sys.modules.get, ("pluggy", "unittest")) if module is not None]
set_runner([_pytest] + _OTHERS, [_pytest] + [module for module in _OTHERS if module.__name__ == "pluggy"])
_TRACE = Trace()
_FIRST = Asked(SETTINGS["first"])
_MOST_WARNINGS = 50
# Names of the modules that were imported when collection finished.
_COLLECTED = set()
# Ids of the running test, and of those around it.
_RUNNING = [None]


def _path(node):
    path = getattr(node, "path", None)
    if path is None and _PYTEST < (7, 0):
        path = getattr(node, "fspath", None)
    return None if path is None else str(path)


def _id(node):
    """Returns the node id relative to the workspace, whatever pytest's root folder is."""
    name, bracket, parameters = node.nodeid.partition("[")
    head, colons, tail = name.replace("::()", "").partition("::")
    path = _path(node)
    if path is not None:
        inside = relative(path)
        if inside is None:
            inside = relative(os.path.realpath(path))
        if inside is not None:
            head = inside
    return head + colons + tail + bracket + parameters


# Hooks


@pytest.hookimpl(hookwrapper=True, tryfirst=True)
def pytest_load_initial_conftests(early_config):
    if hasattr(early_config, "_inicache"):
        # On the command line, this would be an unknown option if the repository disables the cache plugin.
        early_config._inicache["cache_dir"] = SETTINGS["cache"]
    known = early_config.known_args_namespace
    if getattr(known, "cov_source", None):
        known.cov_source = []  # the driver measures coverage, and thresholds of pytest-cov are not outcomes
    outcome = yield
    if outcome.excinfo is not None:
        record_conftest(outcome.excinfo[1])


@pytest.hookimpl(hookwrapper=True, tryfirst=True)
def pytest_cmdline_main(config):
    """Overrides options of the repository that would affect this run."""
    quiet = {
        # run in one process
        "numprocesses": None,
        "dist": "no",
        "tx": [],
        "looponfail": False,
        "forked": False,
        "workers": None,
        "tests_per_worker": None,
        # run every requested test once
        "maxfail": 0,
        "lf": False,
        "failedfirst": False,
        "newfirst": False,
        "stepwise": False,
        "stepwise_skip": False,
        "stepwise_reset": False,
        "reruns": 0,  # None would leave the setting of the configuration file in force
        "retries": 0,
        "force_flaky": False,
        "collectonly": False,
        "setuponly": False,
        "setupplan": False,
        "testmon": False,
        # do not wait for input, and do not write into the tree
        "usepdb": False,
        "trace": False,
        "xmlpath": None,
        "resultlog": None,
        "htmlpath": None,
        "report_log": None,
        "pastebin": None,
    }
    for name, value in quiet.items():
        if hasattr(config.option, name):
            setattr(config.option, name, value)
    yield


_GUARD = Guard()


def pytest_sessionstart(session):
    _GUARD.begin()
    if hasattr(session.config, "workerinput") or hasattr(session.config, "slaveinput"):
        return
    cache = getattr(session.config, "cache", None)
    if type(getattr(cache, "_cachedir", None)).__name__ == "LocalPath" and _PYTEST < (3, 2):
        # The command line sets the ini option cache_dir, which was added in 3.2.
        cache._cachedir = type(cache._cachedir)(SETTINGS["cache"])
    emit("session", pytest=pytest.__version__, python=".".join(map(str, sys.version_info[:3])))


@pytest.hookimpl(hookwrapper=True, tryfirst=True)
def pytest_make_collect_report(collector):
    outcome = yield
    if outcome.excinfo is not None:
        error = outcome.excinfo[1]
        if not isinstance(error, KeyboardInterrupt):
            record_failure(_id(collector), error, _path(collector))
        if isinstance(error, SystemExit):
            # Since pytest 8, a module that exits would end the whole session.
            from _pytest.reports import CollectErrorRepr, CollectReport

            outcome.force_result(CollectReport(collector.nodeid, "failed", CollectErrorRepr(repr(error)), []))
        return
    report = outcome.get_result()
    if report.failed:
        call = getattr(report, "call", None)
        if call is not None and call.excinfo is not None:
            record_failure(_id(collector), call.excinfo.value, _path(collector))
        else:
            text = cut(str(report.longrepr), MESSAGE)
            empty = {"exception": "CollectError", "kinds": [], "message": text, "name": None, "cause": None, "frames": []}
            emit("collection_error", id=_id(collector), failure=empty)
    elif report.skipped and report.longrepr is not None:
        emit("collection_skipped", id=_id(collector), reason=_skip_reason(report))


def _skip_reason(report):
    where = report.longrepr
    reason = str(where[2]) if isinstance(where, tuple) and len(where) == 3 else ""
    return cut(reason[len("Skipped: ") :] if reason.startswith("Skipped: ") else reason, 600)


@pytest.hookimpl(hookwrapper=True, tryfirst=True)
def pytest_collection_modifyitems(items):
    asked = Asked(SETTINGS["ids"])
    ids = [_id(item) for item in items]
    emit("asked", missing=asked.missing(ids) + _FIRST.missing(ids))
    seen = set()
    kept = []
    for item, node_id in zip(items, ids):
        if id(item) not in seen and node_id in asked:
            seen.add(id(item))
            kept.append(item)
    items[:] = kept
    yield
    if SETTINGS["reversed"]:
        items.reverse()
    if SETTINGS["first"]:
        _nearest_first(items)


def _nearest_first(items):
    """Sorts the first tests to the front, and the others by likeness to them: tests that name the edited code, in the
    same class, with the same fixtures, near them in the file. Tests of one class stay together, because of its
    fixtures."""
    edited = set(SETTINGS["near"])

    def place(item):
        return _path(item), getattr(item, "cls", None)

    def fixtures(item):
        return set(getattr(getattr(item, "_fixtureinfo", None), "argnames", None) or ())

    first = [(at, item) for at, item in enumerate(items) if _is_first(item)]
    groups, keys = {}, {}
    for at, item in enumerate(items):
        near = [(abs(at - of), other) for of, other in first if _path(other) == _path(item)]
        same = any(place(item) == place(other) and place(item)[1] is not None for _, other in near)
        shared = any(fixtures(item) & fixtures(other) for _, other in near)
        distance = min([d for d, _ in near]) if near else len(items)
        group = place(item) if place(item)[1] is not None else (_path(item), at)
        key = (edited.isdisjoint(_names(item)), not same, not shared, distance)
        groups[group] = min(groups.get(group, key), key)
        keys[id(item)] = (group, at)
    items.sort(key=lambda item: (not _is_first(item), groups[keys[id(item)][0]], keys[id(item)][1]))


def _names(item):
    """Returns the names that a test's function uses, nested functions included."""
    function = getattr(item, "function", None)
    codes = [getattr(getattr(function, "__func__", function), "__code__", None)]
    found = set()
    while codes:
        code = codes.pop()
        found.update(getattr(code, "co_names", ()))
        codes.extend(inner for inner in getattr(code, "co_consts", ()) if hasattr(inner, "co_names"))
    return found


def _is_first(item):
    return _id(item) in _FIRST


class _Limit(object):
    """The time limit, in seconds, of the tests after the first ones. Tests that have not started by then do not run. If
    a test is still running after 1.5 times the limit, pytest is ended."""

    def __init__(self, seconds):
        self.seconds, self.begun, self.running = seconds, None, None

    def before(self, item):
        self.running = _id(item)
        if self.seconds is not None and self.begun is None and not _is_first(item):
            self.begun = _now()
            # One timer for the whole time, whichever test is running at its end. faulthandler's timer would not do, as
            # pytest stops it at each failure; nor would threading.Timer, which tests see among the threads.
            _start_thread(self._end, (_held_lock(), self.seconds * 1.5))

    def _end(self, never, seconds):
        never.acquire(True, seconds)
        emit("limit", id=self.running)
        _exit(1)

    def after(self, item):
        self.running = None
        if self.begun is not None and _now() - self.begun > self.seconds and not item.session.shouldstop:
            emit("limit", id=None)
            item.session.shouldstop = "the time for further tests is over"


def _held_lock():
    lock = _allocate_lock()
    lock.acquire()
    return lock


_LIMIT = _Limit(SETTINGS["rest_seconds"])


def pytest_deselected(items):
    emit("deselected", ids=[_id(item) for item in items])


def pytest_collection_finish(session):
    _COLLECTED.update(sys.modules)
    emit("collected", ids=[_id(item) for item in session.items])
    if SETTINGS["collect_only"]:
        emit("items", items=[_place(item) for item in session.items])


def _place(item):
    """Returns an item with the file and the line (from 1, 0 if unknown) in which it is defined."""
    try:
        file, line, _ = item.reportinfo()
        base, name = locate(str(file))
        line = line + 1 if isinstance(line, int) and line >= 0 else 0
    except Exception:  # a plugin's own method
        base, name, line = "external", "", 0
    return {"id": _id(item), "file": name if base == "workspace" else "", "line": line}


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session):
    if SETTINGS["collect_only"]:
        return True
    if not SETTINGS["alone"]:
        return None
    if _thread._count():
        emit("internal_error", text="threads are running: no process can be forked", own=False)
        return True
    for item in list(session.items):
        flush(session.config)
        child = _fork()
        if child == 0:
            _run_alone(session, item)
        if os.waitpid(child, 0)[1] != 0:
            session.testsfailed += 1
    return True


def _run_alone(session, item):
    """Runs one test in this process, and ends the process."""
    try:
        become(dict(SETTINGS))
        item.ihook.pytest_runtest_protocol(item=item, nextitem=None)
        flush(session.config)
        _exit(1 if session.testsfailed else 0)
    finally:
        _exit(2)


@pytest.hookimpl(hookwrapper=True, tryfirst=True)
def pytest_runtest_protocol(item):
    emit("start", id=_id(item))
    _LIMIT.before(item)
    _RUNNING.append(_id(item))
    _TRACE.begin(_id(item))
    yield
    _TRACE.end(_id(item))
    _RUNNING.pop()
    emit("end", id=_id(item))
    _LIMIT.after(item)


@pytest.hookimpl(hookwrapper=True, tryfirst=True)
def pytest_runtest_call(item):
    option = item.config.option
    verbose = getattr(option, "verbose", 0)
    if _id(item) in Asked(SETTINGS["whole_values"]):
        # Like -vv, but only for the messages of assertions.
        option.verbose = max(2, verbose)
    yield
    option.verbose = verbose


@pytest.hookimpl(hookwrapper=True, tryfirst=True)
def pytest_runtest_teardown(item):
    _TRACE.end(_id(item), _extensions(item))
    yield


def _extensions(item):
    """Returns extension modules of the repository that a test names, for calls that Python does not report: those of
    Cython's functions before Python 3.12."""
    if sys.version_info >= (3, 12) or not SETTINGS["trace"]:
        return ()
    return named_by(getattr(item, "function", None))


def _with_sides(found):
    """Adds which side of a comparison each sign of a diff stands for; before pytest 5.4 they were reversed."""
    lines = [line.strip() for line in found["message"].split("\n")]
    has_signs = any(line[:2] in ("+ ", "- ") and not line[2:].strip().startswith(("where ", "and ")) for line in lines)
    if found["exception"] == "AssertionError" and lines[0].startswith("assert ") and has_signs:
        sides = ("left", "right") if _PYTEST >= (5, 4) else ("right", "left")
        found["message"] += "\n[diff: + is the %s side of the comparison, - the %s side]" % sides
    return found


def _is_unexpected_success(item, call, report):
    """Returns whether a strict xfail mark or unittest's expectedFailure passed unexpectedly. They are reported as
    failures: without an exception or, for unittest since pytest 7.0, with pytest's own exception."""
    if isinstance(report.longrepr, str) and report.longrepr.startswith(("[XPASS(strict)]", "Unexpected success")):
        return True
    error = call.excinfo.value if call.excinfo is not None else None
    return (
        type(item).__name__ == "TestCaseFunction"
        and type(error).__name__ == "Failed"
        and getattr(error, "pytrace", True) is False
        and str(error).startswith("Unexpected success")
    )


@pytest.hookimpl(hookwrapper=True, tryfirst=True)
def pytest_runtest_makereport(item, call):
    outcome = yield
    report = outcome.get_result()
    _GUARD.check()
    _GUARD.compare(call, report)
    unexpected = report.outcome == "failed" and _is_unexpected_success(item, call, report)
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
            facts["failure"] = _with_sides(failure(call.excinfo.value, call.excinfo.tb, _path(item)))
        else:
            text = cut(str(report.longrepr), MESSAGE)
            facts["failure"] = {
                "exception": "Failed", "kinds": [], "message": text, "name": None, "cause": None, "frames": [],
            }
        sections = ["--- %s ---\n%s" % (title, body) for title, body in report.sections]
        facts["captured"] = cut("\n".join(sections), CAPTURED)
    elif report.outcome == "skipped" and not facts["xfail"]:
        facts["captured"] = _skip_reason(report)
    emit("phase", **facts)


class _Warnings(object):
    """Warnings from the repository's own code while tests ran."""

    def __init__(self):
        self.counts = collections.OrderedDict()

    def add(self, warning, when):
        base, file = locate(str(warning.filename))
        if when == "runtest" and base == "workspace":
            key = (warning.category.__name__, cut(str(warning.message), 300), file, warning.lineno)
            self.counts[key] = self.counts.get(key, 0) + 1

    def emit(self):
        names = ("category", "message", "file", "line", "count")
        found = [dict(zip(names, key + (count,))) for key, count in self.counts.items()]
        if found:
            emit("warnings", warnings=found[:_MOST_WARNINGS])


_WARNINGS = _Warnings()

if _PYTEST >= (6, 0):

    def pytest_warning_recorded(warning_message, when):
        _WARNINGS.add(warning_message, when)

elif _PYTEST >= (3, 8):

    def pytest_warning_captured(warning_message, when):
        _WARNINGS.add(warning_message, when)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_logreport(report):
    """Plugins that run a test several times log only the attempts that count, or log the others as `rerun`."""
    if not isinstance(getattr(report, "when", None), str) or _RUNNING[-1] is None:
        return
    emit("logged", id=_RUNNING[-1], when=report.when, outcome=str(report.outcome))


def pytest_internalerror(excrepr, excinfo):
    emit("internal_error", text=cut(str(excrepr), MESSAGE), own=is_own(excinfo.value))


def pytest_sessionfinish(session, exitstatus):
    _GUARD.check()
    _WARNINGS.emit()
    if SETTINGS.get("imports"):
        known = () if SETTINGS.get("all_imports") else _COLLECTED
        emit("imported", modules=[module for module in loaded() if module[0] not in known])
    emit("finish", exit=int(exitstatus))
