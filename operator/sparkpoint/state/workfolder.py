"""A folder of our own for copies that are worked on: gone when we leave, whatever happened."""

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sparkpoint.state.errors import WorkFolderError

__all__ = ["work_folder"]


@contextmanager
def work_folder(parent: Path | None, *, room: int) -> Iterator[Path]:
    """A new folder, in the system's place for such if `parent` is None, with so many bytes free."""
    place = parent or Path(tempfile.gettempdir())
    try:
        free = shutil.disk_usage(place).free
        if free < room:
            raise WorkFolderError(
                f"{place} has {free >> 20} MiB free; the copy may take {room >> 20} MiB. "
                "Give another folder with --work-dir."
            )
        folder = tempfile.TemporaryDirectory(
            prefix="sparkpoint-state-", dir=place, ignore_cleanup_errors=True
        )
    except OSError as error:
        raise WorkFolderError(
            f"{place} cannot hold the copy: {error.strerror}. Give another folder with --work-dir."
        ) from error
    with folder as name:
        yield Path(name)
