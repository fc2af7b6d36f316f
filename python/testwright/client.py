"""A client of the HTTP API of `testwright serve`."""

from __future__ import annotations

import http.client
import json
import os
import threading
import time
import urllib.request
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, List, Mapping, Optional, Sequence, Set, Tuple, TypeVar, Union, overload
from urllib.error import HTTPError
from urllib.parse import quote, urlencode

from .errors import TestwrightError
from .program import OnEvent
from .records import Check, Matrix, ServerRun, from_record

_WAIT_SECONDS = 30
#: Timeout for reads. The server answers long polls in time, and sends something on open event streams every 15 seconds.
_READ_SECONDS = 60
#: Timeout for requests that answer once all work is done.
_WORK_SECONDS = 3600
_PAUSE_SECONDS = 0.2
_RETRY_SECONDS = 1
_MAX_RETRIES = 30
#: Statuses of a server that restarts, or of the proxy in front of it.
_TEMPORARY = (None, 502, 503, 504)

_Job = TypeVar("_Job", ServerRun, Matrix)
RunOrId = Union[ServerRun, str]


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """Redirects could lead the token to another server."""

    def redirect_request(self, *_: Any) -> None:
        return None


class Client:
    """A client of a server. It can be used by several threads.

    All methods raise `TestwrightError` if the server refuses a request or cannot be reached.
    """

    def __init__(self, base_url: str = "http://127.0.0.1:8420", token: Optional[str] = None) -> None:
        self._base = base_url.rstrip("/") + "/v1/"
        self._headers = {"Authorization": f"Bearer {token}"} if token else {}
        # The server rejects requests without a token that come through a proxy.
        self._opener = urllib.request.build_opener(urllib.request.ProxyHandler({}), _NoRedirect)

    def write_failing_test(
        self,
        issue: Union[str, "os.PathLike[str]"],
        repository: Union[str, "os.PathLike[str]", None] = None,
        *,
        commit: Optional[str] = None,
        approach: Optional[str] = None,
        model: Optional[str] = None,
        max_steps: Optional[int] = None,
        max_dollars: Optional[float] = None,
        max_tokens: Optional[int] = None,
        max_minutes: Optional[float] = None,
        idempotency_key: Optional[str] = None,
    ) -> ServerRun:
        """Start a run, and return it without waiting for its end.

        `issue` is the URL of a GitHub issue or its text, or the path of a file as a `Path`. `repository` is a URL, or
        a folder on the server; it is not needed if the issue is a URL.
        """
        limits = {"steps": max_steps, "dollars": max_dollars, "tokens": max_tokens, "minutes": max_minutes}
        request = {
            "issue": _text(issue),
            "repository": _location(repository),
            "commit": commit,
            "approach": approach,
            "model": model,
            "limits": _present(limits),
        }
        return from_record(ServerRun, self._post("runs", request, idempotency_key))

    def matrix(
        self,
        patches: Mapping[str, str],
        *,
        runs: Sequence[RunOrId] = (),
        tests: Optional[Mapping[str, str]] = None,
        repository: Union[str, "os.PathLike[str]", None] = None,
        commit: Optional[str] = None,
        issue: Union[str, "os.PathLike[str]", None] = None,
        idempotency_key: Optional[str] = None,
    ) -> Matrix:
        """Start to run tests on candidate code patches, and return the matrix without waiting for its end.

        `patches` and `tests` map names to patches. `runs` are accepted runs, whose tests are used too.
        """
        sets = [{"run": _id(run)} for run in runs]
        request = {
            "repository": _location(repository),
            "commit": commit,
            "issue": None if issue is None else _text(issue),
            "tests": sets + _named(tests or {}),
            "patches": _named(patches),
        }
        return Matrix.from_record(self._post("matrices", request, idempotency_key))

    def check(
        self,
        issue: Union[str, "os.PathLike[str]"],
        repository: Union[str, "os.PathLike[str]", None] = None,
        *,
        tests: Optional[Mapping[str, str]] = None,
        files: Optional[Mapping[str, str]] = None,
        commit: Optional[str] = None,
        model: Optional[str] = None,
        max_steps: Optional[int] = None,
        max_dollars: Optional[float] = None,
        max_tokens: Optional[int] = None,
        max_minutes: Optional[float] = None,
    ) -> List[Check]:
        """Check tests for an issue, and return the evidence on each. This can take minutes.

        `tests` maps names to patches. `files` maps paths of test files in the repository to their contents. `model`
        tries fixes on each accepted test and reviews it; the limits are for each test.
        """
        limits = {"steps": max_steps, "dollars": max_dollars, "tokens": max_tokens, "minutes": max_minutes}
        given = [{"path": path, "content": content} for path, content in (files or {}).items()]
        request = {
            "issue": _text(issue),
            "repository": _location(repository),
            "commit": commit,
            "tests": _named(tests or {}) + given,
            "model": model,
            "limits": _present(limits),
        }
        checks = self._post("checks", request, None, _WORK_SECONDS)["checks"]
        return [from_record(Check, check) for check in checks]

    def get_run(self, run: RunOrId) -> ServerRun:
        """Return the current state of a run."""
        return from_record(ServerRun, self._get(f"runs/{_id(run)}"))

    def get_matrix(self, matrix: Union[Matrix, str]) -> Matrix:
        """Return the current state of a matrix, with its results so far."""
        return Matrix.from_record(self._get(f"matrices/{_id(matrix)}"))

    def patch(self, run: RunOrId) -> str:
        """Return the test that a run wrote, as a patch for `git apply`."""
        return _read(self._open("GET", f"runs/{_id(run)}/patch")).decode()

    def evidence(self, run: RunOrId) -> Dict[str, Any]:
        """Return the evidence for the test of a run."""
        return self._get(f"runs/{_id(run)}/evidence")

    @overload
    def cancel(self, job: RunOrId) -> ServerRun: ...
    @overload
    def cancel(self, job: Matrix) -> Matrix: ...
    def cancel(self, job: Union[RunOrId, Matrix]) -> Union[ServerRun, Matrix]:
        """Cancel a run or a matrix. If it is running, it ends within seconds."""
        if isinstance(job, Matrix):
            return Matrix.from_record(self._post(f"matrices/{_id(job)}/cancel", None, None))
        return from_record(ServerRun, self._post(f"runs/{_id(job)}/cancel", None, None))

    @overload
    def wait(
        self, job: RunOrId, *, on_event: Optional[OnEvent] = None, timeout: Optional[float] = None
    ) -> ServerRun: ...
    @overload
    def wait(self, job: Matrix, *, on_event: Optional[OnEvent] = None, timeout: Optional[float] = None) -> Matrix: ...
    def wait(
        self, job: Union[RunOrId, Matrix], *, on_event: Optional[OnEvent] = None, timeout: Optional[float] = None
    ) -> Union[ServerRun, Matrix]:
        """Wait until a run or a matrix has ended, and return it.

        `on_event` receives the events of a run, which are the lines of its trajectory. For a matrix it receives an
        object for each new cell, with `event` (`cell`), `cell`, `done` and `all`.

        Raises `TimeoutError` after `timeout` seconds. The run or the matrix continues on the server.
        """
        return self._wait(job, on_event, timeout, threading.Event())

    def _wait(
        self,
        job: Union[RunOrId, Matrix],
        on_event: Optional[OnEvent],
        timeout: Optional[float],
        stop: threading.Event,
    ) -> Union[ServerRun, Matrix]:
        """Wait until a job has ended, or `stop` is set."""
        ends_at = float("inf") if timeout is None else time.monotonic() + timeout

        def is_over() -> bool:
            return stop.is_set() or time.monotonic() >= ends_at

        def seconds() -> int:
            return max(0, int(min(_WAIT_SECONDS, ends_at - time.monotonic())))

        def read_seconds() -> float:
            return max(1.0, min(_READ_SECONDS, ends_at - time.monotonic()))

        if isinstance(job, Matrix):
            return _repeat(self._matrix_step(job, on_event, seconds), is_over, stop)
        if on_event is None:
            path = f"runs/{_id(job)}"
            return _repeat(lambda: from_record(ServerRun, self._get(path, wait=seconds())), is_over, stop)
        return _repeat(self._run_step(job, on_event, is_over, read_seconds), is_over, stop)

    def _matrix_step(
        self, matrix: Matrix, on_event: Optional[OnEvent], seconds: Callable[[], int]
    ) -> Callable[[], Matrix]:
        """Return a function that waits for new cells and reports them."""
        reported: Set[Tuple[str, str]] = set()

        def step() -> Matrix:
            known = {} if on_event is None else {"cells": len(reported)}
            now = Matrix.from_record(self._get(f"matrices/{_id(matrix)}", wait=seconds(), **known))
            for cell in now.cells:
                if on_event is not None and (cell.tests, cell.patch) not in reported:
                    reported.add((cell.tests, cell.patch))
                    on_event({"event": "cell", "cell": cell.record, "done": len(reported), "all": now.all_cells})
            return now

        return step

    def _run_step(
        self, run: RunOrId, on_event: OnEvent, is_over: Callable[[], bool], read_seconds: Callable[[], float]
    ) -> Callable[[], ServerRun]:
        """Return a function that reports the events of a run until its end, or until the stream is cut."""
        last = 0

        def step() -> ServerRun:
            nonlocal last
            headers = {"Last-Event-ID": str(last)}
            path = f"runs/{_id(run)}/events"
            with self._open("GET", path, headers=headers, timeout=read_seconds()) as response:
                for kind, number, data in _events(response):
                    if kind == "end":
                        return from_record(ServerRun, json.loads(data))
                    if kind == "event" and number is not None:
                        last = number
                        on_event(json.loads(data))
                    if is_over():
                        break
            return self.get_run(run)

        return step

    def _get(self, path: str, **query: int) -> Dict[str, Any]:
        return self._json(self._open("GET", path + ("?" + urlencode(query) if query else "")))

    def _post(
        self,
        path: str,
        request: Optional[Mapping[str, Any]],
        idempotency_key: Optional[str],
        timeout: float = _READ_SECONDS,
    ) -> Dict[str, Any]:
        headers = {"Idempotency-Key": idempotency_key} if idempotency_key else {}
        body = None if request is None else json.dumps(_present(request)).encode()
        return self._json(self._open("POST", path, body, headers, timeout))

    def _json(self, response: http.client.HTTPResponse) -> Dict[str, Any]:
        try:
            value: Dict[str, Any] = json.loads(_read(response))
            return value
        except ValueError as error:
            raise TestwrightError("Unreadable response", str(error)) from error

    def _open(
        self,
        method: str,
        path: str,
        body: Optional[bytes] = None,
        headers: Optional[Mapping[str, str]] = None,
        timeout: float = _READ_SECONDS,
    ) -> http.client.HTTPResponse:
        request = urllib.request.Request(self._base + path, body, {**self._headers, **(headers or {})}, method=method)
        if body is not None:
            request.add_header("Content-Type", "application/json")
        try:
            response: http.client.HTTPResponse = self._opener.open(request, timeout=timeout)
            return response
        except HTTPError as error:
            with error:
                raise TestwrightError.from_response(error) from None
        except (OSError, http.client.HTTPException) as error:
            detail = str(getattr(error, "reason", error))
            hint = f"check that `testwright serve` is running, and the address {self._base}"
            raise TestwrightError("Cannot reach the server", detail, hint=hint) from error


