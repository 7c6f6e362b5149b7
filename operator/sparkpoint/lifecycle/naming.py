"""Names: functions of what is written down, so that the same effect has the same name again."""

from sparkpoint.lifecycle.phases import Kind
from sparkpoint.lifecycle.record import Operation, Run

__all__ = [
    "directory_name",
    "driver_name",
    "life_of",
    "moved_name",
    "operation_id",
    "savepoint_name",
    "worker_name",
]

_LIFE = 8
_LONGEST = 63 - len("-p100000")
"""Characters of a SparkSavepoint's name, without the ending of one that is made of it."""


def life_of(uid: str) -> str:
    """Which job of this name it is: the first part of the resource's uid.

    What outlives a job is told apart by it from what the next job of that name makes.
    """
    return uid.replace("-", "")[:_LIFE]


def operation_id(kind: Kind, sequence: int) -> str:
    """Unique within the job's life."""
    return f"{kind.value.lower()}-{sequence}"


def savepoint_name(job: str, operation: str, life: str) -> str:
    """What an operation captures; also the name of its resource.

    A record from before names had a life goes on without one.
    """
    if not life:
        return f"{job}-{operation}"
    rest = f"-{operation}-{life}"
    # The life alone tells jobs apart, so that a long name may lose its end.
    return f"{job[: _LONGEST - len(rest)].rstrip('-')}{rest}"


def moved_name(savepoint: str, partitions: int) -> str:
    """What is made of a savepoint that an operation captures: the same in other partitions."""
    return f"{savepoint}-p{partitions}"


def directory_name(epoch: int, life: str) -> str:
    """Where the checkpoints of an epoch are, below the folder of the job; without a life, nothing
    has to be written down: see `Run.folder`."""
    return f"epoch-{epoch}-{life}" if life else ""


def driver_name(job: str, run: Run) -> str:
    """The driver pod of an attempt."""
    return f"{job}-e{run.epoch}-a{run.attempt}"


def worker_name(job: str, operation: Operation) -> str:
    """The worker pod of an operation's present phase, launch and try."""
    phase = operation.phase.value.lower()
    return f"{job}-{operation.id}-{phase}-{operation.launches}-{operation.tries}"
