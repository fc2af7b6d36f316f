"""Runs a program like Python itself, and records which lines of some files it runs (by coverage.py), or how often.

    driver.py -m MODULE ARGUMENT...     like python -m MODULE ARGUMENT...
    driver.py FILE ARGUMENT...          like python FILE ARGUMENT...

Measuring begins before any module of the program is imported, so the program may be a test runner that is itself the
code under test. The program sees neither coverage.py nor this file, and can still use a coverage.py of its own. The
measurement is written at the end as one JSON object; a program that never finishes leaves none.

Python processes that the program starts since the first test are measured too: `subprocess_trace.py` loads this module
in them. Each process that runs one of the files writes its own result file, which is empty until the process ends.
Forked children that do not execute a new program are not measured.

Runs on Python 3.6 and later.
"""

import atexit
import json
import os
import runpy
import sys
import threading

# Saved, because the program may replace the modules' attributes and need not restore them.
_dumps, _open, _replace, _getpid, _chdir = json.dumps, open, os.replace, os.getpid, os.chdir
_realpath, _HERE = os.path.realpath, os.path.dirname(os.path.abspath(__file__))

_PID, _CWD = _getpid(), os.getcwd()
# Name of the context that starts with the first test.
_TESTS = "tests"


class _Measure(object):
    """Shared code of all kinds of measurement."""

    def __init__(self, settings):
        self.settings = settings
        self.tracer = None
        self.problems = []
        self.leave_children = None
        # Whether tests have begun, and whether measuring ended before the program did.
        self.has_tests, self.has_ended = False, False
        # Whether this is a process of the program that has not run any of the files yet.
        self.is_idle = False

    def start(self, context=None):
        """Starts measuring. Failures are recorded as problems, and do not affect the program. Without a context, the
        first test is still to come."""
        raise NotImplementedError

    def found(self):
        """Ends measuring, and returns the result for each file, by name."""
        raise NotImplementedError

    def test_begins(self, test=None):
        """Called by the recording plugin. Returns whether the plugin should report the next test too."""
        if not self.has_tests:
            self.has_tests = True
            self.first_test()
        return False

    def first_test(self):
        self.spread()

    def spread(self):
        """Measures the processes that are started from now on."""
        hook = self.settings["children"]
        scope = {"__name__": "testwright_children", "__file__": hook}
        try:
            with _open(hook) as source:
                exec(compile(source.read(), hook, "exec"), scope)
            self.leave_children = scope["spread"](_dumps(self.settings))
        except Exception as error:
            self.note("the processes that tests start are not measured: %s: %s" % (type(error).__name__, error))

    def by_test(self):
        """Returns lines by test and file name, if requested."""
        return {}

    def is_forked(self):
        return _getpid() != _PID

    def note(self, problem):
        if problem not in self.problems:
            self.problems.append(problem)

    def runs(self):
        """Called when one of the files runs for the first time."""
        if self.is_idle and _getpid() == _PID:
            self.is_idle = False
            _open(self.settings["result"], "w").close()

    def is_started(self):
        """Returns whether there is a result, and records whether something disturbed the measurement."""
        if self.tracer is None:
            return False
        if self.has_ended:
            return True
        if sys.gettrace() is not self.tracer:
            self.note("the trace function was not there any more at the end")
        return True

    def watch(self, own):
        """Detects that the program replaces the trace function."""
        original, tracer, note = sys.settrace, self.tracer, self.note

        def settrace(function):
            caller = sys._getframe(1).f_code.co_filename
            if not caller.startswith(own) and function is not tracer and sys.gettrace() is tracer:
                note("the trace function was replaced (sys.settrace in %s)" % os.path.basename(caller))
            return original(function)

        sys.settrace = settrace

    def finish(self):
        if _getpid() != _PID:
            return  # a forked child of the program that returned to this code
        if self.is_idle:
            return
        if self.leave_children is not None:
            self.leave_children()
        found = {}
        if self.is_started():
            try:
                found = self.found()
            except Exception as error:
                self.note("what was measured could not be read: %s: %s" % (type(error).__name__, error))
        aside = self.settings["result"] + ".aside"
        with _open(aside, "w") as out:
            out.write(_dumps({"files": found, "problems": self.problems, "contexts": self.by_test()}))
        _replace(aside, self.settings["result"])


