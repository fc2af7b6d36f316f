"""Records the files whose functions a test runs, in its own process and in those that it starts (see
subprocess_trace.py).
"""

import os
import sys
import threading

from testwright_extensions import extension_of
from testwright_record import SETTINGS, Asked, emit, is_child, locate, roots

# Saved, because tests may replace the module's attributes.
_open, _read, _close, _unlink = os.open, os.read, os.close, os.unlink


class _Profile(object):
    def __init__(self):
        self.files = self.extensions = set()

    def begin(self):
        self.files, self.extensions = set(), set()
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
                if is_child():
                    _CHILDREN.note(code.co_filename)
        elif event == "c_call":
            self.extensions.add(extension_of(arg))


class _Monitor(object):
    """Records by sys.monitoring (Python 3.12): each function is reported once for each test."""

    TOOL = 4

    def __init__(self):
        self.files = self.extensions = set()
        monitoring = sys.monitoring
        monitoring.use_tool_id(self.TOOL, "testwright")
        monitoring.register_callback(self.TOOL, monitoring.events.PY_START, self._called)
        monitoring.register_callback(self.TOOL, monitoring.events.CALL, self._calls)

    def begin(self):
        self.files, self.extensions = set(), set()
        events = sys.monitoring.events
        sys.monitoring.set_events(self.TOOL, events.PY_START | events.CALL)
        sys.monitoring.restart_events()

    def end(self):
        sys.monitoring.set_events(self.TOOL, 0)
        return self.files

    def _called(self, code, offset):
        if code.co_filename not in self.files and code.co_name != "<module>":
            self.files.add(code.co_filename)
            if is_child():
                _CHILDREN.note(code.co_filename)
        return sys.monitoring.DISABLE

    def _calls(self, code, offset, function, argument):
        self.extensions.add(extension_of(function))
        return sys.monitoring.DISABLE


def _contents(path):
    fd = _open(path, os.O_RDONLY)
    try:
        return b"".join(iter(lambda: _read(fd, 65536), b""))
    finally:
        _close(fd)


class _Children(object):
    """Records processes that a test starts (see subprocess_trace.py). Each test has its own file for this."""

    def __init__(self):
        self.tests = 0
        self.facts = self.end_spread = None
        self.note = lambda name: None
        self.code = {"__name__": "testwright_children", "__file__": SETTINGS["children"]["hook"]}
        exec(compile(_contents(self.code["__file__"]), self.code["__file__"], "exec"), self.code)

    def begin(self):
        self.tests += 1
        self.facts = os.path.join(SETTINGS["children"]["facts"], str(self.tests))
        self.end_spread = None
        try:
            _close(_open(self.facts, os.O_WRONLY | os.O_CREAT, 0o600))
        except OSError:
            return  # the processes are not traced, which must not make the test fail
        self.note = self.code["notes"](self.facts, tuple(roots))
        self.end_spread = self.code["spread"]("\n".join([self.facts] + roots))

    def end(self):
        if self.end_spread is None:
            return set()
        self.end_spread()
        try:
            found = _contents(self.facts)
            _unlink(self.facts)  # surviving processes stop writing
        except OSError:
            return set()
        return set(os.fsdecode(line) for line in found.split(b"\n")[:-1])


def _tracer():
    try:
        return _Monitor()
    except (AttributeError, ValueError):
        return _Profile()


_TRACED = Asked(SETTINGS["trace"])
_TRACER = _tracer() if _TRACED.asked else None
_CHILDREN = _Children() if _TRACED.asked else None


class Trace(object):
    """Traces one test after the other."""

    def __init__(self):
        self.traced = None

    def begin(self, node_id):
        if node_id in _TRACED:
            self.traced = node_id
            _CHILDREN.begin()
            _TRACER.begin()

    def end(self, node_id, extensions=()):
        """Ends the trace; further calls have no effect. `extensions` are paths of extension modules to add."""
        # A forked child leaves the trace to its parent.
        if self.traced != node_id or is_child():
            return
        self.traced = None
        found = (_TRACER.extensions | set(extensions)) - {None}
        for filename in _TRACER.end() | _CHILDREN.end():
            base, name = locate(filename)
            if base == "workspace":
                found.add(name)
        emit("executed", id=node_id, files=sorted(found))
