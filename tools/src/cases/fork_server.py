"""Forks a process for each Python program to run, from one that has already imported the modules of such programs.

The server starts with a socket as its standard input. There are two kinds of request:

- A program's arguments and environment, with the descriptors of its output and report. The forked process continues
  like a new interpreter with these, as a child of the toolbox and the leader of a session.
- Modules to import before the next fork. Modules in the workspace are not imported, because it changes; nor are modules
  whose import has any effect besides taking time.

Runs on Python 3.6 and later.
"""

import _thread
import gc
import importlib
import importlib.util
import json
import os
import random
import runpy
import sys

from testwright_forking import fork_detached, probe, process_state, take_stdin

# Programs must not see it.
del sys.modules["testwright_forking"]

# Saved, because modules that are imported here may replace the attribute.
_exit = os._exit

# Maximum number of processes that try the imports of one list of modules.
_PROBES = 8

_SETTINGS = json.loads(os.environ.pop("TESTWRIGHT_FORK_SERVER"))
_CWD = os.getcwd()
_WORKSPACE = tuple({root.rstrip(os.sep) + os.sep for root in (_CWD, os.path.realpath(_CWD))})


def _entries(environ):
    """Returns the entries that PYTHONPATH adds to the path."""
    given = environ.get("PYTHONPATH")
    return [os.path.abspath(entry) for entry in given.split(os.pathsep)] if given else []


# The path, without the folder of this file and the entries of the environment.
_PATH = [entry for entry in sys.path[1:] if entry not in _entries(os.environ)]


def _set_dumpable(is_dumpable):
    """Programs run as the same user: they cannot access this process while it is not dumpable."""
    try:
        import ctypes

        ctypes.CDLL(None).prctl(4, int(is_dumpable), 0, 0, 0)
    except Exception:
        pass


# Imports


def _is_outside(origin):
    return origin is not None and not origin.startswith(_WORKSPACE)


def _coverage():
    """Returns the modules of the measuring coverage.py, and hides them from programs."""
    package = _SETTINGS["package"]
    if package is None:
        return {}
    sys.path.insert(0, package)
    try:
        import coverage
    finally:
        sys.path.remove(package)
        sys.path_importer_cache.pop(package, None)
    assert coverage
    names = [name for name in sys.modules if name.partition(".")[0] == "coverage"]
    return dict((name, sys.modules.pop(name)) for name in names)


def _import_pytest():
    spec = importlib.util.find_spec("pytest")
    if spec is not None and _is_outside(spec.origin):
        _import_all([["pytest", spec.origin]])
        _PLUGINS.update(_plugins())


# Top-level modules of plugins. pytest rewrites their assertions, and warns if they are already imported.
_PLUGINS = set()


def _plugins():
    """Returns the modules of installed packages with a pytest entry point, found like pytest does."""
    try:
        from importlib.metadata import distributions
    except ImportError:  # Python 3.7
        try:
            from importlib_metadata import distributions
        except ImportError:
            return set()
    names = set()
    for found in distributions():
        try:
            if not any(entry.group == "pytest11" for entry in found.entry_points):
                continue
            files = [str(file) for file in found.files or ()]
        except Exception:
            continue  # an incomplete installation
        for file in files:
            parts = file.split("/")
            if len(parts) == 1 and file.endswith(".py"):
                names.add(file[: -len(".py")])
            elif len(parts) == 2 and parts[1] == "__init__.py":
                names.add(parts[0])
    return names


def _package(module):
    return module[0].partition(".")[0]


def _import_found(name, origin):
    """Imports a module if it still has the same origin, outside of the workspace."""
    if name in sys.modules or name.partition(".")[0] == "coverage":
        return
    try:
        spec = importlib.util.find_spec(name)
    except (ImportError, ValueError, AttributeError):
        return
    if spec is not None and spec.origin == origin and _is_outside(origin):
        importlib.import_module(name)


def _import_all(modules):
    """Imports the modules whose only noticeable effect is the time that importing takes."""
    wanted = [module for module in modules if module[0] not in sys.modules and _package(module) not in _PLUGINS]
    for _ in range(_PROBES):
        if not wanted:
            return
        good = probe(wanted, _import_found, _state)
        for name, origin in wanted[:good]:
            _import_found(name, origin)
        if good < len(wanted):
            # Other modules of its package import it as well.
            refused = _package(wanted[good])
            wanted = [module for module in wanted[good + 1 :] if _package(module) != refused]
        else:
            wanted = []


def _state():
    inside = [name for name, module in list(sys.modules.items()) if not _is_allowed(module)]
    return process_state() + [[gc.isenabled(), inside, sorted(_PLUGINS.intersection(sys.modules))]]


def _is_allowed(module):
    file = getattr(module, "__file__", None)
    return not isinstance(file, str) or _is_outside(os.path.abspath(file))


# Forks


def _fork_program(output, report, number, control):
    """Returns True in the process that becomes the program; otherwise that process's id. The program gets its report as
    descriptor `number`."""
    child = fork_detached()
    if child is None:
        control.close()
        for fd in (1, 2):
            os.dup2(output, fd)
        os.close(output)
        os.dup2(report, number)
        os.close(report)
        return True
    os.close(output)
    os.close(report)
    return child


def _become(program, environ, coverage):
    """Continues like `python PROGRAM...`."""
    _set_dumpable(True)
    os.environ.clear()
    os.environ.update(environ)
    random.seed()
    importlib.invalidate_caches()
    if "TESTWRIGHT_COVERAGE" in environ:
        sys._testwright_coverage = coverage
    is_module = program[0] == "-m"
    sys.argv[:] = program[1:] if is_module else program
    first = _CWD if is_module else os.path.dirname(os.path.realpath(program[0]))
    sys.path[:] = [first] + _entries(environ) + _PATH
    if is_module:
        runpy.run_module(program[1], run_name="__main__", alter_sys=True)
    else:
        runpy.run_path(program[0], run_name="__main__")


def _serve():
    """Serves requests. Returns only in a process that becomes a program, with that program."""
    control = take_stdin()
    _set_dumpable(False)
    coverage = _coverage()
    _import_pytest()
    while True:
        request, fds = control.request()
        if _thread._count():
            _exit(0)  # never fork with other threads: the child would lack them
        if "modules" in request:
            _import_all(request["modules"])
            if hasattr(gc, "freeze"):
                gc.collect()
                gc.freeze()
            control.answer()
            continue
        output, report = fds
        child = _fork_program(output, report, request["report"], control)
        if child is True:
            return request["program"], request["environ"], coverage
        control.answer(pid=child)


if __name__ == "__main__":
    _become(*_serve())
