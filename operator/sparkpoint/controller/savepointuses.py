"""Who needs a savepoint: jobs that began from it, may go back to it, or name it in their spec.

A savepoint is named in three ways: as a resource, by its place in a repository, and by its id.
"""

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any, Final

from sparkpoint.controller.cache import ObjectCache
from sparkpoint.controller.cluster import Object, metadata
from sparkpoint.controller.errors import RecordError
from sparkpoint.controller.jobs import Job, read_job
from sparkpoint.controller.keys import Key
from sparkpoint.controller.restores import reference

__all__ = ["SavepointUses", "mentions", "names_of"]

_FRESH: Final = timedelta(minutes=1)
"""How old an answer may be that is only shown; whoever removes something asks anew."""

Index = Mapping[str, frozenset[str]]
"""One of a savepoint's names -> the jobs that mention it."""


class SavepointUses:
    """What the jobs of a namespace mention, as the watch showed them last."""

    def __init__(self, jobs: ObjectCache) -> None:
        self._jobs = jobs
        self._known: dict[str, tuple[datetime, Index]] = {}
        self._read: dict[str, dict[str, tuple[str, frozenset[str]]]] = {}
        """Namespace -> job -> the version that was read last, and what it mentions."""

    def users(self, savepoint: Object, now: datetime) -> tuple[str, ...]:
        """Names of the jobs that need it; what is known of them may be a minute old."""
        namespace = metadata(savepoint)["namespace"]
        known = self._known.get(namespace)
        if known is None or now - known[0] > _FRESH:
            known = self.renew(namespace, now)
        return _users(known[1], savepoint)

    def renew(self, namespace: str, now: datetime) -> tuple[datetime, Index]:
        """Look at all jobs of a namespace again."""
        found = self._read[namespace] = dict(self._present(namespace))
        index = _index({name: mentioned for name, (_, mentioned) in found.items()})
        known = self._known[namespace] = (now, index)
        return known

    def _present(self, namespace: str) -> Iterator[tuple[str, tuple[str, frozenset[str]]]]:
        """Only what has changed is read again: a namespace may have thousands of jobs."""
        former = self._read.get(namespace, {})
        for owner in self._jobs.owners():
            body = self._jobs.get(owner, owner.name) if owner.namespace == namespace else None
            if body is None:
                continue
            version = f"{metadata(body).get('uid')}/{metadata(body).get('resourceVersion')}"
            known = former.get(owner.name)
            if known is None or known[0] != version:
                known = (version, _mentioned(body))
            yield owner.name, known


def _mentioned(body: Object) -> frozenset[str]:
    try:
        return mentions(read_job(body))
    except RecordError:
        # Nothing is done to it before a person has looked; nor does it begin from anything.
        return frozenset()


def _index(jobs: Mapping[str, frozenset[str]]) -> Index:
    found: dict[str, set[str]] = {}
    for job, mentioned in jobs.items():
        for name in mentioned:
            found.setdefault(name, set()).add(job)
    return {name: frozenset(users) for name, users in found.items()}


def _users(index: Index, savepoint: Object) -> tuple[str, ...]:
    found: set[str] = set()
    for name in names_of(savepoint):
        found |= index.get(name, frozenset())
    return tuple(sorted(found))


def mentions(job: Job) -> frozenset[str]:
    """Names of savepoints that its record or its spec mentions; a job that is gone needs none."""
    if job.record.removed:
        return frozenset()
    written = {_place(job.key, name) for name in job.record.references()}
    return frozenset(written | set(_wanted(job)))


def _wanted(job: Job) -> Iterable[str]:
    """What the spec names, be it valid or not: a mistake elsewhere must not cost a savepoint."""
    wanted: Any = job.spec.get("restoreFrom")
    if not isinstance(wanted, Mapping):
        return
    if wanted.get("savepoint"):
        yield _resource(str(wanted["savepoint"]))
    manifest: Any = wanted.get("manifest")
    if not isinstance(manifest, Mapping):
        return
    if manifest.get("id"):
        yield _identity(str(manifest["id"]))
    if manifest.get("name"):
        namespace = manifest.get("namespace") or job.key.namespace
        yield f"{namespace}/{manifest.get('job')}/{manifest['name']}"


def names_of(savepoint: Object) -> tuple[str, ...]:
    """All names under which this one may be mentioned."""
    nobody = Key("", "")
    status: Mapping[str, Any] = savepoint.get("status") or {}
    place, identity = reference(nobody, savepoint), status.get("id")
    known = [_resource(metadata(savepoint)["name"]), place]
    if identity:
        # A record calls it so that was asked for by its id alone.
        known += [_identity(identity), f"{place.rpartition('/')[0]}/{identity}"]
    return tuple(known)


def _place(job: Key, name: str) -> str:
    return name if "/" in name else f"{job.namespace}/{job.name}/{name}"


def _resource(name: str) -> str:
    return f"SparkSavepoint {name}"


def _identity(text: str) -> str:
    return f"id {text}"
