"""One pass over one SparkSavepoint: look, decide, tell, write down, do."""

import logging
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Final, assert_never

from sparkpoint.api.errors import InvalidResourceError
from sparkpoint.api.job import JobSpec
from sparkpoint.api.scalars import Verification
from sparkpoint.controller import objects
from sparkpoint.controller.cache import ObjectCache
from sparkpoint.controller.cluster import (
    CONFIG_MAPS,
    PODS,
    SAVEPOINTS,
    Cluster,
    Object,
    create_or_get,
    find,
    metadata,
)
from sparkpoint.controller.correlation import correlation_id, given_id, mark, relate
from sparkpoint.controller.errors import (
    ConflictError,
    ForbiddenError,
    NotFoundError,
    UnprocessableError,
)
from sparkpoint.controller.events import Events
from sparkpoint.controller.finalizers import guarded, is_let_go, let_go
from sparkpoint.controller.keys import OPERATION, SAVEPOINT, Key, is_paused, key_of
from sparkpoint.controller.metrics import Metrics
from sparkpoint.controller.obstacles import explained
from sparkpoint.controller.passes import Passes, Requeue
from sparkpoint.controller.podfacts import is_over, label
from sparkpoint.controller.savepointobserver import SavepointObserver, SavepointSight
from sparkpoint.controller.savepointstatuses import savepoint_status
from sparkpoint.controller.savepointviews import Identity, SavepointView, read_savepoint
from sparkpoint.controller.secrets import discreet
from sparkpoint.controller.workertasks import capture_arguments, repository_arguments
from sparkpoint.lifecycle.actions import Capture, Event
from sparkpoint.lifecycle.savepoints import SavepointDecision, decide_savepoint
from sparkpoint.lifecycle.savepointworld import (
    AskAgent,
    Refusal,
    SavepointAction,
    SavepointState,
    SavepointTask,
    StartTask,
    task_name,
)
from sparkpoint.runtime.client import AgentClientError
from sparkpoint.runtime.model import SavepointRequest

__all__ = ["SavepointReconciler"]

logger = logging.getLogger(__name__)

_LONGEST: Final = 60.0
_AT_REST: Final = 3600.0
"""Seconds between two looks at a savepoint that nothing is to be done to."""
_OPERATION: Final = "savepoint"
"""What is done to a savepoint by itself is one operation, from its capture to its removal."""
_UNFINISHED: Final = (SavepointState.PENDING, SavepointState.IN_PROGRESS)


