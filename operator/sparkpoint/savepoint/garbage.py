"""How often Python looks for garbage in cycles while tens of thousands of records are made.

It looks after every 700 new objects that outnumber those that went, and each time again at many
that stay: a tenth of what a capture of small files takes. Our records are in no cycles. Some of
what boto3 leaves behind is, so the search goes on, at longer intervals. Nothing here is about
objects of a repository: see collect.py for those.
"""

import contextlib
import gc
import threading
from collections.abc import Iterator

__all__ = ["seldom_searched"]

_OBJECTS = 10_000
"""New ones between two searches."""

_lock = threading.Lock()
_inside = 0
_usual = gc.get_threshold()


@contextlib.contextmanager
def seldom_searched() -> Iterator[None]:
    """Search seldom within; as before after the last of those that run at the same time."""
    global _inside, _usual
    with _lock:
        if not _inside:
            _usual = gc.get_threshold()
            # Whoever has turned it off, or wants it even less often, is left alone.
            if 0 < _usual[0] < _OBJECTS:
                gc.set_threshold(_OBJECTS, *_usual[1:])
        _inside += 1
    try:
        yield
    finally:
        with _lock:
            _inside -= 1
            if not _inside:
                gc.set_threshold(*_usual)
