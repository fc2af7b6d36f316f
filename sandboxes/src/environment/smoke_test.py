"""Collects test files and runs some of their tests. Each result is a marked line of JSON.

    python smoke_test.py REQUEST.json

The request has the `files` to collect (none: as pytest is configured), more `options`, and the tests to run: either
`per_file` of each file, or `sample` of all, drawn by `seed`. The run ends after `seconds`, or after `collect_seconds`
if no test has started by then. A test fails after `test_seconds`. The script also reports which `fixtures` the tests
in the `scanned` files use. It runs on Python 3.6 and later, with pytest 3 and later.

Processes that `multiprocessing` spawns import this file as their main module, so nothing may run at import.
"""

import hashlib
import importlib.util
import inspect
import json
import os
import re
import signal
import sys
import tempfile
import time

request = {}
results = None
owner = os.getpid()
began = time.time()


def tell(**what):
    # A test may fork this process and go on in the child.
    if os.getpid() != owner:
        return
    results.write("\ntestwright-smoke-test: " + json.dumps(what) + "\n")
    results.flush()


def end(text, length=2000):
    text = str(text)
    return text if len(text) <= length else text[-length:]


def scan(fixtures, paths):
    """Returns the first file whose tests use a fixture, by fixture."""
    uses = {}
    for path in paths:
        try:
            with open(path, encoding="utf-8", errors="replace") as file:
                text = file.read()
        except OSError:
            continue
        for arguments in re.findall(r"def test\w*\(([^)]*)\)", text):
            for name in set(re.findall(r"\w+", arguments)) & fixtures:
                uses.setdefault(name, path)
    return uses


# Minimum seconds for the tests after a slow collection.
MIN_SECONDS = 2


class OutOfTime(Exception):
    pass


def limits_run():
    """Returns whether the whole run has a time limit, and single tests have none."""
    return "seconds" in request and "test_seconds" not in request


class Watcher:
    def __init__(self):
        self.worst = {}
        self.texts = {}
        self.session = None
        self.good_files = 0
        self.limit = request.get("collect_seconds", request.get("seconds"))
        self.until = began + request.get("seconds", float("inf"))
        self.root = os.path.join(os.getcwd(), "")

    def place(self, frame):
        """Returns the innermost line of the repository's code that is running, as FILE:LINE."""
        while frame is not None:
            path = frame.f_code.co_filename
            if path.startswith(self.root) and "site-packages" not in path:
                return "%s:%d" % (path[len(self.root) :], frame.f_lineno)
            frame = frame.f_back
        return ""

    def pytest_collectreport(self, report):
        if report.failed:
            tell(broken=report.nodeid, text=end(report.longrepr))
        elif report.nodeid.endswith(".py"):
            self.good_files += 1

    def choose(self, items):
        files = {}
        for item in items:
            files.setdefault(item.nodeid.split("::")[0], []).append(item)
        tell(collected={name: len(tests) for name, tests in files.items()})
        if limits_run():
            self.limit = max(int(request["seconds"] - (time.time() - began)), MIN_SECONDS)
            self.until = time.time() + self.limit
            signal.alarm(self.limit)
        else:
            # Each test has its own limit.
            signal.alarm(0)
            signal.signal(signal.SIGALRM, signal.SIG_DFL)
        if request.get("sample") is not None:
            seed = str(request.get("seed", 0))

            def drawn(item):
                return hashlib.sha256((seed + item.nodeid).encode("utf-8", "replace")).digest()

            chosen = set(map(id, sorted(items, key=drawn)[: request["sample"]]))
            return [item for item in items if id(item) in chosen]
        chosen = []
        for tests in files.values():
            # Async tests come first, because they need a plugin.
            tests.sort(key=lambda item: not inspect.iscoroutinefunction(getattr(item, "obj", None)))
            chosen += tests[: request["per_file"]]
        return chosen

    def pytest_runtest_logreport(self, report):
        worst = self.worst.get(report.nodeid, "passed")
        if report.failed:
            worst = "failed" if report.when == "call" else "error"
            self.texts.setdefault(report.nodeid, end(report.longrepr))
        elif report.skipped and worst == "passed":
            worst = "xfailed" if hasattr(report, "wasxfail") else "skipped"
            text = report.longrepr
            self.texts.setdefault(report.nodeid, end(text[-1] if isinstance(text, tuple) else text))
        self.worst[report.nodeid] = worst
        if report.when == "teardown":
            tell(test=report.nodeid, outcome=worst, text=self.texts.get(report.nodeid, ""))
            if time.time() > self.until and not self.session.shouldstop:
                tell(stopped=request["seconds"])
                self.session.shouldstop = "time limit reached"


def ends(number, frame):
    raise OutOfTime("the test timed out after %d s" % request["test_seconds"])


def hooks(watcher):
    """Adds the hooks whose order matters. Only pytest has the markers for that."""
    import pytest

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, session, config, items):
        self.session = session
        items[:] = self.choose(items)

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_call(self, item):
        if "test_seconds" not in request:
            yield
            return
        before = signal.signal(signal.SIGALRM, ends)
        signal.alarm(request["test_seconds"])
        yield
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)

    watcher.pytest_collection_modifyitems = pytest_collection_modifyitems
    watcher.pytest_runtest_call = pytest_runtest_call


def main():
    global results
    with open(sys.argv[1], encoding="utf-8") as file:
        request.update(json.load(file))
    # Tests may replace standard output, so results use a duplicate of it.
    results = os.fdopen(os.dup(1), "w", encoding="utf-8", errors="replace")
    if request.get("scanned"):
        tell(uses=scan(set(request["fixtures"]), request["scanned"]))
    try:
        import pytest
    except ImportError as error:
        sys.exit("could not import pytest: %s" % error)
    hooks(Watcher)
    # Before pytest 3.3, -o took every word up to the next option. Without a cache folder, pytest 4 does not finish.
    options = ["-o", "cache_dir=" + tempfile.mkdtemp(prefix="testwright-cache-"), "-q"] + request.get("options", [])
    options += ["--continue-on-collection-errors", "--tb=short", "--maxfail=1000000"]
    if importlib.util.find_spec("xdist"):
        options += ["-n", "0"]
    if importlib.util.find_spec("pytest_cov"):
        options += ["--no-cov"]
    # `python -m pytest` sets the same path.
    sys.path[0] = os.getcwd()
    watcher = Watcher()

    def stops(number, frame):
        place = watcher.place(frame)
        tell(stopped=watcher.limit, good_files=watcher.good_files, place=place)
        raise KeyboardInterrupt

    if limits_run() or "collect_seconds" in request:
        signal.signal(signal.SIGALRM, stops)
        signal.alarm(watcher.limit)
    code = pytest.main(options + request["files"], plugins=[watcher])
    signal.alarm(0)
    tell(ended=int(code))
    # Exits without waiting for threads that tests left running.
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(int(code))


if __name__ == "__main__":
    main()
