"""LZ4 block streams read and written a few megabytes at a time, every checksum compared.

`checkpoint/lz4.py` looks into the beginning of a stream; this goes through all of it. Where the
libraries that come with Spark's Python (numpy, pyarrow) are installed, they do the work on bytes,
ten times as fast; without them blocks are decompressed in Python, and written as they are.
"""

import struct
from collections.abc import Iterable, Iterator, Sequence
from typing import BinaryIO

from sparkpoint.checkpoint.errors import DamagedError
from sparkpoint.state import swift

__all__ = ["BLOCK", "END", "framed_blocks", "inflate"]

BLOCK = 32 * 1024
"""What Spark writes at once."""

_HEADER = struct.Struct("<8sBIII")
_MAGIC = b"LZ4Block"
_RAW, _LZ4 = 0x10, 0x20
_LEVEL_BASE, _LEVEL = 10, 5
_LARGEST = 32 * 1024 * 1024
_CHECKSUM_BITS = 0x0FFFFFFF
_BATCH = 4 * 1024 * 1024

END = _HEADER.pack(_MAGIC, _RAW | _LEVEL, 0, 0, 0)
"""The block that ends a stream."""


def inflate(stream: BinaryIO, path: str) -> Iterator[bytes]:
    """The content of a stream in pieces of some megabytes; DamagedError if it is not whole."""
    blocks: list[bytes] = []
    checksums: list[int] = []
    size = 0
    while (header := _header(stream, path)) is not None:
        method, packed, length, checksum = header
        blocks.append(_content(_exactly(stream, packed, path), method, length, path))
        checksums.append(checksum)
        size += length
        if size >= _BATCH:
            yield _checked(blocks, checksums, path)
            blocks, checksums, size = [], [], 0
    if blocks:
        yield _checked(blocks, checksums, path)


def framed_blocks(blocks: Sequence[bytes]) -> Iterator[bytes]:
    """Each block, of `BLOCK` bytes at most, as a stream holds it."""
    for block, checksum in zip(blocks, swift.checksums(blocks), strict=True):
        packed = swift.compress(block)
        method = _RAW if packed is None else _LZ4
        content = block if packed is None else packed
        yield _HEADER.pack(
            _MAGIC, method | _LEVEL, len(content), len(block), checksum & _CHECKSUM_BITS
        )
        yield content


def _header(stream: BinaryIO, path: str) -> tuple[int, int, int, int] | None:
    """Method, packed size, size and checksum of the next block; None at the end."""
    data = _exactly(stream, _HEADER.size, path)
    magic, token, packed, length, checksum = _HEADER.unpack(data)
    method, largest = token & 0xF0, 1 << (_LEVEL_BASE + (token & 0x0F))
    fits = 0 <= length <= min(largest, _LARGEST) and 0 <= packed <= _LARGEST
    if magic != _MAGIC or method not in (_RAW, _LZ4) or not fits:
        raise DamagedError(f"{path} is no LZ4 stream, although the offset log says so.")
    return (method, packed, length, checksum) if length else None


def _exactly(stream: BinaryIO, count: int, path: str) -> bytes:
    data = stream.read(count)
    # A stream over a network may return less than it has.
    while len(data) < count and (more := stream.read(count - len(data))):
        data += more
    if len(data) < count:
        raise DamagedError(f"{path} is truncated. Restore an older savepoint.")
    return data


def _content(packed: bytes, method: int, length: int, path: str) -> bytes:
    data = packed if method == _RAW else swift.decompress(packed, length, path)
    if len(data) != length:
        raise DamagedError(f"{path} is damaged: a block has {len(data)} bytes, not {length}.")
    return data


def _checked(blocks: Sequence[bytes], expected: Iterable[int], path: str) -> bytes:
    for found, checksum in zip(swift.checksums(blocks), expected, strict=True):
        if found & _CHECKSUM_BITS != checksum:
            raise DamagedError(
                f"{path} is damaged: a block does not have its checksum. "
                "Restore an older savepoint."
            )
    return b"".join(blocks)
