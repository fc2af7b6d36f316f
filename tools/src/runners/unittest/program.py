"""Runs tests like python -m unittest, and records the events.

    program.py [-p PATTERN] [-b]

The settings name the files and folders to run. In folders, files that match the pattern (test*.py) run.
"""

import sys

if __name__ == "__main__":
    sys.path[0] = "" if sys.version_info < (3, 7) else __import__("os").getcwd()


def _main():
    import argparse
    import fnmatch
    import importlib
    import os
    import unittest

    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    from testwright_record import SETTINGS, WORKSPACE, emit, failure, hide
    from testwright_result import chosen, flatten, id_of, is_failed_import, recorded

    hide()
    parser = argparse.ArgumentParser()
    parser.add_argument("-p", "--pattern", default="test*.py")
    parser.add_argument("-b", "--buffer", action="store_true")
    options = parser.parse_args()
    emit("session")

    def files(name):
        path = os.path.join(WORKSPACE, name)
        if not os.path.isdir(path):
            return [os.path.normpath(name)]
        found = []
        for folder, folders, names in os.walk(path):
            folders[:] = sorted(f for f in folders if f.isidentifier() and f != "__pycache__")
            fitting = [n for n in sorted(names) if fnmatch.fnmatch(n, options.pattern) and n.endswith(".py")]
            found.extend(os.path.relpath(os.path.join(folder, n), WORKSPACE) for n in fitting)
        return found

    def load(file):
        path = os.path.join(WORKSPACE, file)
        parts = file[: -len(".py")].split("/")
        # The innermost parent folder that is not a package.
        top = len(parts) - 1
        while top > 0 and os.path.exists(os.path.join(WORKSPACE, *(parts[:top] + ["__init__.py"]))):
            top -= 1
        folder = os.path.join(WORKSPACE, *parts[:top]).rstrip(os.sep)
        if top > 0 and folder not in sys.path:
            sys.path.insert(0, folder)
        name = ".".join(parts[top:])
        taken = sys.modules.get(name)
        if taken is not None and os.path.realpath(getattr(taken, "__file__", None) or "") != os.path.realpath(path):
            name = ".".join(parts)  # another file of this name is already imported
        return importlib.import_module(name)

    loader = unittest.defaultTestLoader
    tests, done = [], set()
    for file in [file for asked in SETTINGS["ids"] for file in files(asked.partition("::")[0])]:
        if file in done:
            continue
        done.add(file)
        path = os.path.join(WORKSPACE, file)
        try:
            suite = loader.loadTestsFromModule(load(file))
        except unittest.SkipTest as skip:
            emit("collection_skipped", id=file, reason=str(skip))
            continue
        except (Exception, SystemExit) as error:
            emit("collection_error", id=file, failure=failure(error, path=path))
            continue
        for test in flatten(suite):
            if is_failed_import(test):
                emit("collection_error", id=file, failure=failure(test._exception, path=path))
            else:
                tests.append((id_of(test, file), test))
    planned = chosen(tests, SETTINGS["ids"])
    if SETTINGS["reversed"]:
        planned.reverse()
    emit("collected", ids=[node_id for node_id, _ in planned])

    Result = recorded(unittest.TextTestResult, planned)
    warn = None if sys.warnoptions else "default"
    runner = unittest.TextTestRunner(resultclass=Result, buffer=options.buffer, warnings=warn)
    result = runner.run(unittest.TestSuite(test for _, test in planned))
    emit("finish")
    sys.exit(not result.wasSuccessful())


if __name__ == "__main__":
    _main()
