"""The savepoint that a job is to be restored from: whether it can be, and where it is."""

from dataclasses import dataclass
from typing import Any, Final

from sparkpoint.api.common import ManifestReference
from sparkpoint.api.policies import RestoreFrom, Savepoints
from sparkpoint.controller.cluster import SAVEPOINTS, Cluster, Object, find, metadata
from sparkpoint.controller.keys import JOB, Key
from sparkpoint.lifecycle.world import Lack

__all__ = ["Restorable", "find_restorable", "held_by", "reference"]


_ID: Final = "spec.restoreFrom.manifest.id"


@dataclass(frozen=True, slots=True, kw_only=True)
class Restorable:
    """A savepoint that was asked for, as far as it can be seen from here."""

    savepoint: str
    """How a driver finds it: its name if it is of the same job, else `namespace/job/name`."""
    place: Savepoints | None = None
    """The repository that holds it; None: the job's own."""
    problem: str = ""
    """Why it cannot be restored yet; empty if it can."""
    lack: Lack | None = None
    """Of a problem that does not pass by itself."""


async def find_restorable(cluster: Cluster, job: Key, wanted: RestoreFrom) -> Restorable:
    """Look for it. A manifest in a repository is looked for by the driver alone."""
    if wanted.manifest is not None:
        return await _in_repository(cluster, job, wanted.manifest)
    name = wanted.savepoint or ""
    body = await find(cluster, SAVEPOINTS, job.namespace, name)
    if body is None:
        return Restorable(
            savepoint=name,
            problem=f"spec.restoreFrom.savepoint: there is no SparkSavepoint {name} in namespace "
            f"{job.namespace}: correct the name, or make it known with spec.existing",
            lack=Lack.NOT_FOUND,
        )
    phase = (body.get("status") or {}).get("phase") or "Pending"
    problem = "" if phase == "Completed" else _not_complete(name, phase)
    leaving = _leaving(body, "spec.restoreFrom.savepoint")
    return Restorable(
        savepoint=reference(job, body),
        place=held_by(body),
        problem=leaving or problem,
        lack=Lack.NOT_FOUND if leaving else Lack.FAILED if phase == "Failed" else None,
    )


def _leaving(body: Object, field: str) -> str:
    """Nothing begins from what may be gone before it is read."""
    about = metadata(body)
    if about.get("deletionTimestamp") is None:
        return ""
    return f"{field}: SparkSavepoint {about['name']} is being deleted: choose another one"


def _not_complete(name: str, phase: str) -> str:
    if phase == "Failed":
        return (
            f"spec.restoreFrom.savepoint: SparkSavepoint {name} failed: look at its status, or "
            "choose another one"
        )
    return f"Waiting for SparkSavepoint {name}, which is {phase}."


async def _in_repository(cluster: Cluster, job: Key, manifest: ManifestReference) -> Restorable:
    of = (manifest.namespace or job.namespace, manifest.job)
    name, problem = manifest.name or manifest.id, ""
    if manifest.name is None and of != (job.namespace, job.name):
        # A driver looks for ids among the savepoints of its own job alone.
        body = await _with_id(cluster, job, manifest)
        name = _own_name(body) if body is not None else None
        problem = _leaving(body, _ID) if body is not None else _nameless(job, manifest)
    savepoint = _shortened(job, *of, name or manifest.id)
    place = Savepoints(repository=manifest.repository, endpoint_url=manifest.endpoint_url)
    lack = Lack.NOT_FOUND if problem else None
    return Restorable(savepoint=savepoint, place=place, problem=problem, lack=lack)


async def _with_id(cluster: Cluster, job: Key, manifest: ManifestReference) -> Object | None:
    """The SparkSavepoint of this namespace, if it has one, of the savepoint with this id.

    Those that the operator made are labelled with their job; only a person's own need all be read.
    """
    if manifest.namespace not in (None, job.namespace):
        return None
    for labels in ({JOB: manifest.job}, {}):
        for body in await cluster.list(SAVEPOINTS, job.namespace, labels=labels):
            known = (body.get("status") or {}).get("id") == manifest.id
            place = f"{job.namespace}/{manifest.job}/{_own_name(body)}"
            if known and reference(job, body) == place:
                return body
    return None


def _nameless(job: Key, manifest: ManifestReference) -> str:
    if manifest.namespace not in (None, job.namespace):
        why = f"its namespace {manifest.namespace} is not looked into"
    else:
        why = f"no SparkSavepoint of job {manifest.job} in namespace {job.namespace} has this id"
    return (
        f"{_ID}: a savepoint of another job is found by its name, and "
        f"{why}: give name instead of id, or make a SparkSavepoint of it with spec.existing"
    )


def _own_name(body: Object) -> str:
    """Under which the repository has the savepoint of a SparkSavepoint."""
    status: dict[str, Any] = body.get("status") or {}
    existing: dict[str, Any] = body["spec"].get("existing") or {}
    return str(status.get("name") or existing.get("name") or metadata(body)["name"])


def reference(job: Key, body: Object) -> str:
    """How a driver of `job` finds the savepoint of this SparkSavepoint."""
    spec: dict[str, Any] = body["spec"]
    existing: dict[str, Any] = spec.get("existing") or {}
    return _shortened(
        job,
        existing.get("namespace") or metadata(body)["namespace"],
        existing.get("job") or spec["jobRef"]["name"],
        _own_name(body),
    )


def _shortened(job: Key, namespace: str, of: str, name: str | None) -> str:
    same = (namespace, of) == (job.namespace, job.name)
    return str(name) if same else f"{namespace}/{of}/{name}"


def held_by(body: Object) -> Savepoints | None:
    """The repository that a SparkSavepoint is in, as its status says."""
    repository = (body.get("status") or {}).get("repository")
    existing = body["spec"].get("existing") or {}
    if not repository:
        return None
    return Savepoints(repository=repository, endpoint_url=existing.get("endpointUrl"))
