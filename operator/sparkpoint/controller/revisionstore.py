"""Specs that were accepted, kept as ControllerRevisions: what drivers are built from.

They never change once they are stored, so that what was read once need not be read again.
"""

from dataclasses import dataclass
from sys import intern
from typing import Final

from sparkpoint.api.job import JobSpec
from sparkpoint.controller import objects
from sparkpoint.controller.cluster import (
    REVISIONS,
    Cluster,
    Object,
    create_or_get,
    find,
    owner_uid,
)
from sparkpoint.controller.objects import Owner
from sparkpoint.controller.ownership import check_ours

__all__ = ["RevisionStore", "Stored"]

_REMEMBERED: Final = 12
"""Revisions of one job; each may hold a script of a megabyte."""


@dataclass(frozen=True, slots=True)
class Stored:
    """A revision."""

    spec: JobSpec
    script: str | None
    """The script, if it came from a ConfigMap."""


class RevisionStore:
    """The revisions of all jobs."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._known: dict[str, dict[str, Stored]] = {}

    def knows(self, owner: Owner, revision: str) -> bool:
        """Whether it is stored, without asking: no may only mean that nobody has looked."""
        return revision in self._known.get(owner.uid, {})

    async def find(self, owner: Owner, revision: str) -> Stored | None:
        """What was stored under this name; None if nothing was."""
        known = self._known.get(owner.uid, {}).get(revision)
        if known is not None:
            return known
        name = objects.controller_revision_name(owner.name, revision)
        body = await find(self._cluster, REVISIONS, owner.namespace, name)
        # One of an earlier job of this name goes with that job.
        if body is None or owner_uid(body) != owner.uid:
            return None
        stored = _read(body)
        self._remember(owner, revision, stored)
        return stored

    async def store(self, owner: Owner, revision: str, wanted: Stored, *, generation: int) -> None:
        """Keep it, if it is not kept."""
        body = await create_or_get(
            self._cluster,
            objects.controller_revision(
                owner, revision, wanted.spec, generation, script=wanted.script
            ),
        )
        check_ours(body, owner)
        stored = _read(body)
        # The spec that is wished for is in memory already: one copy will do.
        self._remember(owner, revision, wanted if stored == wanted else stored)

    def forget(self, uid: str) -> None:
        """The job is gone."""
        self._known.pop(uid, None)

    def _remember(self, owner: Owner, revision: str, stored: Stored) -> None:
        known = self._known.setdefault(owner.uid, {})
        known[revision] = stored
        if len(known) > _REMEMBERED:
            # The one that was read first; if it is needed once more, it is read again.
            del known[next(iter(known))]


def _read(body: Object) -> Stored:
    script = objects.script_of(body)
    return Stored(objects.spec_of(body), intern(script) if script is not None else None)
