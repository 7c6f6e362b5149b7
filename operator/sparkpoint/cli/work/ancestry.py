"""Which savepoint a new one descends from, if the command line does not say.

The latest of the job is right until somebody goes back: a directory that was restored from an older
savepoint, or from another job's, continues *that* one. The note that every restore leaves behind
tells, and so the log shows a branch where there is one.
"""

from sparkpoint.savepoint import Repository, Savepoint
from sparkpoint.savepoint.capture import LATEST
from sparkpoint.savepoint.marker import MARKER, Marker, read_marker
from sparkpoint.storage import Store

__all__ = ["default_parent"]

_CLOCK_GRAIN = 2.0
"""S3 tells times in whole seconds, and the two stores need not share a clock."""


def default_parent(repository: Repository, source: Store, job: tuple[str, str]) -> str:
    """A savepoint's id, or `latest`."""
    marker = read_marker(source)
    if marker is None or not marker.complete:
        return LATEST
    restored = source.stat(MARKER).modified
    namespace, name = job
    latest = repository.newest(namespace=namespace, job=name)
    if latest is not None and _continues(latest, source, restored):
        return latest.id
    return _among_all(repository, source, marker, restored)


def _continues(savepoint: Savepoint, source: Store, restored: float) -> bool:
    """Whether it was captured from this directory since it was restored."""
    since = savepoint.published >= restored - _CLOCK_GRAIN
    return savepoint.manifest.source.uri == source.uri and since


def _among_all(repository: Repository, source: Store, marker: Marker, restored: float) -> str:
    savepoints = repository.list().savepoints
    later = [each for each in savepoints if _continues(each, source, restored)]
    if later:
        return later[-1].id
    known = {each.id for each in savepoints}
    return marker.savepoint if marker.savepoint in known else LATEST
