"""A client of the HTTP API of `testwright serve`."""

from __future__ import annotations

import http.client
import ipaddress
import json
import os
import threading
import time
import urllib.request
from typing import (
    Any,
    Callable,
    Dict,
    Iterator,
    List,
    Mapping,
    Optional,
    Sequence,
    Set,
    Tuple,
    TypeVar,
    Union,
    overload,
)
from urllib.error import HTTPError
from urllib.parse import quote, urlencode, urlsplit

from .errors import TestwrightError
from .inputs import (
    Files,
    Issue,
    Patches,
    PathLike,
    Tests,
    given_tests,
    issue_text,
    items,
    patch_records,
    server_test,
)
from .program import OnEvent
from .records import Check, Matrix, MatrixOrId, MatrixSummary, RunOrId, ServerRun, from_record

_WAIT_SECONDS = 30
#: Timeout for reads. The server answers long polls in time, and sends something on open event streams every 15 seconds.
_READ_SECONDS = 60
#: Timeout for requests that answer once all work is done.
_WORK_SECONDS = 3600
_PAUSE_SECONDS = 0.2
_RETRY_SECONDS = 1
#: Maximum seconds without contact to the server.
_LOST_SECONDS = 30
_MAX_PAGE = 500
_DEFAULT_SERVER = "http://127.0.0.1:8420"
#: Statuses of a server that restarts, or of the proxy in front of it.
_TEMPORARY = (None, 502, 503, 504)

_Job = TypeVar("_Job", bound=Union[ServerRun, Matrix])


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """Redirects could lead the token to another server."""

    def redirect_request(self, *_: Any) -> None:
        return None


