"""Records the events of a test run into a socket, one JSON object per line.

This module is shared by the programs and plugins that run tests. It records facts (outcomes, frames, messages); the
reader of the socket interprets them. Runs on Python 3.6 and later.
"""

import errno
import fcntl
import json
import linecache
import os
import sys
import sysconfig

# Saved, because tests may replace the modules' attributes (fake file systems, frozen time).
_write, _dup2, _getpid = os.write, os.dup2, os.getpid
# As UTF-8, because the reader refuses escapes of lone surrogates, which stand for undecodable bytes.
_dumps = json.JSONEncoder(ensure_ascii=False).encode

# The settings are in a file, because environment variables have a size limit.
with open(os.environ.pop("TESTWRIGHT_RECORD")) as _settings:
    SETTINGS = json.load(_settings)
WORKSPACE = SETTINGS["workspace"]
_PID = _getpid()
# A duplicate of the socket, for tests that close descriptors.
_SPARE = []
# Lines that are not sent yet; see `hold`.
_HELD = None
# The coverage driver's callback for the start of a test, until it returns False.
_TEST_BEGINS = [sys.__dict__.pop("_testwright_test_begins")] if hasattr(sys, "_testwright_test_begins") else []
_HERE = os.path.dirname(os.path.abspath(__file__))
MESSAGE = 6000
CAPTURED = 8000

# Processes that tests start must not find this folder.
if SETTINGS["pythonpath"] is None:
    os.environ.pop("PYTHONPATH", None)
else:
    os.environ["PYTHONPATH"] = SETTINGS["pythonpath"]


def hide():
    """Removes this folder from the path, once all of its modules are imported."""
    sys.path[:] = [entry for entry in sys.path if os.path.abspath(entry or ".") != _HERE]


def is_child():
    """Returns whether this is a forked child of a test that returned into the run."""
    return _getpid() != _PID


def become(settings):
    """Continues with these settings in a process forked for this purpose, which is not a child of a test."""
    global _PID
    _PID = _getpid()
    SETTINGS.clear()
    SETTINGS.update(settings)


def take_report(fd):
    """Makes `fd` the socket, under the number in the settings. Programs that tests start do not inherit it."""
    number = SETTINGS["report"]
    if fd != number:
        _dup2(fd, number)
        os.close(fd)
    os.set_inheritable(number, False)
    _SPARE[:] = [fcntl.fcntl(number, fcntl.F_DUPFD_CLOEXEC, number)]


def hold(held=True):
    """Holds events back, or sends those that were held back."""
    global _HELD
    lines, _HELD = _HELD, [] if held else None
    for line in lines or []:
        _send(line)


def emit(event, **facts):
    if is_child():
        return
    if event == "start" and _TEST_BEGINS and not _TEST_BEGINS[0](facts["id"]):
        _TEST_BEGINS.pop()
    facts["event"] = event
    line = (_dumps(facts) + "\n").encode("utf-8", "replace")
    if _HELD is None:
        _send(line)
    else:
        _HELD.append(line)


def _send(line):
    while line:
        try:
            line = line[_write(SETTINGS["report"], line) :]
        except OSError as error:
            if error.errno != errno.EBADF or not _SPARE:
                raise
            _dup2(_SPARE[0], SETTINGS["report"], False)


try:
    take_report(SETTINGS["report"])
except OSError:
    pass  # a process that only forks the processes that run tests


def cut(text, most):
    if len(text) <= most:
        return text
    half = most // 2
    return "%s\n[... %d characters left out ...]\n%s" % (text[:half], len(text) - 2 * half, text[-half:])


def _above(node_id):
    """Yields the id itself and everything above it: the function without parameters, the class, the file, folders."""
    yield node_id
    for at, letter in enumerate(node_id):
        if letter in "[/" or node_id.startswith("::", at):
            yield node_id[:at]


class Asked(object):
    """The requested ids, files and folders."""

    def __init__(self, asked):
        self.asked = asked
        self.plain = set(a.rstrip("/") for a in asked)

    def __contains__(self, node_id):
        return any(above in self.plain for above in _above(node_id))

    def missing(self, node_ids):
        """Returns the requested entries that neither are one of these ids nor contain one."""
        found = set(above for node_id in node_ids for above in _above(node_id) if above in self.plain)
        return [a for a in self.asked if a.rstrip("/") not in found]


# Locations of code


roots = [root.rstrip(os.sep) + os.sep for root in {WORKSPACE, os.path.realpath(WORKSPACE)}]
_STANDARD = [
    path.rstrip(os.sep) + os.sep
    for path in {sysconfig.get_paths()["stdlib"], os.path.dirname(os.path.abspath(os.__file__))}
]
# Folders whose frames are left out above the tests in a traceback.
_INTERNAL = []
# Folders of the runner, whose frames are left out anywhere in a traceback.
_RUNNER = [_HERE + os.sep, os.path.dirname(SETTINGS["children"]["hook"]) + os.sep]


def set_runner(above, own):
    """Sets the folders of the modules that run the tests, for `failure`. Frames of `above` are left out above the test,
    and frames of `own` everywhere, unless they are in the workspace."""

    def folders(modules):
        return [os.path.dirname(os.path.abspath(module.__file__)) + os.sep for module in modules]

    _INTERNAL.extend(folders(above))
    _RUNNER.extend(folders(own))


