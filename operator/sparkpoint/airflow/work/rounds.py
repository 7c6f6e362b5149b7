"""One round of savepoints over many jobs: who is due, what came of it, and what is alarming."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from sparkpoint.airflow.decisions.due import Due, judge_due, too_old
from sparkpoint.airflow.work.reading import Sight
from sparkpoint.cli.jobs.facts import metadata, status_of

__all__ = ["alarms", "due_jobs", "outcome"]

Object = dict[str, Any]


def due_jobs(
    sights: Iterable[Sight],
    jobs: Sequence[Object],
    *,
    every: str,
    force: bool,
    now: datetime,
) -> tuple[list[dict[str, str]], list[str]]:
    """Of these jobs: those that are due, as arguments of a task; and a line about each."""
    wanted = {_where(job) for job in jobs}
    found: list[dict[str, str]] = []
    lines: list[str] = []
    for sight in sights:
        for job in sight.jobs:
            if _where(job) not in wanted:
                continue
            verdict = judge_due(job, sight.savepoints, default=every, now=now, force=force)
            if isinstance(verdict, Due):
                about, since = metadata(job), verdict.fresh_since.isoformat()
                found.append(
                    {"namespace": about["namespace"], "job": about["name"], "fresh_since": since}
                )
                lines.append(f"{_where(job)}: due.")
            else:
                lines.append(f"{_where(job)}: not now. {verdict.reason}")
    return found, lines


def outcome(job: str, made: Object | None) -> tuple[str, str]:
    """Of a job that was due: the savepoint that is complete, or what went wrong; or neither, if the
    task found that there was nothing to do any more."""
    if made is None:
        return "", ""
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
