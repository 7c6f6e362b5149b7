"""Answers that are too long for a termination message: what is left is true, and says so."""

import string
from datetime import UTC, datetime

from hypothesis import given, settings
from hypothesis import strategies as st

from sparkpoint.runtime.model import SavepointSummary
from sparkpoint.runtime.termination import LIMIT
from sparkpoint.worker.fitting import render, render_whole
from sparkpoint.worker.model import Answer, Details, QueryDetails

_NAMES = st.text(alphabet=string.ascii_lowercase, min_size=1, max_size=128)
_TEXTS = st.text(max_size=3000)
_LISTS = st.lists(st.text(max_size=300), max_size=80).map(tuple)


@st.composite
def answers(draw: st.DrawFn) -> Answer:
    """Any answer that a task could give, and longer ones."""
    folders = draw(st.lists(st.text(min_size=1, max_size=200), max_size=60, unique=True))
    savepoint = SavepointSummary(
        id="f" * 64,
        name=draw(_NAMES),
        batches={name: index for index, name in enumerate(folders)},
        files=2**62,
        bytes=2**62,
        new_bytes=2**62,
        seconds=1.5,
        created=datetime(2026, 11, 16, tzinfo=UTC),
        parent=draw(_TEXTS),
        location=draw(_TEXTS),
        pending=True,
        left_out=draw(_LISTS),
    )
    queries = tuple(
        QueryDetails(name=name, id=draw(_TEXTS), batch=7, partitions=200, provider="rocksdb")
        for name in folders[:20]
    )
    details = Details(
        namespace=draw(_NAMES),
        job=draw(_NAMES),
        revision=draw(_TEXTS),
        spark_version=draw(_TEXTS),
        trigger=draw(_TEXTS),
        epoch=draw(_TEXTS),
        source=draw(_TEXTS),
        queries=queries,
    )
    return Answer(
        answer="Corrupt",
        message=draw(_TEXTS),
        retry_helps=True,
        kind=draw(_TEXTS),
        savepoint=savepoint,
        details=details,
        problems=draw(_LISTS),
        removed=draw(_LISTS),
    )


@settings(max_examples=30, deadline=None)
@given(answers())
def test_every_answer_fits_and_says_what_it_leaves_out(answer: Answer) -> None:
    text = render(answer)
    read = Answer.model_validate_json(text)

    assert len(text.encode()) <= LIMIT
    assert read.answer == "Corrupt"
    assert read.savepoint is not None
    assert answer.savepoint is not None
    assert read.savepoint.id == answer.savepoint.id
    assert read.omitted.get("problems", 0) == len(answer.problems) - len(read.problems)
    left = len(answer.batches) - len(read.batches)
    assert read.omitted.get("savepoint.batches", 0) == left
    assert read.batches.items() <= answer.batches.items()


def test_an_answer_that_fits_is_left_as_it_is() -> None:
    answer = Answer(answer="Removed", message="Removed epoch-1.", removed=("epoch-1",))

    assert render(answer) == render_whole(answer)
    assert Answer.model_validate_json(render(answer)) == answer


def test_a_text_loses_its_middle_and_shows_that() -> None:
    answer = Answer(answer="Failed", message=f"begin {'x' * 9000} end")

    read = Answer.model_validate_json(render(answer))

    assert read.message.startswith("begin ")
    assert read.message.endswith(" end")
    assert " … " in read.message


def test_batches_that_are_shown_are_right() -> None:
    batches = {f"query-{index:04}": index for index in range(1000)}
    savepoint = SavepointSummary(
        id="f" * 64, name="a", batches=batches, files=1, bytes=1, new_bytes=1, seconds=1
    )

    read = Answer.model_validate_json(render(Answer(answer="Captured", savepoint=savepoint)))

    assert read.batches
    assert read.batches.items() <= batches.items()
    assert len(read.batches) + read.omitted["savepoint.batches"] == 1000


def test_names_that_differ_in_the_middle_stay_apart() -> None:
    batches = {f"{'a' * 300}{index}{'z' * 300}": index for index in range(9)}
    savepoint = SavepointSummary(
        id="f" * 64, name="a", batches=batches, files=1, bytes=1, new_bytes=1, seconds=1
    )

    read = Answer.model_validate_json(render(Answer(answer="Captured", savepoint=savepoint)))

    assert read.batches.items() <= batches.items()
    assert len(read.batches) + read.omitted["savepoint.batches"] == 9


def test_a_name_that_is_no_text_does_not_spoil_the_answer() -> None:
    answer = Answer(answer="Failed", message="the file \udcff", problems=("\udcff",))

    assert "\\\\udcff" in render(answer)
