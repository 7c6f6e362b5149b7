"""Which savepoint a new one descends from, if nobody says.

The latest of the job is right until somebody goes back: a directory that was restored from an older
savepoint, or from another job's, continues *that* one. The note that every restore leaves behind
tells, and so the log shows a branch where there is one.
"""

from sparkpoint.savepoint import catalogue
from sparkpoint.savepoint.catalogue import Savepoint
from sparkpoint.savepoint.errors import DamagedError, NewerFormatError, NoSuchSavepointError
from sparkpoint.savepoint.marker import MARKER, Marker
from sparkpoint.storage import Store

__all__ = ["continued"]

_CLOCK_GRAIN = 2.0
"""S3 tells times in whole seconds, and the two stores need not share a clock."""


def continued(
    store: Store, source: Store, marker: Marker | None, *, namespace: str, job: str
) -> Savepoint | None:
    """What this checkpoint goes on from. Reads few manifests, whatever the history."""
    latest = catalogue.newest(store, namespace=namespace, job=job)
    if marker is None or not marker.complete:
        return latest
    restored = source.stat(MARKER).modified
    if latest is not None and _continues(latest, source, restored):
        return latest
    since = catalogue.published_since(store, restored - _CLOCK_GRAIN)
    later = (each for each in since if _continues(each, source, restored))
    return next(later, None) or _restored(store, marker) or latest


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
