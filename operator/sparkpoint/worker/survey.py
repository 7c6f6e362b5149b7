"""What a checkpoint directory holds before anything of it is taken.

Three things must not be confused: a directory that cannot be looked at, one in which nothing was
ever committed, and one whose commits were lost. Whoever is told that nothing was committed may let
the job begin afresh.
"""

import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from sparkpoint.checkpoint.names import batch_number
from sparkpoint.checkpoint.overview import find_queries
from sparkpoint.storage import DirectoryStore, Store
from sparkpoint.storage.errors import StorageError
from sparkpoint.worker.errors import LostCommitsError, UnreachableError

__all__ = ["Stage", "Survey", "look_at"]

_MARKS = frozenset({"metadata", "offsets", "commits"})


class Stage(Enum):
    """How far a query has come."""

    NEW = "new"
    """It was started, and has not begun a batch."""
    BEGUN = "begun"
    """Its first batch was begun and not committed."""
    COMMITTED = "committed"


@dataclass(frozen=True, slots=True)
class Survey:
    """The queries of a directory."""

    queries: Mapping[str, Stage]
    """By folder; the only one is "" if the directory itself is the checkpoint of a query."""

    @property
    def has_commits(self) -> bool:
        """Whether any query has committed a batch."""
        return Stage.COMMITTED in self.queries.values()

    @property
    def is_single(self) -> bool:
        """Whether the directory itself is the checkpoint of a query."""
        return "" in self.queries


def look_at(source: Store) -> Survey:
    """The queries there; UnreachableError, or LostCommitsError if one has lost its commits."""
    with _reachable(source):
        if find_queries(source) == [""]:
            return Survey({"": _stage(source)})
        folders, _ = source.children()
        queries = [name for name in folders if _is_query(source, name)]
        return Survey({name: _stage(source.child(name)) for name in queries})


def _is_query(source: Store, folder: str) -> bool:
    if folder.startswith("."):
        return False
    folders, files = source.children(folder)
    return not _MARKS.isdisjoint({*folders, *(_last(entry.path) for entry in files)})


def _stage(query: Store) -> Stage:
    """Spark writes the offsets of batch 1 only when batch 0 is committed."""
    if _batches(query, "commits"):
        return Stage.COMMITTED
    begun = _batches(query, "offsets")
    if any(begun):
        raise LostCommitsError(
            f"{query.uri} has offsets up to batch {max(begun)} and no commits: batches were "
            "committed here, and the folder commits was emptied since. Restore it, or go on from "
            "an earlier savepoint."
        )
    return Stage.BEGUN if begun else Stage.NEW


def _batches(query: Store, log: str) -> list[int]:
    _, entries = query.children(log)
    numbers = [batch_number(_last(entry.path)) for entry in entries]
    return [number for number in numbers if number is not None]


def _last(path: str) -> str:
    return path.rsplit("/", 1)[-1]


@contextlib.contextmanager
def _reachable(source: Store) -> Iterator[None]:
    try:
        if isinstance(source, DirectoryStore):
            # A store takes a missing directory for an empty one. Here it is a volume that is not
            # mounted: the driver makes the directory before its first query starts.
            any(Path(source.uri).iterdir())
        yield
    except OSError as error:
        raise UnreachableError(
            f"{source.uri} cannot be looked at here: {error.strerror or error}. Check that this "
            "pod has the volume that the driver wrote to, at the same path."
        ) from error
    except StorageError as error:
        raise UnreachableError(str(error)) from error
