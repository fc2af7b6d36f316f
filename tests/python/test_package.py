"""Tests of the Python package against the built program and its server, and of the scripts in the guide."""

import asyncio
import dataclasses
import http.server
import json
import re
import shutil
import subprocess
import sys
import threading
import time
import urllib.request
from pathlib import Path

import pytest
import testwright
from conftest import PROGRAM, ROOT

GUIDE = (ROOT / "docs/src/python.md").read_text()


def fields(kind):
    return {field.name for field in dataclasses.fields(kind)} - {"record"}


def script(heading: str) -> str:
    """Return the first Python block below a heading of the guide."""
    section = GUIDE.split(f"\n## {heading}\n")[1].split("\n## ")[0]
    return re.search(r"```python\n(.*?)```", section, re.DOTALL).group(1)


def run_script(text: str, path, *words) -> str:
    path.write_text(text)
    done = subprocess.run([sys.executable, path, *words], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def client(server):
    return testwright.Client(server)


@pytest.fixture(scope="module")
def accepted_run(client, issue, repository):
    run = client.wait(client.write_failing_test(issue, repository, max_minutes=10), timeout=120)
    assert run.accepted, run
    return run


def test_module_runs_the_program():
    words = [sys.executable, "-m", "testwright", "--version"]
    printed = subprocess.run(words, check=True, capture_output=True, text=True).stdout
    assert printed == subprocess.run([PROGRAM, "--version"], check=True, capture_output=True, text=True).stdout
    assert printed.startswith("testwright ")


def test_default_folder_is_named_after_issue(tmp_path):
    path = tmp_path / "issue.md"
    path.write_text("\n## It's *too* short!\n\nBody\n")
    for issue_argument, words in [
        (path, "it-s-too-short"),
        ("One two three four five six seven\nBody", "one-two-three-four-five-six"),
        ("https://github.com/o/n/issues/12", "o-n-issues-12"),
    ]:
        folder = testwright.program._default_folder(issue_argument)
        assert re.fullmatch(rf"\d{{4}}-\d\d-\d\dT\d{{6}}-{words}-[0-9a-f]{{8}}", folder.name), folder


def test_local_run_returns_checkable_test(issue, repository, tmp_path):
    events = []
    run = testwright.run(issue, repository, approach="snippet", out=tmp_path / "run", on_event=events.append)
    assert run.accepted and run.outcome == "accepted"
    assert run.evidence["tests"][0]["class"] == "assertion"
    lines = (run.folder / "trajectory.jsonl").read_text().splitlines()
    assert events == [json.loads(line) for line in lines]
    assert json.loads((run.folder / "run.json").read_text()) == run.record

    patch = tmp_path / "test.patch"
    patch.write_text(run.patch)
    [check] = testwright.check(issue.read_text(), str(patch), repository)
    assert check.accepted and check.name == str(patch)
    content = "def test_passes():\n    assert True\n"
    tests, files = {"good": run.patch}, {"tests/test_new.py": content}
    good, passing = testwright.check(issue, tests, repository, files=files)
    assert (good.name, good.accepted) == ("good", True)
    assert (passing.name, passing.accepted) == ("tests/test_new.py", False)
    # Fields are left out of a record only if they are empty.
    assert fields(testwright.Check) - {"name", "refused"} <= check.record.keys()


def test_prose_without_code_has_outcome(repository, tmp_path):
    run = testwright.run("Slugs\n\nThey are wrong.", repository, approach="snippet", out=tmp_path / "run")
    assert (run.outcome, run.accepted, run.patch) == ("nothing", False, None)
    assert "no code" in run.reason and run.hint
    assert run.folder is None and not (tmp_path / "run").exists()


def test_refused_command_raises_its_message(issue, repository):
    with pytest.raises(testwright.TestwrightError, match="exit code 2") as raised:
        testwright.run(issue, repository, approach="snippets")
    assert "snippets" in raised.value.detail and raised.value.hint
    with pytest.raises(testwright.TestwrightError, match="exit code 2") as raised:
        testwright.check(issue, "no-such.patch", repository)
    assert "no-such.patch" in raised.value.detail


def test_local_run_ends_at_timeout(issue, repository, tmp_path):
    with pytest.raises(TimeoutError):
        testwright.run(issue, repository, approach="snippet", out=tmp_path / "run", timeout=0.1)


def test_wait_ends_at_timeout_without_events():
    class Silent(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200)
            self.end_headers()
            if self.path.endswith("/events"):
                self.wfile.flush()
                is_done.wait(20)
            else:
                self.wfile.write(b'{"id": "x", "status": "queued"}')

        def log_message(self, *_):
            pass

    is_done = threading.Event()
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Silent) as silent:
        threading.Thread(target=silent.serve_forever, daemon=True).start()
        client = testwright.Client(f"http://127.0.0.1:{silent.server_port}")
        begun = time.monotonic()
        with pytest.raises(TimeoutError):
            client.wait("x", on_event=print, timeout=1)
        assert time.monotonic() - begun < 10
        is_done.set()
        silent.shutdown()


