"""Results of runs, checks and matrices."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Callable, Dict, List, Mapping, Optional, TypeVar, Union

_T = TypeVar("_T")

#: Statuses of jobs that have not ended.
_IN_PROGRESS = ("queued", "running")


def from_record(kind: Callable[..., _T], record: Mapping[str, Any], **others: Any) -> _T:
    """Create a dataclass from the members of a JSON object that have the names of its fields."""
    names = {f.name for f in fields(kind)} - others.keys() - {"record"}  # type: ignore[arg-type]
    return kind(record=dict(record), **{name: record.get(name) for name in names}, **others)


def _reason(details: Mapping[str, Any]) -> Optional[str]:
    """Return why a run has no accepted test, in one text."""
    findings = details.get("findings")
    if isinstance(findings, list) and findings:
        return "; ".join(map(str, findings))
    if details.get("limit") is not None:
        return f"the limit of {details['limit']} was reached"
    if details.get("minimum") is not None:
        return f"its confidence is below {details['minimum']}"
    return details.get("reason") or details.get("message")


@dataclass(frozen=True)
class Run:
    """The result of `testwright.run`."""

    #: `accepted`, `refused`, `withheld`, `abstained`, `nothing`, `out_of_budget`, `model_failed`, `infrastructure` …
    outcome: str
    #: The test, as a patch for `git apply`. The gate did not accept it unless `accepted` is true.
    patch: Optional[str]
    evidence: Optional[Dict[str, Any]]
    #: Folder with the results; `None` if the program ended before it created one.
    folder: Optional[Path] = field(compare=False)
    #: Content of `run.json`.
    record: Dict[str, Any] = field(repr=False, compare=False)

    @property
    def accepted(self) -> bool:
        return self.outcome == "accepted"

    @property
    def reason(self) -> Optional[str]:
        """Why there is no accepted test."""
        return _reason(self.record)

    @property
    def message(self) -> Optional[str]:
        """The failure of the model or the machine."""
        return self.record.get("message")

    @property
    def hint(self) -> Optional[str]:
        """What to do about the reason."""
        return self.record.get("hint")


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
    #: `accepted`, `refused`, `withheld`, `abstained`, `nothing`, `out_of_budget` …, like that of `Run`; `None` until
    #: the run has ended. A run that ended without an outcome has its status.
    outcome: Optional[str]
    usage: Optional[Dict[str, Any]]
    seconds: Optional[float]
    record: Dict[str, Any] = field(repr=False, compare=False)

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> ServerRun:
        status = record.get("status")
        outcome = (record.get("outcome") or {}).get("outcome") or (None if status in _IN_PROGRESS else status)
        return from_record(cls, record, outcome=outcome)

    @property
    def accepted(self) -> bool:
        return self.status == "accepted"

    @property
    def has_ended(self) -> bool:
        return self.status not in _IN_PROGRESS

    @property
    def details(self) -> Dict[str, Any]:
        """The outcome as the server sends it, with members such as `outcome`, `reason`, `findings` and `hint`."""
        return dict(self.record.get("outcome") or {})

    @property
    def reason(self) -> Optional[str]:
        """Why there is no accepted test."""
        return _reason(self.details)

    @property
    def message(self) -> Optional[str]:
        """The failure of the model or the machine."""
        return self.details.get("message")

    @property
    def hint(self) -> Optional[str]:
        """What to do about the reason."""
        return self.details.get("hint")


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
        return self.status not in _IN_PROGRESS


@dataclass(frozen=True)
class MatrixSummary:
    """A matrix in a list, without its results."""

    id: str
    #: `queued`, `running`, then `done`, `infrastructure` or `cancelled`.
    status: str
    repository: str
    owner: str
    created_at: str
    #: Number of sets of tests.
    tests: int
    #: Number of patches.
    patches: int
    record: Dict[str, Any] = field(repr=False, compare=False)

    @property
    def has_ended(self) -> bool:
        return self.status not in _IN_PROGRESS


#: A run on a server, or its id.
RunOrId = Union[ServerRun, str]
#: A matrix on a server, or its id.
MatrixOrId = Union[Matrix, MatrixSummary, str]
