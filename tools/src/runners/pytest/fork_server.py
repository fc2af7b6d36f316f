"""Holds a pytest session at two points, and forks a process for each run of tests that is asked for from there on.

Loaded beside testwright_pytest by a process that runs no tests itself. It waits where everything is configured and what
the test modules import is imported. A process forked there collects the tests and waits as well, before the first of
them; one forked from that runs them, and is to whoever looks at it what pytest started anew would be: a session leader,
a child of the toolbox, with its own output and an unused copy of whatever is captured into. Both are told what to do
over a socket, and end when it is closed. Runs on Python 3.6 and pytest 3.0 and everything later.
"""

import _thread
import array
import importlib
import importlib.util
import json
import os
import random
import socket
import stat
import sys
import tempfile
import time
import warnings

import pytest
from testwright_record import become, hold, relative

# Kept because code may replace the modules' attributes.
_exit, _fork, _getppid, _sleep = os._exit, os.fork, os.getppid, time.sleep

# Bytes of a request.
_MOST = 1 << 18
_LOADERS = ("_frozen_importlib", "_frozen_importlib_external")


class _Control(object):
    """The socket over which the toolbox asks for something."""

    def __init__(self, fd):
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET, 0, fileno=fd)

    def request(self):
        """What is asked for, and the descriptors that came with it. Where nobody asks any more, the process ends."""
        fds = array.array("i")
        space = socket.CMSG_SPACE(2 * fds.itemsize)
        data, ancillary, _, _ = self.socket.recvmsg(_MOST, space, socket.MSG_CMSG_CLOEXEC)
        if not data:
            _exit(0)
        for level, kind, content in ancillary:
            if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
                fds.frombytes(content[: len(content) - len(content) % fds.itemsize])
        return json.loads(data.decode("utf-8")), list(fds)

    def answer(self, **facts):
        self.socket.send(json.dumps(facts).encode("ascii"))

    def close(self):
        self.socket.close()


def _identity(fd):
    status = os.fstat(fd)
    return status.st_dev, status.st_ino


class _Output(object):
    """The file that takes the place of standard output and error while nobody reads them."""

    def __init__(self):
        self.fd = os.dup(1)

    def size(self):
        return os.fstat(self.fd).st_size

    def cut(self, size):
        os.ftruncate(self.fd, size)

    def become(self, new):
        """From now on `new` is the output, wherever it is open, and begins with what was written so far. Files without a
        name (those into which output is captured) are copied: one that is shared has one position for all."""
        written = os.pread(self.fd, self.size(), 0)
        while written:
            written = written[os.write(new, written) :]
        old = _identity(self.fd)
        for fd in _open_fds():
            try:
                status = os.fstat(fd)
            except OSError:
                continue  # that of the folder that was listed
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


def _take_stdin():
    """The socket is given as standard input; that of a run of tests is empty."""
    control = _Control(os.dup(0))
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    return control


_CONTROL = _take_stdin()
_OUTPUT = _Output()
# Into which the process that collects writes what was imported meanwhile.
_IMPORTED = []
hold()


def _flush(config):
    reporter = config.pluginmanager.getplugin("terminalreporter")
    writer = getattr(reporter, "_tw", None)
    for stream in (getattr(writer, "_file", None), sys.stdout, sys.stderr, sys.__stdout__, sys.__stderr__):
        flush = getattr(stream, "flush", None)
        if flush is not None:
            flush()


def _forked():
    """In the child True. A process with other threads is never forked: they would be missing."""
    state = random.getstate()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Python 3.12 warns of threads that libraries have of their own
        child = _fork()
    if child == 0:
        random.setstate(state)  # Python 3.7 seeds it anew
    return child


def _end_with_threads():
    if _thread._count():
        _exit(0)


# What is imported


def _files():
    found = set()
    for module in list(sys.modules.values()):
        name = getattr(module, "__file__", None)
        if isinstance(name, str):
            found.update(relative(path) for path in (os.path.abspath(name), os.path.realpath(name)))
    return found


def _origin(spec):
    """Where a module comes from that Python's own loaders load; None for those of pytest, which are tests."""
    loader = getattr(spec, "loader", None)
    if getattr(loader, "__module__", None) not in _LOADERS:
        return None
    return spec.origin or "namespace"


def _modules(known):
    found = []
    for name, module in list(sys.modules.items()):
        spec = getattr(module, "__spec__", None)
        origin = _origin(spec)
        file = os.path.basename(origin or "")
        is_test = file.startswith("test_") or file.endswith("_test.py") or file == "conftest.py"
        if name not in known and origin is not None and spec.name == name and not is_test:
            found.append([name, origin])
    return found


def _import(modules):
    """As far as they are found in the same places, without the folders that collecting adds to the path."""
    for name, origin in modules:
        if name in sys.modules:
            continue
        try:
            found = importlib.util.find_spec(name)
        except ModuleNotFoundError:
            continue
        if found is not None and _origin(found) == origin:
            importlib.import_module(name)


def _import_too(modules):
    """Where something cannot be imported by itself, this process is of no use."""
    size = _OUTPUT.size()
    try:
        _import(modules)
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
    except BaseException:
        _exit(0)
    _OUTPUT.cut(size)
    _end_with_threads()


# The two points. No wrapper of `pytest_collection` that is a part of pytest is outside of these: warnings that come of
# imports are treated as they are while tests are collected.


@pytest.hookimpl(hookwrapper=True)
def pytest_collection(session):
    _wait_to_collect(session.config)
    yield


def _wait_to_collect(config):
    global _CONTROL
    _flush(config)
    _end_with_threads()
    known, imported = set(sys.modules), False
    while True:
        request, fds = _CONTROL.request()
        _reap()
        if not _files().isdisjoint(request["changed"]):
            _CONTROL.answer(stale=True)
            _close(fds)
            continue
        _CONTROL.answer(stale=False)
        reader, writer = os.pipe()
        if _forked() == 0:
            os.close(reader)
            _CONTROL.close()
            output, control = fds
            _CONTROL = _Control(control)
            _OUTPUT.become(output)
            become(request["settings"])
            _IMPORTED.append((known, writer))
            return
        os.close(writer)
        _close(fds)
        modules = _read(reader)
        if modules and not imported:
            imported = True
            _import_too(json.loads(modules.decode("ascii")))


@pytest.hookimpl(hookwrapper=True)
def pytest_runtestloop(session):
    _wait_to_run(session.config)
    yield


def _wait_to_run(config):
    _flush(config)
    known, writer = _IMPORTED.pop()
    modules = json.dumps(_modules(known)).encode("ascii")
    _end_with_threads()
    with os.fdopen(writer, "wb") as pipe:
        pipe.write(modules)
    _CONTROL.answer(collected=True)
    while True:
        request, fds = _CONTROL.request()
        reader, writer = os.pipe()
        between = _forked()
        if between == 0:
            parent = os.getpid()
            child = _forked()
            if child != 0:
                os.write(writer, b"%d" % child)
                _exit(0)
            while _getppid() == parent:
                _sleep(0.0005)
            os.setsid()
            os.close(reader)
            os.close(writer)
            _CONTROL.close()
            _OUTPUT.become(fds[0])
            become(request["settings"])
            hold(False)
            return
        os.close(writer)
        _close(fds)
        child = _read(reader)
        os.waitpid(between, 0)
        _CONTROL.answer(pid=int(child))


def _read(fd):
    with os.fdopen(fd, "rb") as pipe:
        return pipe.read()


def _close(fds):
    for fd in fds:
        os.close(fd)


def _reap():
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except OSError:
        pass
