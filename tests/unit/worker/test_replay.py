"""What doing the last batch again shows; the trial is pretended, state and savepoints are real."""

from pathlib import Path

import pytest

from sparkpoint.runtime.identity import folder_of_name
from sparkpoint.runtime.model import ErrorInfo, RehearsalInfo, RehearsedQuery
from sparkpoint.runtime.scratch import KEPT
from sparkpoint.savepoint import CaptureRequest, MaterializeRequest, Mode, Repository, Savepoint
from sparkpoint.savepoint.manifest import OperatorInfo
from sparkpoint.state.diff import DiffRequest, StoreDiff, diff_state
from sparkpoint.state.errors import UnsupportedStateError
from sparkpoint.storage import DirectoryStore
from sparkpoint.storage.errors import UnavailableError
from sparkpoint.worker.model import Answer
from sparkpoint.worker.replay import Comparison, Perform, compare, obstacle, weighed
from sparkpoint.worker.tasks.rehearse import Trial
from sparkpoint.worker.telling import Telling
from tests.unit.state.writing import HandMade, Row, StoreOf

KEY, VALUE = (("k", "string"),), (("count", "long"),)
FIRST: dict[Row, Row | None] = {(f"key{n}",): (n,) for n in range(30)}
SECOND: dict[Row, Row | None] = {("key1",): (100,), ("key2",): (200,)}


def written(folder: Path, second: dict[Row, Row | None], *, before: int = 1) -> Path:
    """A query whose last batch, after so many others, had these rows."""
    between: list[dict[Row, Row | None]] = [{("key0",): (n,)} for n in range(before - 1)]
    batches = [FIRST, *between, second]
    stores = {"default": StoreOf(KEY, VALUE, batches)}
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
        assert query.pending
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


@pytest.mark.parametrize("before", [2, 3, 6])
def test_the_last_of_many_batches_is_done_again(tmp_path: Path, before: int) -> None:
    repository = Repository.init(DirectoryStore(tmp_path / "repository"))
    source = DirectoryStore(written(tmp_path / "ran", SECOND, before=before))
    request = CaptureRequest(namespace="shop", job="visits", name="nightly")
    nightly = repository, repository.capture(source, request).savepoint
    other: dict[Row, Row | None] = {("key1",): (101,), ("key2",): (200,)}
    again = written(tmp_path / "again", other, before=before)

    found = compared(nightly, tmp_path, performing(again, visits=DONE))

    assert found.unknown == {}
    assert list(found.different) == ["visits"]


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
            RehearsedQuery(verdict="unknown", error=ErrorInfo(type="X", message="files are gone")),
            "its last batch could not be done again: files are gone",
        ),
        (
            RehearsedQuery(
                verdict="incompatible",
                error=ErrorInfo(type="CANNOT_LOAD_STATE_STORE.X", message="no such version"),
            ),
            "its last batch could not be done again: no such version",
        ),
    ],
)
def test_what_could_not_be_compared_is_not_known_to_be_compatible(
    nightly: tuple[Repository, Savepoint], tmp_path: Path, query: RehearsedQuery, why: str
) -> None:
    again = written(tmp_path / "again", SECOND)

    found = compared(nightly, tmp_path, performing(again, visits=query))

    assert found == Comparison(unknown={"visits": why})
    answer = weighed(Answer(answer="Compatible"), found)
    assert (answer.answer, answer.notes) == ("Unknown", ())
    (problem,) = answer.problems
    assert problem.startswith("query visits: NOT_COMPARED: ")
    assert f"was not seen, as {why}. Try" in problem
    assert not answer.retry_helps


@pytest.mark.parametrize(
    "query",
    [
        RehearsedQuery(),
        RehearsedQuery(
            verdict="unknown", error=ErrorInfo(type="DEADLINE", message="late", retry_helps=True)
        ),
    ],
)
def test_what_there_was_no_time_to_compare_may_be_compared_the_next_time(
    nightly: tuple[Repository, Savepoint], tmp_path: Path, query: RehearsedQuery
) -> None:
    again = written(tmp_path / "again", SECOND)

    found = compared(nightly, tmp_path, performing(again, visits=query))

    answer = weighed(Answer(answer="Compatible"), found)
    assert (answer.answer, answer.retry_helps) == ("Unknown", True)


def test_a_store_that_does_not_answer_may_answer_the_next_time(
    nightly: tuple[Repository, Savepoint], tmp_path: Path
) -> None:
    def perform(_: Trial, __: Telling) -> None:
        raise UnavailableError("the server does not answer")

    found = compared(nightly, tmp_path, perform)

    answer = weighed(Answer(answer="Compatible"), found)
    assert (answer.answer, answer.retry_helps) == ("Unknown", True)


