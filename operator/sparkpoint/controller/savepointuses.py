"""Who needs a savepoint: jobs that began from it, may go back to it, or name it in their spec.

A savepoint is named in three ways: as a resource, by its place in a repository, and by its id.
"""

import asyncio
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any, Final

from sparkpoint.controller.cache import ObjectCache
from sparkpoint.controller.cluster import JOBS, Cluster, Object, metadata
from sparkpoint.controller.errors import RecordError
from sparkpoint.controller.jobs import Job, read_job
from sparkpoint.controller.keys import Key, key_of
from sparkpoint.controller.restores import reference

__all__ = ["Index", "SavepointUses", "mentioned", "mentions", "names_of"]

_FRESH: Final = timedelta(minutes=1)
"""How old an answer may be that is only shown; whoever removes something asks anew."""
_JUST_NOW: Final = timedelta(seconds=5)
"""How old the API server's answer may be: a thousand jobs may remove something at full hour."""

_Read = Mapping[str, tuple[str, frozenset[str]]]
"""Job -> the version of it that was read, and what it mentions."""


class Index:
    """Who mentions what, as far as it was looked at."""

    def __init__(self, *looks: _Read) -> None:
        self._users: defaultdict[str, set[str]] = defaultdict(set)
        for look in looks:
            for job, (_, mentioned) in look.items():
                for name in mentioned:
                    self._users[name].add(job)

    def says_the_same(self, other: "Index") -> bool:
        """Whether whoever knows the other one need not look at this one."""
        return self._users == other._users

    def users(self, savepoint: Object) -> tuple[str, ...]:
        """Names of the jobs that need it."""
        known = [self._users.get(name, set()) for name in names_of(savepoint)]
        return tuple(sorted(set().union(*known)))


class SavepointUses:
    """What the jobs of a namespace mention."""

    def __init__(self, jobs: ObjectCache) -> None:
        self._jobs = jobs
        self._shown: dict[str, tuple[datetime, Index]] = {}
        self._listed: dict[str, tuple[datetime, _Read]] = {}
        self._known: dict[str, _Read] = {}
        self._asking: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)

    def shown(self, namespace: str, now: datetime) -> Index:
        """Who needs what, to be shown: the very same index until something of it changes.

        What is known may be a minute old, and is not all while the watch is still filling.
        """
        shown = self._shown.get(namespace)
        if shown is not None and now - shown[0] <= _FRESH:
            return shown[1]
        return self._show(namespace, Index(self._look(namespace)), now)

    def _show(self, namespace: str, index: Index, now: datetime) -> Index:
        former = self._shown.get(namespace)
        if former is not None and index.says_the_same(former[1]):
            index = former[1]
        self._shown[namespace] = (now, index)
        return index

    async def ask(self, cluster: Cluster, namespace: str, now: datetime) -> Index:
        """For whoever is about to remove something: all jobs, as the API server has them.

        With what the watch has shown since, so that what was asked for just now serves many.
        """
        async with self._asking[namespace]:
            listed = self._listed.get(namespace)
            if listed is None or now - listed[0] > _JUST_NOW:
                found = await cluster.list(JOBS, namespace, labels={})
                listed = self._listed[namespace] = (now, self._read(namespace, found))
        return self._show(namespace, Index(listed[1], self._look(namespace)), now)

    def _look(self, namespace: str) -> _Read:
        """At what the watch has shown."""
        owners = [owner for owner in self._jobs.owners() if owner.namespace == namespace]
        found = [self._jobs.get(owner, owner.name) for owner in owners]
        return self._read(namespace, [body for body in found if body is not None])

    def _read(self, namespace: str, jobs: Iterable[Object]) -> _Read:
        """Only what has changed is read again: a namespace may have thousands of jobs."""
        former, found = self._known.get(namespace, {}), {}
        for body in jobs:
            about = metadata(body)
            version = f"{about.get('uid')}/{about.get('resourceVersion')}"
            known = former.get(about["name"])
            if known is None or known[0] != version:
                known = (version, mentioned(body))
            found[about["name"]] = known
        self._known[namespace] = found
        return found


def mentioned(body: Object) -> frozenset[str]:
    """What a job needs; of one that cannot be read, whatever it says."""
    try:
        return mentions(read_job(body))
    except RecordError:
        # A person is to put it right: until then, whatever it may be about is needed.
        key, record = key_of(body), (body.get("status") or {}).get("record")
        words = set(_words(record))
        return frozenset({*words, *(_place(key, word) for word in words), *_wanted(key, body)})


def _words(written: object) -> Iterator[str]:
    """Every string in it, however deep."""
    if isinstance(written, str):
        yield written
    elif isinstance(written, Mapping):
        for each in written.values():
            yield from _words(each)
    elif isinstance(written, list):
        for each in written:
            yield from _words(each)


def mentions(job: Job) -> frozenset[str]:
    """Names of savepoints that its record or its spec mentions; a job that is gone needs none."""
    if job.record.removed:
        return frozenset()
    written = {_place(job.key, name) for name in job.record.references()}
    return frozenset({*written, *_wanted(job.key, job.body)})


def _wanted(job: Key, body: Object) -> Iterable[str]:
    """What the spec names, be it valid or not: a mistake elsewhere must not cost a savepoint."""
    wanted: Any = (body.get("spec") or {}).get("restoreFrom")
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
        namespace = manifest.get("namespace") or job.namespace
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