class SavepointReconciler:
    """Takes savepoints, checks them, and removes their data."""

    def __init__(
        self,
        cluster: Cluster,
        *,
        passes: Passes,
        observer: SavepointObserver,
        events: Events,
        metrics: Metrics,
        cache: ObjectCache,
        clock: Callable[[], datetime],
    ) -> None:
        self._cluster, self._passes, self._observer = cluster, passes, observer
        self._events, self._metrics, self._cache = events, metrics, cache
        self._clock = clock
        self._refused: dict[Key, Refusal] = {}
        """Worker pods that were not let through, until that is written down. In memory alone: an
        operator that starts anew is refused anew."""
        self._written: dict[Key, str] = {}
        """The version that a pass wrote last, until the watch shows it."""

    async def run_once(self, key: Key) -> Requeue:
        """A pass; it never raises."""
        return await self._passes.run(key, self._pass)

    async def _pass(self, key: Key) -> Requeue:
        body = await find(self._cluster, SAVEPOINTS, key.namespace, key.name)
        if body is None:
            self.forget(key)
            return Requeue(seconds=_AT_REST, released=True)
        if is_let_go(body):
            return Requeue(seconds=_AT_REST, released=True)
        if is_paused(body):
            return Requeue(seconds=_AT_REST)
        try:
            view = read_savepoint(await guarded(self._cluster, body))
        except NotFoundError as error:
            raise ConflictError(f"{key} is gone, or another one by now") from error
        self._relate(view)
        sight = await self._observer.observe(view, self._refused.get(key))
        decision = _decide(sight)
        for event in decision.events:
            generation = metadata(body).get("generation", 0)
            occasion = f"{generation} {decision.record.state.value} {decision.record.tries}"
            await self._events.tell(body, event, occasion=occasion, now=sight.world.now)
            logger.info("Savepoint %s: %s: %s", key, event.reason, event.message)
        written = await self._write(sight, decision)
        self._refused.pop(key, None)
        for action in decision.actions:
            try:
                with discreet(sight.redaction):
                    await self._perform(action, sight)
            except (ForbiddenError, UnprocessableError) as error:
                # It is decided upon like a worker that failed.
                helps = isinstance(error, ForbiddenError)
                self._refused[key] = Refusal(message=explained(error), retry_helps=helps)
                return Requeue(seconds=0.0)
        await self._tidy(sight, decision)
        if decision.released:
            await let_go(self._cluster, view.body)
        elif written:
            # There may be more to see now; what we wrote ourselves does not wake us.
            return Requeue(seconds=0.0)
        return _requeue(view, decision)

    @staticmethod
    def _relate(view: SavepointView) -> None:
        """The pass is about the operation that takes it, else about the savepoint itself."""
        taken_by, given = label(view.body, OPERATION), given_id(view.body)
        if taken_by and given:
            relate(view.key, taken_by, given)
        else:
            relate(view.key, _OPERATION, correlation_id(view.uid, _OPERATION))

    async def _write(self, sight: SavepointSight, decision: SavepointDecision) -> bool:
        """Whether there was something to write."""
        view = sight.view
        self._metrics.seen("savepoint", view.key, decision.record.state.value)
        if sight.world.wish.operation is not None and decision.record.state in _UNFINISHED:
            # The operation itself writes how far it is.
            return False
        status = savepoint_status(sight, decision.record)
        if status == view.status:
            return False
        written = await self._cluster.replace_status({**view.body, "status": status})
        if self._cache.put(view.job, written):
            # Else the watch was faster, and has told the job.
            self._written[view.key] = str(metadata(written).get("resourceVersion"))
        return True

    def wrote(self, body: Object) -> bool:
        """Whether a pass over the savepoint wrote this version, which is told once: its job has
        not seen it, unlike what the job's own passes write."""
        key, version = key_of(body), str(metadata(body).get("resourceVersion"))
        if self._written.get(key) != version:
            return False
        del self._written[key]
        return True

    async def _perform(self, action: SavepointAction, sight: SavepointSight) -> None:
        match action:
            case AskAgent():
                await self._ask_agent(sight)
            case StartTask():
                await self._start(action, sight)
            case _:
                assert_never(action)

    async def _ask_agent(self, sight: SavepointSight) -> None:
        spec, job, wanted = sight.view.spec, sight.job, sight.view.identity(sight.spec)
        run = job.record.run if job is not None else None
        if spec is None or run is None or wanted is None or sight.agent is None:
            return
        request = SavepointRequest(
            repository=wanted.repository.uri,
            endpoint_url=wanted.repository.endpoint_url,
            tags=spec.tags,
            revision=run.revision.name,
            trigger=spec.trigger.value,
        )
        try:
            await sight.agent.savepoint(sight.view.key.name, request)
        except AgentClientError as error:
            # The next look tells how far it is.
            logger.info("Savepoint %s: %s", sight.view.key, error)

    async def _start(self, action: StartTask, sight: SavepointSight) -> None:
        job, spec = sight.job, sight.spec
        if job is None or spec is None:
            raise NotFoundError(f"no job to make worker {action.name} from")
        line = self._arguments(action, sight)
        deep = sight.view.verification(spec) is Verification.DEEP
        make = objects.spark_worker_objects if deep else _alone
        if action.task is not SavepointTask.VERIFY:
            make = _alone
        try:
            wanted = make(job.owner, spec, name=action.name, arguments=line)
        except InvalidResourceError as error:
            raise UnprocessableError(str(error)) from error
        for body in wanted:
            body["metadata"]["labels"][SAVEPOINT] = sight.view.key.name
            if body["kind"] == PODS.kind:
                body = mark(body, sight.view.uid, _OPERATION)
            await create_or_get(self._cluster, body)

    def _arguments(self, action: StartTask, sight: SavepointSight) -> list[str]:
        view, spec, job = sight.view, sight.spec, sight.job
        wanted = view.identity(spec)
        run = job.record.run if job is not None else None
        if wanted is None or spec is None or view.spec is None or job is None:
            raise NotFoundError(f"nothing says where savepoint {view.key} is")
        match action.task:
            case SavepointTask.CAPTURE:
                if run is None:
                    raise NotFoundError(f"job {job.key} has never run")
                task = Capture(run=run, savepoint=view.key.name, revision=run.revision)
                trigger, where = view.spec.trigger.value, wanted.repository
                tags = [part for tag in view.spec.tags for part in ("--tag", tag)]
                line = capture_arguments(job.owner, spec, task, repository=where, trigger=trigger)
                return [*line, *tags]
            case SavepointTask.VERIFY:
                deep = view.verification(spec) is Verification.DEEP
                return ["verify", *_named(wanted), *(["--deep"] if deep else [])]
            case SavepointTask.DISPOSE:
                return ["dispose", *_named(wanted), "--collect"]
            case SavepointTask.INSPECT:
                return ["inspect", *_named(wanted)]

    async def _tidy(self, sight: SavepointSight, decision: SavepointDecision) -> None:
        """Workers that have said what they had to say, and those that are not waited for."""
        for pod in _unneeded(sight, decision):
            about = metadata(pod)
            await self._cluster.delete(PODS, about["namespace"], about["name"], uid=about["uid"])
            await self._tidy_configuration(pod)

    async def _tidy_configuration(self, pod: Object) -> None:
        """Of a worker with Spark, which has its own ConfigMap under its own name."""
        about, volumes = metadata(pod), (pod.get("spec") or {}).get("volumes") or []
        if not any((each.get("configMap") or {}).get("name") == about["name"] for each in volumes):
            return
        found = await find(self._cluster, CONFIG_MAPS, about["namespace"], about["name"])
        if found is not None:
            uid = metadata(found)["uid"]
            await self._cluster.delete(CONFIG_MAPS, about["namespace"], about["name"], uid=uid)

    def forget(self, key: Key) -> None:
        """The savepoint is gone."""
        self._passes.forget(key)
        self._refused.pop(key, None)
        self._written.pop(key, None)