class _Ran(_Measure):
    """Measures which lines run, by coverage.py."""

    def __init__(self, settings):
        _Measure.__init__(self, settings)
        self.coverage, self.modules = None, {}
        # Lines by path that have not run yet. If no lines are requested, measuring continues to the end.
        until = settings["until"]
        self.unseen = dict((settings["files"][name], set(lines)) for name, lines in until.items() if name in settings["files"])

    def start(self, context=None):
        package = self.settings["package"]
        environ = dict((name, os.environ.pop(name)) for name in list(os.environ) if name.startswith("COVERAGE_"))
        sys.path.insert(0, package)
        try:
            # Inherited from the process that this one was forked from.
            sys.modules.update(sys.__dict__.pop("_testwright_coverage", {}))
            from coverage import Coverage, collector

            # Only useful for debugging coverage.py, and slow if many modules are loaded.
            collector.short_stack = lambda *words, **more: ""
            os.environ["COVERAGE_CORE"] = "ctrace"
            self.coverage = Coverage(
                data_file=None,
                # Do not use the repository's: it may write data in parallel, omit files or use other plugins.
                config_file=False,
                include=self.patterns(),
                branch=False,
            )
            # Its warnings would pass through the program's filters, which may turn them into errors.
            self.coverage._warn = self._warned
            # Lines that are excluded from coverage can still run.
            self.coverage.clear_exclude()
            self.begin(context)
            if context is None:
                # Called by the recording plugin: later lines are recorded separately. The plugin removes the attribute
                # before tests run.
                sys._testwright_test_begins = self.test_begins
        except Exception as error:
            self.problems.append("coverage.py could not be started: %s: %s" % (type(error).__name__, error))
        finally:
            sys.path.remove(package)
            sys.path_importer_cache.pop(package, None)
            os.environ.pop("COVERAGE_CORE", None)
            os.environ.update(environ)
            for name in [name for name in sys.modules if name.partition(".")[0] == "coverage"]:
                self.modules[name] = sys.modules.pop(name)

    def patterns(self):
        return self.literal(*self.settings["files"].values())

    @staticmethod
    def literal(*paths):
        """Converts paths to patterns. A ? replaces special characters; other files that match are not requested
        anyway."""
        return ["".join("?" if letter in "*?[]{}!" else letter for letter in path) for path in paths]

    def begin(self, context):
        original, runs = self.coverage._should_trace, self.runs

        def should_trace(filename, frame):
            disposition = original(filename, frame)
            if disposition.trace:
                runs()
            return disposition

        # Called once for each file.
        self.coverage._should_trace = should_trace
        self.trace(context)

    def trace(self, context):
        self.coverage.start()
        if context is not None:
            self.coverage.switch_context(context)
        self.tracer = sys.gettrace()
        self.watch(os.path.join(self.settings["package"], ""))

    def _warned(self, text, slug=None, **more):
        # Running none of the files is a valid result, and a tracer that is not in C is only slow.
        if slug not in ("no-data-collected", "already-imported", "module-not-measured", "no-ctracer"):
            self.note("coverage.py warns: %s" % text)

    def test_begins(self, test=None):
        if self.has_ended or self.is_forked():
            return False
        is_first = not self.has_tests
        if is_first:
            self.see()
        _Measure.test_begins(self)
        if not is_first:
            self.see()
        if self.unseen and not any(self.unseen.values()):
            self.end()
            if self.leave_children is not None:
                self.leave_children()
                self.leave_children = None
        return bool(self.unseen) and not self.has_ended

    def first_test(self):
        self.tests_begin()
        _Measure.first_test(self)

    def tests_begin(self):
        self.coverage.switch_context(_TESTS)

    def see(self):
        """Removes the lines that ran since the previous call from the unseen lines."""
        for path, lines in self.unseen.items():
            lines.difference_update(self.ran(path))

    def ran(self, path):
        """Returns lines that ran since the context changed."""
        return self.coverage._collector.data.get(path) or ()

    def end(self):
        self.has_ended = True
        self.coverage.stop()

    def found(self):
        for name in [name for name in sys.modules if name.partition(".")[0] == "coverage"]:
            del sys.modules[name]
        sys.modules.update(self.modules)
        _chdir(_CWD)
        if not self.has_ended:
            self.end()
        return dict((name, self._lines(name, path)) for name, path in self.settings["files"].items())

    def _lines(self, name, path):
        try:
            _, statements, _, missing, _ = self.coverage.analysis2(path)
        except Exception as error:
            self.note("%s cannot be parsed: %s" % (name, error))
            return {"statements": [], "executed": [], "called": []}
        executed = set(statements) - set(missing)
        contexts = self.coverage.get_data().contexts_by_lineno(path)
        lines = [line for line, found in contexts.items() if _TESTS in found]
        called = executed & set(self.coverage._get_file_reporter(path).translate_lines(lines))
        return {"statements": sorted(statements), "executed": sorted(executed), "called": sorted(called)}


