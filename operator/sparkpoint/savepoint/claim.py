"""The claim on a target while a restore fills it: a note, and a sign of life beside it.

The note (marker.py) says who fills. Whoever finds it and cannot see that process waits until there
was no sign of life for a while, and then takes over. So the one who fills must not write once its
signs may have stopped: it asks `check` before every file. A process that was frozen, or cut off
from the store, thus finds out before it mixes its files with those of its successor. So does one
that gave signs which the other did not see: `check` looks whether the note is still its own.
"""

import contextlib
import threading
import time
from collections.abc import Callable, Container, Iterator, Mapping

from sparkpoint.savepoint.contents import Piece
from sparkpoint.savepoint.errors import LeaseLostError, TargetBusyError, TargetChangedError
from sparkpoint.savepoint.manifest import canonical
from sparkpoint.savepoint.marker import GAVE_UP, MARKER, SIGN_OF_LIFE, FileNote, Marker, files_of
from sparkpoint.storage import TEMPORARY, Store
from sparkpoint.storage.errors import (
    AlreadyExistsError,
    ChangedError,
    NotFoundError,
    StorageError,
)

__all__ = ["SILENCE", "Check", "Claim", "claimed"]

Check = Callable[[], None]

SILENCE = 60.0
"""Seconds without a sign of life after which a restore counts as dead."""
_PERIOD = SILENCE / 6
_MARGIN = 0.6
"""The share of the silence after which we stop: clocks and requests are not exact."""
_LOOK = 1.0
"""Seconds for which a look at the note counts: on S3 each is a request, and files are many."""


class Claim:
    """A target that is ours to fill."""

    def __init__(self, target: Store, marker: Marker, *, over: str | None) -> None:
        self._target = target
        self._marker = marker
        self._alive = time.monotonic()
        self._stamp = self._take(over)
        self._looked = time.monotonic()
        self._deposed = False
        self._looking = threading.Lock()
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._live, name="claim", daemon=True)
        self._thread.start()

    def _take(self, over: str | None) -> str:
        """Say that filling begins; of two restores into one target the slower one fails."""
        data = canonical(self._marker)
        try:
            if over is None:
                self._target.create(MARKER, data)
            else:
                self._target.replace(MARKER, data, stamp=over)
        except (AlreadyExistsError, ChangedError) as error:
            raise TargetBusyError(
                f"Another restore into {self._target.uri} began at the same time. Let it finish "
                "first."
            ) from error
        return self._target.stat(MARKER).stamp

    def _live(self) -> None:
        # The note itself was the first sign, so a short restore writes nothing more.
        while not self._end.wait(_PERIOD):
            asked = time.monotonic()
            # What fails is tried again at the next turn; `check` tells when it is late.
            with contextlib.suppress(StorageError):
                if not self._is_ours():
                    return  # the signs are the successor's from here on
                self._target.put(SIGN_OF_LIFE, [self._marker.attempt.encode()])
                self._alive = asked

    def check(self) -> None:
        """LeaseLostError if others may believe that we are dead; TargetBusyError if they do."""
        if time.monotonic() - self._alive > SILENCE * _MARGIN:
            raise LeaseLostError(
                f"This restore was held up, or cut off from {self._target.uri}, for so long that "
                "another one may have taken over. Run it again."
            )
        with self._looking:
            if time.monotonic() - self._looked >= _LOOK:
                self._is_ours()
                self._looked = time.monotonic()
        if self._deposed:
            raise self._taken_over()

    def _is_ours(self) -> bool:
        """Whether the note is still the one that we wrote; once it is not, it never is again."""
        try:
            self._deposed |= self._target.stat(MARKER).stamp != self._stamp
        except NotFoundError:
            self._deposed = True
        return not self._deposed

    def _taken_over(self) -> TargetBusyError:
        return TargetBusyError(
            f"Another restore into {self._target.uri} has taken over. Let it finish."
        )

    def complete(self, pieces: Mapping[str, Piece]) -> None:
        """Check that exactly the pieces are there, and write that down."""
        live = files_of(self._target)
        kept = self._marker.files
        strange = sorted(
            path
            for path in set(live) ^ set(pieces)
            or {path for path in live if live[path].size != pieces[path].size}
            or {path for path in kept if live[path].stamp != kept[path].stamp}
        )
        if strange:
            raise TargetChangedError(
                f"Somebody else wrote to {self._target.uri} during the restore ({strange[0]}). "
                "Stop whatever runs there, remove what it wrote, and restore again."
            )
        # Not validated: these are our own numbers, and there may be a hundred thousand of them.
        notes = {
            path: FileNote.model_construct(
                size=entry.size, stamp=entry.stamp, digest=pieces[path].digest
            )
            for path, entry in live.items()
        }
        self._replace({"state": "complete", "owner": None, "files": notes, "paths": []})

    def give_up(self) -> None:
        """Say so, that the next one need not wait."""
        with contextlib.suppress(StorageError, TargetBusyError):
            self._replace({"owner": GAVE_UP})

    def _replace(self, update: Mapping[str, object]) -> None:
        # First, for a sign that looks at the note afterwards takes our own last word for another's.
        self._stop_signs()
        data = canonical(self._marker.model_copy(update=dict(update)))
        try:
            self._target.replace(MARKER, data, stamp=self._stamp)
        except ChangedError as error:
            self._deposed = True
            raise self._taken_over() from error

    def _stop_signs(self) -> None:
        self._end.set()
        self._thread.join()

    def end(self) -> None:
        """No more signs of life; those of a successor stay."""
        self._stop_signs()
        if self._deposed:
            return
        with contextlib.suppress(StorageError):
            self._target.delete(SIGN_OF_LIFE)


@contextlib.contextmanager
def claimed(
    target: Store, marker: Marker, *, over: str | None, left: Container[str] | None
) -> Iterator[Claim]:
    """Fill the target; `left` names what a restore that was killed may have begun there."""
    claim = Claim(target, marker, over=over)
    try:
        if left is not None:
            _discard(target, lambda path: path in left)
        yield claim
    except BaseException:
        claim.give_up()
        raise
    finally:
        claim.end()


def _discard(target: Store, began: Callable[[str], bool]) -> None:
    """Remove what a killed restore left of files that it was writing; others' uploads stay."""
    for entry in target.abandoned():
        if began(entry.path) or entry.path.startswith(f"{TEMPORARY}/"):
            target.discard(entry)
