"""Schedules as cron writes them, in UTC: what they mean, without a clock.

Five fields: minute, hour, day of month, month, day of week (0 and 7 are Sunday). As in cron itself,
a day matches if either of its two fields does, unless one of them begins with `*`. Names of days
and months are not taken, nor is `@hourly`.
"""

from collections.abc import Iterator
from datetime import UTC, datetime, time, timedelta
from typing import Self

from sparkpoint.api.scalars import Word, expected

__all__ = ["Cron"]

_MINUTE, _HOUR, _DAY, _MONTH, _WEEKDAY = range(5)
_BOUNDS = ((0, 59), (0, 23), (1, 31), (1, 12), (0, 7))
_NUMBERS = (
    "[0-5]?[0-9]",
    "[01]?[0-9]|2[0-3]",
    "0?[1-9]|[12][0-9]|3[01]",
    "0?[1-9]|1[0-2]",
    "[0-7]",
)
_WINDOWS = (timedelta(hours=1), timedelta(days=1), timedelta(days=32), timedelta(days=3000))
# The longest gap is that of 29 February around a year such as 2100, which is not a leap year.
_LONGEST_GAP = timedelta(days=8 * 366)


def _field_pattern(number: str) -> str:
    part = rf"(\*|({number})(-({number}))?)(/[1-9][0-9]?)?"
    return f"{part}(,{part})*"


class Cron(Word):
    """Times as cron writes them: minute, hour, day of month, month, day of week; in UTC."""

    __slots__ = ()
    pattern = expected(
        f"^{' '.join(_field_pattern(number) for number in _NUMBERS)}$",
        "five fields of cron, such as 0 */6 * * *",
    )
    longest = 128

    def __new__(cls, text: str) -> Self:
        made = super().__new__(cls, text)
        if made.after(datetime(2000, 1, 1, tzinfo=UTC)) is None:
            raise ValueError(f"{text!r} names a day that no year has")
        return made

    def after(self, moment: datetime) -> datetime | None:
        """The first time later than `moment`; None for a date that does not exist."""
        fields = [_numbers(text, *_BOUNDS[index]) for index, text in enumerate(self.split(" "))]
        begin = moment.astimezone(UTC).replace(second=0, microsecond=0) + timedelta(minutes=1)
        for day in _days(begin):
            if not self._is_on(day, fields):
                continue
            for hour in sorted(fields[_HOUR]):
                if day.replace(hour=hour, minute=59) < begin:
                    continue
                for minute in sorted(fields[_MINUTE]):
                    found = day.replace(hour=hour, minute=minute)
                    if found >= begin:
                        return found
        return None

    def latest(self, moment: datetime) -> datetime | None:
        """The last time that is not later than `moment`; None if there was none for years."""
        for window in _WINDOWS:
            found = self.after(moment - window)
            if found is None or found > moment:
                continue
            while (later := self.after(found)) is not None and later <= moment:
                found = later
            return found
        return None

    def _is_on(self, day: datetime, fields: list[frozenset[int]]) -> bool:
        if day.month not in fields[_MONTH]:
            return False
        texts = self.split(" ")
        of_month = day.day in fields[_DAY]
        of_week = not fields[_WEEKDAY].isdisjoint({day.isoweekday(), day.isoweekday() % 7})
        if "*" in (texts[_DAY][0], texts[_WEEKDAY][0]):
            return of_month and of_week
        return of_month or of_week


def _days(begin: datetime) -> Iterator[datetime]:
    first = datetime.combine(begin.date(), time(), tzinfo=UTC)
    for number in range(_LONGEST_GAP.days + 1):
        yield first + timedelta(days=number)


def _numbers(text: str, lowest: int, highest: int) -> frozenset[int]:
    return frozenset(
        number for part in text.split(",") for number in _part_numbers(part, lowest, highest)
    )


def _part_numbers(part: str, lowest: int, highest: int) -> range:
    span, _, step = part.partition("/")
    if span == "*":
        return range(lowest, highest + 1, int(step or 1))
    first, _, last = span.partition("-")
    # `5/15` begins at 5 and has no end of its own; a plain number is its own end.
    end = int(last) if last else highest if step else int(first)
    return range(int(first), end + 1, int(step or 1))
