"""Memory in the state of a machine that has been in use: full, with what may be dropped at once."""

import os
import random
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from dev.cache import cache_root

__all__ = ["filled_memory", "ready_memory"]

_MIB = 1024 * 1024
_FREE = 2048 * _MIB
"""About what the kernel itself keeps free of a full memory of 24 GiB."""
_MOST = 32 * 1024
"""MiB read in one go. A machine with more memory than that is hardly a virtual one."""
_SIZE = 8 * 1024**4
_STEP = 16


@contextmanager
def filled_memory() -> Iterator[None]:
    """Within it, `ready_memory` has something to read; what it filled is given back at the end."""
    try:
        yield
    finally:
        _zeros().unlink(missing_ok=True)


def ready_memory() -> None:
    """Fill what is free with pages of a file of holes, which cost no disk and are dropped first.

    A virtual machine gives memory that is free back to its host, and every page that it takes
    again costs many times what copying to it does. So whoever used more free memory, or used it
    later, would seem slow. Pages that the kernel takes from its own cache are this machine's, and
    on a server in use that is where they come from.
    """
    file = _zeros()
    file.parent.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(file, os.O_RDWR | os.O_CREAT)
    try:
        os.ftruncate(descriptor, _SIZE)
        # Somewhere else each time: what was read before is in memory already, or was dropped.
        at = random.randrange(_SIZE // 2 // _MIB) * _MIB
        buffer = [bytearray(_MIB)]
        for done in range(_MOST):
            if done % _STEP == 0 and _free() < _FREE:
                break
            os.preadv(descriptor, buffer, at + done * _MIB)
    finally:
        os.close(descriptor)


def _zeros() -> Path:
    """On a disk, not in /tmp, which may be memory itself."""
    return cache_root() / "bench-work" / "zeros"


def _free() -> int:
    for line in Path("/proc/meminfo").read_text().splitlines():
        name, _, value = line.partition(":")
        if name == "MemFree":
            return int(value.split()[0]) * 1024
    raise RuntimeError("/proc/meminfo has no MemFree.")
