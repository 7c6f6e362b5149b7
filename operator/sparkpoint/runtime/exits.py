"""Exit codes of a driver: a promise to the operator and to scripts.

A script's own code is kept. Ours lie where neither Python (1, 2), Spark (11, 50-58, 101, 124), the
shell (126-128) nor signals (129 and above) put theirs.
"""

from enum import IntEnum

__all__ = ["Exit"]


class Exit(IntEnum):
    """How a driver ended, where the script does not say."""

    OK = 0
    """Also: stopped at a boundary, on request or by a signal."""
    SCRIPT_FAILED = 1
    """An exception of the script, a syntax error: as Python."""
    SCRIPT_MISSING = 2
    """As Python."""
    QUERY_FAILED = 80
    """A query died and the script made nothing of it."""
    UNCLEAN = 81
    """Stopped on request, but not every query stands at a boundary."""
    NOT_ADMITTED = 82
    """The gate was not opened in time, or the epoch is over."""
    REFUSED = 83
    """A bad option, an epoch directory or a port that cannot be used."""
    INTERNAL = 84
    """A fault of ours."""
    INCOMPATIBLE = 85
    """The rehearsal showed that the script cannot go on from the savepoint: nothing was started."""
    INTERRUPTED = 130
    """The script let a KeyboardInterrupt through: as Python."""
