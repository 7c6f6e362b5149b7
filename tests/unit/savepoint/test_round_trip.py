"""Capture and restore, over both kinds of stores, for every layout that matters here."""

from collections.abc import Callable
from pathlib import Path
from typing import Literal

import pytest

from sparkpoint.checkpoint.plan import plan_batch
from sparkpoint.savepoint import CaptureRequest, Repository
from sparkpoint.storage import DirectoryStore, Store
from tests.unit.checkpoint import synthetic as model
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


def test_a_restore_rewrites_the_lineage_that_a_new_snapshot_has_cut(
    repository: Repository, tmp_path: Path
) -> None:
    store = model.SyntheticStore(snapshots=frozenset({2, 5}))
    root, out = tmp_path / "ck", DirectoryStore(tmp_path / "out")
    savepoints = []
    for batch in (2, 6):
        world = model.checkpoint_of(
            [[store]], provider="rocksdb", batch=batch, written=batch + 1, unique=True
        )
        for path, data in world.files.items():
            # What is there already stays as it is: the proof that this is the same run.
            if not (root / path).exists():
                (root / path).parent.mkdir(parents=True, exist_ok=True)
                (root / path).write_bytes(data)
        request = CaptureRequest(job="visits", name=f"at-{batch}")
        savepoints.append(repository.capture(DirectoryStore(root), request).savepoint)

    repository.materialize(savepoints[1], out)
    again = repository.materialize(savepoints[1], out)

    assert savepoints[1].manifest.queries[0].operators[0].stores[0].base_versions == [2]
    assert all(each.problems == () for each in repository.verify(savepoints))
    files = {entry.path: out.read(entry.path) for entry in out.list()}
    uid = "u7-p0-default"
    loaded = model.load(files, "state/0/0", 7, provider="rocksdb", uid=uid)
    assert loaded == list(range(1, 8))
    # Spark would compare a sidecar with the file that was rewritten.
    assert f"state/0/0/7_{uid}.changelog.crc" not in files
    assert "state/0/0/5_u5-p0-default.changelog.crc" in files
    assert again.copied_files == 0
