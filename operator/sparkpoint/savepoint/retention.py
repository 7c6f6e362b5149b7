"""Retention: which savepoints to keep, and why. Pure: no clock, no store; the plan can be printed.

Rules only ever keep. A savepoint is removed if no rule keeps it. The newest of every job is always
kept, whatever the rules say.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from sparkpoint.savepoint.catalogue import Savepoint, Unreadable

__all__ = ["Kept", "RetentionPlan", "RetentionPolicy", "plan_retention", "tag_reasons"]


@dataclass(frozen=True, slots=True, kw_only=True)
class RetentionPolicy:
    """How many of each to keep, per job."""

    last: int = 0
    hourly: int = 0
    daily: int = 0
    weekly: int = 0
    monthly: int = 0
    tagged: bool = False
    """Keep whatever has a tag."""
    tags: frozenset[str] = frozenset()
    """Keep whatever has one of these."""
    max_age: timedelta | None = None
    """The rules above, but for tags, do not keep what is older; alone, it keeps what is younger."""
    grace: timedelta = timedelta(0)
    """Keep whatever is younger than this."""

    def __post_init__(self) -> None:
        numbers = (self.last, self.hourly, self.daily, self.weekly, self.monthly)
        if min(numbers) < 0 or self.grace < timedelta(0):
            raise ValueError("a retention rule cannot keep less than nothing")
        if not (any(numbers) or self.tagged or self.tags or self.max_age is not None):
            raise ValueError("no retention rule was given: that would remove everything")


@dataclass(frozen=True, slots=True)
class Kept:
    """A savepoint that stays, and every reason for it."""

    savepoint: Savepoint
    reasons: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RetentionPlan:
    """What a policy would do; both newest first."""

    keep: tuple[Kept, ...]
    remove: tuple[Savepoint, ...]
    unreadable: tuple[Unreadable, ...] = ()
    """Manifests that no rule could be asked about; they stay."""
    policy: RetentionPolicy | None = None
    """Whose plan it is; None if nobody but the caller decided."""

    def sparing(self, spared: Iterable[Kept]) -> "RetentionPlan":
        """The same, but that these stay as well."""
        kept = sorted((*self.keep, *spared), key=lambda kept: kept.savepoint.order, reverse=True)
        identities = {each.savepoint.id for each in kept}
        removed = tuple(each for each in self.remove if each.id not in identities)
        return replace(self, keep=tuple(kept), remove=removed)


@dataclass(frozen=True, slots=True)
class _Rule:
    name: str
    count: int
    bucket: Callable[[datetime], object]
    seen: set[object] = field(default_factory=set)

    def keeps(self, moment: datetime) -> bool:
        """Whether it is the newest of its bucket, and the bucket one of the last so many."""
        bucket = self.bucket(moment)
        if bucket in self.seen or len(self.seen) >= self.count:
            return False
        self.seen.add(bucket)
        return True


def plan_retention(
    savepoints: Iterable[Savepoint],
    policy: RetentionPolicy,
    *,
    now: datetime,
    protected: Mapping[str, str] | None = None,
) -> RetentionPlan:
    """Decide for each job on its own. `protected` is id -> who uses it: those stay."""
    jobs: dict[tuple[str, str], list[Savepoint]] = {}
    for savepoint in savepoints:
        key = (savepoint.manifest.namespace, savepoint.manifest.job)
        jobs.setdefault(key, []).append(savepoint)
    keep: list[Kept] = []
    remove: list[Savepoint] = []
    for each in jobs.values():
        newest_first = sorted(each, key=lambda savepoint: savepoint.order, reverse=True)
        _plan_job(newest_first, policy, now, protected or {}, keep, remove)
    keep.sort(key=lambda kept: kept.savepoint.order, reverse=True)
    remove.sort(key=lambda savepoint: savepoint.order, reverse=True)
    return RetentionPlan(tuple(keep), tuple(remove), policy=policy)


def _plan_job(
    newest_first: Sequence[Savepoint],
    policy: RetentionPolicy,
    now: datetime,
    protected: Mapping[str, str],
    keep: list[Kept],
    remove: list[Savepoint],
) -> None:
    rules = _rules(policy)
    for index, savepoint in enumerate(newest_first):
        reasons = ["newest"] if index == 0 else []
        reasons += _lasting_reasons(savepoint, policy, now, protected)
        moment = savepoint.taken
        counted = [rule.name for rule in rules if rule.keeps(moment)]
        if policy.max_age is None:
            reasons += counted
        elif now - moment <= policy.max_age:
            reasons += counted if rules else ["within max age"]
        if reasons:
            keep.append(Kept(savepoint, tuple(reasons)))
        else:
            remove.append(savepoint)


def _lasting_reasons(
    savepoint: Savepoint, policy: RetentionPolicy, now: datetime, protected: Mapping[str, str]
) -> list[str]:
    reasons = []
    if savepoint.id in protected:
        reasons.append(f"used by {protected[savepoint.id]}")
    reasons += tag_reasons(savepoint.tags, policy)
    if now - savepoint.taken < policy.grace:
        reasons.append("young")
    return reasons


def tag_reasons(tags: Iterable[str], policy: RetentionPolicy) -> list[str]:
    """Why a savepoint with these tags stays; nothing if they are no reason."""
    return [f"tag {tag}" for tag in sorted(tags) if policy.tagged or tag in policy.tags]


def _rules(policy: RetentionPolicy) -> list[_Rule]:
    rules = [
        _Rule("last", policy.last, lambda moment: object()),
        _Rule("hourly", policy.hourly, lambda moment: moment.strftime("%Y-%m-%d %H")),
        _Rule("daily", policy.daily, lambda moment: moment.date()),
        _Rule("weekly", policy.weekly, lambda moment: moment.isocalendar()[:2]),
        _Rule("monthly", policy.monthly, lambda moment: (moment.year, moment.month)),
    ]
    return [rule for rule in rules if rule.count]
