"""What can be done to the world: a closed union, each repeatable under its own name."""

from dataclasses import dataclass
from typing import Literal

from sparkpoint.lifecycle.record import Adoption, Revision, Run

__all__ = [
    "Action",
    "Adopt",
    "Capture",
    "DeletePod",
    "Event",
    "Examine",
    "OpenGate",
    "Rehearse",
    "Release",
    "RemoveData",
    "Repartition",
    "RequestStop",
    "StartDriver",
    "StartWorker",
    "StoreRevision",
    "Task",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreRevision:
    """Keep what the present generation asks for, under the revision's name."""

    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StartDriver:
    """Create the driver pod of this run and what it needs, each if it is not there."""

    run: Run
    expect: Literal["empty", "restored", "any"]
    """What the driver must find in its epoch directory after restoring."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenGate:
    """Let the queries of this run start."""

    run: Run


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestStop:
    """Ask the driver of this run to stop at a boundary, and to capture there under this name."""

    run: Run
    operation: str
    savepoint: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class DeletePod:
    """Delete exactly this pod; the kubelet gives it its grace period."""

    name: str
    uid: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Capture:
    """Make a savepoint of an epoch directory that no driver of ours writes to."""

    run: Run
    savepoint: str
    revision: Revision
    """Whose image the worker pod gets: that of the run may be the very thing that is wrong."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _ForRun:
    """Work for a run that is to come, in a pod of that run's own image."""

    run: Run
    """What begins from it, or is tried."""

    @property
    def revision(self) -> Revision:
        """Whose image the worker pod gets: what reads or writes the state is what will go on."""
        return self.run.revision


@dataclass(frozen=True, slots=True, kw_only=True)
class Adopt(_ForRun):
    """Make a savepoint of a checkpoint that somebody else left; it is only read."""

    adoption: Adoption
    savepoint: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Rehearse(_ForRun):
    """Try a revision's code on a copy of a savepoint."""

    savepoint: str
    captured_from: Run | None = None
    """There is no savepoint yet: one of what this run has committed is taken first, under that
    name, and removed afterwards."""
    strict: bool = False
    """The last batch is done again, too."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Examine(_ForRun):
    """Find out whether the state in a savepoint can be had in the partitions of a revision."""

    savepoint: str
    partitions: int
    captured_from: Run | None = None
    """As of a trial."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Repartition(_ForRun):
    """Make a savepoint in other partitions of one that is there, which stays as it is."""

    savepoint: str
    made: str
    """Name of the new one."""
    partitions: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoveData:
    """Remove what the job's policy does not retain: its epoch directories."""

    run: Run
    life: str
    """Only those of this life: another job of the name may have others beside them."""
    revision: Revision
    """Whose image the worker pod gets."""


Task = Adopt | Capture | Rehearse | Examine | Repartition | RemoveData


@dataclass(frozen=True, slots=True, kw_only=True)
class StartWorker:
    """Create the worker pod of this name, if it is not there."""

    name: str
    task: Task


@dataclass(frozen=True, slots=True)
class Release:
    """Let Kubernetes remove the job."""


Action = StoreRevision | StartDriver | OpenGate | RequestStop | DeletePod | StartWorker | Release


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """Something a person should read; told once per operation and reason."""

    reason: str
    message: str
    warning: bool = False
    operation: str = ""
    """Id of the operation that it is about; empty: of none."""
