"""Measures all Python files below a folder, by test. The driver loads this module if that is requested.

Lines are as Python reports them, which need not be the first lines of their statements. `statements.py` finds the
statements separately, once for many runs: here that would take longer than most tests.
"""

import os

# Name for lines that run before the first test.
_IMPORT = ""


def kind(base, is_monitored, realpath):
    """Returns the class that measures, derived from `base`, which measures some files."""

    class Whole(base):
        def __init__(self, settings):
            base.__init__(self, dict(settings, files={}, until={}))
            self.root = settings["root"].rstrip(os.sep) + os.sep
            # Lines by test and path.
            self.ran_in = {}
            self.test = _IMPORT

        def patterns(self):
            # In every release of coverage.py, such a pattern matches everything below the folder.
            return [pattern + "*" for pattern in base.literal(self.root)]

        def test_begins(self, test=None):
            if self.has_ended or self.is_forked():
                return False
            is_first = not self.has_tests
            if is_first or self.settings["contexts"]:
                self.store()
                self.test = test or "tests"
                if is_monitored:
                    self.monitoring.restart_events()
            if is_first:
                self.has_tests = True
                self.spread()
            return True

        def store(self):
            """Stores the lines that ran since the previous call."""
            lines_of = self.ran_in.setdefault(self.test, {})
            for path, lines in self.take():
                if lines:
                    lines_of.setdefault(path, set()).update(lines)

        def found(self):
            if not self.has_ended:
                self.has_ended = True
                self.stop()
            self.store()
            files = {}
            for lines_of in self.ran_in.values():
                for path, lines in lines_of.items():
                    files.setdefault(path, set()).update(lines)
            return dict(
                (self.name(path), {"statements": [], "executed": sorted(lines), "called": []})
                for path, lines in files.items()
                if self.name(path) is not None
            )

        def by_test(self):
            if not self.settings["contexts"]:
                return {}
            return dict(
                (test, dict((self.name(path), sorted(lines)) for path, lines in lines_of.items() if self.name(path)))
                for test, lines_of in self.ran_in.items()
                if test != _IMPORT
            )

        def name(self, path):
            return path[len(self.root) :] if path.startswith(self.root) and path.endswith(".py") else None

    class ByTrace(Whole):
        def take(self):
            data = self.coverage._collector.data
            found = [(path, set(lines)) for path, lines in list(data.items())]
            # Clear in place, because the trace functions hold references to these sets.
            for lines in list(data.values()):
                lines.clear()
            return found

        def stop(self):
            self.coverage.stop()

    class ByMonitoring(Whole):
        def __init__(self, settings):
            Whole.__init__(self, settings)
            self.now = {}

        def _of_file(self, filename):
            real = realpath(filename)
            if self.name(real) is None:
                return None
            self.now.setdefault(real, set())
            return real

        def take(self):
            found = [(path, set(lines)) for path, lines in list(self.now.items())]
            for lines in list(self.now.values()):
                lines.clear()
            return found

        def stop(self):
            self.free()

    return ByMonitoring if is_monitored else ByTrace
