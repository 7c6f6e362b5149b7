"""A savepoint in the words of an answer, whoever gives it: agent, worker or command line."""

from collections.abc import Mapping, Sequence

from sparkpoint.runtime.model import SavepointSummary
from sparkpoint.savepoint import Savepoint

__all__ = ["summarize"]


def summarize(
    savepoint: Savepoint,
    repository: str | None,
    *,
    names: Mapping[str, str] | None = None,
    left_out: Sequence[str] = (),
) -> SavepointSummary:
    """What a manifest says in short; `names` is folder -> name of the queries that have another.

    Without the URI of the repository nothing is said of where it is.
    """
    manifest, known = savepoint.manifest, names or {}
    parent = manifest.parent
    return SavepointSummary(
        id=savepoint.id,
        name=manifest.name,
        batches={known.get(each.prefix, each.prefix): each.batch for each in manifest.queries},
        files=manifest.files.count,
        bytes=manifest.files.bytes,
        new_bytes=manifest.files.new_bytes,
        seconds=manifest.timing.seconds,
        created=manifest.created,
        parent=f"{parent.namespace}/{parent.job}/{parent.name}" if parent else None,
        location=f"{repository}/{savepoint.path}" if repository is not None else "",
        pending=manifest.pending,
        left_out=tuple(left_out),
    )
