"""Durations, memory, schedules and names: what they mean, and what is not one."""

import re
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sparkpoint.api.common import Record
from sparkpoint.api.cron import Cron
from sparkpoint.api.scalars import (
    EXPECTED,
    Cpu,
    Duration,
    Location,
    Memory,
    MountPath,
    Url,
)

NOW = datetime(2026, 11, 16, 13, 47, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("0s", 0),
        ("500ms", 0.5),
        ("30s", 30),
        ("5m", 300),
        ("1h30m", 5400),
        ("7d", 604800),
        ("1d2h3m4s5ms", 93784.005),
    ],
)
def test_duration_means(text: str, seconds: float) -> None:
    assert Duration(text).seconds == seconds
    assert Duration(text).timedelta == timedelta(seconds=seconds)


@pytest.mark.parametrize("text", ["", "5", "5 m", "m", "-5m", "5m5h", "1.5h", "5min", "123456s"])
def test_not_a_duration(text: str) -> None:
    with pytest.raises(ValueError, match="is not a duration such as"):
        Duration(text)


@settings(deadline=None)
@given(st.lists(st.integers(0, 99999), min_size=5, max_size=5), st.sets(st.integers(0, 4)))
def test_duration_is_the_sum_of_its_parts(numbers: list[int], chosen: set[int]) -> None:
    units = [("d", 86400), ("h", 3600), ("m", 60), ("s", 1), ("ms", 0.001)]
    used = [(numbers[at], *units[at]) for at in sorted(chosen or {2})]

    duration = Duration("".join(f"{number}{unit}" for number, unit, _ in used))

    wanted = sum((timedelta(seconds=number * length) for number, _, length in used), timedelta())
    assert abs(duration.timedelta - wanted) < timedelta(microseconds=10)


@pytest.mark.parametrize(
    ("text", "mebibytes"),
    [("512m", 512), ("512Mi", 512), ("1g", 1024), ("2Gi", 2048), ("1t", 1048576), ("1k", 1)],
)
def test_memory_means(text: str, mebibytes: int) -> None:
    assert Memory(text).mebibytes == mebibytes


def test_memory_in_bytes_is_exact() -> None:
    assert Memory("3k").bytes == 3072
    assert Memory("1Ti").bytes == 1024**4


@pytest.mark.parametrize("text", ["1G", "1M", "1", "0g", "1.5g", "g", "1gb", "-1g", "1 g"])
def test_not_an_amount_of_memory(text: str) -> None:
    with pytest.raises(ValueError, match="is not an amount of memory"):
        Memory(text)


@pytest.mark.parametrize(
    ("schedule", "after"),
    [
        ("* * * * *", datetime(2026, 11, 16, 13, 48, tzinfo=UTC)),
        ("0 */6 * * *", datetime(2026, 11, 16, 18, 0, tzinfo=UTC)),
        ("47 13 * * *", datetime(2026, 11, 17, 13, 47, tzinfo=UTC)),
        ("5/20 * * * *", datetime(2026, 11, 16, 14, 5, tzinfo=UTC)),
        ("0 0 1 1 *", datetime(2027, 1, 1, 0, 0, tzinfo=UTC)),
        ("0 0 29 2 *", datetime(2028, 2, 29, 0, 0, tzinfo=UTC)),
        ("30 4 * * 0", datetime(2026, 11, 22, 4, 30, tzinfo=UTC)),
        ("30 4 * * 7", datetime(2026, 11, 22, 4, 30, tzinfo=UTC)),
        ("0 9 * * 1-5", datetime(2026, 11, 17, 9, 0, tzinfo=UTC)),
        ("0 0 13 * 5", datetime(2026, 11, 20, 0, 0, tzinfo=UTC)),
        ("0,30 22-23 * * *", datetime(2026, 11, 16, 22, 0, tzinfo=UTC)),
    ],
)
def test_schedule_comes_next(schedule: str, after: datetime) -> None:
    assert Cron(schedule).after(NOW) == after


def test_schedule_is_in_utc_whatever_the_clock_says() -> None:
    local = datetime.fromisoformat("2026-11-16T23:30:00+05:30")

    assert Cron("0 18 * * *").after(local) == datetime(2026, 11, 17, 18, 0, tzinfo=UTC)


def test_schedule_of_a_leap_day_is_found_over_a_century_without_one() -> None:
    found = Cron("0 0 29 2 *").after(datetime(2096, 3, 1, tzinfo=UTC))

    assert found == datetime(2104, 2, 29, tzinfo=UTC)


@pytest.mark.parametrize(
    "text",
    ["", "* * * *", "60 * * * *", "* 24 * * *", "* * 0 * *", "* * * 13 *", "* * * * 8", "@daily"],
)
def test_not_a_schedule(text: str) -> None:
    with pytest.raises(ValueError, match="is not five fields of cron"):
        Cron(text)


def test_schedule_of_a_day_that_no_year_has_is_refused() -> None:
    with pytest.raises(ValueError, match="names a day that no year has"):
        Cron("0 0 31 2 *")


@settings(deadline=None)
@given(st.datetimes(min_value=datetime(2020, 1, 1), max_value=datetime(2100, 1, 1)))
def test_schedule_never_stands_still_and_never_skips(moment: datetime) -> None:
    start = moment.replace(tzinfo=UTC)

    found = Cron("*/15 * * * *").after(start)

    assert found is not None
    assert timedelta(0) < found - start <= timedelta(minutes=15)
    assert found.minute % 15 == 0


class Places(Record):
    location: Location | None = None
    mount: MountPath | None = None
    url: Url | None = None
    cpu: Cpu | None = None


@pytest.mark.parametrize(
    ("field", "text"),
    [
        ("location", "s3://lake"),
        ("location", "s3a://lake/a/b.c"),
        ("location", "/data/checkpoints"),
        ("mount", "/data"),
        ("url", "http://s3:8333"),
        ("url", "https://s3.example.com/path"),
        ("url", "https://s3.example.com/a@b"),
        ("cpu", "500m"),
        ("cpu", "1.5"),
        ("cpu", "2"),
    ],
)
def test_text_is_taken(field: str, text: str) -> None:
    assert getattr(Places.model_validate({field: text}), field) == text


@pytest.mark.parametrize(
    ("field", "text"),
    [
        ("location", "lake/a"),
        ("location", "hdfs://namenode/a"),
        ("location", "s3://lake/a/"),
        ("location", "s3://Lake/a"),
        ("location", "/"),
        ("location", "/data/a b"),
        ("mount", "data"),
        ("mount", "/data/"),
        ("url", "s3:8333"),
        ("cpu", "0m"),
        ("cpu", "half"),
    ],
)
def test_text_is_refused(field: str, text: str) -> None:
    with pytest.raises(ValueError, match=field):
        Places.model_validate({field: text})


@pytest.mark.parametrize("pattern", EXPECTED)
def test_pattern_is_anchored_and_comes_with_words(pattern: str) -> None:
    assert re.fullmatch(r"\^.*\$", pattern)
    assert EXPECTED[pattern]