def relative(path):
    for root in roots:
        if path.startswith(root):
            return path[len(root) :]
    return None


def locate(filename):
    """Returns (base, name): base is "workspace" or "external", and name is relative to it."""
    if filename.startswith("<"):
        return "external", filename
    path = os.path.abspath(filename)
    for folder in ("site-packages", "dist-packages"):
        mark = os.sep + folder + os.sep
        if mark in path:
            return "external", path.rpartition(mark)[2]
    for name in (path, os.path.realpath(path)):
        inside = relative(name)
        if inside is not None:
            return "workspace", inside
    for root in _STANDARD:
        if path.startswith(root):
            return "external", path[len(root) :]
    return "external", path


def _within(filename, folders):
    path = os.path.abspath(filename)
    return any(path.startswith(folder) for folder in folders)


# Exceptions


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
    """Removes the frames above the test (or fixture, or module), and those of the runner."""
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
            or (locate(entry[0].f_code.co_filename)[0] == "workspace")
        )
    ]


def _frame(frame, line):
    code = frame.f_code
    base, name = locate(code.co_filename)
    linecache.checkcache(code.co_filename)
    return {
        "base": base,
        "file": name,
        "line": line or 0,
        "function": getattr(code, "co_qualname", code.co_name),
        "code": linecache.getline(code.co_filename, line or 0, frame.f_globals).strip()[:300],
        "hidden": frame.f_locals.get("__tracebackhide__") is True,
    }


# Finds the function of one of the repository's extension modules that raised an exception.
_FIND_EXTENSION = []


def set_extension_finder(find):
    _FIND_EXTENSION[:] = [find]


def _extension_frame(entries):
    """Returns the frame that Python does not have if an extension module raised the exception."""
    if not entries or not _FIND_EXTENSION:
        return []
    frame, line = entries[-1]
    try:
        found = _FIND_EXTENSION[0](frame, line)
    except Exception:  # code of objects that the line names
        found = None
    if found is None:
        return []
    name, path = found
    return [{"base": "workspace", "file": path, "line": 0, "function": name, "code": "", "hidden": False}]


def _cause(error):
    if error.__cause__ is not None:
        return "caused by", error.__cause__
    if error.__context__ is not None and not error.__suppress_context__:
        return "raised while handling", error.__context__
    return None


def _is_group(error):
    """Returns whether an exception holds others: PEP 654, its backport, and trio's older class."""
    names = ("BaseExceptionGroup", "MultiError")
    is_known = any(cls.__name__ in names for cls in type(error).__mro__)
    return is_known and bool(getattr(error, "exceptions", None))


def _leaves(error, depth=0):
    """Returns the exceptions in a group that are not groups, with the groups around each."""
    if not _is_group(error) or depth > 20:
        return [(error, [])]
    return [(leaf, [error] + around) for inner in error.exceptions for leaf, around in _leaves(inner, depth + 1)]


def _opened(error):
    """Returns the first exception of a group that code of the workspace raised, or else the first; the groups around
    it; and the number of exceptions in the group."""
    leaves = _leaves(error)[:100]

    def is_of_workspace(leaf):
        entries = _entries(leaf[0].__traceback__)
        return any(locate(frame.f_code.co_filename)[0] == "workspace" for frame, _ in entries)

    own = [leaf for leaf in leaves if is_of_workspace(leaf)]
    leaf, around = (own or leaves)[0]
    return leaf, around, len(leaves)


def is_own(error):
    """Returns whether the recorder itself raised an exception."""
    entries = _entries(error.__traceback__)
    known = _INTERNAL + _STANDARD
    own = [frame.f_code.co_filename for frame, _ in entries if not _within(frame.f_code.co_filename, known)]
    return bool(own) and _within(own[-1], [_HERE + os.sep])


def failure(error, traceback=None, path=None):
    entries = _entries(traceback or error.__traceback__)
    error, around, count = _opened(error)
    for inner in around[1:] + [error] if around else []:
        entries += _entries(inner.__traceback__)
    entries = _below_the_runner(entries, path)
    if len(entries) > 60:
        entries = entries[:20] + entries[-40:]
    frames = [_frame(*entry) for entry in entries]
    if not isinstance(error, AssertionError):
        frames += _extension_frame(entries)
    if isinstance(error, SyntaxError) and error.filename and error.lineno:
        base, name = locate(error.filename)
        text = (error.text or "").strip()[:300]
        frames.append(
            {"base": base, "file": name, "line": error.lineno, "function": "<module>", "code": text, "hidden": False}
        )
    cause = _cause(error) if not around else ("one of %d in" % count, around[0])
    if cause is not None:
        cause = "%s %s: %s" % (cause[0], _class_name(type(cause[1])), cut(_message(cause[1]), 600))
    try:
        name = getattr(error, "name", None)
    except Exception:  # a property of the test's own exception
        name = None
    return {
        "exception": _class_name(type(error)),
        "kinds": [cls.__name__ for cls in type(error).__mro__],
        "message": cut(_message(error), MESSAGE),
        "name": name if isinstance(name, str) else None,
        "cause": cause,
        "frames": frames,
    }


