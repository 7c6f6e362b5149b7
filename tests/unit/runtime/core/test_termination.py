"""The last word fits into 4 KiB, whatever happened."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparkpoint.runtime.model import EndReason, ErrorInfo, QueryEnd, Termination
from sparkpoint.runtime.termination import LIMIT, render, shorten, write_termination

TEXT = st.text(max_size=6000)
ERRORS = st.none() | st.builds(ErrorInfo, type=TEXT, message=TEXT, where=st.none())
ENDS = st.builds(
    QueryEnd, batch=st.none() | st.integers(0, 10**9), clean=st.booleans(), error=ERRORS
)


def last_word(message: str = "", **fields: object) -> Termination:
    least = {"reason": "Stopped", "exit_code": 0, "clean": True, "epoch": 1}
    return Termination.model_validate({"message": message, **least, **fields})


@given(TEXT, st.dictionaries(st.text(min_size=1, max_size=300), ENDS, max_size=30), ERRORS)
def test_it_always_fits_and_can_be_read(
    message: str, queries: dict[str, QueryEnd], error: ErrorInfo | None
) -> None:
    text = render(
        Termination(
            reason=EndReason.QUERY_FAILED,
            message=message,
            exit_code=80,
            clean=False,
            epoch=1,
            queries=queries,
            error=error,
        )
    )

    read = Termination.model_validate_json(text)
    assert len(text.encode()) <= LIMIT
    assert (read.reason, read.exit_code) == (EndReason.QUERY_FAILED, 80)
    assert len(read.queries) + read.queries_omitted == len(queries)


def test_what_fits_is_kept_whole() -> None:
    ends = {"a": QueryEnd(batch=7, clean=True)}

    read = Termination.model_validate_json(render(last_word("m" * 3000, queries=ends)))

    assert read.message == "m" * 3000
    assert read.queries == ends


def test_a_long_message_keeps_its_beginning_and_its_end() -> None:
    text = shorten("begin" + "x" * 5000 + "end", 100)

    assert len(text) == 100
    assert text.startswith("begin")
    assert text.endswith("end")
    assert shorten("short", 100) == "short"


def test_when_not_all_queries_fit_the_troubled_ones_come_first() -> None:
    ends = {f"query-{i:04d}": {"batch": i, "clean": i != 777} for i in range(1000)}

    read = Termination.model_validate_json(render(last_word(queries=ends)))

    assert next(iter(read.queries)) == "query-0777"
    assert read.queries_omitted == 1000 - len(read.queries)


def test_it_is_written_in_place(tmp_path: Path) -> None:
    path = tmp_path / "termination-log"
    path.write_text("x" * 9000)
    inode = path.stat().st_ino

    write_termination(last_word("Stopped."), path)

    assert path.stat().st_ino == inode
    assert json.loads(path.read_text())["message"] == "Stopped."


def test_a_place_that_cannot_be_written_to_is_only_told_of(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    write_termination(last_word(), tmp_path / "missing" / "log")

    assert "cannot be written" in capfd.readouterr().err
