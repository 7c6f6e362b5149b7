"""The savepoint that a job is to be restored from: whether it can be, and where it is."""

from dataclasses import dataclass
from typing import Any

from sparkpoint.api.common import ManifestReference
from sparkpoint.api.policies import RestoreFrom, Savepoints
from sparkpoint.controller.cluster import SAVEPOINTS, Cluster, Object, find, metadata
from sparkpoint.controller.keys import Key

__all__ = ["Restorable", "find_restorable", "held_by", "reference"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Restorable:
    """A savepoint that was asked for, as far as it can be seen from here."""

    savepoint: str
    """How a driver finds it: its name if it is of the same job, else `namespace/job/name`."""
    place: Savepoints | None = None
    """The repository that holds it; None: the job's own."""
    problem: str = ""
    """Why it cannot be restored yet; empty if it can."""


async def find_restorable(cluster: Cluster, job: Key, wanted: RestoreFrom) -> Restorable:
    """Look for it. A manifest in a repository is looked for by the driver alone."""
    if wanted.manifest is not None:
        return _in_repository(job, wanted.manifest)
    name = wanted.savepoint or ""
    body = await find(cluster, SAVEPOINTS, job.namespace, name)
    if body is None:
        return Restorable(
            savepoint=name,
            problem=f"spec.restoreFrom.savepoint: there is no SparkSavepoint {name} in namespace "
            f"{job.namespace}: correct the name, or make it known with spec.existing",
        )
    phase = (body.get("status") or {}).get("phase") or "Pending"
    problem = "" if phase == "Completed" else _not_complete(name, phase)
    return Restorable(savepoint=reference(job, body), place=held_by(body), problem=problem)


def _not_complete(name: str, phase: str) -> str:
    if phase == "Failed":
        return (
            f"spec.restoreFrom.savepoint: SparkSavepoint {name} failed: look at its status, or "
            "choose another one"
        )
    return f"Waiting for SparkSavepoint {name}, which is {phase}."


def _in_repository(job: Key, manifest: ManifestReference) -> Restorable:
    of = (manifest.namespace or job.namespace, manifest.job)
    savepoint = _shortened(job, *of, manifest.name or manifest.id)
    place = Savepoints(repository=manifest.repository, endpoint_url=manifest.endpoint_url)
    problem = ""
    if manifest.name is None and of != (job.namespace, job.name):
        problem = (
            "spec.restoreFrom.manifest.id: a savepoint of another job is found by its name alone: "
            "give name instead of id, or make a SparkSavepoint of it with spec.existing"
        )
    return Restorable(savepoint=savepoint, place=place, problem=problem)


def reference(job: Key, body: Object) -> str:
    """How a driver of `job` finds the savepoint of this SparkSavepoint."""
    spec: dict[str, Any] = body["spec"]
    existing: dict[str, Any] = spec.get("existing") or {}
    status: dict[str, Any] = body.get("status") or {}
    return _shortened(
        job,
        existing.get("namespace") or metadata(body)["namespace"],
        existing.get("job") or spec["jobRef"]["name"],
        status.get("name") or existing.get("name") or metadata(body)["name"],
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
