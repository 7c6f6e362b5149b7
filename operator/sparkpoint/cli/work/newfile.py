"""Text files that are there only when they are whole."""

from collections.abc import Iterable
from pathlib import Path

__all__ = ["write_pieces"]


def write_pieces(target: Path, pieces: Iterable[str]) -> None:
    """Write them to a new file, which then takes the place of what is there."""
    growing = target.with_name(f".{target.name}.growing")
    try:
        with growing.open("w", encoding="utf-8") as file:
            file.writelines(pieces)
        growing.replace(target)
    finally:
        growing.unlink(missing_ok=True)
