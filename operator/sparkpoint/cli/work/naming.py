"""Whose a savepoint is, if nobody says: the job is called after the checkpoint's folder.

Retention and parents go by the job, so that two queries must not become one by their folders' names
alone: then, and where a name would lose letters, whoever asks has to say it.
"""

import re
from collections.abc import Iterable, Iterator

from sparkpoint.checkpoint.errors import CheckpointError
from sparkpoint.checkpoint.logs import parse_query_id
from sparkpoint.savepoint import Repository, Savepoint
from sparkpoint.savepoint.errors import BadNameError, NameTakenError
from sparkpoint.storage import Store
from sparkpoint.storage.errors import NotFoundError

__all__ = ["derive_job", "names_for"]

_NAMESPACE = "default"
_GENERIC = re.compile(r"[-_.]*(checkpoints?|chkpts?|ckpts?|cks?|chks?|cps?)[-_.]*")
"""Folders of this name say nothing: the one above tells whose they are."""


def names_for(source: Store) -> list[str]:
    """What the job may be called, the best first: after the folder, or after the one above it.

    BadNameError if nothing can be made of them.
    """
    folders = [part for part in source.uri.removeprefix("s3://").split("/") if part]
    # A bucket is none, unless there is nothing else.
    inside = folders[1:] if source.uri.startswith("s3://") and len(folders) > 1 else folders
    if not inside:
        raise _unnamed(source)
    telling = [each for each in inside if not _GENERIC.fullmatch(each.lower())]
    best = [telling[-1]] if telling and telling[-1] != inside[-1] else []
    return [_name(source, folder) for folder in [*best, inside[-1]]]


def _name(source: Store, folder: str) -> str:
    name = re.sub(r"[^a-z0-9._-]+", "-", folder.lower()).strip("-._")[:128].rstrip("-._")
    # Spaces and the like may become a dash; letters that are left out would make another word.
    if not name or not folder.isascii():
        raise _unnamed(source)
    return name


def _unnamed(source: Store) -> BadNameError:
    return BadNameError(f"No job's name can be made of {source.uri}: give --job NS/NAME.")


def derive_job(
    repository: Repository, source: Store, names: Iterable[str], *, queries: Iterable[str]
) -> tuple[str, str]:
    """Namespace and name; NameTakenError if that job is of other queries, captured elsewhere.

    A job that this checkpoint was captured as before goes on, whatever it would be called today.
    """
    ids = set(_ids(source, queries))
    found = {name: repository.newest(namespace=_NAMESPACE, job=name) for name in names}
    for name, newest in found.items():
        if newest is not None and _is_same(newest, source, ids):
            return _NAMESPACE, name
    name, newest = next(iter(found.items()))
    if newest is not None:
        raise NameTakenError(
            f"{source.uri} would become the job {_NAMESPACE}/{name}, and that is another one: "
            f"{newest.key} has other queries, captured from {newest.manifest.source.uri}. Name the "
            f"job with --job NS/NAME; if they are one job all the same, with --job {name}.",
            newest,
        )
    return _NAMESPACE, name


def _is_same(savepoint: Savepoint, source: Store, ids: set[str]) -> bool:
    manifest = savepoint.manifest
    return manifest.source.uri == source.uri or any(query.id in ids for query in manifest.queries)


def _ids(source: Store, queries: Iterable[str]) -> Iterator[str]:
    """Those that can be read; what is wrong with the others is told by whoever captures them."""
    for query in queries:
        try:
            yield parse_query_id(source.child(query).read("metadata"))
        except (NotFoundError, CheckpointError):
            continue
