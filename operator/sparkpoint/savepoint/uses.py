"""Where savepoints were restored to: small notes for people, of which nothing depends.

Whoever restores leaves one, if they may write to the repository; it tells what happened, and not
whether anything still runs there. Its file's own time is when that was, by the store's clock.
"""

from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from sparkpoint.savepoint.catalogue import Savepoint, read_with_entry
from sparkpoint.savepoint.errors import DamagedError, NewerFormatError
from sparkpoint.savepoint.manifest import Digest, Strict, Text, canonical, moment, parse_document
from sparkpoint.savepoint.names import check_digest
from sparkpoint.storage import Store
from sparkpoint.storage.digest import digest_of
from sparkpoint.storage.errors import NotFoundError, TooLargeError

__all__ = ["USES", "Restored", "note_restore", "read_restores"]

USES = "uses"
_LIMIT = 64 * 1024


class _Note(Strict):
    format: Literal[1] = 1
    savepoint: Digest
    target: Text
    mode: Literal["resume", "rewind", "fork"]


@dataclass(frozen=True, slots=True)
class Restored:
    """One restore of one savepoint."""

    target: str
    mode: str
    at: datetime
    last_commit: datetime | None = None
    """When a query that runs there last committed, for whoever has looked."""


def note_restore(
    store: Store, savepoint: Savepoint, *, target: str, mode: Literal["resume", "rewind", "fork"]
) -> None:
    """Note that the savepoint was restored to `target`; the last time counts."""
    note = _Note(savepoint=savepoint.id, target=target, mode=mode)
    name = digest_of(target.encode())[:32]
    store.put(f"{USES}/{check_digest(savepoint.id)}/{name}.json", [canonical(note)])


def read_restores(
    store: Store, savepoints: Iterable[Savepoint]
) -> Mapping[str, tuple[Restored, ...]]:
    """Savepoint id -> where it was restored to, oldest first; what cannot be read is left out."""
    known = {savepoint.id for savepoint in savepoints}
    paths = [e.path for e in store.list(USES) if e.path.split("/")[1] in known]
    with ThreadPoolExecutor(store.parallelism, "uses") as pool:
        found = list(pool.map(lambda path: _read(store, path), paths))
    restores: dict[str, list[Restored]] = {}
    for path, restored in zip(paths, found, strict=True):
        if restored is not None:
            restores.setdefault(path.split("/")[1], []).append(restored)
    return {i: tuple(sorted(each, key=lambda use: use.at)) for i, each in restores.items()}


def _read(store: Store, path: str) -> Restored | None:
    try:
        data, entry = read_with_entry(store, path, limit=_LIMIT)
        note = parse_document(_Note, data, f"{store.uri}/{path}")
    except (NotFoundError, TooLargeError, DamagedError, NewerFormatError):
        return None
    return Restored(note.target, note.mode, moment(entry.modified))
