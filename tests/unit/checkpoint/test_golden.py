"""Checkpoints that several versions of real Spark wrote: what is planned must not drift."""

import json
import tarfile
from pathlib import Path

import pytest

from sparkpoint.checkpoint.model import Role
from sparkpoint.checkpoint.overview import read_checkpoint
from sparkpoint.checkpoint.plan import missing_files, plan_batch
from sparkpoint.checkpoint.reader import StoreReader
from sparkpoint.storage.directory import DirectoryStore

_GOLDEN = Path(__file__).parent / "golden"
_PLANS = json.loads((_GOLDEN / "plans.json").read_text())


@pytest.fixture(scope="module")
def unpacked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("golden")
    with tarfile.open(_GOLDEN / "checkpoints.tar.xz") as archive:
        archive.extractall(folder, filter="data")
    return folder


@pytest.mark.parametrize("case", _PLANS)
def test_plan_of_a_real_checkpoint_is_the_known_one(unpacked: Path, case: str) -> None:
    plan = plan_batch(DirectoryStore(unpacked / case))

    expected = _PLANS[case]
    operators = [
        [o.name, o.provider, o.partitions, [[s.name, *s.base_versions] for s in o.stores]]
        for o in plan.operators
    ]
    assert plan.batch == expected["batch"]
    assert operators == expected["operators"]
    assert [file.path for file in plan.files] == expected["files"]
    assert plan.warnings == ()


@pytest.mark.parametrize("case", _PLANS)
def test_no_state_file_of_a_real_plan_can_be_spared(unpacked: Path, case: str) -> None:
    store = DirectoryStore(unpacked / case)
    plan = plan_batch(store)
    entries = {entry.path: entry for entry in store.list()}
    files = {file.path: entries[file.path] for file in plan.files}

    assert missing_files(files, StoreReader(store), batch=plan.batch) == ()
    for spared in (file.path for file in plan.files if file.role is Role.STATE):
        # Sidecars may be absent, and a version's own changelog next to its snapshot.
        stem = spared.removesuffix(".crc").removesuffix("changelog")
        if not spared.endswith(".crc") and f"{stem}zip" not in files.keys() - {spared}:
            rest = {path: entry for path, entry in files.items() if path != spared}
            assert missing_files(rest, StoreReader(store), batch=plan.batch), spared


@pytest.mark.parametrize("case", _PLANS)
def test_real_checkpoint_is_described_without_hazards(unpacked: Path, case: str) -> None:
    found = read_checkpoint(DirectoryStore(unpacked / case))

    assert found.clean
    assert [hazard for hazard in found.hazards if "schemas below" not in hazard] == []


@pytest.mark.parametrize("case", _PLANS)
def test_older_batches_of_a_real_checkpoint_can_be_planned(unpacked: Path, case: str) -> None:
    store = DirectoryStore(unpacked / case)
    found = read_checkpoint(store)

    for batch in found.batches[1:]:
        assert plan_batch(store, batch=batch).batch == batch
