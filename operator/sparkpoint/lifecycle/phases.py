"""Kinds of operations and the phases each goes through: data, from which the docs are drawn."""

from enum import Enum

__all__ = ["MEANINGS", "OPEN_TO_CHANGE", "PLANS", "Kind", "Phase", "following"]


class Kind(Enum):
    """What is being done to a job."""

    START = "Start"
    UPGRADE = "Upgrade"
    RESCALE = "Rescale"
    RESTART = "Restart"
    SUSPEND = "Suspend"
    RESUME = "Resume"
    RESTORE = "Restore"
    ROLLBACK = "Rollback"
    RECOVER = "Recover"
    DELETE = "Delete"


class Phase(Enum):
    """Where an operation stands; each phase ends by what is seen, never by what was done."""

    PREPARE = "Prepare"
    STOP = "Stop"
    CAPTURE = "Capture"
    LAUNCH = "Launch"
    OBSERVE = "Observe"
    CLEAN = "Clean"


MEANINGS: dict[Phase, str] = {
    Phase.PREPARE: "The new revision is checked against the newest savepoint; the job runs on.",
    Phase.STOP: "The driver is brought to a boundary and ends; no pod of it is left.",
    Phase.CAPTURE: "What the stop did not capture itself is captured by a worker pod.",
    Phase.LAUNCH: "The next driver starts, restores what it begins from, and waits at its gate.",
    Phase.OBSERVE: "The gate is open: the driver has to prove itself by commits.",
    Phase.CLEAN: "What the job's policy does not retain is removed.",
}

_RUN = (Phase.LAUNCH, Phase.OBSERVE)

PLANS: dict[Kind, tuple[Phase, ...]] = {
    Kind.START: _RUN,
    Kind.UPGRADE: (Phase.PREPARE, Phase.STOP, Phase.CAPTURE, *_RUN),
    Kind.RESCALE: (Phase.STOP, Phase.CAPTURE, *_RUN),
    Kind.RESTART: (Phase.STOP, Phase.CAPTURE, *_RUN),
    Kind.SUSPEND: (Phase.STOP, Phase.CAPTURE),
    Kind.RESUME: (Phase.STOP, Phase.CAPTURE, *_RUN),
    Kind.RESTORE: (Phase.PREPARE, Phase.STOP, Phase.CAPTURE, *_RUN),
    Kind.ROLLBACK: (Phase.STOP, Phase.CAPTURE, *_RUN),
    Kind.RECOVER: (Phase.STOP, Phase.CAPTURE, *_RUN),
    Kind.DELETE: (Phase.STOP, Phase.CAPTURE, Phase.CLEAN),
}
"""A phase that has nothing to do is over at once: RESCALE captures only if a node was lost, RESUME
stops only what outlived the suspension."""

OPEN_TO_CHANGE = (Phase.PREPARE, Phase.LAUNCH, Phase.OBSERVE)
"""Phases in which a newer wish takes over; in between, the job is on its way to a safe place."""


def following(kind: Kind, phase: Phase) -> Phase | None:
    """The phase after this one; None after the last."""
    plan = PLANS[kind]
    rest = plan[plan.index(phase) + 1 :]
    return rest[0] if rest else None
