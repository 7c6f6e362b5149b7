"""When queries last committed in the places that savepoints were restored to.

Only looked at where that is cheap: one listing for each query, of the newest restores, and only
places that are reached as the repository is. Whatever cannot be seen is left out.
"""

import contextlib
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import datetime

from sparkpoint.checkpoint.names import batch_number
from sparkpoint.cli.answer import Settings
from sparkpoint.cli.work.places import open_place
from sparkpoint.savepoint import Repository, Savepoint
from sparkpoint.savepoint.manifest import QueryInfo, moment
from sparkpoint.savepoint.uses import Restored
from sparkpoint.storage import DirectoryStore, Store
from sparkpoint.storage.errors import StorageError

__all__ = ["with_last_commits"]

Restores = Mapping[str, Sequence[Restored]]

_MOST = 20
"""Places that are looked at."""


def with_last_commits(
    settings: Settings,
    repository: Repository,
    savepoints: Sequence[Savepoint],
    restores: Restores,
) -> Restores:
    """The same restores, with the time of the newest commit since where it can be seen."""
    known = {savepoint.id: savepoint for savepoint in savepoints}
    # Of several restores to one place, what runs there goes on from the last one.
    last = {
        each.target: (each, known[identity])
        for each, identity in sorted(
            ((each, identity) for identity, found in restores.items() for each in found),
            key=lambda pair: pair[0].at,
        )
    }
    looked = list(last.values())[-_MOST:]

    def seen(pair: tuple[Restored, Savepoint]) -> Restored:
        restored, savepoint = pair
        return replace(
            restored, last_commit=_last_commit(settings, repository, savepoint, restored)
        )

    with ThreadPoolExecutor(_MOST, "commits") as pool:
        found = {
            (savepoint.id, each.target): each
            for each, (_, savepoint) in zip(pool.map(seen, looked), looked, strict=True)
        }
    return {
        identity: [found.get((identity, each.target), each) for each in group]
        for identity, group in restores.items()
    }


def _last_commit(
    settings: Settings, repository: Repository, savepoint: Savepoint, restored: Restored
) -> datetime | None:
    with contextlib.suppress(StorageError):
        place = open_place(settings, restored.target)
        near = isinstance(place, DirectoryStore)
        if near or not isinstance(repository.store, DirectoryStore):
            commits = [_newest(place, query) for query in savepoint.manifest.queries]
            return max((each for each in commits if each is not None), default=None)
    return None


def _newest(place: Store, query: QueryInfo) -> datetime | None:
    """The time of the newest commit that did not come with the savepoint."""
    _, files = place.child(query.prefix).children("commits")
    numbers = {
        number: each
        for each in files
        if (number := batch_number(each.path.rsplit("/", 1)[-1])) is not None
    }
    newest = max(numbers, default=-1)
    return moment(numbers[newest].modified) if newest > query.batch else None
