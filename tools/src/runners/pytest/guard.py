"""Checks that tests do not replace the functions of pytest that decide outcomes.

Runs on Python 3.6 and later, and pytest 3.0 and later.
"""

from testwright_record import SETTINGS, emit


class Guard(object):
    """Checks that the functions that decide outcomes are the same as before collection."""

    def __init__(self):
        self.functions, self.told = None, False

    def begin(self):
        if SETTINGS["guarded"]:
            self.functions = self._now()

    def _now(self):
        from _pytest import main, python, reports, runner

        places = [
            (main.Session, ("perform_collect", "_collectfile", "collect")),
            (python.Function, ("runtest", "setup", "__init__")),
            (python, ("pytest_pyfunc_call",)),
            (reports.TestReport, ("from_item_and_call", "__init__")),
            (
                runner,
                ("CallInfo", "call_and_report", "call_runtest_hook", "runtestprotocol")
                + ("pytest_runtest_protocol", "pytest_runtest_call", "pytest_runtest_makereport"),
            ),
            (getattr(runner, "CallInfo", None), ("from_call", "__init__")),
        ]
        found = [(owner, name, getattr(owner, name, None)) for owner, names in places for name in names]
        plain = [(owner, name, getattr(value, "__func__", value)) for owner, name, value in found]
        return [(name, value, getattr(value, "__code__", None)) for _, name, value in plain]

    def check(self):
        if self.functions is None or self.told:
            return
        for before, now in zip(self.functions, self._now()):
            if before[1] is not now[1] or before[2] is not now[2]:
                self.tell("%s of pytest was replaced" % before[0])
                return

    def compare(self, call, report):
        """Detects a passed test whose exception was neither a skip nor an expected failure."""
        if self.functions is None or report.outcome != "passed" or call.excinfo is None or hasattr(report, "wasxfail"):
            return
        self.tell("%s was raised, and the test is said to have passed" % type(call.excinfo.value).__name__)

    def tell(self, what):
        if not self.told:
            self.told = True
            emit("tampered", what=what)
