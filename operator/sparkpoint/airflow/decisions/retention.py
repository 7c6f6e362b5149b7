"""What a cleanup removes and what it keeps, and why: a plan that a person can read.

The rules are judged by the operator's own retention. On top of it, nothing goes that is younger
than the grace period, that is the newest which a drill has restored, that is being checked, or that
an earlier job of the name left; and a plan that would remove too much is not carried out at all.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from typing import Any

from pydantic import ValidationError

from sparkpoint.airflow.decisions.drills import drill_of
from sparkpoint.airflow.decisions.due import captured_at, is_good, newest_good
from sparkpoint.airflow.decisions.errors import RulesError
from sparkpoint.api.policies import Retention, RetentionOverrides, RetentionRule
from sparkpoint.cli.jobs.facts import job_of, metadata, moment_of, spec_of, status_of
from sparkpoint.controller.keys import key_of
from sparkpoint.controller.retention import judge
from sparkpoint.controller.savepointuses import Index, mentioned

__all__ = ["Cleanup", "JobPlan", "Kept", "Removal", "describe", "plan_job", "rules_of"]

Object = dict[str, Any]
_SKEW = timedelta(minutes=5)
"""By how much clocks may differ."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cleanup:
    """How to clean up."""

    rules: Retention | None = None
    """None: each job's own (`spec.savepoints.retention`)."""
    grace: timedelta
    """Nothing younger is removed."""
    most: float
    """The greatest part of a job's savepoints that one run may remove."""


