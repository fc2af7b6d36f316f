"""A unittest result that records the events. Runs on Python 3.6 and later."""

import os
import sys
import time
import unittest
import unittest.case
import unittest.suite
import unittest.util

from testwright_record import CAPTURED, Asked, cut, emit, failure, locate, set_runner
from testwright_trace import Trace

_now = time.time
_UNITTEST = os.path.dirname(os.path.abspath(unittest.__file__)) + os.sep
set_runner([unittest], [])


def flatten(suite):
    for test in suite:
        if isinstance(test, unittest.TestCase) or not hasattr(test, "__iter__"):
            yield test
        else:
            for inner in flatten(test):
                yield inner


def file_of(test):
    """Returns the path of the module with the test's class, relative to the workspace."""
    module = sys.modules.get(type(test).__module__)
    path = getattr(module, "__file__", None)
    if path is None:
        return type(test).__module__
    return locate(path)[1]


def id_of(test, file=None):
    """Returns the node id `path::Class::method`."""
    file = file or file_of(test)
    method = getattr(test, "_testMethodName", None)
    kind = type(test)
    if method is None or isinstance(test, unittest.FunctionTestCase):
        return "%s::%s" % (file, test.id())
    name = getattr(kind, "__qualname__", kind.__name__)
    if "<locals>" in name:
        name = kind.__name__
    return "::".join([file] + name.split(".") + [method])


def is_failed_import(test):
    """Returns whether this is unittest's placeholder for a failed import or a missing name."""
    return type(test).__module__ == "unittest.loader" and type(test).__name__ in ("_FailedTest", "ModuleImportFailure")


def chosen(tests, asked):
    """Returns the requested tests, each once. `tests` holds pairs of id and test."""
    asked = Asked(asked)
    emit("asked", missing=asked.missing(node_id for node_id, _ in tests))
    seen, kept = set(), []
    for node_id, test in tests:
        if node_id not in seen and node_id in asked:
            seen.add(node_id)
            kept.append((node_id, test))
    return kept


