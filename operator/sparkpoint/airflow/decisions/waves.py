"""In which order the jobs of a campaign are changed: a few first, and then more at once."""

from collections.abc import Sequence
from typing import Final, TypeVar

from sparkpoint.airflow.decisions.errors import WavesError

__all__ = ["MOST_WAVES", "plan_waves"]

MOST_WAVES: Final = 10
"""A DAG has its tasks before it knows its jobs."""

_Item = TypeVar("_Item")


def plan_waves(jobs: Sequence[_Item], sizes: Sequence[int]) -> list[list[_Item]]:
    """The jobs in waves of these sizes, in their order; the last size holds for all that follow.

    Always `MOST_WAVES` of them; those at the end may be empty.
    """
    if not jobs:
        raise WavesError("There is no job to change: name some, or another selector.")
    if not sizes or min(sizes) < 1:
        raise WavesError(f"Waves of {list(sizes)} jobs make no sense: give numbers from 1 on.")
    waves: list[list[_Item]] = []
    rest = list(jobs)
    while rest:
        size = sizes[min(len(waves), len(sizes) - 1)]
        waves.append(rest[:size])
        rest = rest[size:]
    if len(waves) > MOST_WAVES:
        raise WavesError(
            f"{len(jobs)} jobs in waves of {list(sizes)} are {len(waves)} waves, and there is room "
            f"for {MOST_WAVES}: make the last waves larger."
        )
    return [*waves, *([] for _ in range(MOST_WAVES - len(waves)))]
