"""When each of many resources has its turn, so that not all of them have it at once."""

import hashlib
from datetime import timedelta

__all__ = ["spread"]


def spread(uid: str, over: timedelta) -> timedelta:
    """A part of this time: always the same for the same resource, and another for most others."""
    share = int.from_bytes(hashlib.sha256(uid.encode()).digest()[:4]) / 2**32
    return over * share