def test_fields_are_those_of_the_api(server):
    with urllib.request.urlopen(f"{server}/v1/openapi.json") as response:
        schemas = json.load(response)["components"]["schemas"]
    kinds = {
        "Run": testwright.ServerRun,
        "Matrix": testwright.Matrix,
        "MatrixRow": testwright.MatrixSummary,
        "PatchResult": testwright.PatchResult,
        "Cell": testwright.Cell,
    }
    for name, kind in kinds.items():
        assert fields(kind) == schemas[name]["properties"].keys(), name
    assert schemas["Problem"]["properties"].keys() == {"type", "title", "status", "detail", "hint"}


def test_server_run_has_patch_and_evidence(client, accepted_run):
    assert client.get_run(accepted_run.id) == accepted_run
    assert "+++ b/tests/" in client.patch(accepted_run)
    assert client.evidence(accepted_run)["tests"][0]["class"] == "assertion"
    assert (accepted_run.outcome, accepted_run.reason) == ("accepted", None)
    assert accepted_run.details["outcome"] == "accepted"
    assert accepted_run in client.list_runs(status="accepted", repository=accepted_run.repository)
    assert client.list_runs(owner="other") == []
    events = []
    assert client.wait(accepted_run.id, on_event=events.append) == accepted_run
    assert (events[0]["event"], events[-1]["event"]) == ("started", "ended")


def test_waiting_reports_each_cell(client, accepted_run, candidates):
    patches = {name: path.read_text() for name, path in candidates.items()}
    tests = {"again": client.patch(accepted_run)}
    events = []
    started = client.matrix(patches, runs=[accepted_run], tests=tests)
    matrix = client.wait(started, on_event=events.append, timeout=120)
    assert matrix.status == "done" and matrix.ranking == ["right"] and matrix.ties == []
    assert {patch.name: patch.verdict for patch in matrix.patches} == {"right": "kept", "wrong": "dropped"}
    assert [event["done"] for event in events] == [1, 2, 3, 4] and events[0]["all"] == 4
    assert client.get_matrix(started.id) == matrix
    assert client.wait(started.id) == matrix
    assert [row.id for row in client.list_matrices(status="done", limit=1)] == [matrix.id]


def test_check_returns_evidence_in_order(client, accepted_run, issue, repository):
    content = "def test_passes():\n    assert True\n"
    tests = {"good": client.patch(accepted_run)}
    good, passing = client.check(issue, repository, tests=tests, files={"tests/test_new.py": content})
    assert good.name == "good" and good.accepted
    assert passing.name == "tests/test_new.py" and not passing.accepted
    assert passing.findings[0]["rule"] == "fails"
    draft = repository.parent / "draft.py"
    draft.write_text(content)
    [placed] = client.check(str(issue), repository, tests=[f"tests/test_new.py={draft}"])
    assert not placed.accepted and placed.findings[0]["rule"] == "fails"


def test_problems_are_typed_errors(client, accepted_run, issue):
    with pytest.raises(testwright.TestwrightError) as raised:
        client.write_failing_test(issue, "/etc")
    problem = raised.value
    assert (problem.status, problem.type, problem.title) == (422, "about:blank", "Unprocessable Entity")
    assert "does not allow it" in problem.detail and problem.hint.startswith("choose one of ")
    assert "--allow-repository" in problem.hint
    with pytest.raises(testwright.TestwrightError) as raised:
        client.cancel(accepted_run)
    assert raised.value.status == 409
    with pytest.raises(testwright.TestwrightError, match="only a run that was cancelled"):
        client.retry(accepted_run.id)
    with pytest.raises(testwright.TestwrightError) as raised:
        client.revise(accepted_run, "Use a fixture.")
    # The approach `snippet` has no model that could read a hint.
    assert raised.value.status == 422 and "snippet" in raised.value.detail
    with pytest.raises(testwright.TestwrightError, match="Cannot reach the server") as raised:
        testwright.Client("http://127.0.0.1:9").get_run("x")
    assert raised.value.status is None


def test_async_client_waits_for_runs_together(server, issue, repository):
    async def main():
        client = testwright.AsyncClient(server)
        events = []
        runs = [await client.write_failing_test(issue, repository) for _ in range(2)]
        first, second = await asyncio.gather(client.wait(runs[0], on_event=events.append), client.wait(runs[1]))
        assert first.accepted and second.accepted and first.id != second.id
        assert events[-1]["event"] == "ended"
        with pytest.raises(testwright.TestwrightError):
            await client.patch("none")

    asyncio.run(main())


def test_guide_script_ranks_patches(server, issue, repository, candidates, tmp_path):
    words = [server, issue, repository, *candidates.values()]
    printed = run_script(script("With a server"), tmp_path / "rank.py", *words)
    assert "best first: right.patch\n" in printed


def test_guide_script_calls_mcp(issue, repository, tmp_path):
    printed = run_script(script("Over MCP"), tmp_path / "call.py", issue, repository)
    assert "\nstep 1: " in printed and "\naccepted " in printed


def test_types_are_complete(tmp_path):
    # mypy does not check files in site-packages.
    shutil.copytree(Path(testwright.__file__).parent, tmp_path / "testwright")
    assert (tmp_path / "testwright/py.typed").exists()
    words = [sys.executable, "-m", "mypy", "--strict", "--cache-dir=/dev/null", "testwright"]
    checked = subprocess.run(words, capture_output=True, text=True, cwd=tmp_path)
    assert checked.returncode == 0, checked.stdout
