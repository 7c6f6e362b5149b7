"""Repartitioning in a worker: one savepoint however often it is asked for."""

from pathlib import Path

import pytest

from sparkpoint.savepoint import CaptureRequest, Repository
from sparkpoint.storage import DirectoryStore
from sparkpoint.worker.exits import Exit, exit_of
from sparkpoint.worker.model import Answer
from tests.unit.state.test_savepoints import made
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
