"""When each of many resources has its turn, so that not all of them have it at once."""

import hashlib
from datetime import timedelta
from typing import Final

__all__ = ["FIRST_LOOK", "FIRST_LOOK_AT_REST", "spread"]

FIRST_LOOK: Final = timedelta(seconds=5)
"""Over which the first passes are spread when the operator starts."""
FIRST_LOOK_AT_REST: Final = timedelta(hours=1)
"""The same of savepoints that nothing is to be done to."""


def spread(uid: str, over: timedelta) -> timedelta:
    """A part of this time: always the same for the same resource, and another for most others."""
    share = int.from_bytes(hashlib.sha256(uid.encode()).digest()[:4]) / 2**32
    return over * share
