"""A little space that is kept for the day on which there is none.

Whoever frees space has to write first: a deletion its record, a collection its lease, and neither
is safe without. So a repository keeps a file that says nothing and that they give up if there is no
space left. The next collection that ends well makes it again. Captures never touch it.
"""

import contextlib
import os
from collections.abc import Callable
from typing import TypeVar

from sparkpoint.savepoint.names import RESERVE
from sparkpoint.storage import Entry, Store
from sparkpoint.storage.errors import AccessDeniedError, FullError, NotFoundError

__all__ = ["is_reserve", "keep_reserve", "with_reserve"]

_SIZE = 64 * 1024
"""Room for some records and a lease, each of which takes a block or two."""

_T = TypeVar("_T")


def keep_reserve(store: Store) -> None:
    """Make the reserve if there is none; a store without room for it, or that does not let us see
    whether it is there, does without."""
    with contextlib.suppress(FullError, AccessDeniedError):
        try:
            store.stat(RESERVE)
        except NotFoundError:
            # Random, as some file systems keep no space for what compresses well.
            store.put(RESERVE, [os.urandom(_SIZE)])


def is_reserve(entry: Entry) -> bool:
    """Whether a file at the root of a repository is it, and nobody's data."""
    return (entry.path, entry.size) == (RESERVE, _SIZE)


def with_reserve(store: Store, work: Callable[[], _T]) -> _T:
    """Do work that frees space and can be begun again; without room for it, give up the reserve."""
    try:
        return work()
    except FullError:
        store.delete(RESERVE)
    try:
        return work()
    except FullError as error:
        raise FullError(
            f"{error} Even freeing needs a few KiB, for a record or a lease, and the repository's "
            "reserve is used up: make room for those on that disk."
        ) from error
