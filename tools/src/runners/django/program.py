"""Runs Django's own tests with its tests/runtests.py, and records the events.

    program.py OPTION...        options of runtests.py; the settings determine the labels
"""

import sys


def _main():
    import importlib
    import importlib.util
    import os
    import runpy
    import unittest

    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    from testwright_record import SETTINGS, WORKSPACE, emit, failure, hide
    from testwright_result import chosen, file_of, flatten, id_of, is_failed_import, recorded

    hide()
    folder = os.path.join(WORKSPACE, "tests")
    script = os.path.join(folder, "runtests.py")
    # Like Python does for a script.
    sys.path.insert(0, folder)
    if importlib.util.find_spec("django") is None:
        sys.path.insert(1, WORKSPACE)  # use the checkout
    labels, files, told = [], {}, set()
    for asked in SETTINGS["ids"]:
        file = os.path.normpath(asked.partition("::")[0])
        parts = (file[: -len(".py")] if file.endswith(".py") else file).split("/")
        if parts[0] == "tests" and len(parts) > 1:
            label = ".".join(parts[1:])
            if label not in labels:
                labels.append(label)
                files[label] = file
    emit("session")

    def all_wrong(error):
        """Records that Django itself, or shared code of its tests, cannot be imported or prepared."""
        for label in labels:
            if label not in told:
                emit("collection_error", id=files[label], failure=failure(error))

    try:
        import django.test.runner as django_runner
    except Exception as error:
        all_wrong(error)
        raise
    planned = []
    state = {"built": False, "ran": False}

    def wrong(label):
        """Records a module that cannot be imported; unittest would keep only the text of the exception."""
        if not files[label].endswith(".py"):
            return
        path = os.path.join(WORKSPACE, files[label])
        try:
            importlib.import_module(label)
        except unittest.SkipTest as skip:
            told.add(label)
            emit("collection_skipped", id=files[label], reason=str(skip))
        except (Exception, SystemExit) as error:
            told.add(label)
            emit("collection_error", id=files[label], failure=failure(error, path=path))

    original = django_runner.DiscoverRunner.build_suite

    def build_suite(self, test_labels=None, *args, **more):
        if state["built"]:
            return original(self, test_labels, *args, **more)  # a run inside a test
        state["built"] = True
        for label in labels:
            wrong(label)
        # An error other than ImportError would end the collection. Without labels, all tests would run.
        if told:
            test_labels = [label for label in test_labels if label not in told]
        suite = original(self, test_labels, *args, **more) if test_labels or not told else []
        tests = [(id_of(test, file_of(test)), test) for test in flatten(suite) if not is_failed_import(test)]
        planned.extend(chosen(tests, SETTINGS["ids"]))
        if SETTINGS["reversed"]:
            planned.reverse()
        emit("collected", ids=[node_id for node_id, _ in planned])
        return unittest.TestSuite(test for _, test in planned)

    django_runner.DiscoverRunner.build_suite = build_suite
    make = unittest.TextTestRunner._makeResult

    def make_result(self):
        if state["ran"] or not state["built"]:
            return make(self)
        state["ran"] = True
        kept = self.resultclass
        self.resultclass = recorded(kept or unittest.TextTestResult, planned)
        try:
            return make(self)
        finally:
            self.resultclass = kept

    unittest.TextTestRunner._makeResult = make_result
    with open(script) as text:
        text = text.read()
    options = [option for option in ("--parallel=1", "--noinput") if option.partition("=")[0] in text]
    sys.argv[:] = [script] + options + sys.argv[1:] + labels
    try:
        runpy.run_path(script, run_name="__main__")
    except Exception as error:
        if not state["ran"]:
            all_wrong(error)
        raise
    finally:
        emit("finish")


if __name__ == "__main__":
    del sys.path[0]
    _main()
