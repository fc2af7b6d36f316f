"""Tests of the clients against a stub server, which records requests."""

import asyncio
import http.server
import inspect
import json
import threading
import time

import pytest
import testwright

TEXT = "Slugs\n\nThey are wrong.\n"
DIFF = "--- a/t.py\n+++ b/t.py\n@@ -1 +1 @@\n-a\n+b\n"
MATRIX = {"patches": [], "cells": [], "status": "done", "all_cells": 0}
NO_RUN = {"type": "about:blank", "title": "Not Found", "detail": "no run has this id"}


class Stub(http.server.ThreadingHTTPServer):
    """A server that answers with `responses[method, path]`, otherwise with a run that has ended."""

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.responses = {}
        self.requests = []
        self.tokens = []
        self.address = f"http://127.0.0.1:{self.server_port}"

    @property
    def bodies(self):
        return [body for _, _, body in self.requests]


class Handler(http.server.BaseHTTPRequestHandler):
    def answer(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.server.tokens.append(self.headers.get("Authorization"))
        self.server.requests.append((self.command, self.path, json.loads(body) if body else None))
        default = (200, {"id": "r", "status": "accepted", "checks": [], **({} if "runs" in self.path else MATRIX)})
        status, content = self.server.responses.get((self.command, self.path), default)
        self.send_response(status)
        self.end_headers()
        self.wfile.write(json.dumps(content).encode())

    do_GET = do_POST = answer

    def log_message(self, *_):
        pass


@pytest.fixture
def stub(monkeypatch):
    monkeypatch.delenv("TESTWRIGHT_TOKEN", raising=False)
    monkeypatch.delenv("TESTWRIGHT_SERVER", raising=False)
    with Stub() as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()


@pytest.fixture
def client(stub):
    return testwright.Client(stub.address)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The current folder, with an issue, a patch and a test file."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "issue.md").write_text(TEXT)
    (tmp_path / "one.patch").write_text(DIFF)
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests/test_new.py").write_bytes(b"x = 1\r\n")
    return tmp_path


def calls_with_issue(client):
    return [
        lambda issue: client.write_failing_test(issue, "https://github.com/o/n"),
        lambda issue: client.check(issue, "https://github.com/o/n", tests={"a": DIFF}),
        lambda issue: client.matrix({"a": DIFF}, runs="r", issue=issue, repository="https://github.com/o/n"),
    ]


def test_issue_string_of_one_line_is_path(client, stub, folder):
    for call in calls_with_issue(client):
        for issue in ("issue.md", folder / "issue.md", TEXT):
            call(issue)
    assert [body["issue"] for body in stub.bodies] == [TEXT] * 9


def test_missing_issue_file_is_refused_with_hint(client, stub, folder):
    local = [lambda issue: testwright.run(issue, "."), lambda issue: testwright.check(issue, ["one.patch"], ".")]
    for call in calls_with_issue(client) + local:
        for issue in ("isue.md", "It is wrong", folder / "other", "Title\n"):
            with pytest.raises(testwright.TestwrightError, match="does not exist") as raised:
                call(issue)
            assert "text with a title line and a body" in raised.value.hint and "`Path`" in raised.value.hint
        with pytest.raises(testwright.TestwrightError, match="did you mean issue.md"):
            call("isue.md")
        with pytest.raises(testwright.TestwrightError, match="it is empty"):
            call("")
        with pytest.raises(TypeError, match="`issue` must be a path, a URL or text, not int"):
            call(12)
    assert stub.requests == []


def test_issue_numbers_become_urls(client, stub, folder):
    url = "https://github.com/o/n/issues/12"
    for issue, repository in [
        (url, None),
        ("github.com/o/n/issues/12", None),
        ("o/n#12", None),
        ("12", "https://github.com/o/n.git"),
        ("#12", "https://github.com/o/n/"),
    ]:
        client.write_failing_test(issue, repository)
        assert stub.bodies[-1]["issue"] == url
    with pytest.raises(testwright.TestwrightError, match="pass the URL"):
        client.write_failing_test("12", folder)


def test_issue_files_have_any_encoding(client, stub, folder):
    for content, text in [(b"\xef\xbb\xbfA\nb", "A\nb"), (b"\xe9\nb", "é\nb"), ("é\nb".encode("utf-16"), "é\nb")]:
        (folder / "issue.md").write_bytes(content)
        client.write_failing_test("issue.md")
        assert stub.bodies[-1]["issue"] == text
    (folder / "issue.md").write_bytes(b"a\0b")
    with pytest.raises(testwright.TestwrightError, match="not text"):
        client.write_failing_test("issue.md")


def test_token_is_stripped_and_never_shown(stub):
    testwright.Client(stub.address, token=" SECRET\n").get_run("r")
    assert stub.tokens == ["Bearer SECRET"]
    for token in ("SECRET\nX: y", "SECRET\x00", "SECRET é", "SECRET x", "SECRET\x7f"):
        with pytest.raises(testwright.TestwrightError) as raised:
            testwright.Client(stub.address, token=token)
        assert "SECRET" not in str(raised.value) and raised.value.__cause__ is None
    with pytest.raises(TypeError) as raised:
        testwright.Client(stub.address, token=b"SECRET")
    assert "SECRET" not in str(raised.value)


def test_environment_has_default_server_and_token(stub, monkeypatch):
    monkeypatch.setenv("TESTWRIGHT_SERVER", stub.address)
    monkeypatch.setenv("TESTWRIGHT_TOKEN", "one\n")
    testwright.Client().get_run("r")
    testwright.Client(token="two").get_run("r")
    testwright.Client(token="").get_run("r")
    asyncio.run(testwright.AsyncClient().get_run("r"))
    assert stub.tokens == ["Bearer one", "Bearer two", None, "Bearer one"]


def test_unauthorized_names_token_argument(client, stub):
    problem = {**NO_RUN, "title": "Unauthorized", "hint": "send `Authorization`"}
    stub.responses["GET", "/v1/runs/r"] = 401, problem
    with pytest.raises(testwright.TestwrightError) as raised:
        client.get_run("r")
    assert "`token=`" in raised.value.hint and "TESTWRIGHT_TOKEN" in raised.value.hint


def test_addresses_are_checked(stub):
    for address in (stub.address + "/", stub.address[len("http://") :], f" {stub.address}\n"):
        assert testwright.Client(address).get_run("r").accepted
    for address, message in [
        ("", "it is empty"),
        ("example.org:8420", "add https:// or http://"),
        ("ftp://example.org", "not the address"),
        ("http://", "not the address"),
        ("http://a:x", "Port"),
        ("http://é.org", "ASCII"),
        ("http://me:SECRET@a", "credentials"),
    ]:
        with pytest.raises(testwright.TestwrightError, match=message) as raised:
            testwright.Client(address)
        assert "SECRET" not in str(raised.value)
    with pytest.raises(TypeError, match="`base_url` must be a string, not int"):
        testwright.Client(5)


def test_outcome_is_a_word_with_reason(client, stub):
    for details, reason in [
        ({"outcome": "nothing", "reason": "no code", "hint": "add code"}, "no code"),
        ({"outcome": "refused", "findings": ["it passes", "it is slow"]}, "it passes; it is slow"),
        ({"outcome": "out_of_budget", "limit": "steps"}, "the limit of steps was reached"),
        ({"outcome": "withheld", "minimum": 0.6}, "its confidence is below 0.6"),
        ({"outcome": "model_failed", "message": "wrong key"}, "wrong key"),
    ]:
        stub.responses["GET", "/v1/runs/r"] = 200, {"id": "r", "status": "nothing", "outcome": details}
        run = client.get_run("r")
        assert (run.outcome, run.reason, run.details) == (details["outcome"], reason, details)
        assert (run.message, run.hint) == (details.get("message"), details.get("hint"))
    for status, outcome in [("queued", None), ("running", None), ("cancelled", "cancelled")]:
        stub.responses["GET", "/v1/runs/r"] = 200, {"id": "r", "status": status, "outcome": None}
        run = client.get_run("r")
        assert (run.outcome, run.reason, run.details) == (outcome, None, {})


def test_tests_and_patches_are_paths_or_texts(client, stub, folder):
    (folder / "a").mkdir()
    (folder / "a/one.patch").write_text(DIFF)
    one = {"patch": DIFF}
    for patches, names in [
        ("one.patch", ["one.patch"]),
        (folder / "one.patch", ["one.patch"]),
        ([folder / "one.patch", "a/one.patch"], [str(folder / "one.patch"), "a/one.patch"]),
        ({"x": folder / "one.patch", "y": "one.patch", "z": DIFF}, ["x", "y", "z"]),
        ([DIFF], ["1"]),
    ]:
        client.matrix(patches, runs="abc", tests=patches)
        records = [{"name": name, **one} for name in names]
        assert stub.bodies[-1]["patches"] == records
        assert stub.bodies[-1]["tests"] == [{"run": "abc"}, *records]
    placed = {"path": "tests/test_new.py", "content": "x = 1\r\n"}
    for tests, records in [
        ("one.patch", [{"name": "one.patch", **one}]),
        (["tests/test_new.py"], [{"name": "tests/test_new.py", **placed}]),
        (["tests/test_new.py=tests/test_new.py"], [{"name": "tests/test_new.py=tests/test_new.py", **placed}]),
        ({"x": folder / "one.patch", "y": DIFF}, [{"name": "x", **one}, {"name": "y", **one}]),
    ]:
        client.check(TEXT, folder, tests=tests)
        assert stub.bodies[-1]["tests"] == records
    client.check(TEXT, "https://a/b", files={"tests/test_new.py": folder / "tests/test_new.py", "t.py": "x"})
    names = [(test["path"], test["content"]) for test in stub.bodies[-1]["tests"]]
    assert names == [("tests/test_new.py", "x = 1\r\n"), ("t.py", "x")]
    with pytest.raises(testwright.TestwrightError, match="PATH=FILE"):
        client.check(TEXT, "https://a/b", tests=["tests/test_new.py"])
    with pytest.raises(testwright.TestwrightError, match="no.patch does not exist"):
        client.check(TEXT, folder, tests={"a": "no.patch"})


def test_wrong_types_are_named(client, stub, folder):
    for call, message in [
        (lambda: client.check(TEXT, tests=5), "`tests` must be a list, not int"),
        (lambda: client.check(TEXT, tests=[5]), "`tests` must contain paths or patches, not int"),
        (lambda: client.check(TEXT, tests={"a": 5}), "a patch must be its text or a path, not int"),
        (lambda: client.check(TEXT, files=["a"]), "`files` must map paths in the repository to contents, not be list"),
        (lambda: client.matrix(5), "`patches` must be a list, not int"),
        (lambda: client.matrix(DIFF, runs=5), "`runs` must be a list, not int"),
        (lambda: client.matrix(DIFF, runs=[None]), "expected an id or ServerRun, not NoneType"),
        (lambda: client.wait(None), "expected an id or ServerRun, Matrix, MatrixSummary, not NoneType"),
        (lambda: client.cancel(5), "expected an id"),
        (lambda: client.get_matrix(client.get_run("r")), "expected an id or Matrix, MatrixSummary, not ServerRun"),
        (lambda: client.write_failing_test(TEXT, commit=folder), "`commit` has a wrong type"),
        (lambda: testwright.run(TEXT, options="--sandbox docker"), r'a list such as \["--sandbox", "docker"\], not str'),
        (lambda: testwright.run(TEXT, options=5), "`options` must be a list"),
        (lambda: testwright.check(TEXT, "one.patch", options=[5]), "only strings, not int"),
    ]:
        with pytest.raises(TypeError, match=message):
            call()
    with pytest.raises(testwright.TestwrightError, match="Invalid idempotency key"):
        client.write_failing_test(TEXT, idempotency_key="a\n")
    with pytest.raises(testwright.TestwrightError, match="not an id"):
        client.get_run("")


def test_runs_have_hint_test_files_and_options(client, stub, folder):
    client.write_failing_test(TEXT, folder, hint="use a fixture", test_files="tests/a.py")
    assert stub.bodies[-1]["hint"] == "use a fixture" and stub.bodies[-1]["test_files"] == ["tests/a.py"]
    options = {"min_confidence": 0.6, "effort": "high", "comments": True, "project": "packages/a"}
    assert not options.keys() & stub.bodies[-1].keys()
    client.write_failing_test(TEXT, folder, **options)
    assert options.items() <= stub.bodies[-1].items()
    run = client.revise("r", "shorter", idempotency_key="k")
    assert stub.requests[-1] == ("POST", "/v1/runs/r/revise", {"hint": "shorter"})
    client.retry(run)
    assert stub.requests[-1][:2] == ("POST", "/v1/runs/r/retry")


def test_lists_have_all_pages(client, stub):
    runs = [{"id": str(number), "status": "accepted"} for number in range(600)]
    query = "/v1/runs?status=accepted&owner=me&limit="
    stub.responses["GET", query + "500"] = 200, {"runs": runs[:500], "next": "499"}
    stub.responses["GET", "/v1/runs?status=accepted&owner=me&before=499&limit=200"] = 200, {"runs": runs[500:]}
    listed = client.list_runs(status="accepted", owner="me", limit=700)
    assert [run.id for run in listed] == [run["id"] for run in runs] and listed[0].accepted
    row = {"id": "m", "status": "done", "tests": 1, "patches": 2}
    stub.responses["GET", "/v1/matrices?limit=50"] = 200, {"matrices": [row]}
    [matrix] = asyncio.run(testwright.AsyncClient(stub.address).list_matrices())
    assert (matrix.id, matrix.patches, matrix.has_ended) == ("m", 2, True)
    assert client.wait(matrix).status == "done"


def test_id_can_be_that_of_a_matrix(client, stub):
    for path in ("m", "m/cancel", "m/retry", "none"):
        for method in ("GET", "POST"):
            stub.responses[method, f"/v1/runs/{path}"] = 404, NO_RUN
    stub.responses["GET", "/v1/matrices/none"] = 404, NO_RUN
    events = []
    for job in (client.wait("m"), client.wait("m", on_event=events.append), client.cancel("m"), client.retry("m")):
        assert isinstance(job, testwright.Matrix)
    asynchronous = testwright.AsyncClient(stub.address)
    assert isinstance(asyncio.run(asynchronous.wait("m")), testwright.Matrix)
    assert isinstance(asyncio.run(asynchronous.retry("m")), testwright.Matrix)
    with pytest.raises(testwright.TestwrightError, match="no run or matrix has this id"):
        client.wait("none")


def test_wait_reports_lost_server(monkeypatch):
    client = testwright.Client("http://127.0.0.1:9")
    with pytest.raises(TimeoutError, match="the server could not be reached") as raised:
        client.wait("r", timeout=0.5)
    assert "Cannot reach the server" in str(raised.value) and "continues" not in str(raised.value)
    monkeypatch.setattr(testwright.client, "_LOST_SECONDS", 1)
    begun = time.monotonic()
    with pytest.raises(testwright.TestwrightError, match="Cannot reach the server"):
        client.wait("r")
    assert 1 <= time.monotonic() - begun < 10


def test_async_client_has_same_methods():
    def public(kind):
        return {name for name, _ in inspect.getmembers(kind, inspect.isfunction) if not name.startswith("_")}

    assert public(testwright.AsyncClient) == public(testwright.Client)
    parameters = inspect.signature(testwright.Client).parameters
    assert inspect.signature(testwright.AsyncClient).parameters == parameters
