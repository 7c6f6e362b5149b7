"""Sizes, ages, tables and bars as people read them."""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Protocol

__all__ = ["age", "bar_line", "count", "fields", "moment", "new_share", "seconds", "size", "table"]
__all__ += ["one_line", "repository_options", "word"]

_UNITS = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")
_AGES = (("min", 60.0, 60.0), ("h", 3600.0, 48.0), ("d", 86400.0, 60.0), ("mo", 2629800.0, 24.0))
"""Unit, its seconds, and how many of it are said before the next one takes over."""
_YEAR = 31557600.0
_BAR = 24


def size(number: int) -> str:
    """`0 B`, `1.5 KiB`, `340 MiB`: three digits at most before the unit."""
    value, unit = float(number), _UNITS[0]
    for unit in _UNITS:
        if value < 999.5 or unit == _UNITS[-1]:
            break
        value /= 1024
    if unit == "B" or value >= 99.95:
        return f"{value:.0f} {unit}"
    return f"{value:.1f} {unit}"


def age(then: datetime, now: datetime) -> str:
    """`3 h ago`; a clock that is ahead of ours gives `just now`."""
    passed = (now - then).total_seconds()
    if passed < 1:
        return "just now"
    if passed < 60:
        return f"{int(passed)} s ago"
    for unit, length, limit in _AGES:
        if passed < length * limit:
            return f"{int(passed / length)} {unit} ago"
    return f"{int(passed / _YEAR)} y ago"


def moment(time: datetime) -> str:
    """RFC 3339 in UTC, to the millisecond: `2026-07-30T10:15:00.000Z`."""
    return time.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def seconds(value: float) -> str:
    """`0.42 s`, `12 s`, `3 min 20 s`."""
    if value < 10:
        return f"{value:.2f} s"
    if value < 60:
        return f"{value:.0f} s"
    return f"{int(value // 60)} min {int(value % 60)} s"


def count(number: int, singular: str, plural: str | None = None) -> str:
    """`1 file`, `2 files`."""
    return f"{number} {singular if number == 1 else plural or f'{singular}s'}"


def word(value: object) -> str:
    """As a table has it; `-` for nothing."""
    return "-" if value is None or value == "" else str(value)


def one_line(text: str) -> str:
    """What somebody wrote, in a place that has one line for it."""
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text)


def repository_options(uri: str, endpoint_url: str | None) -> list[str]:
    """What leads to a repository, in a command that is shown."""
    words = ["--repository", uri]
    if endpoint_url and uri.startswith(("s3://", "s3a://")):
        words += ["--endpoint-url", endpoint_url]
    return words


def new_share(new: int, total: int) -> str:
    """`1.2 MiB (4 %)`: how much of a whole is new."""
    # A repository stores small extras too, so the new bytes may exceed the files'.
    return f"{size(new)} ({min(100, round(100 * new / total))} %)" if total else size(new)


def fields(pairs: Iterable[tuple[str, str]], *, indent: str = "  ") -> list[str]:
    """Names and values below each other, the values aligned; empty ones are left out."""
    shown = [(name, value) for name, value in pairs if value]
    width = max((len(name) for name, _ in shown), default=0)
    return [f"{indent}{name:<{width}}  {value}" for name, value in shown]


def table(header: Sequence[str], rows: Iterable[Sequence[str]], *, right: str = "") -> str:
    """Columns two spaces apart; those named in `right` (space-separated) are right-aligned."""
    lines = [header, *rows]
    widths = [max(len(line[column]) for line in lines) for column in range(len(header))]
    sides = [">" if name in right.split() else "<" for name in header]
    return "\n".join(
        "  ".join(
            f"{cell:{side}{width}}" for cell, side, width in zip(line, sides, widths, strict=True)
        ).rstrip()
        for line in lines
    )


class _Done(Protocol):
    what: str
    files: int
    bytes: int
    total_files: int
    total_bytes: int


def bar_line(done: _Done, *, seconds: float, width: int) -> str:
    """One line about how far something is, never wider than the terminal."""
    of, total = (
        (done.bytes, done.total_bytes) if done.total_bytes else (done.files, done.total_files)
    )
    share = min(1.0, of / total) if total else 0.0
    sizes = f"{size(done.bytes)} of {size(done.total_bytes)}  " if done.total_bytes else ""
    # An agent counts bytes only.
    bytes_only = done.total_bytes and not done.total_files
    files = "" if bytes_only else f"{done.files} of {count(done.total_files, 'file')}  "
    end = f"{seconds:.0f} s"
    room = max(0, width - 1)
    # The narrower the terminal, the less there is; how far it is and how long it takes stay.
    for length, counts in ((_BAR, sizes + files), (_BAR // 2, sizes + files), (_BAR // 2, sizes)):
        line = f"{done.what}  {_bar(share, length)} {share:4.0%}  {counts}{end}"
        if len(line) <= room:
            return line
    least = f"{share:4.0%}  {end}"
    return f"{done.what[: max(0, room - len(least) - 2)]}  {least}"[:room]


def _bar(share: float, length: int) -> str:
    filled = int(share * length)
    return f"[{'#' * filled}{'-' * (length - filled)}]"