class Client:
    """A client of a server. It can be used by several threads.

    `base_url` is the address of the server, by default `TESTWRIGHT_SERVER` of the environment, otherwise
    `http://127.0.0.1:8420`. `token` is by default `TESTWRIGHT_TOKEN`; an empty string sends no token.

    All methods raise `TestwrightError` if the server refuses a request or cannot be reached.
    """

    def __init__(self, base_url: Optional[str] = None, token: Optional[str] = None) -> None:
        if base_url is None:
            base_url = os.environ.get("TESTWRIGHT_SERVER") or _DEFAULT_SERVER
        if token is None:
            token = os.environ.get("TESTWRIGHT_TOKEN", "")
        self._base = _server_url(base_url) + "/v1/"
        token = _checked_token(token)
        self._headers = {"Authorization": f"Bearer {token}"} if token else {}
        # The server rejects requests without a token that come through a proxy.
        self._opener = urllib.request.build_opener(urllib.request.ProxyHandler({}), _NoRedirect)

    def write_failing_test(
        self,
        issue: Issue,
        repository: Optional[PathLike] = None,
        *,
        commit: Optional[str] = None,
        project: Optional[str] = None,
        comments: bool = False,
        approach: Optional[str] = None,
        effort: Optional[str] = None,
        model: Optional[str] = None,
        hint: Optional[str] = None,
        test_files: Union[PathLike, Sequence[PathLike]] = (),
        min_confidence: Optional[float] = None,
        max_steps: Optional[int] = None,
        max_dollars: Optional[float] = None,
        max_tokens: Optional[int] = None,
        max_minutes: Optional[float] = None,
        idempotency_key: Optional[str] = None,
    ) -> ServerRun:
        """Start a run, and return it without waiting for its end.

        `issue` is the URL of a GitHub issue, its number (`OWNER/NAME#12`), the path of a file, or text: a title line
        and a body. `repository` is a URL, or a folder on the server; it is not needed if the issue is a URL.

        `model` and `approach` are by default those of the server. `hint` says what the test should be like.
        `test_files` are the only test files that may change, as paths in the repository. `project` is the folder of
        the one project to use, if the repository has several. With `comments`, the issue's comments are read too.
        `effort` is `low`, `medium` or `high`. Tests with a confidence below `min_confidence` (0 to 1) are withheld.
        """
        limits = {"steps": max_steps, "dollars": max_dollars, "tokens": max_tokens, "minutes": max_minutes}
        request = {
            "issue": issue_text(issue, repository),
            "repository": _location(repository),
            "commit": commit,
            "project": project,
            "comments": comments or None,
            "approach": approach,
            "effort": effort,
            "model": model,
            "hint": hint,
            "min_confidence": min_confidence,
            "test_files": [os.fspath(path) for path in items(test_files, (str, os.PathLike), "test_files")],
            "limits": _present(limits),
        }
        return ServerRun.from_record(self._post("runs", request, idempotency_key))

    def revise(self, run: RunOrId, hint: str, *, idempotency_key: Optional[str] = None) -> ServerRun:
        """Start a run that changes the test of an ended run, and return it without waiting for its end.

        `hint` says what to change.
        """
        return ServerRun.from_record(self._post(f"runs/{_run_id(run)}/revise", {"hint": hint}, idempotency_key))

    def matrix(
        self,
        patches: Patches,
        *,
        runs: Union[RunOrId, Sequence[RunOrId]] = (),
        tests: Optional[Patches] = None,
        repository: Optional[PathLike] = None,
        commit: Optional[str] = None,
        issue: Optional[PathLike] = None,
        idempotency_key: Optional[str] = None,
    ) -> Matrix:
        """Start to run tests on candidate code patches, and return the matrix without waiting for its end.

        `patches` and `tests` are paths, or map names to patches; a patch is its text or its path. The patches of a
        list have the names of their files. `runs` are accepted runs, or one of them; their tests are used too.
        """
        sets = [{"run": _job_id(run, ServerRun)} for run in items(runs, (str, ServerRun), "runs")]
        request = {
            "repository": _location(repository),
            "commit": commit,
            "issue": None if issue is None else issue_text(issue, repository),
            "tests": sets + patch_records(tests, "tests"),
            "patches": patch_records(patches, "patches"),
        }
        return Matrix.from_record(self._post("matrices", request, idempotency_key))

    def check(
        self,
        issue: Issue,
        repository: Optional[PathLike] = None,
        *,
        tests: Optional[Tests] = None,
        files: Optional[Files] = None,
        commit: Optional[str] = None,
        model: Optional[str] = None,
        max_steps: Optional[int] = None,
        max_dollars: Optional[float] = None,
        max_tokens: Optional[int] = None,
        max_minutes: Optional[float] = None,
    ) -> List[Check]:
        """Check tests for an issue, and return the evidence on each. This can take minutes.

        `issue` and `repository` are those of `write_failing_test`; `tests` and `files` are those of
        `testwright.check`. `model` tries fixes on each accepted test and reviews it; the limits are for each test.
        """
        limits = {"steps": max_steps, "dollars": max_dollars, "tokens": max_tokens, "minutes": max_minutes}
        request = {
            "issue": issue_text(issue, repository),
            "repository": _location(repository),
            "commit": commit,
            "tests": [server_test(test, repository) for test in given_tests(tests, files)],
            "model": model,
            "limits": _present(limits),
        }
        checks = self._post("checks", request, None, _WORK_SECONDS)["checks"]
        return [from_record(Check, check) for check in checks]

    def list_runs(
        self,
        *,
        status: Optional[str] = None,
        owner: Optional[str] = None,
        repository: Optional[PathLike] = None,
        approach: Optional[str] = None,
        model: Optional[str] = None,
        limit: int = 50,
    ) -> List[ServerRun]:
        """Return up to `limit` runs, newest first. The other arguments select runs."""
        filters = {
            "status": status,
            "owner": owner,
            "repository": _location(repository),
            "approach": approach,
            "model": model,
        }
        return [ServerRun.from_record(record) for record in self._list("runs", filters, limit)]

    def list_matrices(
        self,
        *,
        status: Optional[str] = None,
        owner: Optional[str] = None,
        repository: Optional[PathLike] = None,
        limit: int = 50,
    ) -> List[MatrixSummary]:
        """Return up to `limit` matrices, newest first. The other arguments select matrices."""
        filters = {"status": status, "owner": owner, "repository": _location(repository)}
        return [from_record(MatrixSummary, record) for record in self._list("matrices", filters, limit)]

    def get_run(self, run: RunOrId) -> ServerRun:
        """Return the current state of a run."""
        return ServerRun.from_record(self._get(f"runs/{_run_id(run)}"))

    def get_matrix(self, matrix: MatrixOrId) -> Matrix:
        """Return the current state of a matrix, with its results so far."""
        return Matrix.from_record(self._get(f"matrices/{_matrix_id(matrix)}"))

    def patch(self, run: RunOrId) -> str:
        """Return the test that a run wrote, as a patch for `git apply`."""
        return _read(self._open("GET", f"runs/{_run_id(run)}/patch")).decode()

    def evidence(self, run: RunOrId) -> Dict[str, Any]:
        """Return the evidence for the test of a run."""
        return self._get(f"runs/{_run_id(run)}/evidence")

    @overload
    def cancel(self, job: ServerRun) -> ServerRun: ...
    @overload
    def cancel(self, job: Union[Matrix, MatrixSummary]) -> Matrix: ...
    @overload
    def cancel(self, job: str) -> Any: ...
    def cancel(self, job: Union[RunOrId, MatrixOrId]) -> Union[ServerRun, Matrix]:
        """Cancel a run or a matrix, and return it. If it is running, it ends within seconds."""
        return self._change(job, "cancel")

    @overload
    def retry(self, job: ServerRun) -> ServerRun: ...
    @overload
    def retry(self, job: Union[Matrix, MatrixSummary]) -> Matrix: ...
    @overload
    def retry(self, job: str) -> Any: ...
    def retry(self, job: Union[RunOrId, MatrixOrId]) -> Union[ServerRun, Matrix]:
        """Resume a run or a matrix that was cancelled or ended as `infrastructure`, and return it."""
        return self._change(job, "retry")

    @overload
    def wait(
        self, job: ServerRun, *, on_event: Optional[OnEvent] = None, timeout: Optional[float] = None
    ) -> ServerRun: ...
    @overload
    def wait(
        self,
        job: Union[Matrix, MatrixSummary],
        *,
        on_event: Optional[OnEvent] = None,
        timeout: Optional[float] = None,
    ) -> Matrix: ...
    @overload
    def wait(self, job: str, *, on_event: Optional[OnEvent] = None, timeout: Optional[float] = None) -> Any: ...
    def wait(
        self,
        job: Union[RunOrId, MatrixOrId],
        *,
        on_event: Optional[OnEvent] = None,
        timeout: Optional[float] = None,
    ) -> Union[ServerRun, Matrix]:
        """Wait until a run or a matrix has ended, and return it. `job` can also be the id of either.

        `on_event` receives the events of a run, which are the lines of its trajectory. For a matrix it receives an
        object for each new cell, with `event` (`cell`), `cell`, `done` and `all`.

        Raises `TimeoutError` after `timeout` seconds. The run or the matrix continues on the server. Raises
        `TestwrightError` after 30 seconds without contact to the server.
        """
        return self._wait(job, on_event, timeout, threading.Event())

    def _wait(
        self,
        job: Union[RunOrId, MatrixOrId],
        on_event: Optional[OnEvent],
        timeout: Optional[float],
        stop: threading.Event,
    ) -> Union[ServerRun, Matrix]:
        """Wait until a job has ended, or `stop` is set."""
        _job_id(job, ServerRun, Matrix, MatrixSummary)
        ends_at = float("inf") if timeout is None else time.monotonic() + timeout

        def is_over() -> bool:
            return stop.is_set() or time.monotonic() >= ends_at

        def seconds() -> int:
            return max(0, int(min(_WAIT_SECONDS, ends_at - time.monotonic())))

        def read_seconds() -> float:
            return max(1.0, min(_READ_SECONDS, ends_at - time.monotonic()))

        def start(job: Union[ServerRun, Matrix, MatrixSummary]) -> Callable[[], Union[ServerRun, Matrix]]:
            if isinstance(job, (Matrix, MatrixSummary)):
                return self._matrix_step(job, on_event, seconds)
            if on_event is not None:
                return self._run_step(job, on_event, is_over, read_seconds)
            path = f"runs/{_run_id(job)}"
            return lambda: ServerRun.from_record(self._get(path, wait=seconds()))

        next_step = None if isinstance(job, str) else start(job)

        def step() -> Union[ServerRun, Matrix]:
            nonlocal next_step
            if next_step is None:
                # The server can be down at the start, too.
                next_step = start(self._find(job) if isinstance(job, str) else job)
            return next_step()

        return _repeat(step, is_over, stop)

    def _find(self, job: str) -> Union[ServerRun, Matrix]:
        """Return the run or the matrix with this id."""
        return self._either(lambda: self.get_run(job), lambda: self.get_matrix(job))

    def _change(self, job: Union[RunOrId, MatrixOrId], action: str) -> Union[ServerRun, Matrix]:
        """Cancel or retry a job."""
        name = quote(_job_id(job, ServerRun, Matrix, MatrixSummary), safe="")

        def change_run() -> ServerRun:
            return ServerRun.from_record(self._post(f"runs/{name}/{action}", None, None))

        def change_matrix() -> Matrix:
            return Matrix.from_record(self._post(f"matrices/{name}/{action}", None, None))

        if isinstance(job, str):
            return self._either(change_run, change_matrix)
        return change_run() if isinstance(job, ServerRun) else change_matrix()

    def _either(
        self, of_run: Callable[[], ServerRun], of_matrix: Callable[[], Matrix]
    ) -> Union[ServerRun, Matrix]:
        """Call the second function if no run has the id."""
        try:
            return of_run()
        except TestwrightError as error:
            if error.status != 404:
                raise
        try:
            return of_matrix()
        except TestwrightError as error:
            if error.status != 404:
                raise
            detail = "no run or matrix has this id"
            raise TestwrightError(error.title, detail, status=error.status, type=error.type) from None

    def _matrix_step(
        self, matrix: Union[Matrix, MatrixSummary], on_event: Optional[OnEvent], seconds: Callable[[], int]
    ) -> Callable[[], Matrix]:
        """Return a function that waits for new cells and reports them."""
        reported: Set[Tuple[str, str]] = set()

        def step() -> Matrix:
            known = {} if on_event is None else {"cells": len(reported)}
            now = Matrix.from_record(self._get(f"matrices/{_matrix_id(matrix)}", wait=seconds(), **known))
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
            path = f"runs/{_run_id(run)}/events"
            with self._open("GET", path, headers=headers, timeout=read_seconds()) as response:
                for kind, number, data in _events(response):
                    if kind == "end":
                        return ServerRun.from_record(json.loads(data))
                    if kind == "event" and number is not None:
                        last = number
                        on_event(json.loads(data))
                    if is_over():
                        break
            return self.get_run(run)

        return step

    def _list(self, path: str, filters: Mapping[str, Optional[str]], limit: int) -> List[Dict[str, Any]]:
        """Return the entries of as many pages as needed."""
        entries: List[Dict[str, Any]] = []
        query: Dict[str, Any] = _present(filters)
        while len(entries) < limit:
            page = self._get(path, **query, limit=min(limit - len(entries), _MAX_PAGE))
            entries += page[path]
            if page.get("next") is None:
                break
            query["before"] = page["next"]
        return entries

    def _get(self, path: str, **query: Union[int, str]) -> Dict[str, Any]:
        return self._json(self._open("GET", path + ("?" + urlencode(query) if query else "")))

    def _post(
        self,
        path: str,
        request: Optional[Mapping[str, Any]],
        idempotency_key: Optional[str],
        timeout: float = _READ_SECONDS,
    ) -> Dict[str, Any]:
        headers = {} if idempotency_key is None else {"Idempotency-Key": _checked_key(idempotency_key)}
        body = None if request is None else _encode(request)
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
    lost_at: Optional[float] = None
    while True:
        pause: float = _PAUSE_SECONDS
        problem: Optional[TestwrightError] = None
        try:
            job = step()
            if job.has_ended:
                return job
            lost_at = None
        except TestwrightError as error:
            now = time.monotonic()
            lost_at = now if lost_at is None else lost_at
            if error.status not in _TEMPORARY or now - lost_at >= _LOST_SECONDS:
                raise
            problem = error
            pause = _RETRY_SECONDS
        if is_over():
            if problem is not None:
                raise TimeoutError(f"the server could not be reached before the timeout: {problem}") from problem
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


