"""Streams of LZ4 blocks as lz4-java frames them: Spark's default codec.

Compressed blocks are read; blocks are written only as they are, which every reader accepts. The
standard library has neither LZ4 nor its checksum, and the few blocks at stake need no fast ones.
"""

import struct

from sparkpoint.checkpoint.errors import DamagedError

__all__ = ["END_BYTES", "Inflated", "decompress", "framed", "is_end", "xxh32"]

_HEADER = struct.Struct("<8sBIII")
_MAGIC = b"LZ4Block"
_RAW, _LZ4 = 0x10, 0x20
_LEVEL_BASE = 10
_MAX_BLOCK = 32 * 1024 * 1024
_SEED = 0x9747B28C
_CHECKSUM_BITS = 0x0FFFFFFF
"""lz4-java keeps 28 of the checksum's 32 bits."""

END_BYTES = _HEADER.size
"""How long the empty block is that ends a stream."""
_NOTHING = bytes(END_BYTES - len(_MAGIC) - 1)
"""Its sizes and its checksum."""

_MASK = 0xFFFFFFFF
_P1, _P2, _P3, _P4, _P5 = 2654435761, 2246822519, 3266489917, 668265263, 374761393


class Inflated:
    """The decompressed beginning of a stream; `limit` bounds what is made of one block."""

    def __init__(self, data: bytes, path: str, *, limit: int = _MAX_BLOCK) -> None:
        self._compressed, self._path, self._limit = data, path, limit
        self._at = 0
        self._data = bytearray()
        self._level = 0

    def utf(self) -> str:
        """Take what Java's writeUTF wrote."""
        length = int.from_bytes(self._take(2), "big")
        return self._take(length).decode(errors="replace")

    def replaced(self, start: bytes) -> bytes:
        """The stream with `start` in place of what was taken of it; later blocks stay as they are.

        Only for whole streams.
        """
        return framed(start + self._data, level=self._level) + self._compressed[self._at :]

    def _take(self, count: int) -> bytes:
        while len(self._data) < count:
            self._data += self._next_block()
        taken = bytes(self._data[:count])
        del self._data[:count]
        return taken

    def _next_block(self) -> bytes:
        if len(self._compressed) < self._at + _HEADER.size:
            raise DamagedError(f"{self._path} is truncated.")
        magic, token, packed, size, _ = _HEADER.unpack_from(self._compressed, self._at)
        method, self._level = token & 0xF0, token & 0x0F
        if magic != _MAGIC or method not in (_RAW, _LZ4) or not 0 < size <= _MAX_BLOCK:
            raise DamagedError(f"{self._path} is no LZ4 stream, although the offset log says so.")
        start = self._at + _HEADER.size
        self._at = start + packed
        # A block may be cut by the end of the data; its beginning may be all that is needed.
        block = self._compressed[start : self._at]
        return block if method == _RAW else decompress(block, self._path, self._limit)


def is_end(block: bytes) -> bool:
    """Whether this is the empty block that ends a stream."""
    return (
        len(block) == END_BYTES
        and block.startswith(_MAGIC)
        and block.endswith(_NOTHING)
        and block[len(_MAGIC)] & 0xF0 == _RAW
    )


def framed(data: bytes, *, level: int) -> bytes:
    """The data in blocks that are stored as they are; `level` tells how large one may be."""
    largest = 1 << (_LEVEL_BASE + level)
    blocks = (data[at : at + largest] for at in range(0, len(data), largest))
    return b"".join(_block(block, level) for block in blocks)


def _block(data: bytes, level: int) -> bytes:
    checksum = xxh32(data, seed=_SEED) & _CHECKSUM_BITS
    return _HEADER.pack(_MAGIC, _RAW | level, len(data), len(data), checksum) + data


def xxh32(data: bytes, *, seed: int) -> int:
    """The xxHash of 32 bits, which Spark compares when it reads a block."""
    whole = len(data) & ~15
    mixed = _lanes(data[:whole], seed) if whole else seed + _P5
    mixed = (mixed + len(data)) & _MASK
    at = whole
    while at + 4 <= len(data):
        mixed = (mixed + int.from_bytes(data[at : at + 4], "little") * _P3) & _MASK
        mixed = (_rotate(mixed, 17) * _P4) & _MASK
        at += 4
    for byte in data[at:]:
        mixed = (_rotate((mixed + byte * _P5) & _MASK, 11) * _P1) & _MASK
    mixed = ((mixed ^ mixed >> 15) * _P2) & _MASK
    mixed = ((mixed ^ mixed >> 13) * _P3) & _MASK
    return mixed ^ mixed >> 16


def _lanes(data: bytes, seed: int) -> int:
    # Spelt out, because it runs over every byte: four times as fast as with functions.
    a, b, c, d = (seed + _P1 + _P2) & _MASK, (seed + _P2) & _MASK, seed, (seed - _P1) & _MASK
    for first, second, third, fourth in struct.iter_unpack("<4I", data):
        a = a + first * _P2 & _MASK
        a = (a << 13 | a >> 19) * _P1 & _MASK
        b = b + second * _P2 & _MASK
        b = (b << 13 | b >> 19) * _P1 & _MASK
        c = c + third * _P2 & _MASK
        c = (c << 13 | c >> 19) * _P1 & _MASK
        d = d + fourth * _P2 & _MASK
        d = (d << 13 | d >> 19) * _P1 & _MASK
    return _rotate(a, 1) + _rotate(b, 7) + _rotate(c, 12) + _rotate(d, 18)


def _rotate(word: int, by: int) -> int:
    return (word << by | word >> (32 - by)) & _MASK


def decompress(block: bytes, path: str, limit: int) -> bytes:
    """Decompress one block, or as much of it as is there, up to about `limit` bytes."""
    out = bytearray()
    at = 0
    try:
        while at < len(block) and len(out) < limit:
            token = block[at]
            literals, at = _length(block, at + 1, token >> 4)
            out += block[at : at + literals]
            at += literals
            if at >= len(block):
                break
            offset = int.from_bytes(block[at : at + 2], "little")
            match, at = _length(block, at + 2, token & 15)
            _copy(out, offset, min(match + 4, limit))
    except IndexError:
        # The block was cut inside a sequence; what came before it is good.
        pass
    except ValueError as error:
        raise DamagedError(f"{path} is damaged: {error}.") from error
    return bytes(out)


def _length(block: bytes, at: int, nibble: int) -> tuple[int, int]:
    if nibble < 15:
        return nibble, at
    length = nibble
    while True:
        length += block[at]
        at += 1
        if block[at - 1] != 255:
            return length, at


def _copy(out: bytearray, offset: int, count: int) -> None:
    if not 0 < offset <= len(out):
        raise ValueError("an LZ4 match points before the start")
    start = len(out) - offset
    if offset >= count:
        out += out[start : start + count]
        return
    pattern = bytes(out[start:])
    out += (pattern * (count // offset + 1))[:count]
