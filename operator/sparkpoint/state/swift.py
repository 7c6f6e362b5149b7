"""Work on many bytes by numpy and pyarrow where they are installed, in Python where they are not.

Both ways give the same answers; `tests/unit/state` compares them. Images of jobs have both
libraries, because PySpark's own state APIs need them; the plain command line does without.
"""

import functools
import importlib
from collections.abc import Sequence
from typing import Any

from sparkpoint.checkpoint.errors import DamagedError
from sparkpoint.checkpoint.lz4 import decompress as decompress_slowly
from sparkpoint.checkpoint.lz4 import xxh32

__all__ = ["checksums", "compress", "decompress", "library"]

_SEED = 0x9747B28C
_MASK = 0xFFFFFFFF
_P1, _P2, _P3 = 2654435761, 2246822519, 3266489917
_FEW = 8
"""So many blocks at least before numpy is faster."""


@functools.cache
def library(name: str) -> Any:  # both are without types
    """The module of this name; None if it is not installed."""
    try:
        return importlib.import_module(name)
    except ImportError:
        return None


def decompress(block: bytes, size: int, path: str) -> bytes:
    """One LZ4 block of `size` bytes."""
    arrow = library("pyarrow")
    if arrow is None:
        return decompress_slowly(block, path, size + 1)
    try:
        content: bytes = arrow.decompress(block, size, codec="lz4_raw", asbytes=True)
    except OSError as error:
        raise DamagedError(f"{path} is damaged: {error}.") from error
    return content


def compress(block: bytes) -> bytes | None:
    """The block in LZ4; None if nobody here can, or if it would not be smaller."""
    arrow = library("pyarrow")
    if arrow is None or not block:
        return None
    packed: bytes = arrow.compress(block, codec="lz4_raw", asbytes=True)
    return packed if len(packed) < len(block) else None


def checksums(blocks: Sequence[bytes]) -> list[int]:
    """The xxHash of each block, with the seed of lz4-java."""
    numpy = library("numpy")
    size = max(map(len, blocks), default=0)
    alike = [number for number, block in enumerate(blocks) if len(block) == size]
    if numpy is None or len(alike) < _FEW or not size or size % 16:
        return [xxh32(block, seed=_SEED) for block in blocks]
    found = dict(zip(alike, _together(numpy, [blocks[n] for n in alike], size), strict=True))
    return [
        found[number] if number in found else xxh32(block, seed=_SEED)
        for number, block in enumerate(blocks)
    ]


def _together(numpy: Any, blocks: Sequence[bytes], size: int) -> list[int]:
    """The hashes of blocks of one size, a multiple of 16: one step for all of them at a time."""
    words = numpy.frombuffer(b"".join(blocks), dtype="<u4").reshape(len(blocks), size // 16, 4)
    # By stripe first, so that each step reads a run of memory.
    stripes = numpy.ascontiguousarray(words.transpose(1, 0, 2)) * numpy.uint32(_P2)
    start = [(_SEED + _P1 + _P2) & _MASK, (_SEED + _P2) & _MASK, _SEED, (_SEED - _P1) & _MASK]
    lanes = numpy.tile(numpy.array(start, dtype="<u4"), (len(blocks), 1))
    left, right, prime = numpy.uint32(13), numpy.uint32(19), numpy.uint32(_P1)
    high = numpy.empty_like(lanes)
    for stripe in stripes:
        lanes += stripe
        numpy.right_shift(lanes, right, out=high)
        lanes <<= left
        lanes |= high
        lanes *= prime
    return [_finish(*map(int, row), size=size) for row in lanes]


def _finish(a: int, b: int, c: int, d: int, *, size: int) -> int:
    mixed = _rotate(a, 1) + _rotate(b, 7) + _rotate(c, 12) + _rotate(d, 18) + size & _MASK
    mixed = (mixed ^ mixed >> 15) * _P2 & _MASK
    mixed = (mixed ^ mixed >> 13) * _P3 & _MASK
    return mixed ^ mixed >> 16


def _rotate(word: int, by: int) -> int:
    return (word << by | word >> (32 - by)) & _MASK
