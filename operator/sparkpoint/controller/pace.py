"""How often jobs that run well are looked at: the more there are, the less often each.

So many of them together cost as much as few hundred do. Whatever happens to a job wakes it at once:
this is about what nobody tells, such as how its queries do, or another text in its ConfigMap.
"""

from collections.abc import Callable
from typing import Final

__all__ = ["Pace"]

_LOOKS: Final = 20.0
"""At agents, in a second."""
_SCRIPTS: Final = 10.0
"""Read in a second."""
_TELLING: Final = 5.0
"""Writes in a second that only tell how queries do."""
_REPAIRS: Final = 2.0
"""Looks in a second at the objects beside drivers."""
_SCRIPT: Final = 15.0
_TOLD: Final = 30.0


class Pace:
    """Seconds between two of a kind for one job; `jobs` says how many there are."""

    def __init__(self, jobs: Callable[[], int]) -> None:
        self._jobs = jobs

    def look(self, wanted: float) -> float:
        """Between two looks at a job that wants to be looked at so often."""
        return max(wanted, self._jobs() / _LOOKS)

    def script(self) -> float:
        """Between two looks at the text of its script."""
        return max(_SCRIPT, self._jobs() / _SCRIPTS)

    def repair(self, wanted: float) -> float:
        """Between two looks at the objects beside its driver."""
        return max(wanted, self._jobs() / _REPAIRS)

    def telling(self) -> float:
        """Between two writes of its progress."""
        return max(_TOLD, self._jobs() / _TELLING)
