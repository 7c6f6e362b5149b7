"""One round of savepoints over many jobs: who is due, what came of it, and what is alarming."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final

from sparkpoint.airflow.decisions.due import Due, captured_at, judge_due, newest_good, too_old
from sparkpoint.airflow.work.reading import Sight
from sparkpoint.cli.jobs.facts import metadata, status_of

__all__ = ["alarms", "due_jobs", "outcome"]

Object = dict[str, Any]
_NEVER: Final = datetime(1970, 1, 1, tzinfo=UTC)


def due_jobs(
    sights: Iterable[Sight],
    jobs: Sequence[Object],
    *,
    every: str,
    force: bool,
    now: datetime,
    most: int,
) -> tuple[list[dict[str, str]], list[str]]:
    """Of these jobs: those that are due, as arguments of a task; and a line about each.

    No more than `most`; those whose newest savepoint is the oldest come first.
    """
    wanted = {_where(job) for job in jobs}
    found: list[tuple[datetime, dict[str, str]]] = []
    lines: list[str] = []
    for sight in sights:
        for job in sight.jobs:
            if _where(job) not in wanted:
                continue
            verdict = judge_due(job, sight.savepoints, default=every, now=now, force=force)
            if isinstance(verdict, Due):
                found.append((_newest(job, sight), _asked(job, verdict)))
            else:
                lines.append(f"{_where(job)}: not now. {verdict.reason}")
    found.sort(key=lambda each: each[0])
    due, late = [[each for _, each in part] for part in (found[:most], found[most:])]
    lines += [f"{each['namespace']}/{each['job']}: due." for each in due]
    lines += [
        f"{each['namespace']}/{each['job']}: due, but not in this run: Airflow maps no more than "
        f"{most} tasks (core.max_map_length)."
        for each in late
    ]
    return due, lines


def _newest(job: Object, sight: Sight) -> datetime:
    newest = newest_good(job, sight.savepoints)
    return (captured_at(newest) if newest is not None else None) or _NEVER


def _asked(job: Object, verdict: Due) -> dict[str, str]:
    about, since = metadata(job), verdict.fresh_since.isoformat()
    return {"namespace": about["namespace"], "job": about["name"], "fresh_since": since}


def outcome(job: str, made: Object | None, *, task: str | None) -> tuple[str, str]:
    """Of a job that was due: the savepoint that is complete, or what went wrong; or neither, if the
    task found that there was nothing to do any more. `task` is the state that it ended in."""
    if made is None:
        failed = task in ("failed", "upstream_failed")
        return "", f"{job}: no savepoint was asked for; see its task `take`." if failed else ""
    status = status_of(made)
    if status.get("phase") == "Completed":
        return str(metadata(made)["name"]), ""
    said = status.get("message") or "no reason is known."
    return "", f"{job}: its savepoint is {status.get('phase', 'Pending')}: {said}"


def alarms(
    sights: Iterable[Sight], jobs: Sequence[Object], *, every: str, now: datetime
) -> list[str]:
    """Of these jobs, a sentence for each whose newest good savepoint is too old."""
    wanted = {_where(job) for job in jobs}
    found = [
        too_old(job, sight.savepoints, default=every, now=now)
        for sight in sights
        for job in sight.jobs
        if _where(job) in wanted
    ]
    return [sentence for sentence in found if sentence]


def _where(job: Mapping[str, Any]) -> str:
    about = metadata(dict(job))
    return f"{about['namespace']}/{about['name']}"
