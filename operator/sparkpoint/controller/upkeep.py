"""What a job that runs needs besides being kept running: savepoints by the clock, retention, and
the objects beside its driver."""

import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, Final

from sparkpoint.api.job import JobSpec
from sparkpoint.api.policies import Retention
from sparkpoint.controller.cache import ObjectCache
from sparkpoint.controller.cluster import SAVEPOINTS, Cluster, Object, create_or_get, metadata
from sparkpoint.controller.drift import Drift
from sparkpoint.controller.errors import ConflictError, NotFoundError
from sparkpoint.controller.keys import is_paused
from sparkpoint.controller.observer import Observation
from sparkpoint.controller.pace import Pace
from sparkpoint.controller.podfacts import created_at
from sparkpoint.controller.retention import Verdict, judge
from sparkpoint.controller.savepointfacts import of_job, status_of
from sparkpoint.controller.savepointuses import Index, SavepointUses, mentions, names_of
from sparkpoint.controller.schedules import newest_due, periodic_savepoint
from sparkpoint.lifecycle.phases import Phase
from sparkpoint.lifecycle.record import Record

__all__ = ["Upkeep"]

logger = logging.getLogger(__name__)

_AGAIN: Final = timedelta(minutes=1)
"""Until it is looked whether what was done to savepoints is seen to be done."""
_LONGEST: Final = timedelta(hours=1)
"""Between two looks at savepoints that neither change nor have their time: what a lost event or a
mistake costs."""
_AT_ONCE: Final = 5
"""Savepoints that a pass writes to or removes: whoever changes the job waits for its end."""
_SOON: Final = 1.0


@dataclass(frozen=True, slots=True)
class _Judged:
    """What savepoints were judged by, and until when that holds."""

    savepoints: tuple[Object, ...]
    index: Index
    generation: int
    rules: Retention | None
    references: object
    until: datetime

    def holds(self, other: "_Judged", now: datetime) -> bool:
        """Whether nothing has changed, time included."""
        return (
            self.savepoints is other.savepoints
            and self.index is other.index
            and (self.generation, self.references) == (other.generation, other.references)
            and self.rules == other.rules
            and now < self.until
        )