def _location(repository: Optional[PathLike]) -> Optional[str]:
    if repository is None or isinstance(repository, str):
        return repository
    return os.path.abspath(repository)


def _run_id(run: RunOrId) -> str:
    return quote(_job_id(run, ServerRun), safe="")


def _matrix_id(matrix: MatrixOrId) -> str:
    return quote(_job_id(matrix, Matrix, MatrixSummary), safe="")


def _job_id(job: Union[RunOrId, MatrixOrId], *kinds: type) -> str:
    """Return the id of a job. Other objects have ids that mean something else."""
    if not isinstance(job, str) and not isinstance(job, kinds):
        names = ", ".join(kind.__name__ for kind in kinds)
        raise TypeError(f"expected an id or {names}, not {type(job).__name__}")
    name: str = (job if isinstance(job, str) else job.id).strip()
    # An empty id, or one with dots alone, would be the address of something else.
    if not name.strip("."):
        raise TestwrightError("Invalid id", f"`{name}` is not an id", hint="pass the `id` of a run or a matrix")
    return name


def _server_url(address: str) -> str:
    """Return the address of the server, with a scheme and without a slash at its end."""
    if not isinstance(address, str):
        raise TypeError(f"`base_url` must be a string, not {type(address).__name__}")
    address = address.strip()

    def refuse(detail: str, hint: str) -> TestwrightError:
        return TestwrightError("Invalid server address", detail, hint=hint)

    example = f"pass an address such as {_DEFAULT_SERVER}"
    if not address or not address.isascii() or not address.isprintable() or " " in address:
        raise refuse("it is empty, or has blanks or characters that are not ASCII", example)
    has_scheme = "://" in address
    try:
        parts = urlsplit(address if has_scheme else f"http://{address}")
        host = parts.hostname
        # Reading the port checks it.
        parts.port
    except ValueError as error:
        raise refuse(str(error), example) from None
    if parts.username is not None:
        raise refuse("it contains credentials", "pass a token as `token=`, or set TESTWRIGHT_TOKEN")
    if parts.scheme not in ("http", "https") or not host or parts.query or parts.fragment:
        raise refuse(f"{address} is not the address of a server", example)
    if not has_scheme and not _is_loopback(host):
        raise refuse(f"{address} has no scheme", "add https:// or http:// at its start")
    return parts.geturl().rstrip("/")


