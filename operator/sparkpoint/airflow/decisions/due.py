"""Which jobs are due for a savepoint, which are not and why, and whose newest one is too old.

A job says how often by an annotation: a duration (`6h`), a schedule of cron in UTC (`0 */6 * * *`),
or `never`. Without it the DAG's default holds, and jobs whose savepoints the operator takes by
itself (`spec.savepoints.schedule`) are left to it: a job has one clock.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from sparkpoint.airflow.decisions.errors import PolicyError
from sparkpoint.api.cron import Cron
from sparkpoint.api.scalars import Duration
from sparkpoint.cli.jobs.facts import (
    job_of,
    metadata,
    moment_of,
    spec_of,
    status_of,
)

__all__ = [
    "POLICY",
    "Due",
    "Policy",
    "Skip",
    "all_good",
    "captured_at",
    "is_good",
    "judge_due",
    "newest_good",
    "policy_of",
    "too_old",
]

Object = dict[str, Any]

POLICY: Final = "airflow.sparkpoint.dev/savepoints"
"""An annotation of a job: how often, if not as often as the DAG says."""
_PAUSED: Final = "sparkpoint.dev/paused"
_NEVER: Final = "never"
_EARLY, _EARLIEST = 0.1, timedelta(minutes=30)
"""Of a period, and at most: a tick comes a little sooner after a capture than a period, and must
not wait for the next tick; but of a day, a tenth is more than two ticks."""
_OVERDUE: Final = 2
"""Periods after which the newest savepoint is too old."""


@dataclass(frozen=True, slots=True)
class Policy:
    """How often; exactly one of the two."""

    every: timedelta | None = None
    cron: Cron | None = None

    def fresh_since(self, now: datetime) -> datetime | None:
        """A savepoint captured then or later is enough; None: the schedule has not begun."""
        if self.every is not None:
            return now - self.every + min(_EARLY * self.every, _EARLIEST)
        return self.cron.latest(now) if self.cron is not None else None

    def too_old_before(self, now: datetime) -> datetime | None:
        """A newest savepoint captured before that is an alarm."""
        if self.every is not None:
            return now - _OVERDUE * self.every
        newest = self.fresh_since(now)
        return self.cron.latest(newest - timedelta(minutes=1)) if self.cron and newest else None


@dataclass(frozen=True, slots=True)
class Due:
    """To be taken."""

    fresh_since: datetime
    """Unless somebody takes one after this moment."""


@dataclass(frozen=True, slots=True)
class Skip:
    """Not to be taken, for a reason that a person reads."""

    reason: str


def policy_of(job: Object, default: str) -> Policy | None:
    """How often savepoints of the job are taken by Airflow; None: never."""
    own = (metadata(job).get("annotations") or {}).get(POLICY)
    text = str(own or default).strip()
    if text == _NEVER:
        return None
    try:
        return Policy(cron=Cron(text)) if " " in text else Policy(every=_positive(text))
    except ValueError as error:
        whose = f"annotation {POLICY}" if own else "default of the DAG"
        raise PolicyError(f"The {whose} is {text!r}: {error}, nor is it `never`.") from error


def _positive(text: str) -> timedelta:
    found = Duration(text).timedelta
    if found <= timedelta():
        raise ValueError("a period has to be longer than nothing")
    return found


def judge_due(
    job: Object,
    savepoints: Iterable[Object],
    *,
    default: str,
    now: datetime,
    force: bool = False,
) -> Due | Skip:
    """With `force`, also a job whose newest savepoint is fresh, or whose clock is another's."""
    about, own = metadata(job), [each for each in savepoints if job_of(each) == _name(job)]
    hindrance = _hindrance(job)
    if hindrance:
        return Skip(hindrance)
    try:
        policy = policy_of(job, default)
    except PolicyError as error:
        return Skip(str(error))
    under_way = [body for body in own if _is_under_way(body)]
    if under_way:
        return Skip(f"Savepoint {_name(under_way[0])} is under way.")
    if force:
        return Due(now)
    if policy is None:
        return Skip("Never, as its policy says.")
    annotated = POLICY in (about.get("annotations") or {})
    if not annotated and (spec_of(job).get("savepoints") or {}).get("schedule"):
        return Skip("The operator takes its savepoints by itself (spec.savepoints.schedule).")
    return _by_age(job, own, policy, now)


def _by_age(job: Object, own: list[Object], policy: Policy, now: datetime) -> Due | Skip:
    since, newest = policy.fresh_since(now), newest_good(job, own)
    if since is None:
        return Skip("Its schedule has not begun.")
    captured = captured_at(newest) if newest is not None else None
    if newest is not None and captured is not None and captured >= since:
        return Skip(f"Fresh: {_name(newest)} was captured at {captured:%Y-%m-%d %H:%M:%S} UTC.")
    return Due(since)


