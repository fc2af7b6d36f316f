"""Forks programs from a process that has imported what they import, at the request of the toolbox.

Shared by the process that holds a pytest session and the one that becomes Python programs. Runs on Python 3.6 and
later.
"""

import _thread
import array
import io
import json
import locale
import logging
import os
import random
import signal
import socket
import sys
import tempfile
import time
import warnings

# Kept because code may replace the modules' attributes.
_exit, _fork, _getppid, _sleep = os._exit, os.fork, os.getppid, time.sleep

# Maximum bytes of a request.
_MAX_REQUEST = 1 << 18


class Control(object):
    """The socket over which the toolbox sends requests."""

    def __init__(self, fd):
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET, 0, fileno=fd)

    def request(self):
        """Returns a request and the descriptors that came with it. Ends the process if the socket is closed."""
        fds = array.array("i")
        space = socket.CMSG_SPACE(2 * fds.itemsize)
        data, ancillary, _, _ = self.socket.recvmsg(_MAX_REQUEST, space, socket.MSG_CMSG_CLOEXEC)
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


def take_stdin():
    """Returns the socket given as standard input, and leaves an empty standard input to programs."""
    control = Control(os.dup(0))
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    return control


def fork():
    """Returns 0 in the child. Never called with other threads running: the child would lack them."""
    state = random.getstate()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Python 3.12 warns about threads that libraries started
        child = _fork()
    if child == 0:
        random.setstate(state)  # Python 3.7 reseeds it
    return child


def fork_detached():
    """Returns None in the child, which leads a session and is a child of the toolbox; otherwise the child's process
    id."""
    reader, writer = os.pipe()
    between = fork()
    if between == 0:
        parent = os.getpid()
        child = fork()
        if child != 0:
            os.write(writer, b"%d" % child)
            _exit(0)
        while _getppid() == parent:
            _sleep(0.0002)
        os.setsid()
        os.close(reader)
        os.close(writer)
        return None
    os.close(writer)
    child = read_pipe(reader)
    os.waitpid(between, 0)
    return int(child)


def read_pipe(fd):
    with os.fdopen(fd, "rb") as pipe:
        return pipe.read()


def probe(modules, import_module, state):
    """Returns how many modules, from the first on, have no effect but the time that importing them takes: they print
    nothing, warn of nothing, start nothing and leave the state as it was. A forked process tries them."""
    reader, writer = os.pipe()
    child = fork()
    if child != 0:
        os.close(writer)
        good = len(read_pipe(reader))
        os.waitpid(child, 0)
        return good
    try:
        with tempfile.TemporaryFile() as printed:
            for fd in (1, 2):
                os.dup2(printed.fileno(), fd)
            sys.stdout = sys.stderr = io.TextIOWrapper(os.fdopen(os.dup(1), "wb", 0), write_through=True)
            with warnings.catch_warnings(record=True) as warned:
                warnings.simplefilter("always")
                before = state()
                for name, origin in modules:
                    import_module(name, origin)
                    if warned or os.fstat(1).st_size or state() != before:
                        break
                    os.write(writer, b".")
    finally:
        _exit(0)


def process_state():
    """Returns the state that an import may change for code that does not import the module."""
    handlers = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGALRM, signal.SIGCHLD)]
    root = logging.getLogger()
    general = [entry for entry in warnings.filters if _is_general(entry)]
    return [
        [os.getcwd(), dict(os.environ), locale.setlocale(locale.LC_ALL), _thread._count(), handlers],
        [list(sys.path), list(sys.meta_path), list(sys.path_hooks), sys.getrecursionlimit(), sys.excepthook],
        [general, warnings.showwarning, random.getstate(), sys.stdout, sys.stderr],
        [root.level, list(root.handlers), logging.root.manager.disable],
    ]


def _is_general(entry):
    """Many libraries add filters for their own warnings or for those of modules that they import."""
    _, message, category, module, _ = entry
    return message is None and module is None and category.__module__ == "builtins"
