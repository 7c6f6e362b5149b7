"""Lineage of a store in state checkpoint format 2: which unique id each version carries.

Every changelog begins with the ids of the versions before it, back to the newest snapshot. Spark
loads a version by exactly this list, so it also tells which snapshots Spark will accept as a base.
Only LZ4, Spark's default codec, is decoded here.
"""

import struct
from collections.abc import Mapping

from sparkpoint.checkpoint.errors import DamagedError, UnknownFormatError
from sparkpoint.checkpoint.jsonlog import as_int, as_list, as_object, as_text, parse
from sparkpoint.checkpoint.names import is_unique_id

__all__ = ["HEAD_BYTES", "lineage_of_changelog"]

# Spark writes the lineage with writeUTF, which ends at 64 KiB; incompressible LZ4 adds little.
HEAD_BYTES = 256 * 1024
_HEADER = struct.Struct("<8sBIII")
_MAGIC = b"LZ4Block"
_RAW, _LZ4 = 0x10, 0x20
_MAX_BLOCK = 32 * 1024 * 1024
_WITH_LINEAGE = ("v3", "v4")


def lineage_of_changelog(head: bytes, path: str) -> Mapping[int, str]:
    """version -> unique id, of the versions before this changelog's, out of its first bytes."""
    data = _Inflated(head, path)
    version = data.utf()
    if version not in _WITH_LINEAGE:
        raise UnknownFormatError(
            f"{path} is a changelog of version {version[:20]!r}; with unique ids, "
            f"{' and '.join(_WITH_LINEAGE)} are known. A newer Sparkpoint may know it."
        )
    items = as_list(parse(data.utf(), path), path, "the lineage")
    lineage: dict[int, str] = {}
    for item in items:
        fields = as_object(item, path, "a lineage item")
        uid = as_text(fields.get("checkpointUniqueId"), path, "checkpointUniqueId")
        if not is_unique_id(uid):
            raise DamagedError(f"{path}: {uid[:80]!r} cannot be a unique id.")
        lineage[as_int(fields.get("version"), path, "version")] = uid
    return lineage


class _Inflated:
    """The decompressed beginning of a stream of LZ4 blocks, as lz4-java frames them."""

    def __init__(self, head: bytes, path: str) -> None:
        self._head, self._path = head, path
        self._at = 0
        self._data = bytearray()

    def utf(self) -> str:
        """Take what Java's writeUTF wrote."""
        length = int.from_bytes(self._take(2), "big")
        return self._take(length).decode(errors="replace")

    def _take(self, count: int) -> bytes:
        while len(self._data) < count:
            self._data += self._next_block()
        taken = bytes(self._data[:count])
        del self._data[:count]
        return taken

    def _next_block(self) -> bytes:
        if len(self._head) < self._at + _HEADER.size:
            raise DamagedError(f"{self._path} is truncated.")
        magic, token, packed, size, _ = _HEADER.unpack_from(self._head, self._at)
        method = token & 0xF0
        if magic != _MAGIC or method not in (_RAW, _LZ4) or not 0 < size <= _MAX_BLOCK:
            raise DamagedError(f"{self._path} is no LZ4 stream, although the offset log says so.")
        start = self._at + _HEADER.size
        self._at = start + packed
        # A block may be cut by the end of `head`; its beginning is all that is needed.
        block = self._head[start : self._at]
        return block if method == _RAW else _decompress(block, self._path)


def _decompress(block: bytes, path: str) -> bytes:
    """Decompress one LZ4 block, or as much of it as is there, up to the lineage's bound."""
    out = bytearray()
    at = 0
    try:
        while at < len(block) and len(out) < HEAD_BYTES:
            token = block[at]
            literals, at = _length(block, at + 1, token >> 4)
            out += block[at : at + literals]
            at += literals
            if at >= len(block):
                break
            offset = int.from_bytes(block[at : at + 2], "little")
            match, at = _length(block, at + 2, token & 15)
            _copy(out, offset, min(match + 4, HEAD_BYTES))
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
