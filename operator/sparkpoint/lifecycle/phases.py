"""Kinds of operations and the phases each goes through: data, from which the docs are drawn."""

from enum import Enum

__all__ = [
    "AGAIN",
    "INTERRUPTIONS",
    "MEANINGS",
    "OPEN_TO_CHANGE",
    "PLANS",
    "PURPOSES",
    "UNTOUCHED",
    "Kind",
    "Phase",
    "following",
]


class Kind(Enum):
    """What is being done to a job."""

    START = "Start"
    UPGRADE = "Upgrade"
    RESCALE = "Rescale"
    RESTART = "Restart"
    REPARTITION = "Repartition"
    SUSPEND = "Suspend"
    RESUME = "Resume"
    RESTORE = "Restore"
    ROLLBACK = "Rollback"
    RECOVER = "Recover"
    DELETE = "Delete"


PURPOSES: dict[Kind, str] = {
    Kind.START: "The job is new.",
    Kind.UPGRADE: "The spec has other code, or anything else but the size of the executors.",
    Kind.RESCALE: "The spec has other executors.",
    Kind.RESTART: "`restartNonce` has changed.",
    Kind.REPARTITION: "The spec has other `state.partitions`, alone or with anything else.",
    Kind.SUSPEND: "`suspend` is set.",
    Kind.RESUME: "`suspend` is set no longer.",
    Kind.RESTORE: "`restoreFrom` has changed.",
    Kind.ROLLBACK: "What was new has not proven itself.",
    Kind.RECOVER: "The driver has ended, is silent, or is lost with its node.",
    Kind.DELETE: "The job is being deleted.",
}


class Phase(Enum):
    """Where an operation stands; each phase ends by what is seen, never by what was done."""

    ADOPT = "Adopt"
    PREPARE = "Prepare"
    STOP = "Stop"
    CAPTURE = "Capture"
    MODIFY = "Modify"
    LAUNCH = "Launch"
    OBSERVE = "Observe"
    CLEAN = "Clean"


MEANINGS: dict[Phase, str] = {
    Phase.ADOPT: "The checkpoint that a new job takes on is captured by a worker pod.",
    Phase.PREPARE: "The code is tried on a copy of the savepoint; what runs, runs on.",
    Phase.STOP: "The driver is brought to a boundary and ends; no pod of it is left.",
    Phase.CAPTURE: "What the stop did not capture itself is captured by a worker pod.",
    Phase.MODIFY: "A worker pod brings what was captured to other partitions: a second savepoint.",
    Phase.LAUNCH: "The next driver starts, restores what it begins from, and waits at its gate.",
    Phase.OBSERVE: "The gate is open: the driver has to prove itself by commits.",
    Phase.CLEAN: "What the job's policy does not retain is removed.",
}

_RUN = (Phase.LAUNCH, Phase.OBSERVE)

PLANS: dict[Kind, tuple[Phase, ...]] = {
    Kind.START: (Phase.ADOPT, Phase.PREPARE, *_RUN),
    Kind.UPGRADE: (Phase.PREPARE, Phase.STOP, Phase.CAPTURE, *_RUN),
    Kind.RESCALE: (Phase.STOP, Phase.CAPTURE, *_RUN),
    Kind.RESTART: (Phase.STOP, Phase.CAPTURE, *_RUN),
    Kind.REPARTITION: (Phase.PREPARE, Phase.STOP, Phase.CAPTURE, Phase.MODIFY, *_RUN),
    Kind.SUSPEND: (Phase.STOP, Phase.CAPTURE),
    Kind.RESUME: (Phase.STOP, Phase.CAPTURE, *_RUN),
    Kind.RESTORE: (Phase.PREPARE, Phase.STOP, Phase.CAPTURE, *_RUN),
    Kind.ROLLBACK: (Phase.STOP, Phase.CAPTURE, *_RUN),
    Kind.RECOVER: (Phase.STOP, Phase.CAPTURE, *_RUN),
    Kind.DELETE: (Phase.STOP, Phase.CAPTURE, Phase.CLEAN),
}
"""A phase that has nothing to do is over at once: RESCALE captures only if a node was lost, RESUME
stops only what outlived the suspension."""

AGAIN: dict[Phase, Phase] = {Phase.LAUNCH: Phase.STOP, Phase.OBSERVE: Phase.STOP}
"""Where something new that failed for the first time begins again, within the same operation."""

UNTOUCHED = (Phase.ADOPT, Phase.PREPARE)
"""Phases in which nothing was done to the job yet."""

OPEN_TO_CHANGE = (*UNTOUCHED, Phase.LAUNCH, Phase.OBSERVE)
"""Phases in which a newer wish takes over; in between, the job is on its way to a safe place."""

INTERRUPTIONS: dict[Phase, str] = {
    Phase.ADOPT: "It takes over at once; nothing was started.",
    Phase.PREPARE: "It takes over at once; the job was not touched.",
    Phase.STOP: "It waits until the job stands and its state is safe.",
    Phase.CAPTURE: "It waits until the state is safe; no driver of the former wish is started.",
    Phase.MODIFY: "It waits for the savepoint; no driver of the former wish is started.",
    Phase.LAUNCH: "It takes over at once; behind the gate nothing was written yet.",
    Phase.OBSERVE: "It takes over at once; what runs is stopped like any other run.",
    Phase.CLEAN: "There is none: a job that is being deleted has no other wish.",
}
"""What a newer wish does; a deletion takes over in every phase."""


def following(kind: Kind, phase: Phase) -> Phase | None:
    """The phase after this one; None after the last."""
    plan = PLANS[kind]
    rest = plan[plan.index(phase) + 1 :]
    return rest[0] if rest else None
