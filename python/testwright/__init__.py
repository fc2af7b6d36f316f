"""Write tests that fail for the reason stated in an issue.

`run` and `check` start the program `testwright` of this installation. `Client` and `AsyncClient` talk to a server
(`testwright serve`).
"""

from .async_client import AsyncClient
from .client import Client
from .errors import TestwrightError
from .program import check, find_program, run
from .records import Cell, Check, Matrix, MatrixSummary, PatchResult, Run, ServerRun

__all__ = [
    "AsyncClient",
    "Cell",
    "Check",
    "Client",
    "Matrix",
    "MatrixSummary",
    "PatchResult",
    "Run",
    "ServerRun",
    "TestwrightError",
    "check",
    "find_program",
    "run",
]
