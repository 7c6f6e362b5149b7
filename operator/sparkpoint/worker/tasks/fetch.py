"""`fetch`: a script from a bucket, to where the driver runs it: whole or not at all."""

import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import BinaryIO

from sparkpoint.savepoint.progress import Amount
from sparkpoint.storage import chunks_of, open_store
from sparkpoint.storage.errors import TooLargeError
from sparkpoint.worker.errors import FetchError
from sparkpoint.worker.given import Given
from sparkpoint.worker.model import Answer
from sparkpoint.worker.telling import Telling

__all__ = ["USAGE", "Fetch", "fetch", "read"]

USAGE = "--uri URI --to PATH [--max-bytes N] [--endpoint-url URL]"

_MAX_BYTES = 16 * 1024 * 1024
"""Far above any script: what is larger is not one."""
_MODE = 0o644


@dataclass(frozen=True, slots=True, kw_only=True)
class Fetch:
    """What the command line asks for."""

    place: str
    file: str
    to: Path
    max_bytes: int
    endpoint_url: str | None


def read(given: Given) -> Callable[[Telling], Answer]:
    """What the command line asks for."""
    place, _, file = given.place("--uri").rpartition("/")
    # `s3://bucket` has no key, `/script.py` has the root for a folder.
    if given.has("--uri") and (not file or place.endswith(":/")):
        given.refuse("--uri names no file: give s3://bucket/folder/script.py")
    wanted = Fetch(
        place=place or "/",
        file=file,
        to=given.path("--to"),
        max_bytes=given.optional_number("--max-bytes", _MAX_BYTES),
        endpoint_url=given.endpoint(),
    )
    return partial(fetch, wanted)


def fetch(wanted: Fetch, telling: Telling) -> Answer:
    """Download, then rename: whoever looks finds the old file, or the new one."""
    store = open_store(wanted.place, wanted.endpoint_url)
    where = f"{store.uri.rstrip('/')}/{wanted.file}"
    with store.open_stamped(wanted.file) as (stream, entry):
        if entry.size > wanted.max_bytes:
            raise TooLargeError(
                f"{where} has {entry.size} bytes, more than {wanted.max_bytes}: too large for a "
                "script. Check the location, or raise --max-bytes."
            )
        telling.start(where, Amount(1, entry.size))
        size = _save(stream, wanted.to, telling, most=wanted.max_bytes)
    return Answer(answer="Fetched", message=f"{where} is at {wanted.to}: {size} bytes.")


def _save(stream: BinaryIO, to: Path, telling: Telling, *, most: int) -> int:
    size = 0
    with _beside(to) as target:
        for chunk in chunks_of(stream):
            target.write(chunk)
            size += len(chunk)
            if size > most:
                raise TooLargeError(f"The file grew beyond {most} bytes while it was read.")
            telling.advance(Amount(0, len(chunk)))
    return size


@contextmanager
def _beside(to: Path) -> Iterator[BinaryIO]:
    """A file that takes its place once the block has ended well, and is gone otherwise."""
    temporary: Path | None = None
    try:
        to.parent.mkdir(parents=True, exist_ok=True)
        descriptor, name = tempfile.mkstemp(prefix=f".{to.name[:100]}.", dir=to.parent)
        temporary = Path(name)
        with os.fdopen(descriptor, "wb") as file:
            yield file
        temporary.chmod(_MODE)
        temporary.replace(to)
    except OSError as error:
        raise FetchError(f"{to} cannot be written: {error.strerror or error}.") from error
    finally:
        if temporary is not None:
            temporary.unlink(missing_ok=True)
