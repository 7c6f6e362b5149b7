"""Which savepoints of a job stay, why, and until when. Pure: `savepoint/`'s plan, on resources.

Never the newest, never one that a job may go back to or names, never one with a tag is removed.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from sparkpoint.api.policies import Retention, RetentionRule
from sparkpoint.api.scalars import Duration, Trigger
from sparkpoint.controller.cluster import Object, metadata
from sparkpoint.controller.keys import Key, is_paused
from sparkpoint.controller.podfacts import created_at, parse_time
from sparkpoint.controller.savepointfacts import completed_at, newest_completed, of_job, status_of
from sparkpoint.controller.schedules import newest_periodic
from sparkpoint.savepoint.catalogue import Savepoint
from sparkpoint.savepoint.manifest import Manifest
from sparkpoint.savepoint.retention import RetentionPolicy, plan_retention

__all__ = ["Verdict", "judge"]

_KEPT_BY_DEFAULT: Final = (Trigger.MANUAL, Trigger.FINAL)
"""What a person asked for stays until a person deletes it, unless a rule says otherwise."""
_FAILURES: Final = 10
_FAILURES_STAY: Final = timedelta(hours=24)
"""For a person to read why: so many failed savepoints that nobody asked for, and so long."""

Users = Mapping[str, Iterable[str]]
"""A savepoint's resource -> the jobs that need it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What becomes of one savepoint."""

    savepoint: Object
    kept_because: tuple[str, ...]
    """Empty: it is removed."""
    expires: datetime | None = None
    """When the last reason to keep it ends, if that is known."""
    changes: datetime | None = None
    """When the first of them ends; until then time alone changes nothing about it."""

    @property
    def failed(self) -> bool:
        """There is no data of it."""
        return completed_at(self.savepoint) is None


@dataclass(frozen=True, slots=True)
class _Reason:
    words: str
    until: datetime | None = None
    """None: nobody knows how long it holds."""


_Reasons = list[_Reason]


def judge(
    job: Key, savepoints: Iterable[Object], rules: Retention, *, users: Users, now: datetime
) -> tuple[Verdict, ...]:
    """About every savepoint of the job that is complete or has failed."""
    bodies = [
        body
        for body in savepoints
        if of_job(body) == job and metadata(body).get("deletionTimestamp") is None
    ]
    complete = [body for body in bodies if completed_at(body) is not None]
    by_rule = _by_rules(complete, rules, now)
    newest, scheduled = newest_completed(job, complete), newest_periodic(job.name, bodies)
    verdicts = []
    for body in complete:
        found = [_Reason("newest")] if body is newest else []
        found += _lasting(body, users, scheduled)
        found += _own_reasons(body, now) if _own(body) else by_rule[_name(body)]
        verdicts.append(_verdict(body, found))
    since = _moment(newest) if newest is not None else None
    failed = [body for body in bodies if status_of(body).get("phase") == "Failed"]
    reasons = [_lasting(body, users, scheduled) for body in failed]
    return (*verdicts, *_failures(failed, reasons, since, now))


def _verdict(body: Object, reasons: _Reasons) -> Verdict:
    ends = [reason.until for reason in reasons]
    known = [end for end in ends if end is not None]
    return Verdict(
        savepoint=body,
        kept_because=tuple(dict.fromkeys(reason.words for reason in reasons)),
        expires=max(known) if known and len(known) == len(ends) else None,
        changes=min(known, default=None),
    )


def _lasting(body: Object, users: Users, scheduled: str | None) -> _Reasons:
    """What keeps it whatever the rules say; `scheduled` is the newest of the schedule."""
    tags: list[str] = body["spec"].get("tags") or []
    found = [_Reason("paused")] if is_paused(body) else []
    found += [_Reason(f"tag {tag}") for tag in tags]
    found += [_Reason(f"used by {user}") for user in users.get(_name(body), ())]
    if _name(body) == scheduled:
        # Without it, its time would seem to have been missed, and it would be taken again.
        found.append(_Reason("newest of the schedule"))
    return found


def _by_rules(bodies: list[Object], rules: Retention, now: datetime) -> dict[str, _Reasons]:
    """What the job's rules say about each; nothing about one that says it itself."""
    chosen = {_name(body): _rule(body, rules) for body in bodies if not _own(body)}
    found = {
        _name(body): [_Reason(f"trigger {_trigger(body).value}")]
        for body in bodies
        if chosen.get(_name(body), rules) is None
    }
    for rule in {id(rule): rule for rule in chosen.values() if rule is not None}.values():
        found |= _of_rule(rule, [b for b in bodies if chosen.get(_name(b)) is rule], now)
    return found


