"""What is wished of a job now: its spec, judged, with what it refers to."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from sparkpoint.api.job import JobSpec
from sparkpoint.controller import policy, revisions
from sparkpoint.controller.cluster import Cluster
from sparkpoint.controller.jobs import Job
from sparkpoint.controller.pace import Pace
from sparkpoint.controller.restores import Restorable, find_restorable
from sparkpoint.controller.revisionstore import RevisionStore
from sparkpoint.controller.scripts import ScriptSight, look_at_script
from sparkpoint.controller.wishes import (
    Acceptance,
    accept,
    adoption,
    kept_wish,
    restore_key,
    restore_wish,
    sparing,
)
from sparkpoint.lifecycle.phases import UNTOUCHED
from sparkpoint.lifecycle.record import Record, Revision, Run
from sparkpoint.lifecycle.world import RestoreWish, Wish

__all__ = ["Intent", "Intents", "can_turn_back"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Intent:
    """What is wished, and why that may not be what the spec says."""

    spec: JobSpec | None
    """The spec to go by: the present one, or the last that could be used; None: there is none."""
    wish: Wish | None
    """None: nothing was ever wished for that could be begun."""
    invalid: str = ""
    """Everything that is wrong with the present spec."""
    script_missing: str = ""
    script: str | None = None
    """What the script says, if it is in a ConfigMap."""
    restorable: Restorable | None = None
    """The savepoint of the wish, where it is still to be restored."""


class Intents:
    """Reads wishes."""

    def __init__(
        self,
        cluster: Cluster,
        store: RevisionStore,
        *,
        clock: Callable[[], datetime],
        pace: Pace,
        unsafe_pods: bool = False,
    ) -> None:
        self._cluster, self._store, self._clock = cluster, store, clock
        self._pace = pace
        self._unsafe_pods = unsafe_pods
        self._judged: dict[str, tuple[int, Acceptance]] = {}
        self._scripts: dict[str, tuple[int, datetime, ScriptSight]] = {}
        self._revised: dict[str, tuple[int, str | None, Revision]] = {}

    async def read(self, job: Job, *, afresh: bool = False) -> Intent:
        """What is wished of the job now; `afresh`: also if its script was read just before."""
        former = await self._former(job)
        acceptance = self._accept(job, former)
        spec = acceptance.spec
        if spec is None:
            spared = sparing(former, job.spec) if former is not None else None
            return self._kept(job, spared, invalid=acceptance.sentence)
        script = await self._script(job, spec, afresh=afresh)
        if script.problem:
            # What no revision holds is as old in the stored spec as that is; today's can be used.
            kept = revisions.effective(former, spec) if former is not None else spec
            return self._kept(job, kept, script_missing=script.problem)
        return await self._wished(job, spec, script)

    async def usable_spec(self, job: Job) -> JobSpec | None:
        """The spec to go by: the present one, or the last that could be used."""
        former = await self._former(job)
        return self._accept(job, former).spec or former

    def forget(self, uid: str) -> None:
        """The job is gone."""
        self._judged.pop(uid, None)
        self._scripts.pop(uid, None)
        self._revised.pop(uid, None)

    async def _script(self, job: Job, spec: JobSpec, *, afresh: bool) -> ScriptSight:
        """Nobody watches ConfigMaps, and a pass every few seconds need not read them each time.

        Only before something is done that can still turn back: what it leads to must be what is
        wished now.
        """
        now, known = self._clock(), self._scripts.get(job.uid)
        settled = not (afresh and can_turn_back(job))
        fresh = timedelta(seconds=self._pace.script())
        if settled and known is not None and known[0] == job.generation and now - known[1] < fresh:
            return known[2]
        script = await look_at_script(self._cluster, job.key.namespace, spec)
        if not script.problem:
            self._scripts[job.uid] = (job.generation, now, script)
        return script

    async def _former(self, job: Job) -> JobSpec | None:
        """What the job was last told to run, if that is known."""
        run = _going(job.record)
        stored = await self._store.find(job.owner, run.revision.name) if run is not None else None
        return stored.spec if stored is not None else None

    def _accept(self, job: Job, former: JobSpec | None) -> Acceptance:
        known = self._judged.get(job.uid)
        if known is not None and known[0] == job.generation:
            return known[1]
        acceptance = accept(job.spec, former=former, unsafe_pods=self._unsafe_pods)
        if acceptance.spec is not None and former is not None and _same(acceptance.spec, former):
            # Nearly always: then one copy will do.
            acceptance = replace(acceptance, spec=former)
        self._judged[job.uid] = (job.generation, acceptance)
        return acceptance

    def _kept(
        self, job: Job, former: JobSpec | None, *, invalid: str = "", script_missing: str = ""
    ) -> Intent:
        wish = kept_wish(
            job.record,
            policy=policy.policy_of(former) if former is not None else policy.UNKNOWN,
            generation=job.generation,
            deleting=job.deleting,
        )
        return Intent(spec=former, wish=wish, invalid=invalid, script_missing=script_missing)

    async def _wished(self, job: Job, spec: JobSpec, script: ScriptSight) -> Intent:
        restorable = await self._restorable(job, spec)
        wish = Wish(
            generation=job.generation,
            revision=self._revision(job, spec, script),
            suspend=spec.suspend,
            restore=_restore(spec, restorable),
            adopt=adoption(spec),
            deleting=job.deleting,
            policy=policy.policy_of(spec),
        )
        return Intent(spec=spec, wish=wish, script=script.text, restorable=restorable)

    def _revision(self, job: Job, spec: JobSpec, script: ScriptSight) -> Revision:
        """The same spec and script are the same revision: reckoned once, not at every look."""
        known, digest = self._revised.get(job.uid), script.digest
        if known is None or known[:2] != (job.generation, digest):
            revision = revisions.revision_of(spec, script_digest=digest)
            known = self._revised[job.uid] = (job.generation, digest, revision)
        return known[2]

    async def _restorable(self, job: Job, spec: JobSpec) -> Restorable | None:
        wanted = spec.restore_from
        if wanted is None or restore_key(wanted) == job.record.restored:
            return None
        return await find_restorable(self._cluster, job.key, wanted)


def _same(one: JobSpec, other: JobSpec) -> bool:
    """As JSON: to Python 1, 1.0 and True are equal, in a pod template they are not."""
    return one == other and one.model_dump_json() == other.model_dump_json()


def can_turn_back(job: Job) -> bool:
    """Whether an operation is under way that another wish would take the place of."""
    operation = job.record.operation
    return operation is not None and operation.phase in UNTOUCHED


def _restore(spec: JobSpec, found: Restorable | None) -> RestoreWish | None:
    wanted = spec.restore_from
    if wanted is None:
        return None
    # One that was carried out counts by its key alone; the savepoint may be gone by now.
    return restore_wish(wanted, found or Restorable(savepoint=""))


def _going(record: Record) -> Run | None:
    operation = record.operation
    target = operation.target if operation is not None else None
    return target if target is not None else record.run