class _Monitored(_Ran):
    """Measures by sys.monitoring (Python 3.12), which costs time only when a line runs first. coverage.py still finds
    the statements."""

    TOOL = 3

    def __init__(self, settings):
        _Ran.__init__(self, settings)
        self.paths = frozenset(settings["files"].values())
        # Lines by path: all that ran, and those since the first test.
        self.all = dict((path, set()) for path in self.paths)
        self.of_tests = dict((path, set()) for path in self.paths)
        self.now = self.all
        # Execution counts since the first test, if requested.
        self.counts = dict((path, {}) for path in self.paths) if settings["counted"] else None
        # Path of the measured file by the code's own file name; None for other files.
        self.known = {}
        self.has_begun = False

    def begin(self, context):
        monitoring = self.monitoring = sys.monitoring
        events = monitoring.events
        known, of_file, runs, disable = self.known, self._of_file, self.runs, monitoring.DISABLE
        set_local_events, tool, line_event = monitoring.set_local_events, self.TOOL, events.LINE

        def started(code, offset):
            name = code.co_filename
            try:
                path = known[name]
            except KeyError:
                path = known[name] = of_file(name)
            if path is not None:
                runs()
                try:
                    set_local_events(tool, code, line_event)
                except ValueError:
                    pass  # the program freed the tool; before Python 3.13 its events still arrive
            return disable

        def line(code, number):
            self.now[known[code.co_filename]].add(number)
            return disable

        def counted(code, number):
            path = known[code.co_filename]
            self.now[path].add(number)
            if self.now is self.all:
                return disable
            counts = self.counts[path]
            counts[number] = counts.get(number, 0) + 1

        monitoring.use_tool_id(tool, "testwright-coverage")
        monitoring.register_callback(tool, events.PY_START, started)
        monitoring.register_callback(tool, line_event, line if self.counts is None else counted)
        if context is not None:
            self.now = self.of_tests
        monitoring.set_events(tool, events.PY_START)
        self.has_begun = True

    def _of_file(self, filename):
        real = _realpath(filename)
        return real if real in self.paths else None

    def tests_begin(self):
        self.now = self.of_tests
        self.monitoring.restart_events()

    def is_started(self):
        if not self.has_begun:
            return False
        if self.has_ended:
            return True
        if self.monitoring.get_tool(self.TOOL) != "testwright-coverage":
            self.note("the monitoring was ended")
        return True

    def ran(self, path):
        return self.now.get(path, ())

    def _lines(self, name, path):
        lines = _Ran._lines(self, name, path)
        return lines if self.counts is None else dict(lines, counts=self.counts[path])

    def free(self):
        monitoring, tool = self.monitoring, self.TOOL
        try:
            monitoring.set_events(tool, 0)
            for event in (monitoring.events.PY_START, monitoring.events.LINE):
                monitoring.register_callback(tool, event, None)
            monitoring.free_tool_id(tool)
        except ValueError:
            pass

    def end(self):
        self.has_ended = True
        self.free()
        data = self.coverage.get_data()
        for context, lines in (("", self.all), (_TESTS, self.of_tests)):
            data.set_context(context)
            data.add_lines(lines)


