"""Worker pods as facts: how far they are, and what they answered in their termination message."""

from datetime import datetime

from pydantic import ValidationError

from sparkpoint.controller.cluster import Object, metadata
from sparkpoint.controller.keys import ROLE
from sparkpoint.controller.podfacts import (
    created_at,
    is_over,
    label,
    stuck_because,
    stuck_reason,
    terminated_container,
)
from sparkpoint.lifecycle.world import WorkerFact, WorkerState
from sparkpoint.runtime.model import Document, SavepointSummary
from sparkpoint.worker.model import Details

__all__ = ["WorkerAnswer", "is_worker", "worker_answer", "worker_fact"]

_LOST = "NodeLost"
_FAILURES = ("Failed", "Refused")


class WorkerAnswer(Document):
    """What a worker says at its end: its model's fields, and any word of a newer one."""

    answer: str
    message: str = ""
    retry_helps: bool = False
    kind: str | None = None
    savepoint: SavepointSummary | None = None
    details: Details | None = None
    problems: tuple[str, ...] = ()
    freed_bytes: int | None = None


def is_worker(pod: Object) -> bool:
    """Whether the pod does a single task for the job."""
    return label(pod, ROLE) == "worker"


def worker_answer(pod: Object) -> WorkerAnswer | None:
    """What it said; None if it has not ended, or said nothing that can be understood."""
    try:
        return WorkerAnswer.model_validate_json(str(terminated_container(pod).get("message", "")))
    except ValidationError:
        return None


def worker_fact(pod: Object, *, lost_since: datetime | None = None) -> WorkerFact:
    """What decisions need of it."""
    answer = worker_answer(pod)
    return WorkerFact(
        name=metadata(pod)["name"],
        uid=metadata(pod)["uid"],
        deleting=metadata(pod).get("deletionTimestamp") is not None,
        lost=lost_since is not None,
        state=_state(pod, answer),
        answer=answer.answer if answer is not None else "",
        kind=(answer.kind or "") if answer is not None else "",
        message=answer.message if answer is not None else _silence(pod),
        final=answer is not None and answer.answer in _FAILURES and not answer.retry_helps,
        retry_helps=answer is not None and answer.retry_helps,
        savepoint=_savepoint(answer),
        batches=_batches(answer),
        created=created_at(pod),
        stuck=_LOST if lost_since is not None else stuck_reason(pod),
    )


def _state(pod: Object, answer: WorkerAnswer | None) -> WorkerState:
    if not is_over(pod):
        return WorkerState.RUNNING
    # By its own exit: a container beside it may keep the pod for a while.
    done = terminated_container(pod).get("exitCode") == 0 and answer is not None
    return WorkerState.SUCCEEDED if done else WorkerState.FAILED


def _batches(answer: WorkerAnswer | None) -> dict[str, int]:
    summary = answer.savepoint if answer is not None else None
    return dict(summary.batches) if summary is not None else {}


def _savepoint(answer: WorkerAnswer | None) -> str:
    summary = answer.savepoint if answer is not None else None
    return summary.name if summary is not None else ""


def _silence(pod: Object) -> str:
    if not is_over(pod):
        return stuck_because(pod)
    ended, status = terminated_container(pod), pod.get("status") or {}
    reason = ended.get("reason") or status.get("reason") or "it said nothing"
    words = ended.get("message") or status.get("message") or ""
    name = metadata(pod)["name"]
    return f"Pod {name} ended without an answer: {reason} {words[-500:]}".strip()
