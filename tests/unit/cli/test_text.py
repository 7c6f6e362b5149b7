"""Sizes, ages, tables and the bar."""

from datetime import timedelta

import pytest

from sparkpoint.cli.answer import printable
from sparkpoint.cli.progress import Counter
from sparkpoint.cli.render import text
from sparkpoint.savepoint.progress import Amount
from tests.unit.cli.values import NOW


@pytest.mark.parametrize(
    ("number", "expected"),
    [
        (0, "0 B"),
        (999, "999 B"),
        (1000, "1.0 KiB"),
        (1536, "1.5 KiB"),
        (102_400, "100 KiB"),
        (1023 * 1024, "1.0 MiB"),
        (27 * 2**20, "27.0 MiB"),
        (340 * 2**20, "340 MiB"),
        (3 * 2**40, "3.0 TiB"),
        (2**63, "8192 PiB"),
    ],
)
def test_sizes_have_three_digits_and_binary_units(number: int, expected: str) -> None:
    assert text.size(number) == expected


@pytest.mark.parametrize(
    ("passed", "expected"),
    [
        (timedelta(seconds=-5), "just now"),
        (timedelta(seconds=0.4), "just now"),
        (timedelta(seconds=59), "59 s ago"),
        (timedelta(minutes=59), "59 min ago"),
        (timedelta(hours=3.9), "3 h ago"),
        (timedelta(hours=47), "47 h ago"),
        (timedelta(days=2), "2 d ago"),
        (timedelta(days=59), "59 d ago"),
        (timedelta(days=90), "2 mo ago"),
        (timedelta(days=800), "2 y ago"),
    ],
)
def test_ages_are_said_in_one_unit(passed: timedelta, expected: str) -> None:
    assert text.age(NOW - passed, NOW) == expected


@pytest.mark.parametrize(
    ("value", "expected"), [(0.4211, "0.42 s"), (12.3, "12 s"), (200.9, "3 min 20 s")]
)
def test_durations_are_as_precise_as_a_person_cares(value: float, expected: str) -> None:
    assert text.seconds(value) == expected


def test_moments_are_rfc_3339_in_utc() -> None:
    assert text.moment(NOW) == "2026-07-30T12:00:00.000Z"


def test_columns_are_aligned_and_lines_have_no_trailing_spaces() -> None:
    drawn = text.table(
        ("NAME", "SIZE", "TAGS"), [("a", "1 B", "-"), ("long", "10 KiB", "")], right="SIZE"
    )

    assert drawn == "NAME    SIZE  TAGS\na        1 B  -\nlong  10 KiB"


@pytest.mark.parametrize(
    ("done", "total", "expected"),
    [
        ((0, 0), (0, 0), "batch 5  [------------------------]   0%  0 of 0 files  3 s"),
        (
            (9, 5 * 2**20),
            (18, 10 * 2**20),
            "batch 5  [############------------]  50%  5.0 MiB of 10.0 MiB  9 of 18 files  3 s",
        ),
        ((3, 0), (4, 0), "batch 5  [##################------]  75%  3 of 4 files  3 s"),
        (
            (2, 20),
            (1, 10),
            "batch 5  [########################] 100%  20 B of 10 B  2 of 1 file  3 s",
        ),
    ],
)
def test_the_bar_shows_share_bytes_files_and_time(
    done: tuple[int, int], total: tuple[int, int], expected: str
) -> None:
    counter = Counter()
    counter.start("batch 5", Amount(*total))
    counter.advance(Amount(*done))

    assert text.bar_line(counter, seconds=3.2, width=200) == expected
    narrow = text.bar_line(counter, seconds=3.2, width=20)
    assert len(narrow) < 20
    assert narrow.endswith("%  3 s")


@pytest.mark.parametrize("width", [80, 60, 40])
def test_the_bar_never_loses_share_and_time_to_a_narrow_terminal(width: int) -> None:
    counter = Counter()
    counter.start("restore default/visits/before-upgrade", Amount(300, 400 * 2**20))
    counter.advance(Amount(150, 200 * 2**20))

    line = text.bar_line(counter, seconds=75, width=width)

    assert len(line) < width
    assert line.startswith("restore default")
    assert " 50%  " in line
    assert line.endswith("  75 s")


def test_control_characters_never_reach_the_terminal() -> None:
    assert printable("a\x1b[31mb\nc\x00") == "a�[31mb\nc�"
