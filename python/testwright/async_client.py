"""The client for asyncio."""

from __future__ import annotations

import asyncio
import functools
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Callable, Dict, List, Optional, TypeVar, Union, overload

from .client import Client
from .program import OnEvent
from .records import Check, Matrix, MatrixOrId, MatrixSummary, RunOrId, ServerRun

_MAX_CALLS = 64

_T = TypeVar("_T")


class AsyncClient:
    """A `Client` for asyncio: the same methods with the same arguments. It makes up to 64 calls at once, in threads."""

    def __init__(self, base_url: Optional[str] = None, token: Optional[str] = None) -> None:
        self._client = Client(base_url, token)
        self._threads = ThreadPoolExecutor(_MAX_CALLS, "testwright")

    async def write_failing_test(self, *arguments: Any, **options: Any) -> ServerRun:
        """See `Client.write_failing_test`."""
        return await self._call(self._client.write_failing_test, *arguments, **options)

    async def revise(self, run: RunOrId, hint: str, *, idempotency_key: Optional[str] = None) -> ServerRun:
        """See `Client.revise`."""
        return await self._call(self._client.revise, run, hint, idempotency_key=idempotency_key)

    async def matrix(self, *arguments: Any, **options: Any) -> Matrix:
        """See `Client.matrix`."""
        return await self._call(self._client.matrix, *arguments, **options)

    async def check(self, *arguments: Any, **options: Any) -> List[Check]:
        """See `Client.check`."""
        return await self._call(self._client.check, *arguments, **options)

    async def list_runs(self, **options: Any) -> List[ServerRun]:
        """See `Client.list_runs`."""
        return await self._call(self._client.list_runs, **options)

    async def list_matrices(self, **options: Any) -> List[MatrixSummary]:
        """See `Client.list_matrices`."""
        return await self._call(self._client.list_matrices, **options)

    async def get_run(self, run: RunOrId) -> ServerRun:
        """See `Client.get_run`."""
        return await self._call(self._client.get_run, run)

    async def get_matrix(self, matrix: MatrixOrId) -> Matrix:
        """See `Client.get_matrix`."""
        return await self._call(self._client.get_matrix, matrix)

    async def patch(self, run: RunOrId) -> str:
        """See `Client.patch`."""
        return await self._call(self._client.patch, run)

    async def evidence(self, run: RunOrId) -> Dict[str, Any]:
        """See `Client.evidence`."""
        return await self._call(self._client.evidence, run)

    @overload
    async def cancel(self, job: ServerRun) -> ServerRun: ...
    @overload
    async def cancel(self, job: Union[Matrix, MatrixSummary]) -> Matrix: ...
    @overload
    async def cancel(self, job: str) -> Any: ...
    async def cancel(self, job: Union[RunOrId, MatrixOrId]) -> Union[ServerRun, Matrix]:
        """See `Client.cancel`."""
        return await self._call(self._client._change, job, "cancel")

    @overload
    async def retry(self, job: ServerRun) -> ServerRun: ...
    @overload
    async def retry(self, job: Union[Matrix, MatrixSummary]) -> Matrix: ...
    @overload
    async def retry(self, job: str) -> Any: ...
    async def retry(self, job: Union[RunOrId, MatrixOrId]) -> Union[ServerRun, Matrix]:
        """See `Client.retry`."""
        return await self._call(self._client._change, job, "retry")

    @overload
    async def wait(
        self, job: ServerRun, *, on_event: Optional[OnEvent] = None, timeout: Optional[float] = None
    ) -> ServerRun: ...
    @overload
    async def wait(
        self,
        job: Union[Matrix, MatrixSummary],
        *,
        on_event: Optional[OnEvent] = None,
        timeout: Optional[float] = None,
    ) -> Matrix: ...
    @overload
    async def wait(self, job: str, *, on_event: Optional[OnEvent] = None, timeout: Optional[float] = None) -> Any: ...
    async def wait(
        self,
        job: Union[RunOrId, MatrixOrId],
        *,
        on_event: Optional[OnEvent] = None,
        timeout: Optional[float] = None,
    ) -> Union[ServerRun, Matrix]:
        """See `Client.wait`. `on_event` is called in the event loop. Cancelling the task does not cancel the run."""
        loop = asyncio.get_running_loop()
        stop = threading.Event()

        def forward(event: Dict[str, Any]) -> None:
            if on_event is not None:
                loop.call_soon_threadsafe(functools.partial(on_event, event))

        try:
            return await self._call(self._client._wait, job, on_event and forward, timeout, stop)
        finally:
            stop.set()

    async def _call(self, function: Callable[..., _T], *arguments: Any, **options: Any) -> _T:
        call = functools.partial(function, *arguments, **options)
        return await asyncio.get_running_loop().run_in_executor(self._threads, call)
