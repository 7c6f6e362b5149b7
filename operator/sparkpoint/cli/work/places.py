"""Opening what the command line names."""

from collections.abc import Iterator
from contextlib import contextmanager

from sparkpoint.checkpoint.errors import CheckpointError, NotACheckpointError
from sparkpoint.checkpoint.overview import find_queries
from sparkpoint.cli.answer import Settings
from sparkpoint.savepoint import Repository
from sparkpoint.storage import Store, open_store

__all__ = ["located", "open_place", "open_repository", "queries_in"]


def open_place(settings: Settings, location: str) -> Store:
    """A directory or bucket; nothing is read yet."""
    return open_store(location, settings.endpoint_url)


def open_repository(settings: Settings, location: str) -> Repository:
    """A repository that exists."""
    return Repository.open(open_place(settings, location))


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
