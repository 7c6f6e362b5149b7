"""One pass over one job: look, decide, tell, write down, do; and say when to come back."""

import logging
from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, Final

from sparkpoint.api.scalars import OnDelete
from sparkpoint.controller.cache import ObjectCache
from sparkpoint.controller.cluster import JOBS, Cluster, Object, find, metadata
from sparkpoint.controller.correlation import correlation_id, relate
from sparkpoint.controller.errors import (
    ClusterError,
    ConflictError,
    ForbiddenError,
    NotFoundError,
    RecordError,
    UnprocessableError,
)
from sparkpoint.controller.events import Events
from sparkpoint.controller.executor import Executor
from sparkpoint.controller.figures import job_figures
from sparkpoint.controller.finalizers import guarded, is_let_go, let_go
from sparkpoint.controller.garbage import Garbage
from sparkpoint.controller.jobs import Job, read_job
from sparkpoint.controller.keys import Key, is_paused, key_of
from sparkpoint.controller.metrics import JobFigures, Metrics
from sparkpoint.controller.observer import Observation, Observer
from sparkpoint.controller.obstacles import Obstacles, explained
from sparkpoint.controller.operationsavepoints import OperationSavepoints
from sparkpoint.controller.pace import Pace
from sparkpoint.controller.passes import Passes, Requeue
from sparkpoint.controller.podfacts import parse_time
from sparkpoint.controller.refusals import Refusals
from sparkpoint.controller.reports import report
from sparkpoint.controller.secrets import discreet
from sparkpoint.controller.spreading import spread
from sparkpoint.controller.statuses import with_degraded, without_progress
from sparkpoint.controller.upkeep import Upkeep
from sparkpoint.lifecycle import Decision, decide
from sparkpoint.lifecycle.actions import (
    Action,
    Event,
    Release,
    RequestStop,
    StartDriver,
    StartWorker,
    StoreRevision,
)
from sparkpoint.lifecycle.conditions import Reason
from sparkpoint.lifecycle.record import Record
from sparkpoint.lifecycle.steady import LOOK
from sparkpoint.lifecycle.waiting import missed
from sparkpoint.runtime.model import OperationState

__all__ = ["JobReconciler", "is_changed"]

logger = logging.getLogger(__name__)

_AT_ONCE: Final = 0.2
_UNREADABLE: Final = timedelta(minutes=10)
"""For the operator that can read a record to take a deletion over."""
_REFUSED: Final = 5.0
"""Seconds until what was refused is decided upon, or tried again."""
_HOUR: Final = 3600.0
_LONGEST: Final = 60.0
"""Seconds between two looks: what a lost event costs."""
_RETIREMENT: Final = timedelta(minutes=11)
"""For the data of a deleted job's savepoints to be removed; a bit longer than each may take."""
_RETIRING: Final = 5.0


