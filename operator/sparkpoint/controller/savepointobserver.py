"""Looking at a savepoint: its job, the agent, the worker pods. Reads only."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from sparkpoint.api.job import JobSpec
from sparkpoint.controller.agents import Agent, Dial, in_words
from sparkpoint.controller.cache import ObjectCache
from sparkpoint.controller.cluster import (
    JOBS,
    PODS,
    Cluster,
    Object,
    find,
    metadata,
    owner_uid,
)
from sparkpoint.controller.errors import RecordError
from sparkpoint.controller.intents import Intents
from sparkpoint.controller.jobs import Job, read_job
from sparkpoint.controller.keys import ATTEMPT, EPOCH, JOB, ROLE, SAVEPOINT, is_paused
from sparkpoint.controller.nodes import lost_pods
from sparkpoint.controller.observer import agent_url
from sparkpoint.controller.savepointuses import SavepointUses, mentions, names_of
from sparkpoint.controller.savepointviews import SavepointView
from sparkpoint.controller.secrets import redaction_of
from sparkpoint.controller.tokens import Tokens
from sparkpoint.controller.workerfacts import WorkerAnswer, worker_answer, worker_fact
from sparkpoint.lifecycle.savepointworld import (
    AgentSavepoint,
    JobState,
    Refusal,
    SavepointRecord,
    SavepointState,
    SavepointWorld,
    Taker,
)
from sparkpoint.runtime.client import AgentClientError, AgentRefusedError
from sparkpoint.runtime.model import SavepointOperation
from sparkpoint.runtime.redaction import NOTHING_SECRET, Redaction

__all__ = ["SavepointObserver", "SavepointSight"]

_NOT_FOUND = 404


@dataclass(frozen=True, slots=True, kw_only=True)
class SavepointSight:
    """What was seen in one look."""

    view: SavepointView
    world: SavepointWorld
    job: Job | None
    spec: JobSpec | None
    """The job's, if there is one that can be used."""
    agent: Agent | None = None
    operation: SavepointOperation | None = None
    """What the agent says of it."""
    answers: tuple[WorkerAnswer, ...] = ()
    """What its workers said, the newest last."""
    workers: tuple[Object, ...] = ()
    """Their pods."""
    redaction: Redaction = NOTHING_SECRET
    """Of what must not be told, though it is in a spec."""


