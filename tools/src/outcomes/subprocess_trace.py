"""Traces the Python processes that a test starts: records the files of the code under test whose functions they run, or
measures them like the run itself (see `coverage/driver.py`).

This module is written as sitecustomize.py into its own folder. The plugin loads it by that path, and puts the folder in
front of the PYTHONPATH of started processes while the test runs. It runs on every Python since 2.7, and hides itself
before the program begins. It would rather record nothing than disturb a program, so all errors are ignored.

Some interpreters are not traced: those that ignore the environment (-E, -I) or the site module (-S), and those started
by os.execve or a shell with its own PYTHONPATH. These interpreters, and other programs such as shells, do see the two
variables in their environment.
"""

import os
import sys

_NAME = "TESTWRIGHT_CHILDREN"
# Maximum number of calls inspected in one process if each costs time (before Python 3.12).
_CALLS = 1000000


def notes(facts, roots):
    """Returns a function that appends the path of a source file to `facts`, if it is below one of the roots. `facts`
    must exist: it is removed when its test is over, and then nothing more is written."""
    # Saved here, because code may replace the modules' attributes, and modules are cleared at exit.
    opened, write, close, encode = os.open, os.write, os.close, getattr(os, "fsencode", str)
    absolute, real = os.path.abspath, os.path.realpath
    flags = os.O_WRONLY | os.O_APPEND

    def note(name):
        try:
            if name.startswith("<"):
                return
            path = absolute(name)
            if not path.startswith(roots) and not real(path).startswith(roots):
                return
            out = opened(facts, flags)
            try:
                write(out, encode(path) + b"\n")
            finally:
                close(out)
        except Exception:
            pass

    return note


def spread(given):
    """Passes `given` to the processes that this one starts, whatever their environment is, without changing os.environ.
    Returns a function that stops this."""
    folder = os.path.dirname(__file__)
    environ, putenv = os.environ, os.putenv
    encode = getattr(os, "fsencode", str)
    ours = encode("PYTHONPATH=" + folder)
    rest = (encode(os.pathsep), encode("PYTHONPATH="), encode(_NAME + "="), encode(_NAME + "=" + given))

    def inherited():
        path = environ.get("PYTHONPATH")
        putenv("PYTHONPATH", folder + os.pathsep + path if path else folder)
        putenv(_NAME, given)

    def listed(variables):
        separator, pythonpath, name, whole = rest
        kept, path = [], b""
        for variable in variables:
            if variable.startswith(pythonpath):
                path = variable[len(pythonpath) :]
            elif not variable.startswith(name):
                kept.append(variable)
        return kept + [ours + separator + path if path else ours, whole]

    def mapped(variables):
        listing = [encode(name) + b"=" + encode(value) for name, value in variables.items()]
        return dict(entry.split(b"=", 1) for entry in listed(listing))

    def wrapped(original, at, with_ours):
        def start(*args, **more):
            try:
                if over:
                    pass
                elif args[at] is None:
                    inherited()
                else:
                    args = args[:at] + (with_ours(args[at]),) + args[at + 1 :]
            except Exception:
                pass
            return original(*args, **more)

        return start

    # Code that replaced a function in the meantime may restore this wrapper later.
    over = []
    replaced = []

    def replace(modules, name, at, with_ours):
        original = getattr(modules[0], name, None)
        if original is None:
            return
        ours = wrapped(original, at, with_ours)
        for module, name in zip(modules, (name, "_" + name)):
            if getattr(module, name, None) is original:
                setattr(module, name, ours)
                replaced.append((module, name, original, ours))

    try:
        import _posixsubprocess

        # The functions that subprocess and multiprocessing use, with the position of the environment argument.
        replace([_posixsubprocess, sys.modules.get("subprocess")], "fork_exec", 5, listed)
        replace([os], "posix_spawn", 2, mapped)
    except Exception:
        pass
    inherited()

    def end():
        over.append(True)
        for module, name, original, ours in replaced:
            if getattr(module, name, None) is ours:
                setattr(module, name, original)
        path = environ.get("PYTHONPATH")
        if path is None:
            os.unsetenv("PYTHONPATH")
        else:
            putenv("PYTHONPATH", path)
        os.unsetenv(_NAME)

    return end


def _trace(note):
    seen = set()

    def run(code):
        name = code.co_filename
        if name not in seen and code.co_name != "<module>":
            seen.add(name)
            note(name)

    monitoring = getattr(sys, "monitoring", None)
    if monitoring is not None:
        disable, start = monitoring.DISABLE, monitoring.events.PY_START

        def started(code, offset):
            run(code)
            return disable

        monitoring.use_tool_id(4, "testwright")
        monitoring.register_callback(4, start, started)
        monitoring.set_events(4, start)
        return

    left, threads = [_CALLS], []
    modules, setprofile = sys.modules, sys.setprofile

    def called(frame, event, arg):
        if event != "call":
            return
        left[0] -= 1
        code = frame.f_code
        if code.co_filename not in seen:
            run(code)
            # Creating a thread runs functions of this module, so the first thread is noticed in time.
            module = modules.get("threading")
            if module is not None and not threads and hasattr(module, "setprofile"):
                threads.append(module)
                module.setprofile(called)
        elif left[0] < 0:
            setprofile(None)

    setprofile(called)


def _hide():
    folder = os.path.dirname(__file__)
    sys.path[:] = [entry for entry in sys.path if entry != folder]
    sys.path_importer_cache.pop(folder, None)
    path = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    rest = [entry for entry in path if entry != folder]
    if not rest:
        del os.environ["PYTHONPATH"]
    elif rest != path:
        os.environ["PYTHONPATH"] = os.pathsep.join(rest)


def _measure(given):
    """Measures lines in this process, with the same driver as the first process."""
    import json

    settings = json.loads(given)
    path = settings["driver"]
    scope = {"__name__": "testwright_coverage", "__file__": path}
    with open(path) as source:
        exec(compile(source.read(), path, "exec"), scope)
    scope["measure_child"](settings)


def _start():
    given = os.environ.pop(_NAME)
    spread(given)
    if given.startswith("{"):
        _measure(given)
        return
    lines = given.split("\n")
    _trace(notes(lines[0], tuple(lines[1:])))


if __name__ == "sitecustomize":
    _hide()
    if _NAME in os.environ:
        try:
            _start()
        except Exception:
            pass
    # The module that Python would have found without this one. If there is none, the import fails as Python expects.
    del sys.modules["sitecustomize"]
    import sitecustomize  # noqa: F401