class JobReconciler:
    """Keeps jobs as they are wished for."""

    def __init__(
        self,
        cluster: Cluster,
        *,
        passes: Passes,
        observer: Observer,
        executor: Executor,
        savepoints: OperationSavepoints,
        events: Events,
        garbage: Garbage,
        upkeep: Upkeep,
        metrics: Metrics,
        jobs: ObjectCache,
        pace: Pace,
        memories: tuple[Callable[[str], None], ...] = (),
        clock: Callable[[], datetime],
        term: Callable[[], int] = lambda: 0,
    ) -> None:
        self._cluster, self._passes, self._observer = cluster, passes, observer
        self._executor, self._savepoints, self._events = executor, savepoints, events
        self._garbage, self._upkeep = garbage, upkeep
        self._metrics, self._jobs = metrics, jobs
        self._memories, self._clock = memories, clock
        self._pace, self._term = pace, term
        self._read: dict[Key, int] = {}
        """Job -> the term in which it was read from the API server; we alone have written since."""
        self._obstacles, self._refusals = Obstacles(), Refusals()
        self._told: dict[Key, datetime] = {}

    async def run_once(self, key: Key) -> Requeue:
        """A pass; it never raises."""
        return await self._passes.run(key, self._pass)

    def hasten(self, key: Key) -> None:
        """The job has changed, perhaps while a pass over it waited among all the others."""
        self._passes.hasten(key)

    async def _pass(self, key: Key) -> Requeue:
        body = await self._look(key)
        if body is None or is_let_go(body):
            return Requeue(seconds=_LONGEST, released=True)
        if is_paused(body):
            self._metrics.paused(key, _phase(body))
            return Requeue(seconds=_LONGEST)
        # Nothing is made before we are sure to be asked when the job is deleted.
        body = await self._written(key, guarded(self._cluster, body))
        try:
            return await self._reconcile(key, read_job(body))
        except RecordError as error:
            return await self._unreadable(body, error)

    async def _reconcile(self, key: Key, job: Job) -> Requeue:
        _relate(job, job.record)
        seen = await self._observer.observe(job, self._obstacles.of(key), self._refusals.of(key))
        decision = _decide(seen)
        if seen.hearsay and (decision.actions or decision.record != job.record):
            seen = await self._observer.observe(
                job, self._obstacles.of(key), self._refusals.of(key), former=seen
            )
            decision = _decide(seen)
        _relate(job, decision.record)
        if _only_stores(decision, job) and self._obstacles.of(key) is None:
            # The revision first: a status that knows the new spec and no operation would lie.
            requeue = await self._act(seen, decision)
            if self._obstacles.of(key) is not None:
                return requeue
            # Whoever changed the spec waits: what was seen just now is not looked at once more.
            seen = _with_revision(seen)
            decision = _decide(seen)
            _relate(job, decision.record)
        await self._savepoints.complete(seen, decision.record)
        await self._tell(seen, decision)
        await self._write(seen, decision)
        return await self._act(seen, decision)

    async def _look(self, key: Key) -> Object | None:
        """The watch is believed while nothing is under way; what it lags behind is written anew.

        So it is once this operator has read the job: what is written down of it is then in hand, as
        nobody else writes that. Only one that is being deleted may be gone: anybody can let it go.
        """
        known, term = self._jobs.get(key, key.name), self._term()
        believed = known is not None and (_is_calm(known) or self._read.get(key) == term)
        if known is not None and believed and not _is_going(known):
            return known
        body = await find(self._cluster, JOBS, key.namespace, key.name)
        self._read[key] = term
        if body is None:
            self.forget(key)
        else:
            self._jobs.put(key, body)
        return body

    async def _unreadable(self, body: Object, error: RecordError) -> Requeue:
        """Nothing is done before a person has looked; only a deletion is not held up for ever.

        Kubernetes ends what the job owns with it; data stays.
        """
        now, deleted = self._clock(), parse_time(metadata(body).get("deletionTimestamp"))
        key, phase = key_of(body), _phase(body)
        self._metrics.seen("job", key, phase)
        figures = JobFigures(phase=phase, degraded=Reason.RECORD_UNREADABLE.value)
        self._metrics.figures(key, figures)
        told = Event(reason="RecordUnreadable", message=str(error), warning=True)
        await self._events.tell(body, told, occasion="record", now=now)
        if deleted is None:
            await self._show_unreadable(body, error, now)
        if deleted is None or now - deleted < _UNREADABLE:
            raise error
        return await self._let_go(body)

    async def _show_unreadable(self, body: Object, error: RecordError, now: datetime) -> None:
        """Say that the job needs a person, and leave all else of its status to whoever wrote it."""
        status = with_degraded(body.get("status") or {}, str(error), now)
        if status is not None:
            await self._replace_status(key_of(body), {**body, "status": status})

    async def _tell(self, seen: Observation, decision: Decision) -> None:
        """Before it is written down: afterwards this pass does not come again."""
        body, now = seen.job.body, seen.world.now
        invalid = seen.intent.invalid or seen.intent.script_missing
        if invalid:
            told = Event(reason="NotAccepted", message=invalid, warning=True)
            occasion = f"generation {seen.job.generation}"
            await self._events.tell(body, told, occasion=occasion, now=now)
        lacking = missed(replace(seen.world, record=decision.record))
        if lacking is not None:
            occasion = f"generation {seen.job.generation}"
            await self._events.tell(body, lacking, occasion=occasion, now=now)
        for event in decision.events:
            occasion = f"operation {decision.record.sequence}"
            await self._events.tell(body, event, occasion=occasion, now=now)
            logger.info("%s: %s: %s", seen.job.key, event.reason, event.message)

    async def _write(self, seen: Observation, decision: Decision) -> None:
        key = seen.job.key
        status = report(seen, decision, self._obstacles.of(key))
        self._show(seen, status, decision.record)
        if not self._is_worth_writing(seen, status):
            return
        await self._replace_status(key, {**seen.job.body, "status": status})
        self._told[key] = seen.world.now
        for outcome in decision.ended:
            self._metrics.ended(
                outcome.kind.value,
                outcome.result.value,
                seconds=(outcome.finished - outcome.started).total_seconds(),
                downtime=outcome.downtime,
            )

    async def _replace_status(self, key: Key, body: Object) -> None:
        await self._written(key, self._cluster.replace_status(body))

    async def _written(self, key: Key, write: Awaitable[Object]) -> Object:
        """The job after this write: what it shows is old is forgotten, and looked at anew."""
        try:
            written = await write
        except ConflictError:
            self._jobs.drop(key, key.name)
            raise
        except NotFoundError as error:
            self._jobs.drop(key, key.name)
            raise ConflictError(f"{key} is gone, or another one by now") from error
        self._jobs.put(key, written)
        return written

    def _show(self, seen: Observation, status: dict[str, Any], record: Record) -> None:
        key = seen.job.key
        self._metrics.seen("job", key, status["phase"])
        self._metrics.figures(key, job_figures(status, seen, record))

    def _is_worth_writing(self, seen: Observation, status: dict[str, Any]) -> bool:
        """What has changed at once; how the queries do, now and then, and not of all jobs at the
        first look of an operator that starts."""
        former, now = seen.job.status, seen.world.now
        if without_progress(status) != without_progress(former):
            return True
        often = timedelta(seconds=self._pace.telling())
        told = self._told.setdefault(seen.job.key, now - spread(seen.job.uid, often))
        return status != former and now - told >= often

    async def _act(self, seen: Observation, decision: Decision) -> Requeue:
        key, operation = seen.job.key, decision.record.operation
        for action in decision.actions:
            try:
                with discreet(seen.redaction):
                    aside = await self._executor.perform(action, seen, decision.record)
            except (ForbiddenError, UnprocessableError) as error:
                await self._refused(seen, decision, action, error)
                return Requeue(seconds=min(_wait(decision), _REFUSED))
            if aside is not None:
                occasion = f"operation {decision.record.sequence} aside"
                await self._tell_refusal(seen, aside, occasion)
        if decision.actions or operation is None:
            self._obstacles.clear(key)
            self._refusals.clear(key)
        if any(isinstance(action, StoreRevision) for action in decision.actions):
            return Requeue(seconds=0.0)
        if any(isinstance(action, Release) for action in decision.actions):
            return await self._release(seen)
        if _is_stopping(seen, decision):
            return Requeue(seconds=_AT_ONCE)
        await self._garbage.collect(seen, decision.record)
        due = await self._upkeep.run(seen, decision.record)
        return Requeue(seconds=min(self._rest(seen, decision), due if due is not None else _HOUR))

    def _rest(self, seen: Observation, decision: Decision) -> float:
        """Seconds until the next look, if nothing happens before."""
        if decision.record != seen.job.record:
            # There is more to see now: what is looked at depends on what is written down.
            return min(_wait(decision), _AT_ONCE)
        routine = decision.wake is None or decision.wake == LOOK
        calm = decision.record.operation is None and seen.job.deleting is None
        if routine and calm and not decision.actions:
            return self._pace.look(_wait(decision))
        return _wait(decision)

    async def _release(self, seen: Observation) -> Requeue:
        """Savepoints that go with the job go before it: their data is removed with its image."""
        spec, since = seen.intent.spec, seen.job.deleting
        saved = spec.savepoints if spec is not None else None
        if saved is None or saved.on_delete is not OnDelete.DELETE or since is None:
            return await self._let_go(seen.job.body)
        patience = _RETIREMENT + seen.world.wish.policy.delete_timeout
        left = await self._upkeep.retire_all(seen)
        if left and seen.world.now - since <= patience:
            return Requeue(seconds=_RETIRING)
        return await self._let_go(seen.job.body)

    async def _let_go(self, body: Object) -> Requeue:
        await let_go(self._cluster, body)
        return Requeue(seconds=_LONGEST, released=True)

    async def _refused(
        self,
        seen: Observation,
        decision: Decision,
        action: Action,
        error: ForbiddenError | UnprocessableError,
    ) -> None:
        run = action.run if isinstance(action, StartDriver) else None
        self._obstacles.note(seen.job.key, error, run=run, now=seen.world.now)
        if isinstance(action, StartWorker):
            self._refusals.note(seen.job.key, action.name, error, now=seen.world.now)
        occasion = f"operation {decision.record.sequence} {run.attempt if run else ''}"
        await self._tell_refusal(seen, error, occasion)

    async def _tell_refusal(self, seen: Observation, error: ClusterError, occasion: str) -> None:
        told = Event(reason="ObjectRefused", message=explained(error), warning=True)
        await self._events.tell(seen.job.body, told, occasion=occasion, now=seen.world.now)
        ends = isinstance(error, ForbiddenError) and error.is_of_ending_namespace
        logger.log(logging.DEBUG if ends else logging.WARNING, "%s: %s", seen.job.key, error)

    def forget(self, key: Key, uid: str | None = None) -> None:
        """The job is gone; its uid is that of the watch's, if none is given."""
        known = self._jobs.get(key, key.name)
        gone = uid if uid is not None or known is None else metadata(known)["uid"]
        if gone is not None:
            for forget in (*self._memories, self._garbage.forget):
                forget(gone)
        self._jobs.drop(key, key.name)
        self._obstacles.clear(key)
        self._refusals.clear(key)
        self._told.pop(key, None)
        self._read.pop(key, None)
        self._passes.forget(key)


