"""Progress on standard error."""

import re
import threading

from sparkpoint.runtime.orders import Line
from sparkpoint.savepoint.progress import Amount
from sparkpoint.worker.telling import Telling


def without_seconds(lines: list[str]) -> list[str]:
    return [re.sub(r" \(\d+ s\)$", "", line) for line in lines]


def test_a_phase_is_told_when_it_begins_and_again_while_it_lasts() -> None:
    lines: list[str] = []
    enough = threading.Event()

    def write(line: str) -> None:
        lines.append(line)
        if "4 of 10 files" in line:
            enough.set()

    with Telling("verify", write=write, pause=0.001) as telling:
        telling.start("verify 1/1", Amount(10, 3 * 1024 * 1024))
        telling.advance(Amount(4, 1024 * 1024))
        assert enough.wait(60)

    first = without_seconds(lines)[0]
    assert first == "sparkpoint: verify: verify 1/1, 0 of 10 files, 0 B of 3.0 MiB"
    assert "sparkpoint: verify: verify 1/1, 4 of 10 files, 1.0 MiB of 3.0 MiB (" in lines[-1]


def test_nothing_is_told_before_anything_begins_but_notes() -> None:
    lines: list[str] = []

    with Telling("verify", write=lines.append, pause=0.001) as telling:
        telling.note("the repository is read-only")

    assert lines == ["sparkpoint: verify: the repository is read-only"]


def test_amounts_that_are_not_known_before_are_counted_upwards() -> None:
    lines: list[str] = []
    telling = Telling("remove", write=lines.append)

    telling.start("epoch-1", Amount())
    telling.advance(Amount(2, 100))
    telling._say()

    assert without_seconds(lines) == [
        "sparkpoint: remove: epoch-1",
        "sparkpoint: remove: epoch-1, 2 files, 100 B",
    ]


def test_what_a_capture_tells_is_passed_on() -> None:
    lines: list[str] = []
    telling = Telling("capture", write=lines.append)

    telling.heard(Line(stage="batch 5", total_bytes=2048))
    telling.heard(Line(stage="batch 5", done_bytes=1024, total_bytes=2048))
    telling._say()
    telling.heard(Line(ready=True))

    assert without_seconds(lines) == [
        "sparkpoint: capture: batch 5, 0 B of 2.0 KiB",
        "sparkpoint: capture: batch 5, 1.0 KiB of 2.0 KiB",
    ]
