"""Objects beside a running driver that somebody deleted or changed: they are put right.

Looked at now and then, as nothing of theirs is watched: a watch of all ConfigMaps and Secrets costs
more than what it would tell. Whoever misses one of them is seen: a pod that mounts it does not
start, and is a reason to look at once. The driver's pod itself is the lifecycle's business.
"""

import logging
from collections.abc import Coroutine
from datetime import datetime, timedelta
from typing import Any, Final

from sparkpoint.api.errors import InvalidResourceError
from sparkpoint.api.job import JobSpec
from sparkpoint.controller import objects, revisions
from sparkpoint.controller.cluster import (
    REVISIONS,
    SECRETS,
    Cluster,
    Object,
    create_or_get,
    find,
    kind_of,
    metadata,
)
from sparkpoint.controller.errors import (
    ConflictError,
    ForbiddenError,
    LeftoverError,
    RecordError,
    UnprocessableError,
)
from sparkpoint.controller.objects import Owner
from sparkpoint.controller.observer import Observation
from sparkpoint.controller.obstacles import explained
from sparkpoint.controller.ownership import check_ours
from sparkpoint.controller.pace import Pace
from sparkpoint.controller.revisionstore import RevisionStore, Stored
from sparkpoint.controller.secrets import discreet
from sparkpoint.controller.spreading import spread
from sparkpoint.controller.tokens import Tokens
from sparkpoint.lifecycle.record import Record, Run
from sparkpoint.runtime.redaction import Redaction

__all__ = ["Drift", "repaired"]

logger = logging.getLogger(__name__)

_EVERY: Final = 600.0
_SOON: Final = timedelta(minutes=1)
_STARTING: Final = timedelta(seconds=20)
"""For a pod to start on its node; one that takes longer may lack what it mounts."""


class Drift:
    """Keeps what a running driver, its executors and its readers need."""

    def __init__(
        self, cluster: Cluster, *, store: RevisionStore, tokens: Tokens, pace: Pace
    ) -> None:
        self._cluster, self._store, self._tokens = cluster, store, tokens
        self._pace = pace
        self._due: dict[str, tuple[int, datetime]] = {}
        self._held_up: dict[str, frozenset[str]] = {}
        """Uid of a job -> uids of its pods that did not start when it was looked at last."""

    async def repair(self, seen: Observation, spec: JobSpec, record: Record) -> None:
        """Put right what is not as it was made, if it is time to look."""
        run, uid, now = record.run, seen.job.uid, seen.world.now
        if run is None or record.suspended or record.finished:
            return
        if not self._is_time(uid, run, now) and not self._is_held_up(seen, run):
            return
        # What cannot be done now is done soon, and holds nothing else up meanwhile.
        self._due[uid] = (run.attempt, now + _SOON)
        for name in sorted(record.revisions()):
            what = f"{seen.job.key}: revision {name}"
            await _tried(what, self._keep(seen, spec, name), seen.redaction)
        await self._look(seen, spec, run)
        self._due[uid] = (run.attempt, now + self._every())
        self._held_up[uid] = _held_up(seen, run)

    async def unblock(self, seen: Observation, spec: JobSpec, record: Record) -> None:
        """Put right what a pod waits for that does not start; while an operation waits for it."""
        run = record.run
        if run is not None and self._is_held_up(seen, run):
            await self._look(seen, spec, run)
            self._held_up[seen.job.uid] = _held_up(seen, run)

    def _is_held_up(self, seen: Observation, run: Run) -> bool:
        """Whether a pod does not start that was no reason to look before.

        Each is one only once: what else it may wait for, such as its image, is not ours.
        """
        return not _held_up(seen, run) <= self._held_up.get(seen.job.uid, frozenset())

    def _is_time(self, uid: str, run: Run, now: datetime) -> bool:
        """Right after an attempt began, then now and then; of jobs that ran before us, by turns."""
        first = (run.attempt, now + spread(uid, self._every()))
        attempt, due = self._due.setdefault(uid, first)
        return attempt != run.attempt or now >= due

    def _every(self) -> timedelta:
        return timedelta(seconds=self._pace.repair(_EVERY))

    async def _keep(self, seen: Observation, spec: JobSpec, name: str) -> None:
        """A revision that the record names: without it, nothing says what to run or go back to."""
        owner, intent = seen.job.owner, seen.intent
        stored = await self._store.find(owner, name)
        usable = not (intent.invalid or intent.script_missing)
        if stored is None and usable and seen.world.wish.revision.name == name:
            # What is wished for now is what that revision was made from.
            stored = Stored(spec, intent.script)
        body = objects.controller_revision_name(owner.name, name)
        if stored is None or await find(self._cluster, REVISIONS, owner.namespace, body):
            return
        logger.info("ControllerRevision %s is gone, and made again", body)
        await self._store.store(owner, name, stored, generation=seen.job.generation)

    async def _look(self, seen: Observation, spec: JobSpec, run: Run) -> None:
        owner = seen.job.owner
        stored = await self._store.find(owner, run.revision.name)
        if stored is None:
            return
        whole = revisions.effective(stored.spec, spec)
        secret = objects.agent_secret_name(owner.name, run.epoch)
        what = f"{seen.job.key}: Secret {secret}"
        await _tried(what, self._keep_token(owner, run.epoch, secret), seen.redaction)
        try:
            *beside, _ = objects.driver_objects(
                owner,
                whole,
                run,
                expect="any",
                token_secret=secret,
                script=stored.script,
                # Where the run began is in its pod alone, which is not made here.
                repository=objects.Repository(""),
            )
        except InvalidResourceError:
            # A template that an earlier operator took: told when the next driver is to be made.
            return
        for body in (objects.ui_service(owner, whole), *beside):
            what = f"{seen.job.key}: {body['kind']} {metadata(body)['name']}"
            await _tried(what, self._put_right(body, owner), seen.redaction)

    async def _keep_token(self, owner: Owner, epoch: int, secret: str) -> None:
        if await find(self._cluster, SECRETS, owner.namespace, secret) is None:
            await self._tokens.ensure(owner, epoch)

    async def _put_right(self, wanted: Object, owner: Owner) -> None:
        about = metadata(wanted)
        kind = kind_of(wanted)
        found = await find(self._cluster, kind, about["namespace"], about["name"])
        if found is None:
            logger.info("%s %s is gone, and made again", kind.kind, about["name"])
            await create_or_get(self._cluster, wanted)
            return
        check_ours(found, owner)
        changed = repaired(found, wanted)
        if changed is not None:
            logger.info("%s %s is not as it was made, and put right", kind.kind, about["name"])
            try:
                await self._cluster.replace(changed)
            except ConflictError:
                # Somebody else is at it: looked at again in its turn.
                logger.debug("%s %s changed meanwhile", kind.kind, about["name"])

    def forget(self, uid: str) -> None:
        """The job is gone."""
        self._due.pop(uid, None)
        self._held_up.pop(uid, None)


