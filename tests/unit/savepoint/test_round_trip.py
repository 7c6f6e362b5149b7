"""Capture and restore, over both kinds of stores, for every layout that matters here."""

from collections.abc import Callable
from pathlib import Path
from typing import Literal

import pytest

from sparkpoint.checkpoint.plan import plan_batch
from sparkpoint.savepoint import CaptureRequest, Repository
from sparkpoint.storage import DirectoryStore, Store
from tests.unit.savepoint.synthetic import SyntheticQuery


def planned(store: Store) -> dict[str, bytes]:
    """The files of the last batch and their content."""
    return {file.path: store.read(file.path) for file in plan_batch(store).files}


@pytest.mark.parametrize("provider", ["hdfs", "rocksdb"])
def test_a_restored_checkpoint_holds_exactly_the_files_of_the_batch(
    make_store: Callable[[str], Store], tmp_path: Path, provider: Literal["hdfs", "rocksdb"]
) -> None:
    SyntheticQuery(tmp_path / "ck", provider=provider, snapshot_bytes=300_000).run(6)
    source = DirectoryStore(tmp_path / "ck")
    repository = Repository.init(make_store("repository"))

    result = repository.capture(source, CaptureRequest(job="visits", name="one"))
    restored = make_store("restored")
    repository.materialize(result.savepoint, restored)

    expected = planned(source)
    assert result.savepoint.manifest.queries[0].batch == 5
    assert {e.path: restored.read(e.path) for e in restored.list() if e.path[0] != "."} == expected
