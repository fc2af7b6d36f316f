"""Notes in which files of the code under test the Python processes run functions that a traced test starts, or has
them measured as the run is (see `coverage/driver.py`).

Written out as sitecustomize.py into a folder of its own; the plugin loads it by that path and puts the folder in
front of the PYTHONPATH of what the test starts, for as long as the test runs. Runs on every Python since 2.7, takes
itself out of sight before the code that it runs in begins, and prefers to see nothing over disturbing anything:
whatever goes wrong here is left alone. Not followed are interpreters that are told to look at no environment (-E, -I)
or to do without the site module (-S), and those that are started by os.execve or a shell with a PYTHONPATH of its own.
These interpreters, and programs other than Python such as shells, do find the two variables in their environment.
"""

import os
import sys

_NAME = "TESTWRIGHT_CHILDREN"
# Calls looked at in one process where each costs time (before Python 3.12).
_CALLS = 1000000


def notes(facts, roots):
    """A function that appends to `facts` the path of a source file, if it lies below one of the roots. The file
    must exist: when its test is over it is taken away, and nothing is written any more."""
    # Kept here, because code may replace the modules' attributes, and modules go away at exit.
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
    """Hands `given` to the processes that this one starts, whatever environment they get, and leaves os.environ as
    it is. Returns a function that ends it."""
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

    # Whoever replaced a function in the meantime may put ours back later.
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

        # What subprocess and multiprocessing start processes by; the place of the environment in their arguments.
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
            # Making a thread runs functions of this module, so it is seen in time.
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
    """Has a run measured that measures what runs in lines: by the driver that the first process runs under."""
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
    # The one that Python would have found without this one. Where there is none, this fails as Python expects it.
    del sys.modules["sitecustomize"]
    import sitecustomize  # noqa: F401
