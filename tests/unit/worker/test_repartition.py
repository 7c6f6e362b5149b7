"""Repartitioning in a worker: one savepoint however often it is asked for."""

from pathlib import Path

import pytest

from sparkpoint.savepoint import CaptureRequest, Repository
from sparkpoint.storage import DirectoryStore
from sparkpoint.worker.exits import Exit, exit_of
from sparkpoint.worker.model import Answer
from tests.unit.state.test_savepoints import made
from tests.unit.state.writing import HandMade, StoreOf
from tests.unit.worker.asking import ask


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    """With a savepoint `first` of 47 rows in four partitions."""
    made(tmp_path / "ck/q")
    repository = Repository.init(DirectoryStore(tmp_path / "repo"))
    request = CaptureRequest(namespace="shop", job="visits", name="first")
    repository.capture(DirectoryStore(tmp_path / "ck"), request)
    return repository


def repartition(repository: Repository, partitions: int, *, name: str = "wide") -> Answer:
    return ask(
        *("repartition", "--repository", repository.store.uri, "--job", "shop/visits"),
        *("--name", "first", "--partitions", str(partitions), "--as", name),
    )


def test_a_savepoint_is_made_once_however_often_it_is_asked_for(repository: Repository) -> None:
    first, second = repartition(repository, 7), repartition(repository, 7)

    assert (first.answer, exit_of(first)) == ("Repartitioned", Exit.OK)
    assert "47 rows in 7 partitions" in first.message
    assert first.savepoint is not None
    assert second.savepoint is not None
    assert first.savepoint.id == second.savepoint.id
    assert second.details is not None
    assert second.details.queries[0].partitions == 7
    listed = [each.manifest.name for each in repository.list().savepoints]
    assert sorted(listed) == ["first", "wide"]


def test_what_has_so_many_already_is_its_own_answer(repository: Repository) -> None:
    answer = repartition(repository, 4)

    assert answer.answer == "Repartitioned"
    assert answer.savepoint is not None
    assert answer.savepoint.name == "first"


@pytest.mark.parametrize(
    ("partitions", "name", "kind"),
    [
        (0, "wide", "UnsupportedState"),
        (99999, "wide", "UnsupportedState"),
        (2, "first", "NameTaken"),
    ],
)
def test_what_cannot_be_done_fails_for_good(
    repository: Repository, partitions: int, name: str, kind: str
) -> None:
    answer = repartition(repository, partitions, name=name)

    assert (answer.answer, answer.kind) == ("Failed", kind)
    assert exit_of(answer) is Exit.WILL_NOT_PASS
    assert not answer.unforeseen


def test_a_savepoint_of_that_name_with_another_number_is_in_the_way(
    repository: Repository,
) -> None:
    repartition(repository, 7)

    answer = repartition(repository, 9)

    assert (answer.answer, answer.kind) == ("Failed", "NameTaken")


def look(repository: Repository, partitions: int, *more: str, name: str = "first") -> Answer:
    return ask(
        *("repartition", "--check", "--repository", repository.store.uri, "--job", "shop/visits"),
        *("--name", name, "--partitions", str(partitions), *more),
    )


@pytest.mark.parametrize(
    ("partitions", "words"), [(7, "can be brought to 7"), (4, "in 4 partitions already")]
)
def test_a_look_says_that_it_can_be_done_and_makes_nothing(
    repository: Repository, partitions: int, words: str
) -> None:
    answer = look(repository, partitions)

    assert (answer.answer, exit_of(answer)) == ("Compatible", Exit.OK)
    assert words in answer.message
    assert [each.manifest.name for each in repository.list().savepoints] == ["first"]


def test_a_look_says_what_is_in_the_way(repository: Repository) -> None:
    answer = look(repository, 99999)

    assert (answer.answer, exit_of(answer)) == ("Incompatible", Exit.OK)
    assert "from 1 to 10000" in answer.message


@pytest.mark.parametrize(
    ("name", "kind", "words"),
    [
        ("someFutureExec", "string", "not known here by which columns"),
        ("stateStoreSave", "variant", "the key column 'k' is of type variant"),
    ],
)
def test_a_look_says_what_only_the_schemas_tell(
    tmp_path: Path, name: str, kind: str, words: str
) -> None:
    """Else the job would be stopped first, and in vain."""
    stores = {"default": StoreOf((("k", kind),), (("n", "long"),), [{("a",): (1,)}])}
    HandMade(tmp_path / "ck/q", stores, 2, name=name).write()
    repository = Repository.init(DirectoryStore(tmp_path / "repo"))
    request = CaptureRequest(namespace="shop", job="visits", name="first")
    repository.capture(DirectoryStore(tmp_path / "ck"), request)

    answer = look(repository, 3)

    assert answer.answer == "Incompatible"
    assert words in answer.message


def test_a_look_at_what_runs_takes_a_savepoint_and_removes_it(
    repository: Repository, tmp_path: Path
) -> None:
    directory = ("--epoch-dir", str(tmp_path / "ck"), "--epoch", "1")

    answer = look(repository, 7, *directory, name="trial")

    assert answer.answer == "Compatible"
    assert [each.manifest.name for each in repository.list().savepoints] == ["first"]


def test_a_look_at_a_directory_without_commits_leaves_it_open(
    repository: Repository, tmp_path: Path
) -> None:
    (tmp_path / "new").mkdir()

    answer = look(repository, 7, "--epoch-dir", str(tmp_path / "new"), "--epoch", "1", name="trial")

    assert (answer.answer, exit_of(answer)) == ("Unknown", Exit.OK)