def _held_up(seen: Observation, run: Run) -> frozenset[str]:
    """Pods of this attempt that have a node, and have not started there for a while."""
    old = {
        pod.uid
        for pod in seen.world.pods
        if (pod.epoch, pod.attempt) == (run.epoch, run.attempt)
        and pod.created is not None
        and seen.world.now - pod.created > _STARTING
    }
    waiting = (metadata(pod)["uid"] for pod in seen.pods if _is_being_prepared(pod))
    return frozenset(uid for uid in waiting if uid in old)


def _is_being_prepared(pod: Object) -> bool:
    """Whether it is its node that has to do something, and not the scheduler."""
    placed = (pod.get("spec") or {}).get("nodeName") is not None
    return placed and (pod.get("status") or {}).get("phase") == "Pending"


async def _tried(what: str, repair: Coroutine[Any, Any, None], redaction: Redaction) -> None:
    """One that is refused (a quota, a policy, a right), or cannot be read, keeps none of the others
    from their turn."""
    try:
        with discreet(redaction):
            await repair
    except (ForbiddenError, LeftoverError, UnprocessableError) as error:
        ends = isinstance(error, ForbiddenError) and error.is_of_ending_namespace
        level = logging.DEBUG if ends else logging.WARNING
        logger.log(level, "%s cannot be put right: %s", what, explained(error))
    except RecordError as error:
        # Told in the status once it is needed: what runs does not need it.
        logger.warning("%s: %s", what, error)


def repaired(found: Object, wanted: Object) -> Object | None:
    """What is there with what it should be; None if nothing of that has changed.

    Only a Service can change: the others are immutable, or nobody's to read but Kubernetes'.
    """
    if wanted["kind"] != "Service":
        return None
    spec, ours = found.get("spec") or {}, wanted["spec"]
    if _ports(spec) == _ports(ours) and all(
        spec.get(field) == ours[field] for field in ours if field != "ports"
    ):
        return None
    return {**found, "spec": {**spec, **ours}}


def _ports(spec: Object) -> list[tuple[object, ...]]:
    """Without what Kubernetes adds to them."""
    return [
        tuple(port.get(field) for field in ("name", "port", "targetPort"))
        for port in spec.get("ports") or []
    ]
