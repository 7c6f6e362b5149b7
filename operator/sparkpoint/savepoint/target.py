"""The place that a restore fills: what is in it, whose it is, and whether it is whole.

A restore takes a target only if it is empty, or if nobody but restores wrote there. Two restores
never fill one target at a time (claim.py). The note in it (marker.py) is how they know of each
other.
"""

import uuid
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from sparkpoint.savepoint.claim import SILENCE
from sparkpoint.savepoint.contents import Piece
from sparkpoint.savepoint.errors import TargetBusyError, TargetChangedError, TargetNotEmptyError
from sparkpoint.savepoint.leases import owner_is_gone, owner_is_known
from sparkpoint.savepoint.marker import (
    CLOCKS,
    GAVE_UP,
    MARKER,
    SIGN_OF_LIFE,
    FileNote,
    Marker,
    files_of,
    read_marker,
)
from sparkpoint.storage import Entry, Store
from sparkpoint.storage.errors import NotFoundError

__all__ = ["Found", "check_ours", "inspect"]


@dataclass(frozen=True, slots=True)
class Found:
    """What the target held before."""

    marker: Marker | None
    stamp: str | None
    live: Mapping[str, Entry]
    good: Mapping[str, FileNote]
    """Files that an earlier restore put there, unchanged."""

    @property
    def left(self) -> frozenset[str] | None:
        """What a restore that did not get to its end may have begun; None if there was none."""
        if self.marker is None or self.marker.complete:
            return None
        return frozenset(self.marker.paths)


def inspect(target: Store) -> Found:
    """Look at the target; refuse one that is neither empty nor ours, or that is being filled."""
    # Its stamp before its content: whoever writes it from here on makes our claim fail.
    note = _stat(target, MARKER)
    marker = read_marker(target)
    live = files_of(target)
    if note is None or marker is None:
        if live:
            raise TargetNotEmptyError(
                f"{target.uri} is not empty ({_files(live)}, such as {min(live)}), and no "
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
        _check_left(target, marker, note)
    return Found(marker, note.stamp, live, good)


def _files(paths: Collection[str]) -> str:
    return "1 file" if len(paths) == 1 else f"{len(paths)} files"


def _stat(target: Store, path: str) -> Entry | None:
    try:
        return target.stat(path)
    except NotFoundError:
        return None


def _check_left(target: Store, marker: Marker, note: Entry) -> None:
    """Refuse to take over from a restore that is, or may be, under way."""
    if marker.owner == GAVE_UP or (marker.owner is not None and owner_is_gone(marker.owner)):
        return
    if marker.owner is not None and owner_is_known(marker.owner):
        raise TargetBusyError(
            f"Another restore, of {marker.key or marker.savepoint[:12]}, is filling {target.uri}. "
            "Let it finish, or end that process; then run this again."
        )
    silence = _silence(target, note)
    if silence < SILENCE:
        raise TargetBusyError(
            f"Another restore, of {marker.key or marker.savepoint[:12]}, is filling {target.uri} "
            f"from somewhere else; its last sign of life is {max(silence, 0):.0f} s old. Let it "
            f"finish; if it was killed, run this again in {SILENCE - max(silence, 0):.0f} s."
        )


def _silence(target: Store, note: Entry) -> float:
    """Seconds since the last sign of life, all by the clock that dated it: the target's own.

    Neither our host's clock nor the repository's will do: one that is a minute ahead would bury
    the living.
    """
    now = _now(target)
    sign = _stat(target, SIGN_OF_LIFE) or note
    return now - max(note.modified, sign.modified)


def _now(target: Store) -> float:
    """The time at the target: that of a file that was just written there."""
    path = f"{CLOCKS}{uuid.uuid4().hex}"
    target.put(path, [b""])
    try:
        return target.stat(path).modified
    finally:
        target.delete(path)


def check_ours(target: Store, found: Found, pieces: Mapping[str, Piece]) -> None:
    """Refuse a target that a restore left half filled, and in which something else went on."""
    if found.marker is None or found.marker.complete:
        return
    strange = sorted(set(found.live) - set(found.marker.paths) - set(pieces))
    if strange:
        raise TargetChangedError(
            f"{target.uri} was left half restored, and has {_files(strange)} since that no "
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
            f"({_files(changed)}, such as {changed[0]}): a query has run there. Restore into a "
            "new place, or remove this one if nothing in it is needed."
        )
