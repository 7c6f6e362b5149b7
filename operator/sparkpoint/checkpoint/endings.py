"""Whether a file of changes or a snapshot came to its end, told by its last bytes.

A disk that filled up, or a host that lost power, leaves files that are empty or cut off, and Spark
finds out only when it loads them. A stream of LZ4 blocks, Spark's default, ends with an empty
block. Streams of other codecs have no end of their own: of them only emptiness can be told. What
is in between is not looked at: that takes as long as loading.
"""

from collections.abc import Mapping

from sparkpoint.checkpoint.errors import DamagedError
from sparkpoint.checkpoint.lz4 import END_BYTES, is_end
from sparkpoint.checkpoint.names import CODEC, DECODABLE, Kind, codec_name

__all__ = ["END_BYTES", "check_end", "has_end", "is_stream", "truncated"]

_STREAMS = tuple(f".{kind.value}" for kind in (Kind.DELTA, Kind.SNAPSHOT, Kind.CHANGELOG))


def is_stream(path: str) -> bool:
    """Whether the file is written as one compressed stream, and so never empty.

    By its path below the query, or below the folder that the query is in.
    """
    # Asked of every file, and there may be tens of thousands: names are not taken apart for it.
    return path.endswith(_STREAMS) and (
        path.startswith("state/") or "state" in path.split("/", 2)[:2]
    )


def has_end(path: str, conf: Mapping[str, str]) -> bool:
    """Whether its last bytes tell if it is whole, in a query with this configuration."""
    return is_stream(path) and codec_name(conf.get(CODEC, DECODABLE)) == DECODABLE


def check_end(path: str, tail: bytes) -> None:
    """DamagedError unless these last `END_BYTES` bytes of a file that has an end are one."""
    if not is_end(tail[-END_BYTES:]):
        raise truncated(path)


def truncated(path: str) -> DamagedError:
    """What is said of one that is not whole."""
    return DamagedError(f"{path} is truncated. Restore an older savepoint.")