@pytest.mark.parametrize(
    "found",
    [
        Comparison(unknown={"a": "late"}, passing={"a"}, different={"b": "one key"}),
        Comparison(unknown={"a": "late"}, passing={"a"}, failed={"b": "KeyError"}),
        Comparison(unknown={"a": "late", "b": "no rows"}, passing={"a"}),
    ],
)
def test_another_try_changes_nothing_about_a_query_that_is_certain_to_stay_as_it_is(
    found: Comparison,
) -> None:
    assert not weighed(Answer(answer="Compatible"), found).retry_helps


def test_code_that_dies_of_rows_that_the_job_has_taken_is_not_compatible(
    nightly: tuple[Repository, Savepoint], tmp_path: Path
) -> None:
    error = ErrorInfo(
        type="USER_CODE",
        message="KeyError: 'url'",
        where="job.py:7",
        remedy="Correct the function.",
    )
    died = RehearsedQuery(verdict="incompatible", error=error)

    again = written(tmp_path / "again", SECOND)
    found = compared(nightly, tmp_path, performing(again, visits=died))

    said = "USER_CODE: KeyError: 'url' (job.py:7) Correct the function."
    assert found == Comparison(failed={"visits": said})
    answer = weighed(Answer(answer="Compatible", message="Well."), found)
    assert answer.answer == "Unknown"
    assert answer.problems[0].startswith("query visits: BATCH_FAILS: ")
    assert answer.message.endswith(said)


@pytest.mark.parametrize("kept", [True, False])
def test_a_query_that_dies_is_told_although_another_cannot_be_compared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kept: bool
) -> None:
    """Its keys may occur several times; and what a trial has made is kept only if it can be."""

    def both(root: Path) -> DirectoryStore:
        for name in ("a", "b", "c"):
            stores = {"default": StoreOf(KEY, VALUE, [FIRST, SECOND])}
            HandMade(root / name, stores, 2, snapshots=(1,)).write()
        return DirectoryStore(root)

    def perform(trial: Trial, _: Telling) -> RehearsalInfo:
        if kept:
            local = Repository.open(DirectoryStore(Path(trial.repository)))
            request = CaptureRequest(namespace="shop", job="visits", name=KEPT)
            local.capture(both(tmp_path / "again"), request)
        error = ErrorInfo(type="USER_CODE", message="KeyError: 'url'")
        died = RehearsedQuery(verdict="incompatible", error=error)
        queries = {"a": DONE, "b": died, "c": DONE}
        return RehearsalInfo(savepoint="x", state="done", verdict="incompatible", queries=queries)

    def differing(*given: object, **more: object) -> list[StoreDiff]:
        request = given[3]
        assert isinstance(request, DiffRequest)
        if request.selection.query == "a":
            raise UnsupportedStateError("a key of this state occurs several times")
        return diff_state(*given, **more)  # type: ignore[arg-type]

    monkeypatch.setattr("sparkpoint.worker.replay.diff_state", differing)
    repository = Repository.init(DirectoryStore(tmp_path / "repository"))
    request = CaptureRequest(namespace="shop", job="visits", name="nightly")
    nightly = repository.capture(both(tmp_path / "ran"), request).savepoint

    found = compared((repository, nightly), tmp_path, perform)

    assert found.failed == {"b": "USER_CODE: KeyError: 'url'"}
    assert list(found.unknown) == (["a"] if kept else ["a", "c"])
    assert found.same == (["c"] if kept else [])
    assert weighed(Answer(answer="Compatible"), found).answer == "Unknown"


def test_a_query_without_a_folder_is_told_as_the_only_one() -> None:
    good = Answer(answer="Compatible")

    same = weighed(good, Comparison(same=[""]))
    unknown = weighed(good, Comparison(unknown={"": "it had no rows"}))
    other = weighed(good, Comparison(different={"": "one key"}, failed={"": "KeyError"}))

    told = [*same.notes, *unknown.problems, *other.problems]
    assert [each.removeprefix("query ")[:15] for each in told] == ["(the only one):"] * 4


@pytest.mark.parametrize(
    ("name", "folder"), [("visits per day", folder_of_name("visits per day")), ("visits", "")]
)
def test_a_query_is_found_again_by_the_folder_of_its_name(
    tmp_path: Path, name: str, folder: str
) -> None:
    """A savepoint of a single query's checkpoint has no folder."""
    repository = Repository.init(DirectoryStore(tmp_path / "repository"))
    for root in ("ran", "again"):
        stores = {"default": StoreOf(KEY, VALUE, [FIRST, SECOND])}
        HandMade(tmp_path / root / folder, stores, 2, snapshots=(1,)).write()
    request = CaptureRequest(namespace="shop", job="visits", name="nightly")
    nightly = repository.capture(DirectoryStore(tmp_path / "ran"), request).savepoint

    perform = performing(tmp_path / "again", **{name: DONE})
    found = compared((repository, nightly), tmp_path, perform)

    assert found == Comparison(same=[folder])


def test_a_driver_that_says_nothing_shows_nothing(
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
