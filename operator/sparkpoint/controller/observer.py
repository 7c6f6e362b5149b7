"""Looking at a job: everything that a decision, and the job's status, is made from. Reads only."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final

from sparkpoint.controller.agents import AgentAnswer, Dial, agent_fact, ask_agent
from sparkpoint.controller.cache import ObjectCache
from sparkpoint.controller.cluster import PODS, Cluster, Object, metadata, owner_uid
from sparkpoint.controller.intents import Intent, Intents, can_turn_back
from sparkpoint.controller.jobs import Job
from sparkpoint.controller.keys import ATTEMPT, EPOCH, JOB, ROLE, SAVEPOINT
from sparkpoint.controller.lastwords import LastWords
from sparkpoint.controller.nodes import lost_pods
from sparkpoint.controller.objects import AGENT_PORT
from sparkpoint.controller.obstacles import Obstacle, refused_driver
from sparkpoint.controller.passes import aside
from sparkpoint.controller.podfacts import created_at, is_over, label, pod_fact
from sparkpoint.controller.policy import UNKNOWN
from sparkpoint.controller.refusals import Refusal, refused_worker
from sparkpoint.controller.revisionstore import RevisionStore
from sparkpoint.controller.savepointfacts import Stock, take_stock
from sparkpoint.controller.secrets import redaction_of
from sparkpoint.controller.tokens import Tokens
from sparkpoint.controller.workerfacts import is_worker, worker_fact
from sparkpoint.lifecycle.naming import life_of
from sparkpoint.lifecycle.phases import Phase
from sparkpoint.lifecycle.record import Revision, Run
from sparkpoint.lifecycle.world import AgentFact, PodFact, Wish, WorkerFact, World
from sparkpoint.runtime.redaction import NOTHING_SECRET, Redaction

__all__ = ["Observation", "Observer", "agent_url"]

_LISTED: Final = timedelta(minutes=5)
"""Between two lists of the pods of a job that stands still."""
_LISTED_UNDER_WAY: Final = timedelta(seconds=10)
"""The same while something is done to it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """What was seen in one look."""

    job: Job
    intent: Intent
    world: World
    stock: Stock
    """Its savepoints."""
    pods: tuple[Object, ...] = ()
    answer: AgentAnswer | None = None
    redaction: Redaction = NOTHING_SECRET
    """Of what must not be told, though it is in a spec."""
    listed: bool = True
    """The pods are those that the API server has."""
    hearsay: bool = False
    """The pods are those that a watch showed, or the script is the one that was read before: before
    something is done, both are read afresh and it is decided anew."""
    leftover: str = ""
    """What is left of an earlier job of this name: nothing begins before it is gone."""

    @property
    def driver(self) -> Object | None:
        """The pod of the run that is written down."""
        run = self.job.record.run
        return _driver(self.pods, self.job, run) if run is not None else None

    @property
    def executors(self) -> int:
        """Executors of that run that are up."""
        run = self.job.record.run
        if run is None:
            return 0
        return sum(
            1
            for pod in self.pods
            if label(pod, ROLE) == "executor"
            and (label(pod, EPOCH), label(pod, ATTEMPT)) == (str(run.epoch), str(run.attempt))
            and (pod.get("status") or {}).get("phase") == "Running"
        )


