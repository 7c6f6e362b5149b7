"""Opening what the command line names."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import PurePosixPath

from sparkpoint.checkpoint.errors import CheckpointError, NotACheckpointError
from sparkpoint.checkpoint.overview import find_queries
from sparkpoint.cli.answer import Settings
from sparkpoint.savepoint import Repository
from sparkpoint.savepoint.errors import DamagedError, MisplacedError, NewerFormatError
from sparkpoint.storage import DirectoryStore, Store, open_store
from sparkpoint.storage.errors import AccessDeniedError, BadLocationError, NotFoundError

__all__ = [
    "check_outside",
    "located",
    "make_repository",
    "open_place",
    "open_repository",
    "queries_in",
]


def open_place(settings: Settings, location: str) -> Store:
    """A directory or bucket, of which nothing is read yet; BadLocationError for a file."""
    place = open_store(location, settings.endpoint_url)
    if isinstance(place, DirectoryStore):
        _check_no_file(PurePosixPath(place.uri), location)
    return place


def _check_no_file(path: PurePosixPath, location: str) -> None:
    # pathlib raises if a folder on the way may not be looked into; whoever opens it will say so.
    file = next((each for each in (path, *path.parents) if os.path.isfile(each)), None)  # noqa: PTH113
    if file is not None:
        where = "is a file" if file == path else f"cannot be a folder, as {file} is a file"
        raise BadLocationError(
            f"{location!r} {where}. Name a folder, which need not exist yet, or s3://bucket/prefix."
        )


def open_repository(settings: Settings, location: str) -> Repository:
    """A repository that exists."""
    return Repository.open(open_place(settings, location))


def make_repository(settings: Settings, location: str) -> Repository:
    """The repository that is there, or a new one in an empty place."""
    store = open_place(settings, location)
    present = Repository.open_if_present(store)
    if present is not None:
        return present
    check_outside(settings, store)
    return Repository.init(store)


def check_outside(settings: Settings, place: Store) -> None:
    """MisplacedError if this is inside a repository, or inside the checkpoint of a query.

    A collection would remove what it does not know, and Spark would meet what it did not write. A
    folder that holds checkpoints, each in a folder of its own, is none itself.
    """
    for outer in _around(settings, place):
        what = _kind_of(outer)
        if what:
            raise MisplacedError(
                f"{place.uri} is inside {outer.uri}, which is {what}: neither would stay whole. "
                "Choose a place outside of it."
            )


def _around(settings: Settings, place: Store) -> Iterator[Store]:
    """The folders that a place is in, the nearest first."""
    if isinstance(place, DirectoryStore):
        yield from (DirectoryStore(str(folder)) for folder in PurePosixPath(place.uri).parents)
        return
    bucket, _, prefix = place.uri.removeprefix("s3://").partition("/")
    top = open_place(settings, f"s3://{bucket}")
    for folder in PurePosixPath(prefix).parents if prefix else ():
        yield top.child("" if folder == PurePosixPath() else str(folder))


def _kind_of(folder: Store) -> str | None:
    try:
        if _has_repository(folder):
            return "a savepoint repository"
        folder.stat("metadata")
        # A job's folder may hold a query that is called `metadata`, but none without offsets.
        return "the checkpoint of a query" if any(folder.children("offsets")) else None
    except (NotFoundError, AccessDeniedError, BadLocationError):
        return None  # what we may not look into, or what a link leads out to, is none of ours


def _has_repository(folder: Store) -> bool:
    try:
        return Repository.open_if_present(folder) is not None
    except NewerFormatError:
        return True
    except DamagedError:
        return False  # others may call a file like that, too


def queries_in(source: Store) -> list[str]:
    """The folders of the queries in a checkpoint; NotACheckpointError if there is none."""
    queries = find_queries(source)
    if not queries:
        raise NotACheckpointError(
            f"{source.uri} holds no checkpoint of a streaming query: neither offsets/ and metadata "
            "there, nor folders with them one level below. Check the path."
        )
    return queries


@contextmanager
def located(place: Store) -> Iterator[None]:
    """Let errors about a checkpoint, which know only paths inside of it, say which one it is."""
    try:
        yield
    except CheckpointError as error:
        error.add_note(place.uri)
        raise
