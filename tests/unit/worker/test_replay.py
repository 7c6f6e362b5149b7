"""What doing the last batch again shows; the trial is pretended, state and savepoints are real."""

from pathlib import Path

import pytest

from sparkpoint.runtime.model import ErrorInfo, RehearsalInfo, RehearsedQuery
from sparkpoint.runtime.scratch import KEPT
from sparkpoint.savepoint import CaptureRequest, MaterializeRequest, Mode, Repository, Savepoint
from sparkpoint.savepoint.manifest import OperatorInfo
from sparkpoint.storage import DirectoryStore
from sparkpoint.worker.model import Answer
from sparkpoint.worker.replay import Comparison, Perform, compare, obstacle, weighed
from sparkpoint.worker.tasks.rehearse import Trial
from sparkpoint.worker.telling import Telling
from tests.unit.state.writing import HandMade, Row, StoreOf

KEY, VALUE = (("k", "string"),), (("count", "long"),)
FIRST: dict[Row, Row | None] = {(f"key{n}",): (n,) for n in range(30)}
SECOND: dict[Row, Row | None] = {("key1",): (100,), ("key2",): (200,)}


def written(folder: Path, second: dict[Row, Row | None]) -> Path:
    """A query that has made two batches, the second of them with these rows."""
    stores = {"default": StoreOf(KEY, VALUE, [FIRST, second])}
    HandMade(folder / "visits", stores, 2, snapshots=(1,)).write()
    return folder


@pytest.fixture
def nightly(tmp_path: Path) -> tuple[Repository, Savepoint]:
    repository = Repository.init(DirectoryStore(tmp_path / "repository"))
    source = DirectoryStore(written(tmp_path / "ran", SECOND))
    request = CaptureRequest(namespace="shop", job="visits", name="nightly")
    return repository, repository.capture(source, request).savepoint


def tried(tmp_path: Path) -> Trial:
    return Trial(
        savepoint="nightly",
        repository=str(tmp_path / "repository"),
        endpoint_url=None,
        job="shop/visits",
        deadline=60,
        master="local[1]",
        conf=(),
        scratch=tmp_path,
        functions=False,
        command=("script.py",),
        replay=True,
    )


def performing(again: Path, **queries: RehearsedQuery) -> Perform:
    """A trial that finds the last commit taken off, and arrives at the state of this folder."""

    def perform(trial: Trial, _: Telling) -> RehearsalInfo:
        local = Repository.open(DirectoryStore(Path(trial.repository)))
        before = local.find(trial.savepoint, namespace="shop", job="visits")
        (query,) = before.manifest.queries
        assert (query.batch, query.pending) == (0, True)
        copy = DirectoryStore(again.with_name("copy"))
        local.materialize(before, copy, MaterializeRequest(mode=Mode.RESUME))
        request = CaptureRequest(namespace="shop", job="visits", name=KEPT)
        assert trial.keep == trial.repository
        local.capture(DirectoryStore(again), request)
        return RehearsalInfo(
            savepoint=before.key, state="done", verdict="compatible", queries=queries
        )

    return perform


DONE = RehearsedQuery(verdict="compatible", input_rows=2)


def compared(nightly: tuple[Repository, Savepoint], folder: Path, perform: Perform) -> Comparison:
    return compare(
        *nightly, tried(folder), perform, telling=Telling("replay", write=lambda _: None)
    )


def test_code_that_makes_the_same_state_again_is_told_to_do_so(
    nightly: tuple[Repository, Savepoint], tmp_path: Path
) -> None:
    again = written(tmp_path / "again", SECOND)

    found = compared(nightly, tmp_path, performing(again, visits=DONE))

    assert found == Comparison(same=["visits"])
    answer = weighed(Answer(answer="Compatible", message="Well."), found)
    assert (answer.answer, answer.message) == ("Compatible", "Well.")
    assert answer.notes == ("visits: its last batch, done again, made the same state.",)


def test_code_that_makes_other_state_of_it_is_unknown_with_an_example(
    nightly: tuple[Repository, Savepoint], tmp_path: Path
) -> None:
    again = written(tmp_path / "again", {("key1",): (100,), ("key2",): (1,), ("key77",): (7,)})

    found = compared(nightly, tmp_path, performing(again, visits=DONE))

    assert found.same == []
    assert "1 keys changed, 1 more, 0 less" in found.different["visits"]
    answer = weighed(Answer(answer="Compatible", message="Well."), found)
    assert answer.answer == "Unknown"
    assert answer.problems[0].startswith("query visits: STATE_DIFFERS: ")
    assert answer.message == answer.problems[0]


@pytest.mark.parametrize(
    ("query", "why"),
    [
        (RehearsedQuery(verdict="compatible", input_rows=0), "its last batch had no rows"),
        (
            RehearsedQuery(
                verdict="incompatible", error=ErrorInfo(type="X", message="files are gone")
            ),
            "its last batch could not be done again: files are gone",
        ),
        (RehearsedQuery(), "its last batch was not done again in time"),
    ],
)
def test_what_could_not_be_compared_is_no_verdict(
    nightly: tuple[Repository, Savepoint], tmp_path: Path, query: RehearsedQuery, why: str
) -> None:
    again = written(tmp_path / "again", SECOND)

    found = compared(nightly, tmp_path, performing(again, visits=query))

    assert found == Comparison(unknown={"visits": why})
    answer = weighed(Answer(answer="Compatible"), found)
    assert answer.answer == "Compatible"
    assert answer.notes == (f"visits: not compared, as {why}.",)


def test_a_driver_that_says_nothing_leaves_the_verdict_as_it_is(
    nightly: tuple[Repository, Savepoint], tmp_path: Path
) -> None:
    found = compared(nightly, tmp_path, lambda *_: None)

    assert found.unknown == {"visits": "its last batch was not done again in time"}
    assert [path.name for path in tmp_path.glob("sparkpoint-replay-*")] == []


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({}, None),
        ({"pending": True}, "a batch is in flight, which the trial has done"),
        ({"batch": 0}, "it has made one batch only"),
    ],
)
def test_only_a_batch_whose_beginning_is_kept_can_be_done_again(
    nightly: tuple[Repository, Savepoint], change: dict[str, object], why: str | None
) -> None:
    (query,) = nightly[1].manifest.queries

    assert obstacle(query.model_copy(update=change)) == why


def test_state_that_is_kept_only_from_after_the_batch_is_an_obstacle(
    nightly: tuple[Repository, Savepoint],
) -> None:
    (query,) = nightly[1].manifest.queries
    (operator,) = query.operators
    stores = [each.model_copy(update={"base_versions": [1, 2]}) for each in operator.stores]
    later = OperatorInfo(**{**dict(operator), "stores": stores})

    why = obstacle(query.model_copy(update={"operators": [later]}))

    assert why == "the savepoint does not hold the state from before its last batch"