class Upkeep:
    """Takes care of savepoints that nobody asks for, and of those that nobody wants any more."""

    def __init__(
        self,
        cluster: Cluster,
        *,
        savepoints: ObjectCache,
        uses: SavepointUses,
        drift: Drift,
        pace: Pace,
    ) -> None:
        self._cluster, self._savepoints = cluster, savepoints
        self._uses, self._drift, self._pace = uses, drift, pace
        self._judged: dict[str, _Judged] = {}

    async def run(self, seen: Observation, record: Record) -> float | None:
        """Do what is due; the seconds until something is due again."""
        spec = seen.intent.spec
        if spec is None or seen.job.deleting is not None or record.run is None:
            return None
        if record.operation is not None:
            if record.operation.phase in (Phase.LAUNCH, Phase.OBSERVE):
                await self._drift.unblock(seen, spec, record)
            return None
        # First what has its time: whatever is refused below is tried again at the next pass.
        due = await self._schedule(seen, spec, record)
        await self._drift.repair(seen, spec, record)
        more = await self._retain(seen, spec, record)
        return min((each for each in (due, more) if each is not None), default=None)

    async def _schedule(self, seen: Observation, spec: JobSpec, record: Record) -> float | None:
        schedule = spec.savepoints.schedule if spec.savepoints is not None else None
        runs = record.run is not None and record.run.opened
        if schedule is None or not runs or record.suspended or record.finished:
            return None
        now, born = seen.world.now, created_at(seen.job.body)
        due = newest_due(schedule, now)
        known = seen.stock.scheduled
        is_new = due is not None and (born is None or due > born) and due not in known[-1:]
        if due is not None and is_new and not any(time > due for time in known):
            body = await create_or_get(self._cluster, periodic_savepoint(seen.job.owner, spec, due))
            self._savepoints.put(seen.job.key, body)
            logger.info("%s: savepoint %s is due", seen.job.key, metadata(body)["name"])
        following = schedule.after(now)
        return (following - now).total_seconds() if following is not None else None

    async def _retain(self, seen: Observation, spec: JobSpec, record: Record) -> float | None:
        """Remove what has had its time, and tell of the rest why it stays.

        Seconds until it goes on, if that is too much for one pass.
        """
        key, now, uid = seen.job.key, seen.world.now, seen.job.uid
        if spec.savepoints is None or not seen.stock.own:
            return None
        if seen.intent.invalid:
            # The rules at hand are of a former spec, and may be older than their last change.
            return None
        basis = self._basis(seen, spec, record)
        known = self._judged.get(uid)
        if known is not None and known.holds(basis, now):
            return None
        self._judged.pop(uid, None)

        def shown(body: Object) -> list[str]:
            # What this job needs itself is in hand.
            return [user for user in basis.index.users(body) if user != key.name]

        verdicts = _judge(seen, spec, record, shown)
        if not all(verdict.kept_because for verdict in verdicts):
            # A job, be it this one, may need what is about to be removed, and no watch show it yet.
            index = await self._uses.ask(self._cluster, key.namespace, now)
            verdicts = _judge(seen, spec, record, index.users)
        news = [verdict for verdict in verdicts if _is_news(verdict)]
        for verdict in news[:_AT_ONCE]:
            await self._carry_out(seen, verdict)
        if len(news) > _AT_ONCE:
            # Not all jobs at once, after a start with thousands of them.
            return self._pace.look(_SOON)
        ends = [verdict.changes for verdict in verdicts if verdict.changes is not None]
        longest = now + (_AGAIN if news else _LONGEST)
        self._judged[uid] = replace(basis, until=min([*ends, longest]))
        return None

    def _basis(self, seen: Observation, spec: JobSpec, record: Record) -> _Judged:
        """What a judgement about savepoints depends on, but for the time."""
        return _Judged(
            savepoints=seen.stock.everything,
            index=self._uses.shown(seen.job.key.namespace, seen.world.now),
            generation=seen.job.generation,
            rules=_rules(spec),
            references=record.references(),
            until=seen.world.now,
        )

    async def _carry_out(self, seen: Observation, verdict: Verdict) -> None:
        if verdict.kept_because:
            await self._tell(verdict)
        else:
            await self._remove(seen, verdict)

    async def _tell(self, verdict: Verdict) -> None:
        """Write it into the status; one that changed meanwhile has another turn."""
        body = verdict.savepoint
        try:
            written = await self._cluster.replace_status({**body, "status": _kept_status(verdict)})
        except (ConflictError, NotFoundError):
            return
        self._learn(written)

    def _learn(self, body: Object) -> None:
        """What was written is known at once, and not only when the watch shows it."""
        job = of_job(body)
        if job is not None:
            self._savepoints.put(job, body)

    async def _remove(self, seen: Observation, verdict: Verdict) -> None:
        name = metadata(verdict.savepoint)["name"]
        logger.info("%s: savepoint %s has expired", seen.job.key, name)
        if verdict.failed:
            # A capture that failed has left no manifest: there is nothing to dispose of.
            await self._delete(verdict.savepoint)
        else:
            await self.retire(verdict.savepoint)

    async def retire(self, body: Object) -> None:
        """Remove a savepoint with its data: first it is written down that the data goes, too.

        The data of one that was made known is somebody else's, and stays unless it says otherwise.
        """
        status: Mapping[str, Any] = status_of(body)
        record = status.get("record") or {}
        if not record.get("expired") and not body["spec"].get("existing"):
            marked = {**status, "record": {**record, "expired": True}}
            try:
                body = await self._cluster.replace_status({**body, "status": marked})
            except NotFoundError:
                return
            self._learn(body)
        await self._delete(body)

    async def _delete(self, body: Object) -> None:
        about = metadata(body)
        await self._cluster.delete(SAVEPOINTS, about["namespace"], about["name"], uid=about["uid"])

    async def retire_all(self, seen: Observation) -> int:
        """Remove all savepoints of a job that is being deleted; how many are left.

        Those that a person works on stay, and the job does not wait for them.
        """
        own = [body for body in seen.stock.own if of_job(body) == seen.job.key]
        left = [body for body in own if not is_paused(body)]
        for body in left:
            if metadata(body).get("deletionTimestamp") is None:
                await self.retire(body)
        return len(left)

    def forget(self, uid: str) -> None:
        """The job is gone."""
        self._judged.pop(uid, None)
        self._drift.forget(uid)


def _judge(
    seen: Observation,
    spec: JobSpec,
    record: Record,
    users_of: Callable[[Object], Iterable[str]],
) -> tuple[Verdict, ...]:
    rules = _rules(spec)
    if rules is None:
        return ()
    key, own = seen.job.key, mentions(replace(seen.job, record=record))
    users = {}
    for body in seen.stock.own:
        mine = [] if own.isdisjoint(names_of(body)) else [key.name]
        users[metadata(body)["name"]] = [*mine, *users_of(body)]
    return judge(key, seen.stock.own, rules, users=users, now=seen.world.now)


def _rules(spec: JobSpec) -> Retention | None:
    return spec.savepoints.retention if spec.savepoints is not None else None


def _is_news(verdict: Verdict) -> bool:
    """Whether there is something to do: to remove it, or to tell why it stays."""
    body = verdict.savepoint
    if not verdict.kept_because:
        return True
    return not is_paused(body) and _kept_status(verdict) != status_of(body)


def _kept_status(verdict: Verdict) -> dict[str, Any]:
    """The status of a savepoint that stays."""
    status = _spared(status_of(verdict.savepoint))
    status.pop("expiresAt", None)
    status["keptBecause"] = list(verdict.kept_because)
    if verdict.expires is not None:
        status["expiresAt"] = verdict.expires.isoformat().replace("+00:00", "Z")
    return status


def _spared(status: Mapping[str, Any]) -> dict[str, Any]:
    """Of a savepoint that stays after all: nobody who deletes it later means its data, too."""
    record: Mapping[str, Any] = status.get("record") or {}
    if not record.get("expired"):
        return dict(status)
    return {**status, "record": {**record, "expired": False}}
