"""What a checkpoint has lost and its parent savepoint holds is taken over, and told."""

from pathlib import Path

import pytest

from sparkpoint.savepoint import CaptureRequest, Repository, Savepoint
from sparkpoint.storage import DirectoryStore
from tests.unit.savepoint.synthetic import SyntheticQuery


def _capture(repository: Repository, query: SyntheticQuery, name: str) -> Savepoint:
    request = CaptureRequest(job="visits", name=name)
    return repository.capture(DirectoryStore(query.root), request).savepoint


def _purge(query: SyntheticQuery, *, before: int) -> None:
    """Remove all files of older versions."""
    for path in query.root.glob("state/0/*/*.*"):
        if int(path.name.split(".")[0]) < before:
            path.unlink()


def _warnings(savepoint: Savepoint) -> list[str]:
    (query,) = savepoint.manifest.queries
    return query.warnings


@pytest.mark.parametrize(
    ("provider", "lost"),
    [
        ("hdfs", "state/0/0/4.snapshot"),
        ("hdfs", "state/0/1/5.delta"),
        ("rocksdb", "state/0/0/4.zip"),
        ("rocksdb", "state/0/1/6.changelog"),
        ("rocksdb", "state/0/0/SSTs/*.sst"),
    ],
)
def test_a_lost_file_that_the_parent_holds_is_told(
    repository: Repository, tmp_path: Path, provider: str, lost: str
) -> None:
    query = SyntheticQuery(tmp_path / "ck", provider=provider).run(6)  # type: ignore[arg-type]
    _capture(repository, query, "whole")
    query.run(1)
    _purge(query, before=4)
    path = min(query.root.glob(lost))
    path.unlink()

    savepoint = _capture(repository, query, "after")

    (warning,) = _warnings(savepoint)
    assert f"{path.relative_to(query.root)}" in warning
    assert "parent savepoint" in warning
    assert repository.verify([savepoint])[0].good


def test_many_lost_files_of_an_operator_are_one_warning(
    repository: Repository, tmp_path: Path
) -> None:
    query = SyntheticQuery(tmp_path / "ck", partitions=3).run(6)
    _capture(repository, query, "whole")
    query.run(1)
    _purge(query, before=7)

    (warning,) = _warnings(_capture(repository, query, "after"))

    assert "9 files" in warning


@pytest.mark.parametrize("provider", ["hdfs", "rocksdb"])
def test_what_spark_has_purged_is_not_lost(
    repository: Repository, tmp_path: Path, provider: str
) -> None:
    query = SyntheticQuery(tmp_path / "ck", provider=provider).run(6)  # type: ignore[arg-type]
    _capture(repository, query, "one")
    query.run(4)
    base = "state/0/0/4.snapshot" if provider == "hdfs" else "state/0/0/4.zip"
    _purge(query, before=7)

    second = _capture(repository, query, "two")

    assert base in repository.files(second).files
    assert _warnings(second) == []


def test_nothing_is_lost_of_an_older_batch_that_spark_has_purged(
    repository: Repository, tmp_path: Path
) -> None:
    query = SyntheticQuery(tmp_path / "ck").run(6)
    _capture(repository, query, "one")
    query.run(4)
    _purge(query, before=8)
    request = CaptureRequest(job="visits", name="older", batch=5)

    savepoint = repository.capture(DirectoryStore(query.root), request).savepoint

    assert "state/0/0/6.delta" in repository.files(savepoint).files
    assert _warnings(savepoint) == []
