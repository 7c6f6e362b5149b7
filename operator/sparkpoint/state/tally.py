"""What was seen of a store: rows, bytes, and a digest that does not depend on their order.

The digest is the sum, modulo 2^128, of a BLAKE2b of each key and value: two stores with the same
rows have the same one, however the rows are spread over partitions and files.
"""

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from sparkpoint.state.records import Record

__all__ = ["StoreTally", "Tally"]

_BYTES = 16
_MODULUS = 1 << (8 * _BYTES)


@dataclass(slots=True)
class Tally:
    """The rows of one partition, or of several."""

    rows: int = 0
    bytes: int = 0
    """Of keys and values, uncompressed."""
    digest: int = 0

    def through(self, records: Iterable[Record]) -> Iterator[Record]:
        """Pass rows on, and count them once they are all through."""
        blake2b, from_bytes = hashlib.blake2b, int.from_bytes
        rows = size = total = 0
        for record in records:
            key, value = record
            # The key's length keeps (ab, c) from (a, bc).
            length = len(key)
            seen = blake2b(b"%d:%b%b" % (length, key, value), digest_size=_BYTES)
            total += from_bytes(seen.digest(), "big")
            rows += 1
            size += length + len(value)
            yield record
        self.rows += rows
        self.bytes += size
        self.digest = (self.digest + total) % _MODULUS


@dataclass(frozen=True, slots=True)
class StoreTally:
    """One store over all of its partitions."""

    operator: int
    store: str
    partitions: tuple[Tally, ...] = field(default_factory=tuple)

    @property
    def rows(self) -> int:
        """Of all partitions."""
        return sum(each.rows for each in self.partitions)

    @property
    def bytes(self) -> int:
        """Of keys and values, uncompressed."""
        return sum(each.bytes for each in self.partitions)

    @property
    def digest(self) -> str:
        """The same for the same rows, whatever their partitions."""
        return f"{sum(each.digest for each in self.partitions) % _MODULUS:032x}"

    @property
    def skew(self) -> float:
        """The largest partition over the mean; 1 for an even spread, and for no rows at all."""
        rows = self.rows
        largest = max((each.rows for each in self.partitions), default=0)
        return largest * len(self.partitions) / rows if rows else 1.0
