"""What `sparkpoint checkpoint show` says, and what it warns of."""

import json

import pytest

from sparkpoint.checkpoint.errors import NotACheckpointError
from sparkpoint.checkpoint.overview import find_queries, read_checkpoint
from tests.unit.checkpoint.memory import MemoryCheckpoint
from tests.unit.checkpoint.synthetic import SyntheticStore, checkpoint_of


def _checkpoint(batch: int = 3, written: int | None = None) -> MemoryCheckpoint:
    store = SyntheticStore(snapshots=frozenset({2}))
    return checkpoint_of(
        [[store], [store]], provider="hdfs", batch=batch, written=written or batch + 1
    )


def test_clean_checkpoint_has_no_hazard() -> None:
    found = read_checkpoint(_checkpoint())

    assert found.clean
    assert (found.query_id, found.last_committed, found.pending) == ("query", 3, None)
    assert found.batches == (0, 1, 2, 3)
    assert found.operators[0].partitions == 2
    assert found.files == 12
    assert found.hazards == ()


def test_begun_batch_is_a_hazard() -> None:
    checkpoint = _checkpoint()
    checkpoint.files["offsets/4"] = checkpoint.files["offsets/3"]

    found = read_checkpoint(checkpoint)

    assert not found.clean
    assert found.pending == 4
    assert "batch 4 was begun and not committed" in found.hazards[0]


def test_state_of_the_begun_batch_is_no_leftover() -> None:
    checkpoint = _checkpoint(written=5)
    checkpoint.files["offsets/4"] = checkpoint.files["offsets/3"]

    assert len(read_checkpoint(checkpoint).hazards) == 1


def test_state_newer_than_every_batch_is_left_from_a_rewind() -> None:
    hazards = read_checkpoint(_checkpoint(written=9)).hazards

    assert "is of batch 8, but the logs end at batch 3" in hazards[0]
    assert "wrong state" in hazards[0]


def test_missing_state_is_a_hazard_and_the_rest_is_still_shown() -> None:
    checkpoint = _checkpoint()
    del checkpoint.files["state/0/1/3.delta"]

    found = read_checkpoint(checkpoint)

    assert found.query_id == "query"
    assert found.last_committed == 3
    assert "state/0/1/3.delta missing" in found.hazards[0]


def test_edited_commit_log_is_a_hazard() -> None:
    checkpoint = _checkpoint()
    del checkpoint.files["commits/2"]

    assert any("gap before batch 3" in hazard for hazard in read_checkpoint(checkpoint).hazards)


def test_query_that_never_committed_is_described() -> None:
    checkpoint = MemoryCheckpoint({"metadata": b'{"id":"q"}', "offsets/0": b"v1\n\n1"})

    found = read_checkpoint(checkpoint)

    assert (found.query_id, found.last_committed, found.pending) == ("q", None, 0)
    assert not found.clean
    assert "not committed a batch" in found.hazards[0]


def test_absolute_schema_paths_are_a_hazard() -> None:
    checkpoint = _checkpoint()
    uri = "file:/elsewhere/ck/state/0/_stateSchema/default/0_a"
    store = {"storeName": "default", "numPartitions": 2, "stateSchemaFilePaths": [uri]}
    info = {"operatorId": 0, "operatorName": "transformWithStateExec"}
    body = json.dumps({"operatorInfo": info, "stateStoreInfo": [store]})
    checkpoint.files["state/0/_metadata/v2/0"] = b"v2\n" + body.encode()
    checkpoint.files["state/0/_stateSchema/default/0_a"] = b"x"

    assert "below file:/elsewhere/ck:" in read_checkpoint(checkpoint).hazards[0]


def test_folder_without_a_query_is_refused() -> None:
    with pytest.raises(NotACheckpointError):
        read_checkpoint(MemoryCheckpoint({"x": b""}))


def test_queries_of_a_job_are_found_below_its_folder() -> None:
    one = _checkpoint().files
    job = {f"{name}/{path}": data for name in ("visits", "clicks") for path, data in one.items()}

    assert find_queries(MemoryCheckpoint({**job, "notes/readme": b""})) == ["clicks", "visits"]
    assert find_queries(MemoryCheckpoint(one)) == [""]
    assert find_queries(MemoryCheckpoint({})) == []
