"""Moving bytes between file descriptors, hashed on the way."""

import os
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager
from typing import IO

from sparkpoint.storage._linux import reflink, start_writeback
from sparkpoint.storage.digest import new_digester

__all__ = [
    "CHUNK",
    "chunks_of",
    "copy_and_hash",
    "hash_file",
    "write_all",
    "write_and_hash",
]

CHUNK = 256 * 1024
"""Large enough that system calls do not count, small enough to stay in the cache of one core."""


def chunks_of(stream: IO[bytes], size: int = CHUNK) -> Iterator[bytes]:
    """The rest of a stream in pieces."""
    while chunk := stream.read(size):
        yield chunk


def write_all(descriptor: int, data: bytes | memoryview) -> None:
    """Write everything: the kernel may take less at once."""
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]


def hash_file(descriptor: int, *, like: str = "") -> str:
    """The digest, as `like`, of the content from the start; leaves the position alone."""
    digest, position = new_digester(like), 0
    buffer = memoryview(bytearray(CHUNK))
    while count := os.preadv(descriptor, [buffer], position):
        digest.update(buffer[:count])
        position += count
    return digest.hexdigest()


def copy_and_hash(
    source: int, target: int, *, reading: AbstractContextManager[None], like: str = ""
) -> tuple[str, int]:
    """Copy to the end; the digest, as `like`, and number of the bytes that the target has now.

    `reading` surrounds every read of the source, so that its errors are told from the target's.
    Blocks that the file system shares are read as well: 0.4 s per GiB on the same two cores, and
    nobody starts from state that went bad on the disk.

    Through a buffer that stays in the processor's cache between reading, hashing and writing: on
    files of 16 MB that is as fast as letting the kernel copy and hashing the result (0.38 s per GiB
    on two cores), without mapping anything; buffers of 1 MiB take more than twice as long.
    """
    if reflink(source, target):
        return hash_file(target, like=like), os.fstat(target).st_size
    digest, size = new_digester(like), 0
    buffer = memoryview(bytearray(CHUNK))
    while True:
        with reading:
            count = os.readv(source, [buffer])
        if not count:
            break
        digest.update(buffer[:count])
        write_all(target, buffer[:count])
        size += count
    start_writeback(target)
    return digest.hexdigest(), size


def write_and_hash(descriptor: int, chunks: Iterable[bytes], *, like: str = "") -> tuple[str, int]:
    """Write a stream; its digest, as `like`, and length."""
    digest, size = new_digester(like), 0
    for chunk in chunks:
        digest.update(chunk)
        write_all(descriptor, chunk)
        size += len(chunk)
    return digest.hexdigest(), size
