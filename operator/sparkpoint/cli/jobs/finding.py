"""Finding jobs and savepoints by name; a typing error is answered with the nearest name."""

import difflib
from collections.abc import Sequence

from sparkpoint.cli.jobs.cluster import JOBS, SAVEPOINTS, Cluster, Kind, Object
from sparkpoint.cli.jobs.errors import NotFoundError, RefusedError
from sparkpoint.cli.jobs.facts import completed_at, job_of, metadata, newest_first, status_of

__all__ = ["find_job", "find_savepoint", "list_jobs", "live_job", "savepoints_of"]

_NO_RESOURCE = "could not find the requested resource"


def find_job(cluster: Cluster, name: str) -> Object:
    """The job, or a NotFoundError that says what there is instead."""
    return _get(cluster, JOBS, name)


def live_job(cluster: Cluster, name: str) -> Object:
    """The same, to change something: not one that is being deleted."""
    body = find_job(cluster, name)
    if metadata(body).get("deletionTimestamp") is not None:
        raise RefusedError(f"Job {name} is being deleted: nothing can be asked of it any more.")
    return body


def list_jobs(cluster: Cluster, *, everywhere: bool = False) -> list[Object]:
    """All jobs, by namespace and name."""
    try:
        found = cluster.list(JOBS, everywhere=everywhere)
    except NotFoundError as error:
        raise _without_crds(error) from error
    return sorted(found, key=lambda body: (metadata(body)["namespace"], metadata(body)["name"]))


def savepoints_of(cluster: Cluster, job: str) -> list[Object]:
    """The SparkSavepoints of a job, newest first, also those that are not complete."""
    return newest_first(body for body in cluster.list(SAVEPOINTS) if job_of(body) == job)


def find_savepoint(
    cluster: Cluster, job: str, reference: str, *, revision: str | None = None
) -> Object:
    """A SparkSavepoint that can be restored, or will be able to; `latest` is the job's newest.

    With a revision, `latest` is the newest that was taken of it.
    """
    if reference == "latest":
        return _latest(savepoints_of(cluster, job), job, revision)
    body = _get(cluster, SAVEPOINTS, reference)
    status = status_of(body)
    if status.get("phase") == "Failed":
        raise RefusedError(
            f"Savepoint {reference} failed: {status.get('message') or 'no reason is known'}. "
            "Choose another one: kubectl get ssp"
        )
    if not (status.get("verified") or {}).get("good", True):
        raise RefusedError(f"Savepoint {reference} is damaged. Choose another one: kubectl get ssp")
    if metadata(body).get("deletionTimestamp") is not None:
        raise RefusedError(f"Savepoint {reference} is being deleted. Choose another one.")
    return body


def _latest(savepoints: Sequence[Object], job: str, revision: str | None) -> Object:
    for body in savepoints:
        status = status_of(body)
        usable = completed_at(body) is not None and (status.get("verified") or {}).get("good", True)
        going = metadata(body).get("deletionTimestamp") is not None
        if usable and not going and revision in (None, status.get("revision")):
            return body
    which = f" of revision {revision}" if revision else ""
    raise NotFoundError(
        f"Job {job} has no complete savepoint{which}. Take one with: sparkpoint job savepoint {job}"
    )


def _get(cluster: Cluster, kind: Kind, name: str) -> Object:
    try:
        return cluster.get(kind, name)
    except NotFoundError as error:
        if _NO_RESOURCE in str(error):
            raise _without_crds(error) from error
    names = [metadata(body)["name"] for body in cluster.list(kind)]
    word = "job" if kind is JOBS else "savepoint"
    near = difflib.get_close_matches(name, names, n=3)
    hint = f"Did you mean {' or '.join(near)}?" if near else _what_there_is(names, word)
    raise NotFoundError(f"No {word} {name} in namespace {cluster.namespace}. {hint}")


def _what_there_is(names: Sequence[str], word: str) -> str:
    if not names:
        return f"There is no {word} in it: name another namespace with -n."
    more = ", …" if len(names) > 5 else ""
    return f"There are: {', '.join(sorted(names)[:5])}{more}"


def _without_crds(error: NotFoundError) -> NotFoundError:
    if _NO_RESOURCE not in str(error):
        return error
    return NotFoundError(
        "This cluster does not know StatefulSparkJobs: install Sparkpoint's CRDs and the operator, "
        "or name another cluster with --context."
    )
