"""What a savepoint descends from if nobody says."""

from pathlib import Path

import pytest

from sparkpoint.savepoint import CaptureRequest, Repository, Savepoint
from sparkpoint.storage import DirectoryStore
from tests.unit.savepoint.synthetic import SyntheticQuery
from tests.unit.savepoint.test_catalogue import _counted


def _capture(repository: Repository, root: Path, name: str) -> Savepoint:
    request = CaptureRequest(job="visits", name=name)
    return repository.capture(DirectoryStore(root), request).savepoint


def test_the_last_one_of_the_same_directory_not_the_latest_of_the_job(
    repository: Repository, tmp_path: Path
) -> None:
    query = SyntheticQuery(tmp_path / "ck", snapshot_bytes=300_000).run(5)
    _capture(repository, query.root, "a")
    _capture(repository, query.root, "b")
    _capture(repository, SyntheticQuery(tmp_path / "other", seed="x").run(2).root, "b-p8")
    query.run(1)

    child = _capture(repository, query.root, "c")

    assert child.manifest.parent is not None
    assert child.manifest.parent.name == "b"
    assert child.manifest.files.new_bytes < 20_000


def test_the_latest_of_the_job_if_the_directory_was_never_captured(
    repository: Repository, tmp_path: Path
) -> None:
    for name in ("one", "two"):
        _capture(repository, SyntheticQuery(tmp_path / name).run(2).root, name)

    child = _capture(repository, SyntheticQuery(tmp_path / "three").run(2).root, "three")

    assert child.manifest.parent is not None
    assert child.manifest.parent.name == "two"


def test_the_search_does_not_read_the_whole_history(
    repository: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = SyntheticQuery(tmp_path / "ck").run(2).root
    for number in range(30):
        _capture(repository, root, f"s{number:02}")
    read = _counted(monkeypatch, "open_stamped")

    child = _capture(repository, SyntheticQuery(tmp_path / "new").run(2).root, "new")

    assert child.manifest.parent is not None
    assert child.manifest.parent.name == "s29"
    assert sum(path.startswith("savepoints/") for path in read) <= 18