@dataclass(frozen=True, slots=True)
class Kept:
    """A savepoint that stays, and why."""

    name: str
    reasons: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Removal:
    """A savepoint that goes: this very one, in this very state."""

    name: str
    uid: str
    version: str
    captured: str
    phase: str
    new_bytes: int
    data: bool
    """Whether its data goes along; not if it was only made known, or failed."""
    on_delete: str | None
    """What was to become of its data if somebody deleted it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JobPlan:
    """What becomes of the savepoints of one job."""

    namespace: str
    job: str
    keep: tuple[Kept, ...]
    remove: tuple[Removal, ...] = ()
    refused: str = ""
    """Why nothing is removed although rules say so."""

    def document(self) -> dict[str, Any]:
        """As JSON."""
        found: dict[str, Any] = json.loads(json.dumps(asdict(self)))
        return found


def rules_of(given: Mapping[str, Any], *, include_manual: bool = False) -> Retention | None:
    """From numbers and a duration, with 0 or nothing for "no such rule"; None if there is none."""
    counts = {name: given.get(name) for name in ("last", "hourly", "daily", "weekly", "monthly")}
    wanted: dict[str, Any] = {name: number for name, number in counts.items() if number}
    if given.get("max_age"):
        wanted["maxAge"] = given["max_age"]
    if not wanted:
        return None
    try:
        rule = RetentionRule.model_validate(wanted)
        overrides = RetentionOverrides(manual=rule) if include_manual else None
        return Retention.model_validate(wanted).model_copy(update={"overrides": overrides})
    except ValidationError as error:
        raise RulesError(f"The rules of the cleanup cannot be used: {error}") from error


def plan_job(
    job: Object,
    *,
    jobs: Sequence[Object],
    savepoints: Sequence[Object],
    cleanup: Cleanup,
    now: datetime,
) -> JobPlan:
    """About one job. `jobs` and `savepoints` are all of its namespace: any may need any."""
    own = [body for body in savepoints if job_of(body) == _name(job)]
    users = _users(jobs, own)
    rules = cleanup.rules or _own_rules(job)
    namespace = str(metadata(job)["namespace"])
    if rules is None:
        kept = tuple(Kept(_name(body), ("no usable rule",)) for body in own)
        words = "Its own rules cannot be read."
        return JobPlan(namespace=namespace, job=_name(job), keep=kept, refused=words)
    spared = _spared(job, own, savepoints, cleanup.grace, now)
    judged = {
        str(metadata(verdict.savepoint)["name"]): verdict.kept_because
        for verdict in judge(key_of(job), own, rules, users=users, now=now)
    }
    keep, remove = [], []
    for body in own:
        # Whoever is not judged is under way or going.
        reasons = (*judged.get(_name(body), ("under way",)), *spared.get(_name(body), ()))
        if reasons:
            keep.append(Kept(_name(body), tuple(dict.fromkeys(reasons))))
        else:
            remove.append(_removal(body))
    refused = _refusal(own, remove, cleanup.most, now)
    return JobPlan(
        namespace=namespace,
        job=_name(job),
        keep=tuple(keep),
        remove=tuple(remove),
        refused=refused,
    )


def _own_rules(job: Object) -> Retention | None:
    written = (spec_of(job).get("savepoints") or {}).get("retention")
    try:
        return Retention.model_validate(written) if written else Retention(last=10)
    except ValidationError:
        return None


def _users(jobs: Iterable[Object], own: Iterable[Object]) -> dict[str, tuple[str, ...]]:
    jobs = tuple(jobs)
    index = Index({_name(job): ("", mentioned(job)) for job in jobs})
    shown: dict[str, list[str]] = {}
    for job in jobs:
        for name in _shown_names(job):
            shown.setdefault(name, []).append(_name(job))
    return {
        _name(body): tuple(sorted({*index.users(body), *shown.get(_name(body), ())}))
        for body in own
    }


def _shown_names(job: Object) -> set[str]:
    """What its status names for people: also of an operator whose record we do not know."""
    status = status_of(job)
    found = (
        (status.get("operation") or {}).get("savepoint"),
        (status.get("restoredFrom") or {}).get("name"),
        (status.get("lastSavepoint") or {}).get("name"),
    )
    return {str(name) for name in found if name}


def _spared(
    job: Object, own: list[Object], others: Iterable[Object], grace: timedelta, now: datetime
) -> dict[str, tuple[str, ...]]:
    born = moment_of(metadata(job).get("creationTimestamp"))
    newest = newest_good(job, own)
    drilled = newest_good(job, [body for body in own if (drill_of(body) or {}).get("good") is True])
    unharmed = newest_good(
        job, [body for body in own if (drill_of(body) or {}).get("good") is not False]
    )
    checked = [body for body in others if _is_checking(body)]
    found: dict[str, tuple[str, ...]] = {}
    for body in own:
        moment = _moment(body)
        reasons = (
            (moment is None or now - moment < grace, "younger than the grace period"),
            (body in (newest, unharmed), "newest good one"),
            (body is drilled, "newest that a drill restored"),
            (moment is not None and born is not None and moment < born, "of an earlier job"),
            (any(_is_meant(each, body) for each in checked), "being checked"),
        )
        found[_name(body)] = tuple(words for holds, words in reasons if holds)
    return found


def _is_checking(body: Object) -> bool:
    ended = status_of(body).get("phase") == "Failed" or status_of(body).get("verified")
    return bool(spec_of(body).get("existing")) and not ended


def _is_meant(check: Object, body: Object) -> bool:
    wanted, status = spec_of(check)["existing"], status_of(body)
    if check is body:
        return False
    if wanted.get("id"):
        return bool(wanted["id"] == status.get("id"))
    return bool(wanted.get("name") in (status.get("name"), _name(body)))


def _removal(body: Object) -> Removal:
    about, status = metadata(body), status_of(body)
    moment = _moment(body)
    complete = status.get("phase") == "Completed"
    return Removal(
        name=_name(body),
        uid=str(about.get("uid", "")),
        version=str(about.get("resourceVersion", "")),
        captured=moment.isoformat() if moment is not None else "",
        phase=str(status.get("phase", "")),
        new_bytes=int(status.get("newBytes") or 0),
        data=complete and not spec_of(body).get("existing"),
        on_delete=spec_of(body).get("onDelete"),
    )


def _refusal(own: list[Object], remove: list[Removal], most: float, now: datetime) -> str:
    good = [body for body in own if is_good(body)]
    gone = {removal.name for removal in remove}
    going = [body for body in good if _name(body) in gone]
    future = [_name(body) for body in own if (_moment(body) or now) > now + _SKEW]
    if remove and future:
        return f"{future[0]} is from the future: check the clocks before anything is removed."
    if going and len(going) == len(good):
        return "It would leave no good savepoint."
    if going and len(going) > most * len(good):
        return (
            f"It would remove {len(going)} of {len(good)} good savepoints, and no more than "
            f"{most:.0%} may go in one run: raise max_fraction if that is meant."
        )
    return ""


def _moment(body: Object) -> datetime | None:
    """When it was complete, else captured, else asked for."""
    return (
        moment_of(status_of(body).get("completedAt"))
        or captured_at(body)
        or moment_of(metadata(body).get("creationTimestamp"))
    )


def _name(body: Object) -> str:
    return str(metadata(body).get("name", ""))


def describe(plan: JobPlan) -> list[str]:
    """The plan, line by line, for a log."""
    where = f"{plan.namespace}/{plan.job}"
    lines = [f"{where}: {len(plan.keep)} stay, {len(plan.remove)} go"]
    if plan.refused:
        lines[0] += f"; NOTHING IS REMOVED. {plan.refused}"
    lines += [f"  keep    {kept.name}: {', '.join(kept.reasons)}" for kept in plan.keep]
    lines += [
        f"  remove  {each.name}: {each.phase} {each.captured}, {each.new_bytes} new bytes"
        for each in plan.remove
    ]
    return lines
