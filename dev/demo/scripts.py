"""The example's script, and what becomes of it in the demo."""

import difflib
from typing import Final

from dev.jobs import EXAMPLE

__all__ = ["change", "first", "mistaken", "with_sections"]

_WRITE: Final = "        batch.coalesce(1).write.mode"
_WITH_SECTIONS: Final = (
    '        section = F.regexp_extract("url", "^/[^/]*", 0)\n'
    '        batch.withColumn("section", section).coalesce(1).write.mode'
)
_MISTAKEN: Final = "        batch.orderBy(batch.cuont.desc()).coalesce(1).write.mode"


def first() -> str:
    """As it is in `examples/`."""
    return (EXAMPLE / "url_visits.py").read_text()


def with_sections() -> str:
    """The output gets another column; the state stays as it is."""
    return _replaced(_WITH_SECTIONS)


def mistaken() -> str:
    """A column with a typing mistake, in code that runs only when a batch does."""
    return _replaced(_MISTAKEN)


def change(old: str, new: str) -> str:
    """The lines that differ, as in a review."""
    lines = difflib.unified_diff(old.splitlines(), new.splitlines(), n=0, lineterm="")
    return "\n".join(line for line in lines if line[:2] not in ("--", "++", "@@"))


def _replaced(by: str) -> str:
    source = first()
    assert source.count(_WRITE) == 1
    return source.replace(_WRITE, by)
