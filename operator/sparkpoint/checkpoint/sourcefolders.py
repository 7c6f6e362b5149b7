"""Which folder below `sources/` belongs to which line of the offset log.

Mostly the one of its number. But a source that a query reads twice, as a join with itself does, has
a line for each reading and one folder for all of them; the folders after it move up. Nothing on
disk says so. What tells is that such lines are always the same, and that folders are too few.
"""

from collections.abc import Collection, Iterator, Sequence

from sparkpoint.checkpoint.errors import UnknownFormatError

__all__ = ["Line", "source_folders"]

Line = tuple[str | None, str | None]
"""Offsets of one reading: at the batch, and at the one that was begun after it."""

_MOST_REPEATED = 12
"""Lines that may be repetitions; each doubles the ways to be looked at."""


def source_folders(
    lines: Sequence[Line], logged: Collection[int], folders: Collection[str]
) -> tuple[str, ...]:
    """The folder of each line. `logged`: the lines whose source must have a folder.

    UnknownFormatError if it could be one or the other, and different files were needed.
    """
    own = tuple(str(number) for number in range(len(lines)))
    if all(own[number] in folders for number in logged):
        return own
    repeated = [n for n in logged if any(lines[n] == lines[m] for m in logged if m < n)]
    if not repeated or len(repeated) > _MOST_REPEATED:
        return own
    fitting = {
        _needs(lines, way): way
        for way in _ways(lines, logged, own=0, chosen=())
        if all(way[n] in folders for n in logged) and set(folders) <= set(way)
    }
    if len(fitting) > 1:
        raise UnknownFormatError(
            "A source is read more than once, and which folder of sources/ is whose cannot be "
            "told at this batch: capture at another one."
        )
    return next(iter(fitting.values()), own)


def _needs(lines: Sequence[Line], way: tuple[str, ...]) -> frozenset[tuple[str, Line]]:
    """What a way asks of each folder: ways that ask the same are one."""
    return frozenset(zip(way, lines, strict=True))


def _ways(
    lines: Sequence[Line], logged: Collection[int], *, own: int, chosen: tuple[str, ...]
) -> Iterator[tuple[str, ...]]:
    """Every way to give folders: a new one, in order, or that of an earlier line that is equal."""
    number = len(chosen)
    if number == len(lines):
        yield chosen
        return
    yield from _ways(lines, logged, own=own + 1, chosen=(*chosen, str(own)))
    if number in logged:
        earlier = {chosen[m] for m in logged if m < number and lines[m] == lines[number]}
        for folder in sorted(earlier):
            yield from _ways(lines, logged, own=own, chosen=(*chosen, folder))