def _hindrance(job: Object) -> str:
    """Why nothing can or should be captured now; empty: nothing speaks against it."""
    about, spec, status = metadata(job), spec_of(job), status_of(job)
    phase, operation = status.get("phase") or "Pending", status.get("operation") or {}
    checks = (
        (about.get("deletionTimestamp") is not None, "It is being deleted."),
        ((about.get("annotations") or {}).get(_PAUSED) == "true", f"It is paused ({_PAUSED})."),
        (not spec.get("savepoints"), "It has no repository (spec.savepoints.repository)."),
        (spec.get("suspend") is True or phase == "Suspended", "It is suspended."),
        (phase != "Running", f"It is {phase}."),
        (bool(operation), f"{operation.get('kind', 'An operation')} is under way."),
    )
    return next((words for holds, words in checks if holds), "")


def too_old(job: Object, savepoints: Iterable[Object], *, default: str, now: datetime) -> str:
    """The sentence of an alarm; empty if all is well, or nobody promised anything.

    A job that stands has nothing new to lose. One that is younger than its policy allows has time.
    """
    spec, about = spec_of(job), metadata(job)
    if spec.get("suspend") is True or not spec.get("savepoints") or _is_over(job):
        return ""
    try:
        policy = _promised(job, default)
    except PolicyError as error:
        return f"{_name(job)}: {error}"
    limit = policy.too_old_before(now) if policy is not None else None
    if limit is None:
        return ""
    newest = newest_good(job, savepoints)
    since = captured_at(newest) if newest is not None else moment_of(about.get("creationTimestamp"))
    if since is None or since >= limit:
        return ""
    what = (
        f"its newest good savepoint {_name(newest)} is" if newest else "it has no savepoint and is"
    )
    return f"{_name(job)}: {what} {_age(now - since)} old; its policy allows {_age(now - limit)}."


def _promised(job: Object, default: str) -> Policy | None:
    """Its own word, that of the operator's schedule, or the DAG's default."""
    schedule = (spec_of(job).get("savepoints") or {}).get("schedule")
    annotated = POLICY in (metadata(job).get("annotations") or {})
    if not schedule or annotated:
        return policy_of(job, default)
    try:
        return Policy(cron=Cron(str(schedule)))
    except ValueError as error:
        raise PolicyError(f"spec.savepoints.schedule is {schedule!r}: {error}.") from error


def _is_over(job: Object) -> bool:
    going = metadata(job).get("deletionTimestamp") is not None
    return going or status_of(job).get("phase") in ("Suspended", "Completed")


def newest_good(job: Object, savepoints: Iterable[Object]) -> Object | None:
    """The newest of the good ones; None if there is none."""
    return next(reversed(all_good(job, savepoints)), None)


def all_good(job: Object, savepoints: Iterable[Object]) -> list[Object]:
    """Complete ones that were taken of this very job and are not known to be damaged, oldest first.

    One that an earlier job of its name left, or that was only made known, does not count.
    """
    born = moment_of(metadata(job).get("creationTimestamp"))
    found = [
        (moment, _name(body), body)
        for body in savepoints
        if job_of(body) == _name(job)
        and is_good(body)
        and not spec_of(body).get("existing")
        and (moment := captured_at(body)) is not None
        and (born is None or moment >= born)
    ]
    return [body for _, _, body in sorted(found, key=lambda each: each[:2])]


def is_good(savepoint: Object) -> bool:
    """Complete, not known to be damaged, and not going."""
    status = status_of(savepoint)
    return (
        status.get("phase") == "Completed"
        and (status.get("verified") or {}).get("good", True) is not False
        and metadata(savepoint).get("deletionTimestamp") is None
    )


def captured_at(savepoint: Object) -> datetime | None:
    """The state is as old as the beginning of its capture."""
    status = status_of(savepoint)
    return moment_of(status.get("startedAt")) or moment_of(status.get("completedAt"))


def _is_under_way(body: Object) -> bool:
    going = metadata(body).get("deletionTimestamp") is not None
    ended = status_of(body).get("phase") in ("Completed", "Failed")
    return not going and not ended and not spec_of(body).get("existing")


def _name(body: Object) -> str:
    return str(metadata(body).get("name", ""))


def _age(span: timedelta) -> str:
    minutes = int(span.total_seconds() // 60)
    days, rest = divmod(minutes, 1440)
    hours, minutes = divmod(rest, 60)
    parts = ((days, "d"), (hours, "h"), (minutes, "m"))
    return "".join(f"{number}{unit}" for number, unit in parts if number) or "0m"
