"""A savepoint is never built on content that its parent lacks."""

from pathlib import Path

import pytest

from sparkpoint.savepoint import CaptureRequest, Repository, Savepoint
from sparkpoint.savepoint.names import object_path
from sparkpoint.savepoint.progress import Amount
from sparkpoint.storage import DirectoryStore
from tests.unit.savepoint.synthetic import SyntheticQuery


class Notes:
    """Keeps what is said."""

    def __init__(self) -> None:
        self.notes: list[str] = []

    def start(self, what: str, total: Amount) -> None:
        pass

    def advance(self, done: Amount) -> None:
        pass

    def note(self, text: str) -> None:
        self.notes.append(text)


@pytest.fixture
def query(tmp_path: Path) -> SyntheticQuery:
    return SyntheticQuery(tmp_path / "ck", snapshot_bytes=400_000, snapshot_every=3).run(5)


def _capture(repository: Repository, query: SyntheticQuery, name: str) -> tuple[Savepoint, str]:
    notes, request = Notes(), CaptureRequest(job="visits", name=name)
    result = repository.capture(DirectoryStore(query.root), request, progress=notes)
    return result.savepoint, " ".join(notes.notes)


def _good(repository: Repository, savepoint: Savepoint) -> bool:
    return repository.verify([savepoint])[0].good


@pytest.mark.parametrize("file", ["state/0/0/3.snapshot", "sources/0/0"])
@pytest.mark.parametrize("cut", [True, False])
def test_what_the_parent_lacks_is_captured_anew_with_a_note(
    repository: Repository, query: SyntheticQuery, file: str, cut: bool
) -> None:
    parent, _ = _capture(repository, query, "one")
    lost = object_path(repository.files(parent).files[file].object)
    repository.store.put(lost, [b"short"]) if cut else repository.store.delete(lost)
    query.run(1)

    child, note = _capture(repository, query, "two")

    assert child.manifest.parent is not None
    assert child.manifest.parent.id == parent.id
    assert lost in note
    assert "savepoint verify" in note
    assert _good(repository, child)


def test_large_content_that_is_captured_anew_makes_the_parent_whole_again(
    repository: Repository, query: SyntheticQuery
) -> None:
    parent, _ = _capture(repository, query, "one")
    lost = repository.files(parent).files["state/0/0/3.snapshot"].object
    repository.store.put(object_path(lost), [b"short"])

    _capture(repository, query, "two")

    assert _good(repository, parent)


def test_a_base_that_only_the_parent_had_is_not_relied_on_once_it_is_lost(
    repository: Repository, query: SyntheticQuery
) -> None:
    parent, _ = _capture(repository, query, "one")
    query.run(2)
    for path in query.root.glob("state/0/?/[1-3].*"):
        path.unlink()  # as maintenance does: the snapshot of version 6 is there
    repository.store.delete(
        object_path(repository.files(parent).files["state/0/0/3.snapshot"].object)
    )

    child, _ = _capture(repository, query, "two")

    assert _good(repository, child)
    assert "state/0/0/6.snapshot" in repository.files(child).files


@pytest.mark.parametrize("content", [b"", b"SPT1 nonsense", None])
def test_a_parent_whose_table_is_damaged_is_named_and_nothing_of_it_used(
    repository: Repository, query: SyntheticQuery, content: bytes | None
) -> None:
    parent, _ = _capture(repository, query, "one")
    table = object_path(parent.manifest.files.table)
    repository.store.delete(table) if content is None else repository.store.put(table, [content])
    query.run(1)

    child, note = _capture(repository, query, "two")

    assert "default/visits/one" in note
    assert table in note
    assert _good(repository, child)


def test_a_whole_parent_gives_no_note(repository: Repository, query: SyntheticQuery) -> None:
    _capture(repository, query, "one")
    query.run(1)

    assert _capture(repository, query, "two")[1] == ""
