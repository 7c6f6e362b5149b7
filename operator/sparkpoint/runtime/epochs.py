"""The epoch directory: where every checkpoint of this driver is. Looked at before Spark starts."""

from pathlib import Path

from sparkpoint.runtime.errors import RefusedError
from sparkpoint.runtime.options import Expectation
from sparkpoint.storage import DirectoryStore, Store, open_store
from sparkpoint.storage.errors import StorageError

__all__ = ["open_epoch_directory"]


def open_epoch_directory(
    uri: str, expect: Expectation, *, endpoint_url: str | None = None
) -> Store:
    """The directory, or RefusedError if it cannot be reached or is not as expected."""
    try:
        store = open_store(uri, endpoint_url)
        if isinstance(store, DirectoryStore):
            Path(store.uri).mkdir(parents=True, exist_ok=True)
        folders, files = store.children()
    except (StorageError, OSError) as error:
        raise RefusedError(f"The epoch directory {uri} cannot be used: {error}") from error
    if expect == "empty" and (folders or files):
        found = [*folders, *(entry.path for entry in files)]
        raise RefusedError(
            f"The epoch directory {uri} should be empty, but holds {_listed(found)}. A new epoch "
            "needs a new directory; to go on from this one, leave out --expect empty."
        )
    if expect == "restored" and not any(_has_metadata(store, folder) for folder in folders):
        raise RefusedError(
            f"The epoch directory {uri} should hold restored checkpoints, but holds none. Restore "
            "a savepoint into it first, or leave out --expect restored to start afresh."
        )
    return store


def _has_metadata(store: Store, folder: str) -> bool:
    _, files = store.children(folder)
    return any(entry.path == f"{folder}/metadata" for entry in files)


def _listed(names: list[str], most: int = 3) -> str:
    listed = ", ".join(sorted(names)[:most])
    return listed + (f" and {len(names) - most} more" if len(names) > most else "")