class SavepointObserver:
    """Looks at savepoints."""

    def __init__(
        self,
        cluster: Cluster,
        *,
        intents: Intents,
        tokens: Tokens,
        dial: Dial,
        jobs: ObjectCache,
        uses: SavepointUses,
        clock: Callable[[], datetime],
    ) -> None:
        self._cluster, self._intents, self._tokens = cluster, intents, tokens
        self._dial, self._jobs, self._uses, self._clock = dial, jobs, uses, clock

    async def observe(self, view: SavepointView, refused: Refusal | None = None) -> SavepointSight:
        """One look. Of a savepoint that nothing is left to be done for, the API server is asked
        nothing: there may be ten of them for every job."""
        job = await self._job(view)
        spec = await self._intents.usable_spec(job) if job is not None else None
        agent = await self._agent(view, job)
        redaction = redaction_of(*_specs(view, job, spec))
        operation, said = await _ask(agent, view.key.name, redaction)
        workers = await self._workers(view, spec)
        lost = await lost_pods(self._cluster, workers, self._clock())
        answers = [
            _discreet(answer, redaction)
            for pod in workers
            if (answer := worker_answer(pod)) is not None
        ]
        facts = (worker_fact(pod, lost_since=lost.get(metadata(pod)["uid"])) for pod in workers)
        run = job.record.run if job is not None else None
        under_way = job.record.operation if job is not None else None
        world = SavepointWorld(
            name=view.key.name,
            wish=view.wish(spec),
            record=view.record,
            now=self._clock(),
            job=_state(job, spec, view),
            epoch=run.epoch if run is not None else None,
            operation=under_way.id if under_way is not None else None,
            used=await self._is_used(view, job),
            agent=said,
            workers=tuple(replace(fact, message=redaction.text(fact.message)) for fact in facts),
            retry_helps=answers[-1].retry_helps if answers else True,
            refused=refused,
        )
        return SavepointSight(
            view=view,
            world=world,
            job=job,
            spec=spec,
            agent=agent,
            operation=operation,
            answers=tuple(answers),
            workers=tuple(workers),
            redaction=redaction,
        )

    async def _job(self, view: SavepointView) -> Job | None:
        key = view.job
        body = self._jobs.get(key, key.name)
        if body is None or view.deleting is not None or _is_unfinished(view):
            body = await find(self._cluster, JOBS, key.namespace, key.name)
        if body is None:
            return None
        try:
            return read_job(body)
        except RecordError:
            # Told where the job is looked at; its savepoints wait.
            return None

    async def _agent(self, view: SavepointView, job: Job | None) -> Agent | None:
        record, run = view.record, job.record.run if job is not None else None
        wanted = record.taker is Taker.AGENT or record.state is SavepointState.PENDING
        if job is None or run is None or not wanted or not _is_unfinished(view):
            return None
        labels = {
            JOB: job.key.name,
            ROLE: "driver",
            EPOCH: str(run.epoch),
            ATTEMPT: str(run.attempt),
        }
        drivers = await self._cluster.list(PODS, job.key.namespace, labels=labels)
        # The token is for the driver of this job, and for no other pod with its labels.
        own = [pod for pod in drivers if owner_uid(pod) == job.uid]
        url = agent_url(own[0]) if own else None
        token = await self._tokens.find(job.owner, run.epoch)
        return self._dial(url, token) if url is not None and token is not None else None

    async def _workers(self, view: SavepointView, spec: JobSpec | None) -> Sequence[Object]:
        if (_is_settled(view, spec) and view.deleting is None) or view.record == SavepointRecord():
            return ()
        labels = {JOB: view.job.name, SAVEPOINT: view.key.name}
        found = await self._cluster.list(PODS, view.key.namespace, labels=labels)
        return sorted(found, key=lambda pod: str(metadata(pod).get("creationTimestamp")))

    async def _is_used(self, view: SavepointView, job: Job | None) -> bool:
        """Whether a job may go back to it, begins from it or names it."""
        if view.deleting is None:
            return False
        if job is not None and not mentions(job).isdisjoint(names_of(view.body)):
            return True
        index = await self._uses.ask(self._cluster, view.key.namespace, self._clock())
        # Its own job was asked above, unless its record cannot be read.
        return any(job is None or user != job.key.name for user in index.users(view.body))


def _is_settled(view: SavepointView, spec: JobSpec | None) -> bool:
    return view.record.is_settled(verify=view.wish(spec).verify)


def _specs(view: SavepointView, job: Job | None, spec: JobSpec | None) -> list[Mapping[str, Any]]:
    """Where secrets may be; those of a savepoint at rest are nobody's business."""
    if spec is None or (_is_settled(view, spec) and view.deleting is None):
        return []
    return [*([job.spec] if job is not None else []), spec.model_dump(by_alias=True)]


def _discreet(answer: WorkerAnswer, redaction: Redaction) -> WorkerAnswer:
    problems = tuple(redaction.text(problem) for problem in answer.problems)
    message = redaction.text(answer.message)
    return answer.model_copy(update={"message": message, "problems": problems})


def _is_unfinished(view: SavepointView) -> bool:
    return view.record.state in (SavepointState.PENDING, SavepointState.IN_PROGRESS)


def _state(job: Job | None, spec: JobSpec | None, view: SavepointView) -> JobState:
    if job is None:
        return JobState.MISSING
    if spec is None or view.identity(spec) is None:
        return JobState.UNUSABLE
    if is_paused(job.body):
        return JobState.PAUSED
    record = job.record
    if record.operation is not None or job.deleting is not None:
        return JobState.BUSY
    if record.run is None or not record.run.opened:
        return JobState.UNBORN
    return JobState.STANDING if record.suspended or record.finished else JobState.RUNNING


async def _ask(
    agent: Agent | None, name: str, redaction: Redaction
) -> tuple[SavepointOperation | None, AgentSavepoint | None]:
    if agent is None:
        return None, None
    try:
        found = await agent.get_savepoint(name)
    except AgentRefusedError as error:
        known = error.status == _NOT_FOUND
        return None, AgentSavepoint(state="Unknown") if known else None
    except AgentClientError:
        return None, None
    error_info = found.error
    return found, AgentSavepoint(
        state=found.state.value,
        message=redaction.text(in_words(error_info)) if error_info is not None else "",
        retry_helps=error_info.retry_helps if error_info is not None else True,
    )
