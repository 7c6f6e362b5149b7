"""Where an operator is to be held: right after a record was written, before anything is done.

The operator knows nothing of it. `launched.py` starts it with the one function wrapped that writes
records; a folder is how both sides speak. A file there says at what to hold, another that it is
held; it goes on once that one is gone, unless it was killed meanwhile.
"""

import json
import time
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from sparkpoint.lifecycle.phases import Kind, Phase

__all__ = ["Breakpoints", "Hit"]

_LOOK = 0.02


@dataclass(frozen=True, slots=True)
class Hit:
    """What was written as the operator was held."""

    kind: str
    phase: str
    operation: str


class Breakpoints:
    """The folder, from both sides."""

    def __init__(self, folder: Path) -> None:
        self._wanted, self._held = folder / "wanted.json", folder / "held.json"
        folder.mkdir(parents=True, exist_ok=True)

    def arm(self, points: Iterable[tuple[Kind, Phase]]) -> None:
        """Hold at each of these, once; forget all others."""
        _write(self._wanted, [[kind.value, phase.value] for kind, phase in points])

    def armed(self) -> list[list[str]]:
        """What has not been reached yet."""
        found: list[list[str]] = json.loads(self._wanted.read_text())
        return found

    def held(self) -> Hit | None:
        """What the operator is held at, if it is."""
        return Hit(**json.loads(self._held.read_text())) if self._held.exists() else None

    def release(self) -> None:
        """Let it go on."""
        self._held.unlink(missing_ok=True)

    def pass_by(self, status: dict[str, Any]) -> None:
        """Called by the operator with what it has written; returns when it may go on."""
        operation = (status.get("record") or {}).get("operation") or {}
        point, wanted = [operation.get("kind"), operation.get("phase")], self.armed()
        if point not in wanted:
            return
        # First, so that whoever comes after one that is killed here does not stop here again.
        _write(self._wanted, [each for each in wanted if each != point])
        hit = Hit(operation["kind"], operation["phase"], operation["id"])
        _write(self._held, asdict(hit))
        while self._held.exists():
            time.sleep(_LOOK)


def _write(file: Path, content: object) -> None:
    draft = file.with_suffix(".new")
    draft.write_text(json.dumps(content))
    draft.rename(file)
