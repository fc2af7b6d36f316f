"""Starts the program `testwright`."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sysconfig
import tempfile
import time
import uuid
from pathlib import Path
from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence

from .errors import TestwrightError
from .inputs import Files, Issue, PathLike, Tests, given_tests, issue_argument, options_list, write_tests
from .records import Check, Run, from_record

#: Receives the events of a run: the lines of its trajectory.
OnEvent = Callable[[Dict[str, Any]], object]

#: Exit code of a run without a test.
_NO_TEST = 1
_POLL_SECONDS = 0.2
_STOP_SECONDS = 30


def find_program() -> str:
    """Return the path of the program of this installation, otherwise of the one on PATH."""
    folders = [
        str(Path(__file__).resolve().parents[1] / "bin"),  # pip install --target
        sysconfig.get_path("scripts"),
        sysconfig.get_path("scripts", f"{os.name}_user"),
        os.environ.get("PATH", os.defpath),
    ]
    program = shutil.which("testwright", path=os.pathsep.join(folders))
    if program is None:
        raise TestwrightError("Not installed", "the program `testwright` was not found", hint="pip install testwright")
    return program


def run(
    issue: Issue,
    repo: Optional[PathLike] = None,
    *,
    model: Optional[str] = None,
    approach: Optional[str] = None,
    effort: Optional[str] = None,
    commit: Optional[str] = None,
    max_steps: Optional[int] = None,
    max_dollars: Optional[float] = None,
    max_tokens: Optional[int] = None,
    max_minutes: Optional[float] = None,
    min_confidence: Optional[float] = None,
    options: Sequence[str] = (),
    out: Optional[PathLike] = None,
    timeout: Optional[float] = None,
    on_event: Optional[OnEvent] = None,
) -> Run:
    """Write a test for an issue, like `testwright run`.

    `issue` is a path, a URL, its number in the repository, or text: a title line and a body. `repo` is a folder or a
    URL; by default it is the repository of the issue's URL, or the current folder. `options` are further options of
    the command, such as `["--sandbox", "docker"]`. `out` is the folder for the results.

    Raises `TestwrightError` if the program ends without a result, and `TimeoutError` after `timeout` seconds.
    """
    name, text = issue_argument(issue)
    words = options_list(options)
    folder = _default_folder(issue) if out is None else Path(out)
    trajectory = _Trajectory(folder / "trajectory.jsonl", on_event)
    flags = {
        "repo": repo,
        "commit": commit,
        "approach": approach,
        "effort": effort,
        "model": model,
        "max-steps": max_steps,
        "max-dollars": max_dollars,
        "max-tokens": max_tokens,
        "max-minutes": max_minutes,
        "min-confidence": min_confidence,
        "out": folder,
    }
    arguments = ["run", *_flags(flags), "--json", *words, "--", name]
    ended = _execute(arguments, text, timeout, trajectory.report_new)
    record = _no_test(ended) or _result(ended)
    return Run(
        outcome=record["outcome"],
        patch=record.get("patch"),
        evidence=record.get("evidence"),
        folder=folder if folder.exists() else None,
        record=record,
    )


def check(
    issue: Issue,
    tests: Optional[Tests] = None,
    repo: Optional[PathLike] = None,
    *,
    files: Optional[Files] = None,
    model: Optional[str] = None,
    commit: Optional[str] = None,
    min_confidence: Optional[float] = None,
    options: Sequence[str] = (),
    timeout: Optional[float] = None,
) -> List[Check]:
    """Check tests for an issue, like `testwright check`, and return the evidence on each.

    `issue` and `repo` are those of `run`. `tests` is a path, a list of paths, or a mapping of names to patches. A path
    is that of a patch, of a Python file in the repository's folder, or `PATH=FILE`. A patch is its text or its path.
    `files` maps paths of test files in the repository to their contents.

    Raises `TestwrightError` if the program ends without a result, and `TimeoutError` after `timeout` seconds.
    """
    flags = {"repo": repo, "commit": commit, "model": model, "min-confidence": min_confidence}
    name, text = issue_argument(issue)
    given = given_tests(tests, files)
    words = ["check", *_flags(flags), "--json", *options_list(options), "--", name]
    with tempfile.TemporaryDirectory(prefix="testwright-") as folder:
        named = write_tests(given, Path(folder))
        records = _result(_execute([*words, *(path for path, _ in named)], text, timeout, lambda: None))
    names = dict(named)
    return [from_record(Check, record, name=names.get(record["test"], record["test"])) for record in records]


def _flags(values: Mapping[str, Any]) -> List[str]:
    return [f"--{name}={value}" for name, value in values.items() if value is not None]


def _default_folder(issue: Issue) -> Path:
    """Return a folder named after the time and the issue. The end keeps runs of the same second apart."""
    runs = Path("testwright-runs")
    if runs.is_symlink():
        raise TestwrightError("Unsafe folder", f"{runs} is a link, which could lead anywhere", hint="pass `out`")
    parts = [time.strftime("%Y-%m-%dT%H%M%S", time.gmtime()), *_title_words(issue), uuid.uuid4().hex[:8]]
    return runs / "-".join(parts)


def _title_words(issue: Issue) -> List[str]:
    """Return the first words of the issue's title, or of its address."""
    name, text = issue_argument(issue)
    if text is None and "://" in name:
        text = name.split("://", 1)[1].partition("/")[2]
    elif text is None:
        try:
            with open(name, encoding="utf-8", errors="replace") as file:
                text = file.read(4096)
        except OSError:
            # The program reports the problem.
            text = ""
    title = text.strip().partition("\n")[0]
    return re.findall("[a-z0-9]+", title.lower())[:6]