class Observer:
    """Looks at jobs."""

    def __init__(
        self,
        cluster: Cluster,
        *,
        intents: Intents,
        revisions: RevisionStore,
        tokens: Tokens,
        dial: Dial,
        pods: ObjectCache,
        last_words: LastWords,
        savepoints: ObjectCache,
        clock: Callable[[], datetime],
    ) -> None:
        self._cluster, self._intents, self._revisions = cluster, intents, revisions
        self._tokens, self._dial, self._clock = tokens, dial, clock
        self._pods, self._savepoints, self._last_words = pods, savepoints, last_words
        self._listed: dict[str, datetime] = {}
        """Uid of a job -> when its pods were read from the API server last."""
        self._stocks: dict[str, Stock] = {}

    async def observe(
        self,
        job: Job,
        obstacle: Obstacle | None = None,
        refusal: Refusal | None = None,
        *,
        former: Observation | None = None,
    ) -> Observation:
        """One look. An agent that does not answer is seen as absent; the API server must answer.

        `former` is a look of just now: what it has from hearsay is read afresh.
        """
        intent = await self._intents.read(job, afresh=former is not None)
        runs = self._runs(job)
        pods, listed = await self._look_at_pods(job, former, runs)
        known = former.answer if former is not None else None
        answer = known if known is not None else await self._ask_agent(job, pods)
        if not listed and answer is not None and answer.progress.phase == "gated":
            # Who else may write into its directory is no matter for a watch.
            pods, listed = await self._list_pods(job), True
        lost = await lost_pods(self._cluster, pods, self._clock())
        stock = self._stock(job)
        wish = intent.wish or _nothing(job)
        redaction = await self._redaction(job, intent)
        gone = _gone_driver(job, pods, self._last_words.of(job.uid))
        seen, run = _pod_facts(job, (*pods, *gone), lost), job.record.run
        seen = tuple(_discreet_pod(fact, redaction) for fact in seen)
        workers = tuple(
            replace(fact, message=redaction.text(fact.message))
            for fact in _worker_facts(job, pods, lost)
        )
        agent = agent_fact(answer, attempt=run.attempt) if answer and run else None
        world = World(
            job=job.key.name,
            wish=wish,
            record=job.record,
            now=self._clock(),
            pods=(*seen, *refused_driver(obstacle, job.key.name, run, seen)),
            workers=(*workers, *refused_worker(refusal, workers)),
            agent=_discreet_agent(agent, redaction) if agent is not None else None,
            revisions=self._kept(job, wish),
            newest=stock.reference(job.key),
            life=life_of(job.uid),
        )
        return Observation(
            job=job,
            intent=intent,
            world=world,
            pods=tuple(pods),
            answer=answer,
            stock=stock,
            listed=listed,
            hearsay=former is None and (not (listed or runs) or can_turn_back(job)),
            leftover=_leftover(job, seen),
            redaction=redaction,
        )

    async def _redaction(self, job: Job, intent: Intent) -> Redaction:
        """Of the secrets in the spec as it is, and in those that drivers were made of."""
        record, wish = job.record, intent.wish
        target = record.operation.target if record.operation is not None else None
        names = {run.revision.name for run in (record.run, target) if run is not None}
        if wish is not None and not (intent.invalid or intent.script_missing):
            # Made of the spec as it is; nearly always there is no other.
            names.discard(wish.revision.name)
        kept = [await self._revisions.find(job.owner, name) for name in sorted(names)]
        specs = [stored.spec.model_dump(by_alias=True) for stored in kept if stored is not None]
        return redaction_of(job.spec, *specs)

    def _runs(self, job: Job) -> bool:
        """Whether a driver runs, as far as the watch shows, and nothing is under way.

        At a gate that is not believed: see `observe`.
        """
        run = job.record.run
        if run is None or job.record.operation is not None or job.deleting is not None:
            return False
        driver = _driver(self._pods.of(job.key), job, run)
        return driver is not None and not is_over(driver) and not _is_deleting(driver)

    async def _look_at_pods(
        self, job: Job, former: Observation | None, runs: bool
    ) -> tuple[Sequence[Object], bool]:
        """The pods, and whether they are those that the API server has."""
        if former is not None and former.listed:
            return former.pods, True
        if former is None and self._believes(job, runs):
            return self._pods.of(job.key), False
        return await self._list_pods(job), True

    def _believes(self, job: Job, runs: bool) -> bool:
        """Whether the watch will do: to see that there is nothing to do but to wait.

        Now and then it is not believed that either: an event may have been lost.
        """
        listed = self._listed.get(job.uid)
        if runs or listed is None:
            return runs
        calm = job.record.operation is None and job.deleting is None
        return self._clock() - listed < (_LISTED if calm else _LISTED_UNDER_WAY)

    async def _list_pods(self, job: Job) -> Sequence[Object]:
        self._listed[job.uid] = self._clock()
        return await self._cluster.list(PODS, job.key.namespace, labels={JOB: job.key.name})

    def forget(self, uid: str) -> None:
        """The job is gone."""
        self._listed.pop(uid, None)
        self._stocks.pop(uid, None)

    def _stock(self, job: Job) -> Stock:
        """Taken anew when the watch has shown something else, or we have written it."""
        present, known = self._savepoints.of(job.key), self._stocks.get(job.uid)
        if known is None or known.everything is not present:
            known = take_stock(job.key, created_at(job.body), present)
            self._stocks[job.uid] = known
        return known

    async def _ask_agent(self, job: Job, pods: Sequence[Object]) -> AgentAnswer | None:
        run = job.record.run
        driver = _driver(pods, job, run) if run is not None else None
        if run is None or driver is None or is_over(driver):
            return None
        url, token = agent_url(driver), await self._tokens.find(job.owner, run.epoch)
        if url is None or token is None:
            return None
        operation, stops = job.record.operation, []
        if operation is not None and operation.phase is Phase.STOP:
            stops = [f"{operation.id}-bare", operation.id]
        # Drivers that start do not answer yet, and those that stop take their time.
        async with aside():
            return await ask_agent(
                self._dial(url, token),
                job=str(job.key),
                epoch=run.epoch,
                stops=stops,
                clock=self._clock,
            )

    def _kept(self, job: Job, wish: Wish) -> frozenset[str]:
        """Whether the revision that is wished for is known to be stored; no other one is ever
        begun. One that is there all the same is found when it is stored again."""
        name = wish.revision.name
        return frozenset([name] if self._revisions.knows(job.owner, name) else [])


