"""Stops a pytest session at two points, and forks a process for each requested test run from there.

Loaded beside testwright_pytest by a process that runs no tests itself. It waits once everything is configured and the
imports of the test modules are imported. A process forked there collects the tests and waits before the first of them.
A process forked from that one runs the tests. It looks like a newly started pytest: a session leader, a child of the
toolbox, with its own output and unused capture files. Both waiting processes receive requests over a socket, and end
when it is closed.

Runs on Python 3.6 and later, and pytest 3.0 and later.
"""

import _thread
import importlib
import json
import os
import stat
import sys
import tempfile

import pytest
from testwright_forking import Control, fork, fork_detached, probe, process_state, read_pipe, take_stdin
from testwright_process_state import files, flush, is_found, is_test_file, loaded
from testwright_record import WORKSPACE, become, hold, take_report

# Saved, because code may replace the attribute.
_exit = os._exit

# Maximum number of processes that try imports before tests run, for one collection.
_PROBES = 5


def _identity(fd):
    status = os.fstat(fd)
    return status.st_dev, status.st_ino


class _Output(object):
    """The file that replaces standard output and error while the process waits."""

    def __init__(self):
        self.fd = os.dup(1)

    def size(self):
        return os.fstat(self.fd).st_size

    def cut(self, size):
        os.ftruncate(self.fd, size)

    def become(self, new):
        """Replaces the output with `new`, wherever it is open, and copies the text written so far. Files without a name
        (capture files) are copied too, since shared files would share one position."""
        written = os.pread(self.fd, self.size(), 0)
        while written:
            written = written[os.write(new, written) :]
        old = _identity(self.fd)
        for fd in _open_fds():
            if fd == new:
                continue
            try:
                status = os.fstat(fd)
            except OSError:
                continue  # the descriptor of the listed folder
            if (status.st_dev, status.st_ino) == old:
                os.dup2(new, fd, os.get_inheritable(fd))
            elif stat.S_ISREG(status.st_mode) and status.st_nlink == 0:
                _unshare(fd, status.st_size)
        os.close(new)


def _open_fds():
    try:
        return [int(name) for name in os.listdir("/proc/self/fd")]
    except OSError:
        return range(256)


def _unshare(fd, size):
    with tempfile.TemporaryFile(buffering=0) as copy:
        copy.write(os.pread(fd, size, 0))
        os.lseek(copy.fileno(), os.lseek(fd, 0, os.SEEK_CUR), os.SEEK_SET)
        os.dup2(copy.fileno(), fd, os.get_inheritable(fd))


_CONTROL = take_stdin()
# The first request. It is read early, because files behind descriptors in flight cannot be measured.
_FIRST = [_CONTROL.request()]
_OUTPUT = _Output()
# State of the collecting process: the modules of the process it was forked from, the modules that runs import, and the
# pipe for the modules that it has imported itself.
_COLLECTING = []
hold()


def _end_with_threads():
    if _thread._count():
        _exit(0)


# Imports


def _import_found(name, origin):
    if name not in sys.modules and is_found(name, origin):
        importlib.import_module(name)


def _import_too(modules):
    """Imports modules, and ends the process if one cannot be imported on its own."""
    size = _OUTPUT.size()
    try:
        for name, origin in modules:
            _import_found(name, origin)
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
    except BaseException:
        _exit(0)
    _OUTPUT.cut(size)
    _end_with_threads()


def _import_what_runs_import(modules):
    """Imports the modules that tests imported while running, if the only noticeable effect is the time. Returns the
    names of the others."""
    wanted = [module for module in modules if module[0] not in sys.modules]
    if not wanted or any(_names_loaded_modules(file) for file in files() if is_test_file(file)):
        return []
    left_out = []
    for _ in range(_PROBES):
        good = probe(wanted, _import_found, process_state)
        for name, origin in wanted[:good]:
            _import_found(name, origin)
        left_out.extend(name for name, _ in wanted[good : good + 1])
        wanted = wanted[good + 1 :]
        if not wanted:
            break
    _end_with_threads()
    return left_out + [name for name, _ in wanted]


def _names_loaded_modules(file):
    """Returns whether a test may inspect the imported modules, or import them in its own way."""
    try:
        with open(os.path.join(WORKSPACE, file), "rb") as source:
            text = source.read()
    except OSError:
        return True
    return any(word in text for word in (b"sys.modules", b"reload", b"__import__"))


# The two points. All of pytest's own wrappers of `pytest_collection` are inside this one, so import warnings are
# handled as during collection.


@pytest.hookimpl(hookwrapper=True)
def pytest_collection(session):
    _wait_to_collect(session.config)
    yield


def _wait_to_collect(config):
    global _CONTROL
    flush(config)
    _end_with_threads()
    known, left_out = set(sys.modules), set()
    while True:
        request, fds = _FIRST.pop() if _FIRST else _CONTROL.request()
        _reap()
        if not files().isdisjoint(request["changed"]):
            _CONTROL.answer(stale=True)
            _close(fds)
            continue
        _CONTROL.answer(stale=False)
        reader, writer = os.pipe()
        if fork() == 0:
            os.close(reader)
            _CONTROL.close()
            output, control = fds
            _CONTROL = Control(control)
            _OUTPUT.become(output)
            become(request["settings"])
            imports = [module for module in request["imports"] if module[0] not in left_out]
            _COLLECTING.append((known, imports, writer))
            return
        os.close(writer)
        _close(fds)
        collected = read_pipe(reader)
        if collected:
            modules, refused = json.loads(collected.decode("ascii"))
            left_out.update(refused)
            _import_too(modules)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtestloop(session):
    _wait_to_run(session.config)
    yield


def _wait_to_run(config):
    flush(config)
    known, imports, writer = _COLLECTING.pop()
    _end_with_threads()
    left_out = _import_what_runs_import(imports)
    modules = [module for module in loaded() if module[0] not in known]
    with os.fdopen(writer, "wb") as pipe:
        pipe.write(json.dumps([modules, left_out]).encode("ascii"))
    _CONTROL.answer(collected=True)
    while True:
        request, fds = _CONTROL.request()
        child = fork_detached()
        if child is None:
            _CONTROL.close()
            _OUTPUT.become(fds[0])
            become(request["settings"])
            take_report(fds[1])
            hold(False)
            return
        _close(fds)
        _CONTROL.answer(pid=child)


def _close(fds):
    for fd in fds:
        os.close(fd)


def _reap():
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except OSError:
        pass