def _read(response: http.client.HTTPResponse) -> bytes:
    with response:
        try:
            return response.read()
        except (OSError, http.client.HTTPException) as error:
            raise TestwrightError("Unreadable response", str(error)) from error


def _repeat(step: Callable[[], _Job], is_over: Callable[[], bool], stop: threading.Event) -> _Job:
    """Call `step` until its job has ended. The server or the network may be down for a while."""
    failures = 0
    while True:
        pause: float = _PAUSE_SECONDS
        try:
            job = step()
            if job.has_ended:
                return job
            failures = 0
        except TestwrightError as error:
            failures += 1
            if error.status not in _TEMPORARY or failures > _MAX_RETRIES:
                raise
            pause = _RETRY_SECONDS
        if is_over():
            raise TimeoutError("it did not end in time, and continues on the server")
        stop.wait(pause)


def _events(response: http.client.HTTPResponse) -> Iterator[Tuple[str, Optional[int], str]]:
    """Yield kind, number and data of each event (server-sent events, HTML standard), and of each comment."""
    kind, number, data = "", None, ""
    try:
        for raw in response:
            line = raw.decode().rstrip("\r\n")
            name, _, value = line.partition(":")
            value = value[1:] if value.startswith(" ") else value
            if name == "event":
                kind = value
            elif name == "id":
                number = int(value)
            elif name == "data":
                data += value
            elif not name:
                # An empty line ends an event. A comment keeps the connection open.
                yield kind, number, data
                kind, number, data = "", None, ""
    except (OSError, http.client.HTTPException):
        # The caller reconnects.
        return


def _text(issue: Union[str, "os.PathLike[str]"]) -> str:
    return issue if isinstance(issue, str) else Path(issue).read_text(encoding="utf-8")


def _location(repository: Union[str, "os.PathLike[str]", None]) -> Optional[str]:
    if repository is None or isinstance(repository, str):
        return repository
    return os.path.abspath(repository)


def _id(job: Union[RunOrId, Matrix]) -> str:
    return quote(job if isinstance(job, str) else job.id, safe="")


def _named(patches: Mapping[str, str]) -> List[Dict[str, str]]:
    return [{"name": name, "patch": patch} for name, patch in patches.items()]


def _present(members: Mapping[str, Any]) -> Dict[str, Any]:
    return {name: value for name, value in members.items() if value is not None}
