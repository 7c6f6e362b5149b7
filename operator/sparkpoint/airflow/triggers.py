"""The trigger: follows resources by a watch until they are as wanted, and ends the task itself.

Nothing is kept in it: whichever triggerer goes on with it begins by looking. It is fed by a LIST of
one and a WATCH from there; a watch that ends, breaks or is too old (410) begins anew. No answer
from the API server is never a reason to fail: the wait has a deadline, which each triggerer keeps.

The task ends here and not on a worker, unless `end_from_trigger` is false: Airflow up to 3.3.2 may
fail a task that is resumed soon after it was deferred.
"""

import asyncio
from collections.abc import AsyncIterator, Sequence
from datetime import UTC, datetime
from http import HTTPStatus
from typing import Any, Final

from airflow.sdk.exceptions import AirflowNotFoundException
from airflow.triggers.base import BaseTrigger, TaskFailedEvent, TaskSuccessEvent, TriggerEvent

from sparkpoint.airflow.decisions.goals import End, Outcome, judge, left_behind, overdue, progress
from sparkpoint.api.common import GROUP, VERSION

__all__ = ["ResourceTrigger"]

Object = dict[str, Any]

_SETTLE: Final = 3.0
"""Seconds after which a task is ended at the earliest: the worker has let go of it by then."""
_WATCH: Final = 240
"""Seconds after which the API server ends a watch."""
_GRACE: Final = 30
"""Seconds that a watch may stay silent after that before its connection counts as lost."""
_ANSWER: Final = 30
"""Seconds that an answer may take."""
_SHORTEST, _LONGEST = 1.0, 30.0
"""Seconds between two looks after trouble; doubled each time."""
_AT_ONCE: Final = 32
"""Resources that one task watches at the same time, by a connection each."""
_WITHOUT_WATCH: Final = 15.0
"""Seconds between two looks where watching is not allowed."""
_LOOK_AGAIN: Final = (HTTPStatus.GONE, HTTPStatus.FORBIDDEN)
"""Answers to a watch: the version is too old by now, or watching is not allowed."""
_LAST_LOOK: Final = 5.0
"""Seconds to look once, also for a triggerer that comes after the deadline."""


class _WillNotBeError(Exception):
    """Ends the waits for the others."""


class ResourceTrigger(BaseTrigger):
    """Waits for resources; done when all are as wanted, failed with the first that will not be."""

    def __init__(
        self,
        *,
        plural: str,
        namespace: str,
        names: Sequence[str],
        goal: dict[str, Any],
        kubernetes_conn_id: str,
        in_cluster: bool | None = None,
        end_from_trigger: bool = True,
        deadline: str | None = None,
        **_of_a_newer_version: Any,
    ) -> None:
        super().__init__()
        self.plural, self.namespace, self.names = plural, namespace, list(names)
        self.goal, self.kubernetes_conn_id = dict(goal), kubernetes_conn_id
        self.in_cluster, self.end_from_trigger = in_cluster, end_from_trigger
        self.deadline = deadline
        self._last: dict[str, Object | None] = {}
        """Name -> the resource as it was seen last."""

    def serialize(self) -> tuple[str, dict[str, Any]]:
        """All that another triggerer needs; no secret is among it."""
        return (
            f"{type(self).__module__}.{type(self).__qualname__}",
            {
                "plural": self.plural,
                "namespace": self.namespace,
                "names": self.names,
                "goal": self.goal,
                "kubernetes_conn_id": self.kubernetes_conn_id,
                "in_cluster": self.in_cluster,
                "end_from_trigger": self.end_from_trigger,
                "deadline": self.deadline,
            },
        )

    async def run(self) -> AsyncIterator[TriggerEvent]:
        """Wait, tell, end."""
        began = asyncio.get_running_loop().time()
        outcome = await self._wait_in_time()
        if outcome.end is End.FAILED:
            self.log.error("%s", outcome.message)
        else:
            self.log.info("Done: %s", ", ".join(self.names))
        waited = asyncio.get_running_loop().time() - began
        await asyncio.sleep(max(0.0, _SETTLE - waited))
        # Outside of every client: a generator that is left at a yield closes nothing.
        yield self._event(outcome)

    def _event(self, outcome: Outcome) -> TriggerEvent:
        if not self.end_from_trigger:
            told = {"end": outcome.end.value, "message": outcome.message}
            return TriggerEvent({**told, "left": left_behind(self.goal, self._last)})
        if outcome.end is End.FAILED:
            return TaskFailedEvent()
        return TaskSuccessEvent(xcoms=left_behind(self.goal, self._last) or None)

    def saw(self, name: str, body: Object) -> None:
        """Remember a resource as it is."""
        self._last[name] = body

    def has_seen(self, name: str) -> bool:
        """Whether it is known how it was."""
        return self._last.get(name) is not None

    async def _wait_in_time(self) -> Outcome:
        if self.deadline is None:
            return await self._wait_for_all()
        left = (datetime.fromisoformat(self.deadline) - datetime.now(UTC)).total_seconds()
        try:
            async with asyncio.timeout(max(left, _LAST_LOOK)):
                return await self._wait_for_all()
        except TimeoutError:
            return Outcome(End.FAILED, overdue(self.goal, self._last))

    async def _wait_for_all(self) -> Outcome:
        """At the same time: one that is gone can be asked nothing any more."""
        failed: list[Outcome] = []
        room = asyncio.Semaphore(_AT_ONCE)

        async def wait(name: str) -> None:
            async with room:
                outcome = await self._wait_for(name)
            if outcome.end is End.FAILED:
                failed.append(outcome)
                raise _WillNotBeError

        try:
            async with asyncio.TaskGroup() as group:
                for name in self.names:
                    group.create_task(wait(name))
        except* _WillNotBeError:
            pass
        return failed[0] if failed else Outcome(End.REACHED)

    async def _wait_for(self, name: str) -> Outcome:
        """Begin anew after every trouble, later each time."""
        self._last.setdefault(name, None)
        following, pause = _Following(self, name), _SHORTEST
        while True:
            looks = following.looks
            try:
                return await following.follow()
            except AirflowNotFoundException as error:
                return Outcome(End.FAILED, f"{error}. Make the connection.")
            # The outermost loop of a trigger: whatever a network can do, the wait goes on.
            except Exception as error:
                if following.looks > looks:
                    pause = _SHORTEST
                self.log.warning(
                    "No news of %s (%s: %s); looking again in %.0f s.",
                    name, type(error).__name__, error, pause,
                )  # fmt: skip
            await asyncio.sleep(pause)
            pause = min(2 * pause, _LONGEST)