def _rule(body: Object, rules: Retention) -> RetentionRule | None:
    """The rule that a savepoint falls under; None: it stays."""
    trigger, overrides = _trigger(body), rules.overrides
    own: RetentionRule | None = (
        getattr(overrides, trigger.value.lower()) if overrides is not None else None
    )
    if own is not None:
        return own
    return None if trigger in _KEPT_BY_DEFAULT else rules


def _of_rule(rule: RetentionRule, bodies: list[Object], now: datetime) -> dict[str, _Reasons]:
    plan = plan_retention([_listed(body) for body in bodies], _policy(rule), now=now)
    found: dict[str, _Reasons] = {_name(body): [] for body in bodies}
    for kept in plan.keep:
        end = kept.savepoint.manifest.created + rule.max_age.timedelta if rule.max_age else None
        found[kept.savepoint.manifest.name] = [
            # The rule keeps the newest of its own, whatever its age.
            _Reason("newest of its rule") if word == "newest" else _Reason(word, end)
            for word in kept.reasons
        ]
    return found


def _policy(rule: RetentionRule) -> RetentionPolicy:
    return RetentionPolicy(
        last=rule.last or 0,
        hourly=rule.hourly or 0,
        daily=rule.daily or 0,
        weekly=rule.weekly or 0,
        monthly=rule.monthly or 0,
        max_age=rule.max_age.timedelta if rule.max_age is not None else None,
    )


def _listed(body: Object) -> Savepoint:
    """As the repository's own retention wants it: name and time are all that it looks at."""
    name, moment = _name(body), _moment(body)
    manifest = Manifest.model_construct(
        namespace=metadata(body)["namespace"],
        job=body["spec"]["jobRef"]["name"],
        name=name,
        created=moment,
    )
    return Savepoint(id=name, path=name, published=moment.timestamp(), manifest=manifest)


def _own(body: Object) -> Mapping[str, Any]:
    """What the savepoint says itself about how long it stays."""
    found: Mapping[str, Any] = body["spec"].get("retention") or {}
    return {name: value for name, value in found.items() if value}


def _own_reasons(body: Object, now: datetime) -> _Reasons:
    own = _own(body)
    if own.get("keepForever"):
        return [_Reason("keepForever")]
    until = parse_time(own.get("keepUntil"))
    if until is not None:
        return [_Reason("keepUntil", until)] if now <= until else []
    end = _moment(body) + max(Duration(own["ttl"]).timedelta, timedelta())
    return [_Reason("ttl", end)] if now <= end else []


def _failures(
    failed: list[Object], lasting: list[_Reasons], newest: datetime | None, now: datetime
) -> list[Verdict]:
    """Of savepoints that failed. A person's own are a person's to delete."""
    newest_first = sorted(failed, key=lambda body: (_moment(body), _name(body)), reverse=True)
    unasked = [body for body in newest_first if _is_unasked(body)]
    lately = {_name(body) for body in unasked[:_FAILURES]}
    verdicts = []
    for body, known in zip(failed, lasting, strict=True):
        found = list(known)
        if body is newest_first[0] and (newest is None or _moment(body) > newest):
            # What the job's condition speaks of.
            found.append(_Reason("newest failure"))
        if _own(body):
            found += _own_reasons(body, now)
        elif not _is_unasked(body):
            found.append(_Reason(f"trigger {_trigger(body).value}"))
        elif _name(body) in lately and now - _moment(body) <= _FAILURES_STAY:
            found.append(_Reason("failed lately", _moment(body) + _FAILURES_STAY))
        verdicts.append(_verdict(body, found))
    return verdicts


def _is_unasked(body: Object) -> bool:
    return not _own(body) and _trigger(body) is not Trigger.MANUAL


def _trigger(body: Object) -> Trigger:
    return Trigger(body["spec"].get("trigger", Trigger.MANUAL.value))


def _moment(body: Object) -> datetime:
    """When it was complete; of one that failed, when it was asked for."""
    return completed_at(body) or created_at(body) or datetime.min.replace(tzinfo=UTC)


def _name(body: Object) -> str:
    return str(metadata(body)["name"])
