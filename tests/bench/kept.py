"""What was measured, kept beside the page, so that a part can be measured again by itself."""

from collections.abc import Iterable, Sequence
from pathlib import Path

from pydantic import TypeAdapter

from tests.bench.table import Measured

__all__ = ["keep"]


_ALL = TypeAdapter(list[Measured])


def _kept(file: Path) -> list[Measured]:
    """As it was written last; nothing, if it never was."""
    return _ALL.validate_json(file.read_bytes()) if file.exists() else []


def keep(file: Path, found: Sequence[Measured], order: Iterable[str]) -> list[Measured]:
    """Put new measurements in the place of their former ones; all of them, in this order."""
    known = {each.section.name: each for each in (*_kept(file), *found)}
    everything = [known[name] for name in order if name in known]
    file.write_bytes(_ALL.dump_json(everything, indent=1) + b"\n")
    return everything
