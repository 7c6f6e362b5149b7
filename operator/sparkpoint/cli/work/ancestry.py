"""Which savepoint a new one descends from, if the command line does not say.

The latest of the job is right until somebody goes back: a directory that was restored from an older
savepoint, or from another job's, continues *that* one. The note that every restore leaves behind
tells, and so the log shows a branch where there is one.
"""

from sparkpoint.savepoint import Repository, Savepoint
from sparkpoint.savepoint.capture import LATEST
from sparkpoint.savepoint.catalogue import published_since
from sparkpoint.savepoint.errors import DamagedError, NewerFormatError, NoSuchSavepointError
from sparkpoint.savepoint.marker import MARKER, Marker, read_marker
from sparkpoint.storage import Store

__all__ = ["default_parent"]

_CLOCK_GRAIN = 2.0
"""S3 tells times in whole seconds, and the two stores need not share a clock."""


def default_parent(repository: Repository, source: Store, job: tuple[str, str]) -> str | Savepoint:
    """A savepoint, or `latest`. Reads few manifests, whatever the history."""
    marker = read_marker(source)
    if marker is None or not marker.complete:
        return LATEST
    restored = source.stat(MARKER).modified
    namespace, name = job
    latest = repository.newest(namespace=namespace, job=name)
    if latest is not None and _continues(latest, source, restored):
        return latest
    since = published_since(repository.store, restored - _CLOCK_GRAIN)
    later = (each for each in since if _continues(each, source, restored))
    return next(later, None) or _restored(repository, marker) or LATEST


def _continues(savepoint: Savepoint, source: Store, restored: float) -> bool:
    """Whether it was captured from this directory since it was restored."""
    since = savepoint.published >= restored - _CLOCK_GRAIN
    return savepoint.manifest.source.uri == source.uri and since


def _restored(repository: Repository, marker: Marker) -> Savepoint | None:
    """What was restored here, if this repository still has it, whole."""
    try:
        found = repository.find(marker.key or marker.savepoint)
    except (NoSuchSavepointError, DamagedError, NewerFormatError):
        return None
    return found if found.id == marker.savepoint else None