def _alone(
    owner: objects.Owner, spec: JobSpec, *, name: str, arguments: Sequence[str]
) -> tuple[Object, ...]:
    return (objects.worker_pod(owner, spec, name=name, arguments=arguments),)


def _unneeded(sight: SavepointSight, decision: SavepointDecision) -> list[Object]:
    """Its workers that can be deleted: all at the end, before it those of tries given up."""
    alive = [pod for pod in sight.workers if metadata(pod).get("deletionTimestamp") is None]
    settled = decision.record.is_settled(verify=sight.world.wish.verify)
    if decision.released or (settled and sight.view.deleting is None):
        return alive
    tries, name = decision.record.tries, sight.view.key.name
    present = {task_name(name, task, tries) for task in SavepointTask}
    return [pod for pod in alive if not is_over(pod) and metadata(pod)["name"] not in present]


def _decide(sight: SavepointSight) -> SavepointDecision:
    """A resource that cannot be used is only ever let go."""
    if sight.view.errors and sight.view.deleting is None:
        mistakes = "\n".join(str(error) for error in sight.view.errors)
        told = Event(reason="NotAccepted", message=mistakes, warning=True)
        return SavepointDecision(record=sight.world.record, events=(told,))
    return decide_savepoint(sight.world)


def _requeue(view: SavepointView, decision: SavepointDecision) -> Requeue:
    if decision.wake is None:
        return Requeue(seconds=_AT_REST, released=decision.released)
    seconds = min(max(decision.wake.total_seconds(), 0.0), _LONGEST)
    return Requeue(seconds=seconds, released=decision.released)


def _named(wanted: Identity) -> list[str]:
    line: list[str] = ["--job", f"{wanted.namespace}/{wanted.job}"]
    if wanted.name is not None:
        line += ["--name", wanted.name]
    if wanted.id is not None:
        line += ["--id", wanted.id]
    return [*line, *repository_arguments(wanted.repository)]
