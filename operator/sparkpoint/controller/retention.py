"""Which savepoints of a job have had their time. Pure: the plan of `savepoint/`, on resources.

Never the newest, never one that a job may go back to, never one with a tag.
"""

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from sparkpoint.api.policies import Retention, RetentionRule
from sparkpoint.api.scalars import Duration, Trigger
from sparkpoint.controller.cluster import Object, metadata
from sparkpoint.controller.keys import Key
from sparkpoint.controller.podfacts import parse_time
from sparkpoint.controller.savepointfacts import completed_at, newest_completed, of_job
from sparkpoint.savepoint.catalogue import Savepoint
from sparkpoint.savepoint.manifest import Manifest
from sparkpoint.savepoint.retention import RetentionPolicy, plan_retention

__all__ = ["expired"]

_KEPT_BY_DEFAULT: Final = (Trigger.MANUAL, Trigger.FINAL)
"""What a person asked for stays until a person deletes it, unless a rule says otherwise."""


def expired(
    job: Key, savepoints: Iterable[Object], rules: Retention, *, used: frozenset[str], now: datetime
) -> list[Object]:
    """Savepoints to remove, with their data; `used` are names that some job refers to."""
    bodies = [
        body
        for body in savepoints
        if of_job(body) == job
        and completed_at(body) is not None
        and metadata(body).get("deletionTimestamp") is None
    ]
    newest = newest_completed(job, bodies)
    safe = used | ({metadata(newest)["name"]} if newest is not None else frozenset())
    by_rule = {id(rule): rule for rule in (_rule(body, rules) for body in bodies) if rule}
    gone = [body for rule in by_rule.values() for body in _beyond(rule, bodies, rules, now)]
    gone += [body for body in bodies if _has_own_end(body, now)]
    return [body for body in gone if metadata(body)["name"] not in safe and not _tags(body)]


def _rule(body: Object, rules: Retention) -> RetentionRule | None:
    """The rule that a savepoint falls under; None: it stays, or says itself how long."""
    if _own(body):
        return None
    trigger = Trigger(body["spec"].get("trigger", Trigger.MANUAL.value))
    overrides = rules.overrides
    own: RetentionRule | None = (
        getattr(overrides, trigger.value.lower()) if overrides is not None else None
    )
    if own is not None:
        return own
    return None if trigger in _KEPT_BY_DEFAULT else rules


def _beyond(
    rule: RetentionRule, bodies: Iterable[Object], rules: Retention, now: datetime
) -> list[Object]:
    mine = {metadata(body)["name"]: body for body in bodies if _rule(body, rules) is rule}
    plan = plan_retention([_listed(body) for body in mine.values()], _policy(rule), now=now)
    return [mine[savepoint.manifest.name] for savepoint in plan.remove]


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
    name, moment = metadata(body)["name"], completed_at(body) or datetime.min.replace(tzinfo=UTC)
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


def _has_own_end(body: Object, now: datetime) -> bool:
    own, moment = _own(body), completed_at(body)
    until = parse_time(own.get("keepUntil"))
    if until is not None:
        return now > until
    ttl = Duration(own["ttl"]).timedelta if own.get("ttl") else None
    return ttl is not None and moment is not None and now - moment > max(ttl, timedelta())


def _tags(body: Object) -> list[str]:
    found: list[str] = body["spec"].get("tags") or []
    return found
