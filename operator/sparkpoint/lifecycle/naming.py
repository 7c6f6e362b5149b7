"""Names: functions of what is written down, so that the same effect has the same name again."""

from sparkpoint.lifecycle.phases import Kind
from sparkpoint.lifecycle.record import Operation, Run

__all__ = ["driver_name", "operation_id", "savepoint_name", "worker_name"]


def operation_id(kind: Kind, sequence: int) -> str:
    """Unique within the job's life."""
    return f"{kind.value.lower()}-{sequence}"


def savepoint_name(job: str, operation: str) -> str:
    """What an operation captures; also the name of its resource."""
    return f"{job}-{operation}"


def driver_name(job: str, run: Run) -> str:
    """The driver pod of an attempt."""
    return f"{job}-e{run.epoch}-a{run.attempt}"


def worker_name(job: str, operation: Operation) -> str:
    """The worker pod of an operation's present phase, launch and try."""
    phase = operation.phase.value.lower()
    return f"{job}-{operation.id}-{phase}-{operation.launches}-{operation.tries}"