def agent_url(driver: Object) -> str | None:
    """Where the agent of a driver pod listens; None while the pod has no address."""
    address = (driver.get("status") or {}).get("podIP")
    if not address:
        return None
    host = f"[{address}]" if ":" in address else address
    return f"http://{host}:{AGENT_PORT}"


def _driver(pods: Sequence[Object], job: Job, run: Run) -> Object | None:
    wanted = ("driver", str(run.epoch), str(run.attempt))
    for pod in pods:
        found = (label(pod, ROLE), label(pod, EPOCH), label(pod, ATTEMPT))
        if found == wanted and owner_uid(pod) == job.uid:
            return pod
    return None


def _gone_driver(job: Job, pods: Sequence[Object], kept: Sequence[Object]) -> tuple[Object, ...]:
    """The driver of the run that is written down, if it has ended and its pod is gone since."""
    run = job.record.run
    if run is None or _driver(pods, job, run) is not None:
        return ()
    found = _driver(kept, job, run)
    return (found,) if found is not None else ()


def _discreet_pod(fact: PodFact, redaction: Redaction) -> PodFact:
    """Its last words are the script's own, and may quote what it was given."""
    if fact.exit is None:
        return fact
    return replace(fact, exit=replace(fact.exit, message=redaction.text(fact.exit.message)))


def _discreet_agent(fact: AgentFact, redaction: Redaction) -> AgentFact:
    if fact.stop is None:
        return fact
    return replace(fact, stop=replace(fact.stop, message=redaction.text(fact.stop.message)))


def _is_deleting(pod: Object) -> bool:
    return metadata(pod).get("deletionTimestamp") is not None


def _pod_facts(
    job: Job, pods: Sequence[Object], lost: Mapping[str, datetime]
) -> tuple[PodFact, ...]:
    facts = [(pod, pod_fact(pod, lost_since=lost.get(metadata(pod)["uid"]))) for pod in pods]
    return tuple(_known(job, fact, pod) for pod, fact in facts if fact is not None)


def _worker_facts(
    job: Job, pods: Sequence[Object], lost: Mapping[str, datetime]
) -> tuple[WorkerFact, ...]:
    return tuple(
        worker_fact(pod, lost_since=lost.get(metadata(pod)["uid"]))
        for pod in pods
        # Those of savepoints work for their own resources, and outlive what happens to the job.
        if is_worker(pod) and owner_uid(pod) == job.uid and not label(pod, SAVEPOINT)
    )


def _known(job: Job, fact: PodFact, pod: Object) -> PodFact:
    """A driver of an earlier job of this name may still write, but says nothing about this job."""
    foreign = fact.role == "driver" and owner_uid(pod) != job.uid
    return replace(fact, role="executor", exit=None) if foreign else fact


def _leftover(job: Job, pods: Sequence[PodFact]) -> str:
    """Before anything was written down, every pod is of an earlier job."""
    alive = [pod.name for pod in pods if not pod.over]
    if job.record.run is not None or not alive:
        return ""
    return f"Pods of an earlier job of this name are still there: {', '.join(alive[:3])}."


def _nothing(job: Job) -> Wish:
    """For a job whose spec was never one that could be used."""
    nothing = Revision(name="", code="")
    return Wish(generation=job.generation, revision=nothing, deleting=job.deleting, policy=UNKNOWN)
