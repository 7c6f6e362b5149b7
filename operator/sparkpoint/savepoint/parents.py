"""Which savepoint a new one descends from, if nobody says.

The newest that was captured from the same place is right until somebody goes back: a directory that
was restored from an older savepoint, or from another job's, continues *that* one. The note that
every restore leaves behind tells, and so the log shows a branch where there is one. The latest of
the job may be no relative at all, such as one with another number of partitions.
"""

from itertools import islice

from sparkpoint.savepoint import catalogue
from sparkpoint.savepoint.catalogue import Savepoint
from sparkpoint.savepoint.errors import DamagedError, NewerFormatError, NoSuchSavepointError
from sparkpoint.savepoint.marker import MARKER, Marker
from sparkpoint.storage import Store

__all__ = ["continued"]

_LOOK_BACK = 16
"""Manifests that are read in search of one that was captured from the same place."""
_CLOCK_GRAIN = 2.0
"""S3 tells times in whole seconds, and the two stores need not share a clock."""


def continued(
    store: Store, source: Store, marker: Marker | None, *, namespace: str, job: str
) -> Savepoint | None:
    """What this checkpoint goes on from. Reads few manifests, whatever the history."""
    if marker is None or not marker.complete:
        return _captured_here(store, source, namespace=namespace, job=job)
    latest = catalogue.newest(store, namespace=namespace, job=job)
    restored = source.stat(MARKER).modified
    if latest is not None and _continues(latest, source, restored):
        return latest
    since = catalogue.published_since(store, restored - _CLOCK_GRAIN)
    later = (each for each in since if _continues(each, source, restored))
    return next(later, None) or _restored(store, marker) or latest


def _captured_here(store: Store, source: Store, *, namespace: str, job: str) -> Savepoint | None:
    """The job's newest that was captured from this place, if it is among the last ones; else its
    latest."""
    latest: Savepoint | None = None
    history = catalogue.newest_first(store, namespace=namespace, job=job)
    for each in islice(history, _LOOK_BACK):
        if each.manifest.source.uri == source.uri:
            return each
        latest = latest or each
    return latest


def _continues(savepoint: Savepoint, source: Store, restored: float) -> bool:
    """Whether it was captured from this directory since it was restored."""
    since = savepoint.published >= restored - _CLOCK_GRAIN
    return savepoint.manifest.source.uri == source.uri and since


def _restored(store: Store, marker: Marker) -> Savepoint | None:
    """What was restored here, if this repository still has it, whole."""
    try:
        found = catalogue.find(store, marker.key or marker.savepoint)
    except (NoSuchSavepointError, DamagedError, NewerFormatError):
        return None
    return found if found.id == marker.savepoint else None
