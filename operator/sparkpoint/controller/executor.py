"""Doing what was decided and written down. Everything here may be done twice, or by half."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import assert_never

from sparkpoint.api.errors import InvalidResourceError
from sparkpoint.api.job import JobSpec
from sparkpoint.api.jobrules import LONGEST_STOP
from sparkpoint.controller import objects, revisions
from sparkpoint.controller.agents import Agent, Dial
from sparkpoint.controller.cluster import (
    PODS,
    Cluster,
    Object,
    create_or_get,
)
from sparkpoint.controller.correlation import mark
from sparkpoint.controller.errors import (
    ClusterError,
    ForbiddenError,
    LeftoverError,
    NotFoundError,
    UnprocessableError,
)
from sparkpoint.controller.observer import Observation, agent_url
from sparkpoint.controller.operationsavepoints import OperationSavepoints
from sparkpoint.controller.ownership import check_ours, waited_out
from sparkpoint.controller.revisionstore import RevisionStore, Stored
from sparkpoint.controller.savepointobjects import trigger_of
from sparkpoint.controller.tokens import Tokens
from sparkpoint.controller.workertasks import arguments
from sparkpoint.lifecycle.actions import (
    Action,
    Adopt,
    Capture,
    DeletePod,
    Examine,
    OpenGate,
    Rehearse,
    Release,
    Repartition,
    RequestStop,
    StartDriver,
    StartWorker,
    StoreRevision,
)
from sparkpoint.lifecycle.record import Operation, Record, Revision, Run
from sparkpoint.runtime.client import AgentClientError
from sparkpoint.runtime.model import SavepointRequest, StopRequest

__all__ = ["Executor"]

logger = logging.getLogger(__name__)


@contextmanager
def _refusal() -> Iterator[None]:
    """A spec from which nothing can be made is refused, as the API server refuses objects."""
    try:
        yield
    except InvalidResourceError as error:
        raise UnprocessableError(str(error)) from error


def _marked(body: Object, owner: objects.Owner, operation: Operation | None) -> Object:
    """A pod says which operation it was made for; whatever else is made is for the attempt."""
    if operation is None or body["kind"] != PODS.kind:
        return body
    return mark(body, owner.uid, operation.id)


class Executor:
    """Carries actions out."""

    def __init__(
        self,
        cluster: Cluster,
        *,
        store: RevisionStore,
        tokens: Tokens,
        dial: Dial,
        savepoints: OperationSavepoints,
    ) -> None:
        self._cluster, self._store, self._tokens = cluster, store, tokens
        self._dial, self._savepoints = dial, savepoints

    async def perform(
        self, action: Action, seen: Observation, record: Record
    ) -> ClusterError | None:
        """Do it; a ClusterError if that fails. `record` is what was written down for it.

        What is returned was refused, too, but nothing waits for it.
        """
        with waited_out(seen.job.body, seen.world.now):
            return await self._perform(action, seen, record)

    async def _perform(
        self, action: Action, seen: Observation, record: Record
    ) -> ClusterError | None:
        operation = record.operation
        match action:
            case StoreRevision():
                await self._store_revision(action, seen)
            case StartDriver():
                return await self._start_driver(action, seen, record)
            case OpenGate():
                await self._open_gate(action, seen)
            case RequestStop():
                await self._request_stop(action, seen, operation)
            case DeletePod():
                namespace = seen.job.key.namespace
                await self._cluster.delete(PODS, namespace, action.name, uid=action.uid)
            case StartWorker():
                await self._start_worker(action, seen, record)
            case Release():
                # The finalizer is taken off when savepoints that go with the job are gone.
                pass
            case _:
                assert_never(action)
        return None

    async def _store_revision(self, action: StoreRevision, seen: Observation) -> None:
        spec = seen.intent.spec
        if spec is None:
            raise NotFoundError(f"there is no spec to keep as revision {action.name}")
        wanted = Stored(spec, seen.intent.script)
        generation = seen.job.generation
        await self._store.store(seen.job.owner, action.name, wanted, generation=generation)

    async def _stored(self, seen: Observation, revision: Revision) -> Stored:
        """A revision, with what no revision holds as it is today."""
        stored = await self._store.find(seen.job.owner, revision.name)
        if stored is None:
            raise UnprocessableError(
                f"ControllerRevision {seen.job.key.name}-{revision.name} is gone: nothing says "
                "what to run. Change the spec, or put it back."
            )
        current = seen.intent.spec
        spec = revisions.effective(stored.spec, current) if current is not None else stored.spec
        return Stored(spec, stored.script)

    async def _start_driver(
        self, action: StartDriver, seen: Observation, record: Record
    ) -> ClusterError | None:
        run, owner = action.run, seen.job.owner
        stored = await self._stored(seen, run.revision)
        secret = await self._tokens.ensure(owner, run.epoch)
        where = await self._savepoints.place_of(run.origin.savepoint, seen, record)
        with _refusal():
            wanted = objects.driver_objects(
                owner,
                stored.spec,
                run,
                expect=action.expect,
                token_secret=secret,
                script=stored.script,
                repository=where,
            )
        refused = await self._show_pages(owner, stored.spec)
        for body in wanted:
            await self._ensure(_marked(body, owner, record.operation), owner)
        return refused

    async def _show_pages(self, owner: objects.Owner, spec: JobSpec) -> ClusterError | None:
        """Spark's own pages are for people: the job runs without them if they are refused.

        Drift makes the Service later; by then that of an earlier job of this name has gone, too.
        """
        try:
            await self._ensure(objects.ui_service(owner, spec), owner)
        except LeftoverError as error:
            logger.debug("%s/%s: %s", owner.namespace, owner.name, error)
        except (ForbiddenError, UnprocessableError) as error:
            return error
        return None

    async def _ensure(self, body: Object, owner: objects.Owner) -> None:
        """In order, each if it is not there."""
        check_ours(await create_or_get(self._cluster, body), owner)

    async def _agent(self, seen: Observation, run: Run) -> Agent | None:
        driver = seen.driver
        url = agent_url(driver) if driver is not None else None
        token = await self._tokens.find(seen.job.owner, run.epoch)
        return self._dial(url, token) if url is not None and token is not None else None

    async def _open_gate(self, action: OpenGate, seen: Observation) -> None:
        agent = await self._agent(seen, action.run)
        if agent is not None:
            try:
                await agent.open_gate(action.run.epoch)
            except AgentClientError as error:
                # The next look tells whether it is open.
                logger.info("Gate of %s: %s", seen.job.key, error)

    async def _request_stop(
        self, action: RequestStop, seen: Observation, operation: Operation | None
    ) -> None:
        request = await self._stop_request(action, seen, operation)
        agent = await self._agent(seen, action.run)
        if agent is None:
            return
        try:
            await agent.stop(action.operation, request)
        except AgentClientError as error:
            # A stop under way already, or an agent that is going: the next look tells.
            logger.info("Stop %s of %s: %s", action.operation, seen.job.key, error)

    async def _stop_request(
        self, action: RequestStop, seen: Observation, operation: Operation | None
    ) -> StopRequest:
        spec = seen.intent.spec
        if spec is None:
            return StopRequest()
        # An earlier operator may have accepted more.
        budget = min(spec.checkpoint.timeout.seconds, LONGEST_STOP)
        repository = objects.repository_of(spec)
        if action.savepoint is None or operation is None or repository is None:
            return StopRequest(budget_seconds=budget)
        await self._savepoints.announce(seen, spec, operation, action.savepoint)
        return StopRequest(
            savepoint_name=action.savepoint,
            savepoint=SavepointRequest(
                repository=repository.uri,
                endpoint_url=repository.endpoint_url,
                revision=action.run.revision.name,
                trigger=trigger_of(operation).value,
            ),
            budget_seconds=budget,
        )

    async def _start_worker(self, action: StartWorker, seen: Observation, record: Record) -> None:
        task, owner, operation = action.task, seen.job.owner, record.operation
        stored = await self._stored(seen, task.revision)
        repository = objects.repository_of(stored.spec)
        if operation is None:
            raise NotFoundError(f"worker {action.name} belongs to no operation")
        if isinstance(task, Adopt | Capture):
            await self._savepoints.announce(seen, stored.spec, operation, task.savepoint)
        if isinstance(task, Rehearse | Examine | Repartition):
            repository = await self._savepoints.place_of(task.savepoint, seen, record)
        line = arguments(
            owner, stored.spec, task, repository=repository, trigger=trigger_of(operation).value
        )
        with _refusal():
            wanted = self._worker(action, stored, line, owner)
        for body in wanted:
            await self._ensure(_marked(body, owner, operation), owner)

    def _worker(
        self, action: StartWorker, stored: Stored, line: list[str], owner: objects.Owner
    ) -> tuple[Object, ...]:
        task, name = action.task, action.name
        if isinstance(task, Rehearse | Repartition):
            return objects.spark_worker_objects(
                owner, stored.spec, name=name, arguments=line, run=task.run, script=stored.script
            )
        return (objects.worker_pod(owner, stored.spec, name=name, arguments=line, run=task.run),)
