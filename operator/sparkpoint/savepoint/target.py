"""The place that a restore fills: what is in it, whose it is, and whether it is whole.

A restore takes a target only if it is empty, or if nobody but restores wrote there. Two restores
never fill one target at a time. The note in it (marker.py) is how they know of each other.
"""

import contextlib
from collections.abc import Container, Iterator, Mapping
from dataclasses import dataclass

from sparkpoint.savepoint.contents import Piece
from sparkpoint.savepoint.errors import TargetBusyError, TargetChangedError, TargetNotEmptyError
from sparkpoint.savepoint.leases import TTL, owner_is_gone, owner_is_known
from sparkpoint.savepoint.manifest import canonical
from sparkpoint.savepoint.marker import MARKER, FileNote, Marker, read_marker
from sparkpoint.storage import TEMPORARY, Entry, Store
from sparkpoint.storage.errors import AlreadyExistsError, ChangedError, NotFoundError, StorageError

__all__ = ["Found", "check_ours", "claimed", "complete", "inspect"]

_GAVE_UP = ""
"""The owner of a target whose restore has failed in an orderly way."""


@dataclass(frozen=True, slots=True)
class Found:
    """What the target held before."""

    marker: Marker | None
    stamp: str | None
    live: Mapping[str, Entry]
    good: Mapping[str, FileNote]
    """Files that an earlier restore put there, unchanged."""


def inspect(target: Store, *, now: float) -> Found:
    """Look at the target; refuse one that is neither empty nor ours, or that is being filled."""
    # Its stamp before its content: whoever writes it from here on makes our claim fail.
    note = _note(target)
    marker = read_marker(target)
    live = {entry.path: entry for entry in target.list() if entry.path != MARKER}
    if note is None or marker is None:
        if live:
            raise TargetNotEmptyError(
                f"{target.uri} is not empty ({len(live)} files, such as {min(live)}), and no "
                "restore of ours filled it. Restore into a new place; nothing is ever mixed."
            )
        return Found(None, None, {}, {})
    good = {
        path: note
        for path, note in marker.files.items()
        if path in live and (live[path].size, live[path].stamp) == (note.size, note.stamp)
    }
    if marker.complete:
        _check_untouched(target, marker, live, good)
    else:
        _check_left(target, marker, age=now - note.modified)
    return Found(marker, note.stamp, live, good)


def _note(target: Store) -> Entry | None:
    try:
        return target.stat(MARKER)
    except NotFoundError:
        return None


def _check_left(target: Store, marker: Marker, *, age: float) -> None:
    """Refuse to take over from a restore that is, or may be, under way."""
    if marker.owner == _GAVE_UP or (marker.owner is not None and owner_is_gone(marker.owner)):
        return
    if marker.owner is not None and owner_is_known(marker.owner):
        raise TargetBusyError(
            f"Another restore, of {marker.key or marker.savepoint[:12]}, is filling {target.uri}. "
            "Let it finish, or end that process; then run this again."
        )
    if age < TTL:
        raise TargetBusyError(
            f"Another restore, of {marker.key or marker.savepoint[:12]}, began to fill "
            f"{target.uri} {max(age, 0):.0f} s ago, somewhere else, and may be under way. Let it "
            f"finish; if it was killed, run this again in {TTL - max(age, 0):.0f} s."
        )


def check_ours(target: Store, found: Found, pieces: Mapping[str, Piece]) -> None:
    """Refuse a target that a restore left half filled, and in which something else went on."""
    if found.marker is None or found.marker.complete:
        return
    strange = sorted(set(found.live) - set(found.marker.paths) - set(pieces))
    if strange:
        raise TargetChangedError(
            f"{target.uri} was left half restored, and has {len(strange)} files since that no "
            f"restore put there, such as {strange[0]}: a query has run there. Restore into a new "
            "place, or remove this one if nothing in it is needed."
        )


def _check_untouched(
    target: Store, marker: Marker, live: Mapping[str, Entry], good: Mapping[str, FileNote]
) -> None:
    changed = sorted((set(live) | set(marker.files)) - set(good))
    if changed:
        raise TargetChangedError(
            f"{target.uri} was restored from {marker.savepoint[:12]} and changed since "
            f"({len(changed)} files, such as {changed[0]}): a query has run there. Restore into a "
            "new place, or remove this one if nothing in it is needed."
        )


@contextlib.contextmanager
def claimed(target: Store, found: Found, marker: Marker) -> Iterator[tuple[Marker, str]]:
    """Fill the target, and say so; and say it if we give up, so that the next one need not wait."""
    claim = _claim(target, found, marker)
    try:
        if found.marker is not None and not found.marker.complete:
            _discard(target, set(marker.paths) | set(found.marker.paths))
        yield claim
    except BaseException:
        given_up = canonical(marker.model_copy(update={"owner": _GAVE_UP}))
        with contextlib.suppress(StorageError):
            target.replace(MARKER, given_up, stamp=claim[1])
        raise


def _discard(target: Store, paths: Container[str]) -> None:
    """Remove what a killed restore left of files that it was writing; others' uploads stay."""
    for entry in target.abandoned():
        if entry.path in paths or entry.path.startswith(f"{TEMPORARY}/"):
            target.discard(entry)


def _claim(target: Store, found: Found, marker: Marker) -> tuple[Marker, str]:
    """Say that filling begins; of two restores into one target the slower one fails."""
    data = canonical(marker)
    try:
        if found.stamp is None:
            target.create(MARKER, data)
        else:
            target.replace(MARKER, data, stamp=found.stamp)
    except (AlreadyExistsError, ChangedError) as error:
        raise TargetBusyError(
            f"Another restore into {target.uri} began at the same time. Let it finish first."
        ) from error
    return marker, target.stat(MARKER).stamp


def complete(target: Store, claim: tuple[Marker, str], pieces: Mapping[str, Piece]) -> None:
    """Check that exactly the pieces are there, and write that down."""
    marker, stamp = claim
    live = {entry.path: entry for entry in target.list() if entry.path != MARKER}
    strange = sorted(
        path
        for path in set(live) ^ set(pieces)
        or {path for path in live if live[path].size != pieces[path].size}
    )
    if strange:
        raise TargetChangedError(
            f"Somebody else wrote to {target.uri} during the restore ({strange[0]}). Stop whatever "
            "runs there, remove what it wrote, and restore again."
        )
    notes = {
        path: FileNote(size=entry.size, stamp=entry.stamp, digest=pieces[path].digest)
        for path, entry in live.items()
    }
    done = marker.model_copy(
        update={"state": "complete", "owner": None, "files": notes, "paths": []}
    )
    try:
        target.replace(MARKER, canonical(done), stamp=stamp)
    except ChangedError as error:
        raise TargetBusyError(
            f"Another restore into {target.uri} has taken over. Let it finish."
        ) from error
