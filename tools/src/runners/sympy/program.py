"""Runs test files of SymPy like its bin/test, and records the events.

Whole files run, because the outcome of a test may depend on those before it. For example, a warning that makes a test
fail alone may already have been issued in a whole file. Tests that were not requested are not recorded.
"""

import sys


def _main():
    import os
    import re
    import time

    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    from testwright_record import SETTINGS, WORKSPACE, Asked, cut, emit, failure, hide, locate, set_runner
    from testwright_trace import Trace

    hide()
    now = time.time
    # Like bin/test.
    sys.path.insert(0, WORKSPACE)
    emit("session")
    asked = Asked(SETTINGS["ids"])
    names = []
    for name in asked.asked:
        name = os.path.normpath(name.partition("::")[0])
        if name not in names:
            names.append(name)
    try:
        import sympy

        try:
            from sympy.testing import runtests
        except ImportError:
            from sympy.utilities import runtests
    except Exception as error:
        for name in names:
            emit("collection_error", id=name, failure=failure(error))
        raise
    trace = Trace()
    state = {"file": None, "path": None, "inside": False, "test": None, "since": 0.0, "collected": False}
    found = set()
    set_runner([runtests], [runtests])
    Reporter, Tests = runtests.PyTestReporter, runtests.SymPyTests

    def replace(cls, name, before):
        original = getattr(cls, name)

        def method(self, *args, **more):
            before(*args, **more)
            return original(self, *args, **more)

        setattr(cls, name, method)

    def end():
        if state["test"] is not None:
            trace.end(state["test"])
            emit("end", id=state["test"])
            state["test"] = None

    def entering_test(function):
        end()
        node_id = "%s::%s" % (state["file"], function.__name__)
        found.add(node_id)
        if node_id in asked:
            state.update(test=node_id, since=now())
            emit("start", id=node_id)
            trace.begin(node_id)

    def phase(outcome, error=None, when="call", **more):
        if state["test"] is None:
            return
        trace.end(state["test"])
        facts = {"id": state["test"], "when": when, "outcome": outcome, "xfail": False, "unexpected": False,
                 "seconds": now() - state["since"], "failure": None, "captured": ""}
        if error is not None:
            facts["failure"] = failure(error[1], error[2], state["path"])
        facts.update(more)
        emit("phase", **facts)
        end()

    def broken(error):
        emit("collection_error", id=state["file"], failure=failure(error[1], error[2], state["path"]))

    def failed(error):
        if state["inside"]:
            phase("failed", error)
        else:
            broken(error)

    def entering_filename(filename, n):
        state["inside"] = True
        collected()

    def collected():
        # Test functions are discovered only as they run.
        if not state["collected"]:
            state["collected"] = True
            emit("collected", ids=[])

    def disabled():
        with open(state["path"], "rb") as text:
            return re.search(b"(?m)^\\s*disabled\\s*=", text.read())

    replace(Reporter, "entering_filename", entering_filename)
    replace(Reporter, "entering_test", entering_test)
    replace(Reporter, "test_pass", lambda *ignored: phase("passed"))
    replace(Reporter, "test_fail", failed)
    replace(Reporter, "test_exception", failed)
    replace(Reporter, "test_skip", lambda v=None: phase("skipped", when="setup", captured=cut(str(v or ""), 600)))
    replace(Reporter, "test_xfail", lambda *ignored: phase("skipped", xfail=True))
    replace(Reporter, "test_xpass", lambda *ignored: phase("failed", xfail=True, unexpected=True))
    replace(Reporter, "import_error", lambda filename, error: broken(error))

    test_file = Tests.test_file

    def one_file(self, filename, *args, **more):
        file = locate(filename)[1]
        if not any(file == name or file.startswith(name + "/") for name in names):
            return None  # bin/test also accepts a part of a path
        state.update(file=file, path=os.path.abspath(filename), inside=False)
        try:
            return test_file(self, filename, *args, **more)
        finally:
            end()
            if not state["inside"] and disabled():
                emit("collection_skipped", id=file, reason="disabled")

    Tests.test_file = one_file
    run_all = Tests.test

    def all_files(self, *args, **more):
        good = run_all(self, *args, **more)
        emit("asked", missing=asked.missing(found))
        collected()
        return good

    Tests.test = all_files
    # The only other order is shuffled by the seed.
    good = sympy.test(*names, subprocess=False, seed=SETTINGS["hash_seed"], colors=False, sort=not SETTINGS["reversed"])
    emit("finish")
    sys.exit(not good)


if __name__ == "__main__":
    del sys.path[0]
    _main()