class _Trajectory:
    """Reports the lines that are added to a trajectory."""

    def __init__(self, path: Path, on_event: Optional[OnEvent]) -> None:
        self._path = path
        self._on_event = on_event
        # The program refuses a folder with a trajectory.
        self._position = path.stat().st_size if path.exists() else 0

    def report_new(self) -> None:
        if self._on_event is None or not self._path.exists():
            return
        with self._path.open("rb") as file:
            file.seek(self._position)
            for line in file:
                if not line.endswith(b"\n"):
                    break
                self._position += len(line)
                self._on_event(json.loads(line))


def _execute(
    arguments: List[str], text: Optional[str], timeout: Optional[float], each: Callable[[], None]
) -> subprocess.CompletedProcess[str]:
    """Run the program. `each` is called now and then, and at the end."""
    ends_at = None if timeout is None else time.monotonic() + timeout
    process = subprocess.Popen(
        [find_program(), *arguments],
        stdin=subprocess.DEVNULL if text is None else subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
        errors="replace",
    )
    try:
        while True:
            try:
                output, errors = process.communicate(text, timeout=_POLL_SECONDS)
                break
            except subprocess.TimeoutExpired:
                # A repeated call continues with the text of the first.
                text = None
                each()
            if ends_at is not None and time.monotonic() > ends_at:
                raise TimeoutError(f"testwright did not end within {timeout} seconds")
        each()
    finally:
        _stop(process)
    return subprocess.CompletedProcess(arguments, process.returncode, output, errors)


def _result(ended: subprocess.CompletedProcess[str]) -> Any:
    """Return the JSON that the program printed."""
    title = f"testwright ended with exit code {ended.returncode}"
    error = _error(ended)
    if error is not None:
        detail = ": ".join(part for part in (error["message"], error["cause"]) if part)
        raise TestwrightError(title, detail, hint=error["hint"])
    try:
        return json.loads(ended.stdout)
    except ValueError:
        raise TestwrightError(title, ended.stderr.strip() or "it printed no result") from None


def _no_test(ended: subprocess.CompletedProcess[str]) -> Optional[Dict[str, Any]]:
    """Return a record if the program refused the issue before the run, because no test can come of it."""
    error = _error(ended)
    if error is None or ended.returncode != _NO_TEST:
        return None
    return {"outcome": "nothing", "reason": error["message"], "hint": error["hint"]}


def _error(ended: subprocess.CompletedProcess[str]) -> Optional[Dict[str, Any]]:
    """Return the error that the program printed instead of a result."""
    try:
        value = json.loads(ended.stdout)
    except ValueError:
        return None
    return value["error"] if isinstance(value, dict) and value.keys() == {"error"} else None


def _stop(process: subprocess.Popen[str]) -> None:
    """End the program. SIGTERM lets it remove its sandbox."""
    if process.poll() is not None:
        return
    process.terminate()
    try:
        process.communicate(timeout=_STOP_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
