"""Moving bytes between file descriptors, hashed on the way."""

import os
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import IO

from sparkpoint.storage._linux import allocate, reflink, start_writeback
from sparkpoint.storage.digest import new_digester
from sparkpoint.storage.interface import Moved, unwatched

__all__ = [
    "CHUNK",
    "chunks_of",
    "copy_and_hash",
    "hash_file",
    "watched",
    "write_all",
    "write_and_hash",
    "write_parts",
]

CHUNK = 256 * 1024
"""Large enough that system calls do not count, small enough to stay in the cache of one core."""

_PARTS = 1024
"""Pieces that Linux takes in one call."""
_WRITEBACK = 1024 * 1024
"""Bytes after which the disk gets to work: what it takes is what a large copy waits for in the end,
so it should neither begin late nor get its work in heaps."""


def watched(chunks: Iterable[bytes], moved: Moved) -> Iterator[bytes]:
    """The same chunks; each is told of when it has been used."""
    for chunk in chunks:
        yield chunk
        moved(len(chunk))


def chunks_of(stream: IO[bytes], size: int = CHUNK) -> Iterator[bytes]:
    """The rest of a stream in pieces."""
    while chunk := stream.read(size):
        yield chunk


def write_all(descriptor: int, data: bytes | memoryview) -> None:
    """Write everything: the kernel may take less at once."""
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]


def write_parts(descriptor: int, parts: Sequence[bytes]) -> int:
    """Write many small pieces with few calls, and without putting them together; their length."""
    size = 0
    for at in range(0, len(parts), _PARTS):
        some = parts[at : at + _PARTS]
        wanted, written = sum(map(len, some)), os.writev(descriptor, some)
        if written < wanted:
            write_all(descriptor, b"".join(some)[written:])
        if wanted >= _WRITEBACK:
            start_writeback(descriptor, size)
        size += wanted
    return size


_of_thread = threading.local()


def _buffer() -> memoryview:
    """This thread's own: a new one for each file would be fetched into the cache anew."""
    if not hasattr(_of_thread, "buffer"):
        _of_thread.buffer = memoryview(bytearray(CHUNK))
    found: memoryview = _of_thread.buffer
    return found


def hash_file(descriptor: int, *, like: str = "", moved: Moved = unwatched) -> str:
    """The digest, as `like`, of the content from the start; leaves the position alone."""
    digest, position, buffer = new_digester(like), 0, _buffer()
    while count := os.preadv(descriptor, [buffer], position):
        digest.update(buffer[:count])
        position += count
        moved(count)
    return digest.hexdigest()


def copy_and_hash(
    source: int,
    target: int,
    *,
    reading: AbstractContextManager[None],
    like: str = "",
    moved: Moved = unwatched,
) -> tuple[str, int]:
    """Copy to the end; the digest, as `like`, and number of the bytes that the target has now.

    `reading` surrounds every read of the source, so that its errors are told from the target's.
    Blocks that the file system shares are read as well: 0.4 s per GiB on the same two cores, and
    nobody starts from state that went bad on the disk.

    Through a buffer that stays in the processor's cache between reading, hashing and writing: on
    files of 16 MB that is as fast as letting the kernel copy and hashing the result (0.38 s per GiB
    on two cores), without mapping anything; buffers of 1 MiB take more than twice as long. Room is
    made first: a fifth less of the kernel's time than to find it for each piece.
    """
    if reflink(source, target):
        return hash_file(target, like=like, moved=moved), os.fstat(target).st_size
    expected = os.fstat(source).st_size
    allocated = expected > CHUNK and allocate(target, expected)
    digest, size, begun, buffer = new_digester(like), 0, 0, _buffer()
    while True:
        with reading:
            count = os.readv(source, [buffer])
        if not count:
            break
        digest.update(buffer[:count])
        write_all(target, buffer[:count])
        size += count
        moved(count)
        if size - begun >= _WRITEBACK:
            start_writeback(target, begun)
            begun = size
    if allocated and size < expected:
        os.ftruncate(target, size)
    start_writeback(target, begun)
    return digest.hexdigest(), size


def write_and_hash(descriptor: int, chunks: Iterable[bytes], *, like: str = "") -> tuple[str, int]:
    """Write a stream; its digest, as `like`, and length."""
    digest, size = new_digester(like), 0
    for chunk in chunks:
        digest.update(chunk)
        write_all(descriptor, chunk)
        size += len(chunk)
    return digest.hexdigest(), size