def _is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _checked_token(token: str) -> str:
    """Return the token without surrounding whitespace, which files and shells add. Errors do not contain the token."""
    if not isinstance(token, str):
        raise TypeError(f"`token` must be a string, not {type(token).__name__}")
    token = token.strip()
    if not token.isascii() or not token.isprintable() or " " in token:
        detail = "the token has blanks, control characters, or characters that are not ASCII"
        hint = "pass only the token that `testwright tokens create` printed"
        raise TestwrightError("Invalid token", detail, hint=hint)
    return token


def _checked_key(key: str) -> str:
    """Return a key that can be the value of a header. The server checks the rest."""
    if not isinstance(key, str):
        raise TypeError(f"`idempotency_key` must be a string, not {type(key).__name__}")
    if not key.isascii() or not key.isprintable():
        detail = "it has control characters, or characters that are not ASCII"
        raise TestwrightError("Invalid idempotency key", detail, hint="use letters and digits")
    return key


def _encode(request: Mapping[str, Any]) -> bytes:
    """Return the request as JSON. Errors name the argument."""
    for name, value in request.items():
        try:
            json.dumps(value)
        except (TypeError, ValueError) as error:
            raise TypeError(f"`{name}` has a wrong type: {error}") from None
    return json.dumps(_present(request)).encode()


def _present(members: Mapping[str, Any]) -> Dict[str, Any]:
    return {name: value for name, value in members.items() if value is not None}