class _Counts(_Measure):
    """Counts how often lines run since the first test, which coverage.py cannot do. Slow, so only for few tests."""

    def __init__(self, settings):
        _Measure.__init__(self, settings)
        self.counts = dict((name, {}) for name in settings["files"])
        # Counting function by the code's own file name; None for other files.
        self.local = {}

    def start(self, context=None):
        if context is None:
            sys._testwright_test_begins = self.test_begins
        else:
            self._trace()

    def first_test(self):
        self._trace()
        _Measure.first_test(self)

    def _trace(self):
        local, of_file, settrace = self.local, self._of_file, sys.settrace

        def called(frame, event, arg):
            name = frame.f_code.co_filename
            try:
                return local[name]
            except KeyError:
                local[name] = found = of_file(name)
                return found

        self.tracer = called
        threading.settrace(called)
        settrace(called)
        self.watch(_HERE)

    def _of_file(self, filename):
        real = _realpath(filename)
        for name, path in self.settings["files"].items():
            if path == real:
                counts = self.counts[name]
                self.runs()

                def ran(frame, event, arg):
                    if event == "line":
                        line = frame.f_lineno
                        counts[line] = counts.get(line, 0) + 1
                    return ran

                return ran
        return None

    def found(self):
        sys.settrace(None)
        none = {"statements": [], "executed": [], "called": []}
        return dict((name, dict(none, counts=counts)) for name, counts in self.counts.items())


def _kind(settings):
    is_monitored = hasattr(sys, "monitoring")
    if settings.get("root"):
        base = _Monitored if is_monitored else _Ran
        return _load("all_files")["kind"](base, is_monitored, _realpath)(settings)
    if is_monitored:
        return _Monitored(settings)
    if settings["counted"]:
        return _Counts(settings)
    is_asked = settings["until"] and set(settings["files"]) <= set(settings["until"])
    if is_asked and sys.version_info >= (3, 8) and sys.implementation.name == "cpython":
        try:
            return _marked(settings)
        except Exception:
            pass
    return _Ran(settings)


def _marked(settings):
    return _load("marks")["kind"](_Ran, _TESTS)(settings)


def _load(name):
    """Returns the definitions of a file beside this one."""
    path = os.path.join(_HERE, name + ".py")
    scope = {"__name__": "testwright_" + name, "__file__": path}
    with _open(path) as source:
        exec(compile(source.read(), path, "exec"), scope)
    return scope


def _run(words):
    sys.argv[:] = words[1:] if words[0] == "-m" else words
    # Python put the folder of this file first, unless an option prevents that.
    is_first = not getattr(sys.flags, "safe_path", False) and not sys.flags.isolated
    if words[0] == "-m":
        if is_first:
            sys.path[0] = _CWD if sys.version_info >= (3, 7) else ""
        runpy.run_module(words[1], run_name="__main__", alter_sys=True)
    else:
        if is_first:
            sys.path[0] = os.path.dirname(os.path.realpath(words[0]))
        runpy.run_path(words[0], run_name="__main__")


def measure_child(settings):
    """Starts measuring in a process that the program started, before it imports its modules."""
    settings = dict(settings, result="%s.%d.child" % (settings["result"], _PID))
    measure = _kind(settings)
    measure.is_idle = True
    measure.start(_TESTS)
    # Handlers run in reverse order of registration, so this one runs last.
    atexit.register(measure.finish)


if __name__ == "__main__":
    _MEASURE = _kind(json.loads(os.environ.pop("TESTWRIGHT_COVERAGE")))
    _WORDS = sys.argv[1:]
    _MEASURE.start()
    try:
        _run(_WORDS)
    finally:
        _MEASURE.finish()
