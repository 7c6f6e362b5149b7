"""A SparkSavepoint's status: what was decided, and what the agent or a worker told about it."""

from datetime import datetime
from typing import Any

from sparkpoint.api.common import Condition, ConditionStatus
from sparkpoint.api.savepoint import Verified
from sparkpoint.controller.cluster import metadata
from sparkpoint.controller.records import write_savepoint_record
from sparkpoint.controller.savepointobjects import completed_status
from sparkpoint.controller.savepointobserver import SavepointSight
from sparkpoint.controller.savepointviews import SavepointView
from sparkpoint.controller.workerfacts import WorkerAnswer
from sparkpoint.lifecycle.savepointworld import SavepointRecord, SavepointState
from sparkpoint.runtime.model import OperationState, SavepointSummary
from sparkpoint.worker.model import Details

__all__ = ["savepoint_status"]

_LONGEST = 4096
_CHECKED = ("Verified", "Corrupt")


def savepoint_status(sight: SavepointSight, record: SavepointRecord) -> dict[str, Any]:
    """The whole status after this pass, as JSON."""
    view, now = sight.view, sight.world.now
    status: dict[str, Any] = dict(view.status)
    if view.record.state is not SavepointState.COMPLETED or not view.record.described:
        status = _with_content(sight, status, record)
    if record.checked and not view.record.checked:
        status = _with_check(sight, status)
    if view.deleting is not None:
        status = _with_freed(sight, status)
    status |= {
        "phase": record.state.value,
        "observedGeneration": metadata(view.body).get("generation", 0),
        "failures": record.tries,
        "message": _message(view, record)[:_LONGEST],
        "record": write_savepoint_record(record),
    }
    if record.started is not None:
        status["startedAt"] = record.started.isoformat().replace("+00:00", "Z")
    status["conditions"] = _conditions(view, record, status, now)
    return {key: value for key, value in status.items() if value is not None}


def _message(view: SavepointView, record: SavepointRecord) -> str:
    return "\n".join(str(error) for error in view.errors) or record.message


def _with_content(
    sight: SavepointSight, status: dict[str, Any], record: SavepointRecord
) -> dict[str, Any]:
    """What is in it, once that is known."""
    identity = sight.view.identity(sight.spec)
    if identity is not None and record.state is not SavepointState.PENDING:
        status = {**status, "repository": identity.repository.uri}
    summary, details = _told(sight)
    if record.state is not SavepointState.COMPLETED or summary is None or identity is None:
        return status
    run = sight.job.record.run if sight.job is not None else None
    taken_here = sight.view.spec is not None and sight.view.spec.existing is None
    return completed_status(
        status,
        summary,
        repository=identity.repository.uri,
        now=sight.world.now,
        since=record.started if taken_here else None,
        details=details,
        revision=run.revision.name if run is not None and taken_here else None,
        epoch=record.epoch,
    )


def _told(sight: SavepointSight) -> tuple[SavepointSummary | None, Details | None]:
    operation = sight.operation
    if operation is not None and operation.state is OperationState.DONE:
        return operation.result, None
    known = [answer for answer in sight.answers if answer.savepoint is not None]
    return (known[-1].savepoint, known[-1].details) if known else (None, None)


def _with_check(sight: SavepointSight, status: dict[str, Any]) -> dict[str, Any]:
    """The verdict, and the rows if they were counted; none, if the check itself failed."""
    checks = [answer for answer in sight.answers if answer.answer in _CHECKED]
    if not checks:
        return status
    verified = _verified(sight, checks[-1])
    status = _with_rows(status, checks[-1].details)
    return {**status, "verified": verified.model_dump(mode="json", by_alias=True)}


def _with_rows(status: dict[str, Any], details: Details | None) -> dict[str, Any]:
    """What it holds was told before: the agent does not count, and other workers do not either."""
    known = {each.name: each.rows for each in details.queries} if details is not None else {}
    counted = {name: rows for name, rows in known.items() if rows is not None}
    queries = [
        {**each, "rows": counted[each["name"]]} if each["name"] in counted else each
        for each in status.get("queries") or []
    ]
    return {**status, "queries": queries} if counted else status


def _with_freed(sight: SavepointSight, status: dict[str, Any]) -> dict[str, Any]:
    """For whoever watches it go; a second try finds less, and takes nothing back."""
    told = [answer.freed_bytes for answer in sight.answers if answer.freed_bytes is not None]
    known = [status["freedBytes"]] if status.get("freedBytes") is not None else []
    return {**status, "freedBytes": max(*told, *known, 0)} if told else status


def _verified(sight: SavepointSight, answer: WorkerAnswer) -> Verified:
    level, good = sight.view.verification(sight.spec), answer.answer == "Verified"
    return Verified(
        at=sight.world.now,
        level=level,
        good=good,
        verdict=level.value if good else "Damaged",
        problems=tuple(problem[:_LONGEST] for problem in answer.problems),
    )


def _conditions(
    view: SavepointView, record: SavepointRecord, status: dict[str, Any], now: datetime
) -> list[dict[str, Any]]:
    known = {each["type"]: each for each in view.status.get("conditions") or []}
    accepted = _word(not view.errors)
    complete = _word(record.state is SavepointState.COMPLETED)
    wanted = {
        "Accepted": (accepted, "InvalidSpec" if view.errors else "Valid", _message(view, record)),
        "Complete": (complete, record.state.value, record.message),
    }
    check = status.get("verified")
    if check is not None:
        wanted["Verified"] = (_word(check["good"]), check["verdict"], "")
    return [_condition(name, *wanted[name], known.get(name), view=view, now=now) for name in wanted]


def _word(holds: bool) -> ConditionStatus:
    return ConditionStatus.TRUE if holds else ConditionStatus.FALSE


def _condition(
    name: str,
    status: ConditionStatus,
    reason: str,
    message: str,
    former: dict[str, Any] | None,
    *,
    view: SavepointView,
    now: datetime,
) -> dict[str, Any]:
    same = former is not None and former.get("status") == status.value
    since = former["lastTransitionTime"] if former is not None and same else now
    written = Condition(
        type=name,
        status=status,
        reason=reason,
        message=message[:_LONGEST],
        observed_generation=metadata(view.body).get("generation", 0),
        last_transition_time=since,
    )
    return written.model_dump(mode="json", by_alias=True, exclude_none=True)
