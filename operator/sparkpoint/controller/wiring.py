"""The parts of the operator, put together. Without kopf, so that tests can run all of it."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Final

from sparkpoint.controller.agents import Dial
from sparkpoint.controller.cache import ObjectCache
from sparkpoint.controller.cluster import Cluster, Object, metadata
from sparkpoint.controller.drift import Drift
from sparkpoint.controller.events import Events
from sparkpoint.controller.executor import Executor
from sparkpoint.controller.garbage import Garbage
from sparkpoint.controller.intents import Intents
from sparkpoint.controller.keys import SAVEPOINT, Key, key_of
from sparkpoint.controller.lastwords import LastWords
from sparkpoint.controller.metrics import Metrics
from sparkpoint.controller.observer import Observer
from sparkpoint.controller.operationsavepoints import OperationSavepoints
from sparkpoint.controller.pace import Pace
from sparkpoint.controller.passes import Gate, Passes, Throttling, always
from sparkpoint.controller.podfacts import label
from sparkpoint.controller.reconciler import JobReconciler, is_changed
from sparkpoint.controller.revisionstore import RevisionStore
from sparkpoint.controller.safepods import SafePods
from sparkpoint.controller.savepointfacts import is_at_rest
from sparkpoint.controller.savepointobserver import SavepointObserver
from sparkpoint.controller.savepoints import SavepointReconciler
from sparkpoint.controller.savepointuses import SavepointUses
from sparkpoint.controller.spreading import FIRST_LOOK, FIRST_LOOK_AT_REST, spread
from sparkpoint.controller.tokens import Tokens, random_token
from sparkpoint.controller.turns import Turns
from sparkpoint.controller.upkeep import Upkeep

__all__ = ["Operator", "put_together", "utc_now"]

_JOBS_FIRST: Final = timedelta(seconds=2)
"""Longer than it takes the jobs to notice that our turn has come."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Operator:
    """Everything that handlers need."""

    jobs: JobReconciler
    savepoints: SavepointReconciler
    job_cache: ObjectCache
    pod_cache: ObjectCache
    savepoint_cache: ObjectCache
    last_words: LastWords
    job_turns: Turns
    savepoint_turns: Turns
    metrics: Metrics

    async def close(self) -> None:
        """Cut off the passes that are under way."""
        await self.job_turns.close()
        await self.savepoint_turns.close()


def utc_now() -> datetime:
    """The clock."""
    return datetime.now(UTC)


def put_together(
    cluster: Cluster,
    dial: Dial,
    *,
    concurrency: int = 50,
    clock: Callable[[], datetime] = utc_now,
    make_token: Callable[[], str] = random_token,
    may_act: Callable[[], bool] = lambda: True,
    term: Callable[[], int] = lambda: 0,
    serves: Callable[[str], Awaitable[bool]] = always,
    unsafe_pods: bool = False,
    metrics: Metrics | None = None,
) -> Operator:
    """An operator; `concurrency` is how many passes may run at once, `may_act` whether any may,
    `term` how often that has begun, `serves` whether a namespace is ours, `unsafe_pods` whether
    pods may reach into their nodes."""
    cluster = cluster if unsafe_pods else SafePods(cluster)
    metrics, gate = metrics or Metrics(), Gate(concurrency)
    metrics.acts = may_act
    job_cache, pod_cache, savepoint_cache = ObjectCache(), ObjectCache(), ObjectCache()
    passes = partial(
        Passes,
        gate=gate,
        metrics=metrics,
        may_act=may_act,
        serves=serves,
        throttling=Throttling(),
    )
    last_words, pace = LastWords(job_cache), Pace(lambda: len(job_cache))
    store, tokens = RevisionStore(cluster), Tokens(cluster, make_token)
    events = Events(cluster)
    intents = Intents(cluster, store, clock=clock, pace=pace, unsafe_pods=unsafe_pods)
    uses = SavepointUses(job_cache)
    upkeep = Upkeep(
        cluster,
        savepoints=savepoint_cache,
        uses=uses,
        drift=Drift(cluster, store=store, tokens=tokens, pace=pace),
        pace=pace,
    )
    savepoints = OperationSavepoints(cluster, savepoint_cache, clock=clock)
    observer = Observer(
        cluster,
        intents=intents,
        revisions=store,
        tokens=tokens,
        dial=dial,
        pods=pod_cache,
        last_words=last_words,
        savepoints=savepoint_cache,
        clock=clock,
    )
    jobs = JobReconciler(
        cluster,
        passes=passes("job", hurries=lambda key: is_changed(job_cache.get(key, key.name))),
        observer=observer,
        executor=Executor(cluster, store=store, tokens=tokens, dial=dial, savepoints=savepoints),
        savepoints=savepoints,
        events=events,
        garbage=Garbage(cluster),
        upkeep=upkeep,
        metrics=metrics,
        jobs=job_cache,
        pace=pace,
        term=term,
        memories=(
            observer.forget,
            store.forget,
            tokens.forget,
            intents.forget,
            upkeep.forget,
            last_words.forget,
        ),
        clock=clock,
    )
    savepoint_reconciler = SavepointReconciler(
        cluster,
        passes=passes("savepoint"),
        observer=SavepointObserver(
            cluster,
            intents=intents,
            tokens=tokens,
            dial=dial,
            jobs=job_cache,
            uses=uses,
            clock=clock,
        ),
        events=events,
        metrics=metrics,
        cache=savepoint_cache,
        clock=clock,
    )
    return Operator(
        jobs=jobs,
        savepoints=savepoint_reconciler,
        job_cache=job_cache,
        pod_cache=pod_cache,
        savepoint_cache=savepoint_cache,
        last_words=last_words,
        job_turns=Turns(jobs.run_once, may_act=may_act),
        savepoint_turns=Turns(
            savepoint_reconciler.run_once,
            may_act=may_act,
            patience=lambda: _patience(savepoint_cache, job_cache, pod_cache, clock()),
        ),
        metrics=metrics,
    )


def _patience(
    savepoints: ObjectCache, jobs: ObjectCache, pods: ObjectCache, now: datetime
) -> Mapping[Key, float]:
    """Jobs first, when our turn has come: as when an operator starts, ten thousand savepoints that
    nothing is to be done to are looked at one after another."""
    found: dict[Key, float] = {}
    for owner in savepoints.owners():
        job, at_work = (
            jobs.get(owner, owner.name),
            {label(pod, SAVEPOINT) for pod in pods.of(owner)},
        )
        for body in savepoints.of(owner):
            rests = key_of(body).name not in at_work and is_at_rest(body, job=job, now=now)
            found[key_of(body)] = (_JOBS_FIRST + _first_look(body, rests=rests)).total_seconds()
    return found


def _first_look(savepoint: Object, *, rests: bool) -> timedelta:
    over = FIRST_LOOK_AT_REST if rests else FIRST_LOOK
    return spread(metadata(savepoint)["uid"], over)