def _phase(body: Object) -> str:
    """As it was written last."""
    return str((body.get("status") or {}).get("phase") or "Unknown")


def _relate(job: Job, record: Record) -> None:
    """From here on the pass is about the operation that this record has under way."""
    operation = record.operation
    if operation is not None:
        relate(job.key, operation.id, correlation_id(job.uid, operation.id))


def _decide(seen: Observation) -> Decision:
    """Nothing is decided without a wish, or while an earlier job of this name has not ended."""
    idle = seen.intent.wish is None or bool(seen.leftover)
    if idle and seen.job.deleting is None:
        return Decision(record=seen.job.record)
    return decide(seen.world)


def _only_stores(decision: Decision, job: Job) -> bool:
    stores = all(isinstance(action, StoreRevision) for action in decision.actions)
    return bool(decision.actions) and stores and decision.record == job.record


def _with_revision(seen: Observation) -> Observation:
    """The same look, with the revision that is wished for among those that are stored."""
    stored = seen.world.revisions | {seen.world.wish.revision.name}
    return replace(seen, world=replace(seen.world, revisions=stored))


def _is_stopping(seen: Observation, decision: Decision) -> bool:
    """Whether the driver's agent is to be asked again at once: soon it will be gone."""
    stop = seen.answer.stop if seen.answer is not None else None
    running = stop is not None and stop.state is OperationState.RUNNING
    return running or any(isinstance(action, RequestStop) for action in decision.actions)


def _wait(decision: Decision) -> float:
    if decision.wake is None:
        return _LONGEST
    return min(max(decision.wake.total_seconds(), 0.0), _LONGEST)


def is_changed(body: Object | None) -> bool:
    """Whether somebody who changed a job that was known waits for what comes of it."""
    if body is None:
        return False
    heard = (body.get("status") or {}).get("observedGeneration")
    return heard is not None and heard != metadata(body).get("generation")


def _is_calm(body: Object) -> bool:
    """Whether nothing is being done to the job, as far as its status says."""
    status = body.get("status") or {}
    record = status.get("record") or {}
    return bool(record) and record.get("operation") is None


def _is_going(body: Object) -> bool:
    return metadata(body).get("deletionTimestamp") is not None
