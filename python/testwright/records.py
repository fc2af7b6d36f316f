"""Results of runs, checks and matrices."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Callable, Dict, List, Mapping, Optional, TypeVar

_T = TypeVar("_T")


def from_record(kind: Callable[..., _T], record: Mapping[str, Any], **others: Any) -> _T:
    """Create a dataclass from the members of a JSON object that have the names of its fields."""
    names = {f.name for f in fields(kind)} - others.keys() - {"record"}  # type: ignore[arg-type]
    return kind(record=dict(record), **{name: record.get(name) for name in names}, **others)


@dataclass(frozen=True)
class Run:
    """The result of `testwright.run`."""

    #: `accepted`, `refused`, `withheld`, `abstained`, `nothing`, `out_of_budget`, `model_failed`, `infrastructure` …
    outcome: str
    #: The test, as a patch for `git apply`. The gate did not accept it unless `accepted` is true.
    patch: Optional[str]
    evidence: Optional[Dict[str, Any]]
    #: Folder with the results.
    folder: Path = field(compare=False)
    #: Content of `run.json`.
    record: Dict[str, Any] = field(repr=False, compare=False)

    @property
    def accepted(self) -> bool:
        return self.outcome == "accepted"


@dataclass(frozen=True)
class Check:
    """The evidence on a given test."""

    name: Optional[str]
    #: Whether the test fails on the old code for a sound reason, and again in every rerun.
    accepted: bool
    #: Reason why the test could not be run.
    refused: Optional[str]
    #: Problems with the test, each with `rule` and `text`.
    findings: List[Dict[str, Any]]
    #: The failing tests, each with `id`, `fails` and more.
    failing: List[Dict[str, Any]]
    #: Ids of the tests that already pass on the old code.
    passing: List[str]
    #: Probability that the test fails for the reason of the issue and passes once the issue is fixed.
    probability: float
    record: Dict[str, Any] = field(repr=False, compare=False)


@dataclass(frozen=True)
class ServerRun:
    """A run on a server."""

    id: str
    #: `queued`, `running`, then `accepted`, `refused`, `nothing`, `infrastructure` or `cancelled`.
    status: str
    title: str
    owner: str
    repository: str
    commit: Optional[str]
    approach: str
    model: str
    created_at: str
    started_at: Optional[str]
    ended_at: Optional[str]
    attempts: int
    requeues: int
    requeue_reason: Optional[str]
    not_before: Optional[str]
    cancelling: bool
    outcome: Optional[Dict[str, Any]]
    usage: Optional[Dict[str, Any]]
    seconds: Optional[float]
    record: Dict[str, Any] = field(repr=False, compare=False)

    @property
    def accepted(self) -> bool:
        return self.status == "accepted"

    @property
    def has_ended(self) -> bool:
        return self.status not in ("queued", "running")


@dataclass(frozen=True)
class PatchResult:
    """The verdict on a candidate patch."""

    name: str
    #: `kept`, `regresses`, `forged`, `dropped`, `undecided` or `waiting`.
    verdict: str
    score: float
    passed_sets: int
    decisive_sets: int
    reasons: List[str]
    record: Dict[str, Any] = field(repr=False, compare=False)


@dataclass(frozen=True)
class Cell:
    """A set of tests on a candidate patch."""

    tests: str
    patch: str
    old: Dict[str, str]
    new: Dict[str, str]
    passed: List[str]
    failed: List[str]
    regresses: List[str]
    forged: Optional[str]
    suspicions: List[str]
    left_out: List[str]
    not_tried: Optional[str]
    infrastructure: Optional[str]
    record: Dict[str, Any] = field(repr=False, compare=False)


@dataclass(frozen=True)
class Matrix:
    """Tests × patches on a server."""

    id: str
    #: `queued`, `running`, then `done`, `infrastructure` or `cancelled`.
    status: str
    message: Optional[str]
    repository: str
    commit: Optional[str]
    issue: Optional[str]
    created_at: str
    started_at: Optional[str]
    ended_at: Optional[str]
    attempts: int
    cancelling: bool
    #: Number of cells of the complete matrix.
    all_cells: int
    tests: List[str]
    patches: List[PatchResult]
    #: Names of the patches that pass a test, best first.
    ranking: List[str]
    #: Names of the patches that share the first place; empty if there is a single best patch.
    ties: List[str]
    #: Cells that have been tried.
    cells: List[Cell]
    record: Dict[str, Any] = field(repr=False, compare=False)

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> Matrix:
        return from_record(
            cls,
            record,
            patches=[from_record(PatchResult, patch) for patch in record["patches"]],
            cells=[from_record(Cell, cell) for cell in record["cells"]],
        )

    @property
    def has_ended(self) -> bool:
        return self.status not in ("queued", "running")
