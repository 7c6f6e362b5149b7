"""How many rows of state a manifest tells, and of what it is silent."""

from pathlib import Path

import pytest

from sparkpoint.savepoint import CaptureRequest, Repository
from sparkpoint.savepoint.describe import StateCount
from sparkpoint.storage import DirectoryStore
from tests.unit.savepoint.synthetic import SyntheticQuery

PARTITIONS = 2
IN_SNAPSHOTS = 10 * PARTITIONS
"""Rows that the synthetic snapshots of RocksDB say they have."""


def rows(
    repository: Repository, query: SyntheticQuery, count: StateCount | None = None
) -> int | None:
    request = CaptureRequest(job="visits", name="one", counts={} if count is None else {"": count})
    (told,) = repository.capture(DirectoryStore(query.root), request).savepoint.manifest.queries
    return told.rows


def rocksdb(root: Path, batches: int) -> SyntheticQuery:
    return SyntheticQuery(root, provider="rocksdb", snapshot_every=4).run(batches)


def test_snapshots_of_rocksdb_tell_their_rows(repository: Repository, tmp_path: Path) -> None:
    assert rows(repository, rocksdb(tmp_path / "ck", 4)) == IN_SNAPSHOTS


def test_a_changelog_after_them_makes_it_unknown(repository: Repository, tmp_path: Path) -> None:
    assert rows(repository, rocksdb(tmp_path / "ck", 5)) is None


@pytest.mark.parametrize("provider", ["hdfs", "rocksdb"])
def test_what_spark_has_counted_is_told(
    repository: Repository, tmp_path: Path, provider: str
) -> None:
    query = SyntheticQuery(tmp_path / "ck", provider=provider).run(6)  # type: ignore[arg-type]

    assert rows(repository, query, StateCount(batch=5, rows=77, counts=PARTITIONS)) == 77


@pytest.mark.parametrize(
    "count",
    [
        StateCount(batch=4, rows=77, counts=PARTITIONS),  # of the batch before
        StateCount(batch=5, rows=154, counts=2 * PARTITIONS),  # computed twice
        StateCount(batch=5, rows=77, counts=0),  # nobody says by how many
        StateCount(batch=5, rows=0, counts=PARTITIONS),  # told not to count
    ],
    ids=lambda count: f"batch {count.batch}, {count.rows} rows by {count.counts}",
)
def test_a_count_that_may_be_wrong_is_not_told(
    repository: Repository, tmp_path: Path, count: StateCount
) -> None:
    assert rows(repository, rocksdb(tmp_path / "ck", 6), count) is None