def recorded(base, planned):
    """Returns a recording subclass of a unittest result. `planned` holds pairs of id and test, in the order of
    execution."""

    class Recorded(base):
        def __init__(self, *args, **more):
            super(Recorded, self).__init__(*args, **more)
            self.ids = dict((id(test), node_id) for node_id, test in planned)
            self.trace = Trace()
            self.running = None
            self.begun = set()
            # The last test that ran, by class and by module.
            self.last = {}
            self.since = _now()
            self.skipped_parts = []

        def _id(self, test):
            test = getattr(test, "test_case", test)
            return self.ids.get(id(test)) or id_of(test)

        def _phase(self, node_id, when, outcome, error=None, path=None, **more):
            facts = {"id": node_id, "when": when, "outcome": outcome, "xfail": False, "unexpected": False,
                     "seconds": _now() - self.since, "failure": None, "captured": ""}
            self.since = _now()
            if error is not None:
                facts["failure"] = failure(error[1], error[2], path)
                facts["captured"] = self._captured()
            facts.update(more)
            emit("phase", **facts)

        def _captured(self):
            parts = []
            for title in ("stdout", "stderr"):
                text = self.buffer and getattr(sys, title).getvalue()
                if text:
                    parts.append("--- Captured %s ---\n%s" % (title, text))
            return cut("\n".join(parts), CAPTURED)

        def startTest(self, test):
            super(Recorded, self).startTest(test)
            if is_failed_import(test):
                return
            self.running = self._id(test)
            self.begun.add(self.running)
            self.last[unittest.util.strclass(type(test))] = self.running
            self.last[type(test).__module__] = self.running
            self.skipped_parts = []
            self.since = _now()
            emit("start", id=self.running)
            self.trace.begin(self.running)

        def stopTest(self, test):
            if self.running is not None:
                self.trace.end(self.running)
                for reason in self.skipped_parts[:1]:
                    self._phase(self.running, "setup", "skipped", captured=reason)
                emit("end", id=self.running)
                self.running = None
            super(Recorded, self).stopTest(test)

        def _failed(self, test, error):
            if is_failed_import(test):
                return
            if isinstance(test, unittest.suite._ErrorHolder):
                return self._fixture(test.description, error)
            path = getattr(sys.modules.get(type(getattr(test, "test_case", test)).__module__), "__file__", None)
            node_id = self._id(test)
            path = path and os.path.abspath(path)
            if self.running is None and node_id in self.begun:
                # Django's test cases add errors of their teardown after the test has stopped.
                self._phase(node_id, "teardown", "failed", error, path)
            elif self.running is None:
                self._alone(node_id, "failed", error, path=path)
            else:
                self._phase(node_id, _phase_of(error[2]), "failed", error, path)

        def _fixture(self, description, error=None, reason=None):
            """Records a failure or skip of setUpClass, setUpModule or their counterparts (`setUpClass (module.Class)`).
            The tests that depend on them do not run."""
            name, _, rest = description.partition(" (")
            of = rest.rstrip(")")
            if not name.startswith("setUp"):
                if of in self.last and error is not None:
                    self._phase(self.last[of], "teardown", "failed", error)
                return
            for node_id, test in planned:
                if node_id not in self.begun and of in (unittest.util.strclass(type(test)), type(test).__module__):
                    if error is None:
                        self._alone(node_id, "skipped", captured=reason)
                    else:
                        self._alone(node_id, "failed", error)

        def _alone(self, node_id, outcome, error=None, **more):
            """Records a test that does not start, because something before it failed."""
            self.begun.add(node_id)
            emit("start", id=node_id)
            self._phase(node_id, "setup", outcome, error, **more)
            emit("end", id=node_id)

        def addSuccess(self, test):
            super(Recorded, self).addSuccess(test)
            self._phase(self._id(test), "call", "passed")

        def addError(self, test, err):
            self._failed(test, err)
            super(Recorded, self).addError(test, err)

        def addFailure(self, test, err):
            self._failed(test, err)
            super(Recorded, self).addFailure(test, err)

        def addSubTest(self, test, subtest, err):
            if err is not None:
                self._failed(subtest, err)
            super(Recorded, self).addSubTest(test, subtest, err)

        def addSkip(self, test, reason):
            if isinstance(test, unittest.suite._ErrorHolder):
                self._fixture(test.description, reason=str(reason))
            elif hasattr(test, "test_case"):
                self.skipped_parts.append(str(reason))
            elif self.running is None:
                self._alone(self._id(test), "skipped", captured=str(reason))
            else:
                self._phase(self._id(test), "setup", "skipped", captured=str(reason))
            super(Recorded, self).addSkip(test, reason)

        def addExpectedFailure(self, test, err):
            self._phase(self._id(test), "call", "skipped", xfail=True)
            super(Recorded, self).addExpectedFailure(test, err)

        def addUnexpectedSuccess(self, test):
            self._phase(self._id(test), "call", "failed", xfail=True, unexpected=True)
            super(Recorded, self).addUnexpectedSuccess(test)

    return Recorded


def _phase_of(traceback):
    """Returns the phase that raised the exception: setUp, the test or tearDown."""
    inside = False
    while traceback is not None:
        code = traceback.tb_frame.f_code
        if os.path.abspath(code.co_filename).startswith(_UNITTEST):
            if code.co_name == "_callSetUp":
                return "setup"
            if code.co_name in ("_callTearDown", "doCleanups", "_callCleanup"):
                return "teardown"
            inside = True
        elif inside or traceback.tb_next is None:
            break
        traceback = traceback.tb_next
    if traceback is not None:  # before Python 3.8, unittest's frames do not show the phase
        if traceback.tb_frame.f_code.co_name == "setUp":
            return "setup"
        if traceback.tb_frame.f_code.co_name == "tearDown":
            return "teardown"
    return "call"
