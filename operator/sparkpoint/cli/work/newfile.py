"""Text files that are there only when they are whole."""

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

__all__ = ["UnwritableError", "write_pieces", "writing"]


class UnwritableError(Exception):
    """A file that somebody named cannot be written."""


@contextmanager
def writing(target: Path | None) -> Iterator[None]:
    """Say which file it is that the system refuses; None if none is written."""
    try:
        yield
    except OSError as error:
        if target is None or not _is_about(error, target):
            raise
        # Not the error's own text, which names the file that was to become the target.
        reason = os.strerror(error.errno) if error.errno else error
        raise UnwritableError(f"Cannot write {target}: {reason}. Name another file.") from error


def _is_about(error: OSError, target: Path) -> bool:
    """Whether it may be: rows are read while they are written. A write names no file."""
    return error.filename is None or Path(os.fsdecode(error.filename)).parent == target.parent


def write_pieces(target: Path, pieces: Iterable[str]) -> None:
    """Write them to a new file, which then takes the place of what is there."""
    growing = target.with_name(f".{target.name}.growing")
    with writing(target):
        try:
            with growing.open("w", encoding="utf-8") as file:
                file.writelines(pieces)
            growing.replace(target)
        finally:
            growing.unlink(missing_ok=True)