class _Following:
    """One resource."""

    def __init__(self, trigger: ResourceTrigger, name: str) -> None:
        self._trigger, self._name = trigger, name
        self._told = ""
        self.looks = 0

    async def follow(self) -> Outcome:
        """Until it is as wanted, or will not be; raises whatever goes wrong on the way."""
        # Here and not above: what reads a DAG must not pay for two Kubernetes clients.
        from airflow.providers.cncf.kubernetes.hooks.kubernetes import AsyncKubernetesHook
        from kubernetes_asyncio.client import CustomObjectsApi

        hook = AsyncKubernetesHook(
            conn_id=self._trigger.kubernetes_conn_id, in_cluster=self._trigger.in_cluster
        )
        async with hook.get_conn() as client:
            api = CustomObjectsApi(client)
            while True:
                outcome = await self._look(api)
                if outcome.end is not End.WAITING:
                    return outcome

    async def _look(self, api: Any) -> Outcome:
        """As it is now, and then as it changes, until the watch ends."""
        from kubernetes_asyncio.client import ApiException

        try:
            body, version = await self._see(api)
        except ApiException as error:
            if error.status == HTTPStatus.FORBIDDEN:
                return Outcome(End.FAILED, f"Airflow may not list {self._what}: grant it that.")
            raise
        self.looks += 1
        if body is not None:
            self._keep(body)
        outcome = self._judge(body)
        if body is None:
            await self._hear_last_words(api)
        if outcome.end is not End.WAITING or body is None:
            return outcome
        try:
            return await self._watch(api, version)
        except ApiException as error:
            if error.status not in _LOOK_AGAIN:
                raise
            await asyncio.sleep(
                _WITHOUT_WATCH if error.status == HTTPStatus.FORBIDDEN else _SHORTEST
            )
            return Outcome(End.WAITING)

    async def _hear_last_words(self, api: Any) -> None:
        """Of what was gone before it was looked at: the API server remembers for some minutes."""
        from kubernetes_asyncio.client import ApiException

        version = (self._trigger.goal.get("since") or {}).get(self._name)
        if version is None or self._trigger.has_seen(self._name):
            return
        try:
            async with asyncio.timeout(_LAST_LOOK):
                await self._watch(api, version)
        except TimeoutError:
            return
        except ApiException as error:
            if error.status not in _LOOK_AGAIN:
                raise

    async def _see(self, api: Any) -> tuple[Object | None, str]:
        """The resource, and the version to watch from.

        By a list, and not by its name: the version of a resource is that of its last change, which
        the API server may have forgotten long ago, and a list's is that of now.
        """
        from kubernetes_asyncio.client import ApiException

        try:
            found: Object = await api.list_namespaced_custom_object(
                GROUP, VERSION, self._trigger.namespace, self._trigger.plural,
                field_selector=f"metadata.name={self._name}",
                _request_timeout=_ANSWER,
            )  # fmt: skip
        except ApiException as error:
            if error.status == HTTPStatus.NOT_FOUND:
                return None, ""
            raise
        return next(iter(found["items"]), None), str(found["metadata"]["resourceVersion"])

    async def _watch(self, api: Any, version: str) -> Outcome:
        from kubernetes_asyncio.watch import Watch

        began = asyncio.get_running_loop().time()
        async with Watch() as watch:
            async for event in watch.stream(
                api.list_namespaced_custom_object,
                GROUP, VERSION, self._trigger.namespace, self._trigger.plural,
                field_selector=f"metadata.name={self._name}",
                resource_version=version,
                timeout_seconds=_WATCH,
                _request_timeout=_WATCH + _GRACE,
            ):  # fmt: skip
                gone, body = event["type"] == "DELETED", event["raw_object"]
                # What is gone has told its last.
                self._keep(body)
                outcome = self._judge(None if gone else body)
                if outcome.end is not End.WAITING:
                    return outcome
        # A server that ends watches at once is not asked in a circle.
        lasted = asyncio.get_running_loop().time() - began
        await asyncio.sleep(max(0.0, _SHORTEST - lasted))
        return Outcome(End.WAITING)

    def _keep(self, body: Object) -> None:
        """Unless it is another one of the name."""
        uid = (self._trigger.goal.get("uids") or {}).get(self._name)
        if uid in (None, body["metadata"].get("uid")):
            self._trigger.saw(self._name, body)

    def _judge(self, body: Object | None) -> Outcome:
        said = progress(body) if body is not None else f"{self._name}: there is none."
        if said != self._told:
            self._told = said
            self._trigger.log.info("%s", said)
        return judge(self._trigger.goal, self._name, body)

    @property
    def _what(self) -> str:
        return f"{self._trigger.plural} in namespace {self._trigger.namespace}"
