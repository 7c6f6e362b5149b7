"""The throw-away copy: beside the epoch directory, with a batch begun, and gone afterwards."""

import json
import shutil
import threading
from pathlib import Path

import pytest

from sparkpoint.runtime.lastread import LastRead
from sparkpoint.runtime.options import RehearsalOptions
from sparkpoint.runtime.scratch import Scratch, next_batch, scratch_beside
from sparkpoint.savepoint import CaptureRequest, Repository
from sparkpoint.storage import DirectoryStore
from tests.unit.savepoint.synthetic import SyntheticQuery

HEAD = '{"batchWatermarkMs":5000,"batchTimestampMs":1,"conf":{"a":"b"}}'


@pytest.fixture
def savepoint(tmp_path: Path) -> RehearsalOptions:
    """Of two queries, one of them in the midst of a batch."""
    SyntheticQuery(tmp_path / "job" / "idle").run(3)
    SyntheticQuery(tmp_path / "job" / "busy", provider="rocksdb").run(3).begin(3)
    repository = Repository.init(DirectoryStore(tmp_path / "repository"))
    request = CaptureRequest(namespace="tests", job="job", name="one")
    repository.capture(DirectoryStore(tmp_path / "job"), request)
    return RehearsalOptions(savepoint="one", repository=str(tmp_path / "repository"))


def beside(tmp_path: Path) -> Scratch:
    (tmp_path / "epoch-3").mkdir(exist_ok=True)
    scratch = scratch_beside(str(tmp_path / "epoch-3"), None)
    assert scratch is not None
    return scratch


def filled(scratch: Scratch, options: RehearsalOptions) -> None:
    scratch.begin(options, job="tests/job", endpoint_url=None)
    assert scratch.await_filled(60)


def test_it_is_filled_beside_the_epoch_directory_and_removed(
    tmp_path: Path, savepoint: RehearsalOptions
) -> None:
    repository = contents(tmp_path / "repository")
    scratch = beside(tmp_path)

    filled(scratch, savepoint)

    assert scratch.error is None
    assert scratch.copied is not None
    assert scratch.copied.savepoint == "tests/job/one"
    starts, ends, more = ({"0": f'{{"topic":{{"0":{offset}}}}}'} for offset in (1, 2, 3))
    assert scratch.copied.read == {"idle": LastRead(starts, ends), "busy": LastRead(ends, more)}
    copy = tmp_path / "epoch-3.rehearsal"
    assert scratch.checkpoint("idle") == f"file:{copy}/idle"
    begun = (copy / "idle" / "offsets" / "3").read_text().splitlines()
    assert begun[2:] == ['{"topic":{"0":2}}']
    assert (copy / "busy" / "offsets" / "3").read_text().endswith('{"topic":{"0":3}}')
    scratch.remove()
    scratch.remove()
    assert not copy.exists()
    assert list((tmp_path / "epoch-3").iterdir()) == []
    assert contents(tmp_path / "repository") == repository


def contents(root: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in root.rglob("*") if path.is_file()}


def test_what_a_killed_driver_left_is_removed_by_the_next(
    tmp_path: Path, savepoint: RehearsalOptions
) -> None:
    filled(beside(tmp_path), savepoint)
    (tmp_path / "epoch-3.rehearsal" / "idle" / "state" / "empty").mkdir()
    killed = tmp_path / "epoch-3.rehearsal" / ".sparkpoint" / "restored.json"
    killed.write_text(killed.read_text().replace("complete", "filling"))

    filled(beside(tmp_path), savepoint)
    beside(tmp_path).remove_leftover()

    assert not (tmp_path / "epoch-3.rehearsal").exists()


def test_a_savepoint_that_is_not_there_is_an_error_in_words(
    tmp_path: Path, savepoint: RehearsalOptions
) -> None:
    lost = RehearsalOptions(savepoint="two", repository=savepoint.repository)
    scratch = beside(tmp_path)

    filled(scratch, lost)

    assert scratch.copied is None
    assert scratch.error is not None
    assert scratch.error.type == "NoSuchSavepoint"
    assert not (tmp_path / "epoch-3.rehearsal").exists()


def test_copying_is_called_off(tmp_path: Path, savepoint: RehearsalOptions) -> None:
    scratch = beside(tmp_path)
    entered, leave = threading.Event(), threading.Event()
    clear = scratch._clear

    def slowly() -> None:
        clear()
        entered.set()
        leave.wait(60)

    scratch._clear = slowly  # type: ignore[method-assign]
    scratch.begin(savepoint, job="tests/job", endpoint_url=None)
    assert entered.wait(60)
    scratch._clear = clear  # type: ignore[method-assign]
    removal = threading.Thread(target=scratch.remove)
    removal.start()
    while not scratch._over.is_set():
        removal.join(0.01)
    leave.set()
    removal.join(60)

    assert scratch.error is not None
    assert scratch.error.type == "CALLED_OFF"
    assert not (tmp_path / "epoch-3.rehearsal").exists()


def test_the_log_of_a_query_that_tracks_its_progress_asynchronously_has_gaps(
    tmp_path: Path,
) -> None:
    checkpoint = tmp_path / "job" / "idle"
    SyntheticQuery(checkpoint).run(9)
    shutil.rmtree(checkpoint / "state")
    for log in ("offsets", "commits"):
        for number in (1, 3, 4, 6, 7):
            (checkpoint / log / str(number)).unlink()
    repository = Repository.init(DirectoryStore(tmp_path / "repository"))
    repository.capture(
        DirectoryStore(tmp_path / "job"), CaptureRequest(namespace="tests", job="job", name="one")
    )
    options = RehearsalOptions(savepoint="one", repository=str(tmp_path / "repository"))
    scratch = beside(tmp_path)

    filled(scratch, options)

    assert scratch.error is None
    assert scratch.copied is not None
    starts, ends = {"0": '{"topic":{"0":5}}'}, {"0": '{"topic":{"0":8}}'}
    assert scratch.copied.read == {"idle": LastRead(starts, ends)}


@pytest.mark.parametrize("epoch_dir", ["s3://bucket", "/"])
def test_there_is_nothing_beside_a_root(epoch_dir: str) -> None:
    assert scratch_beside(epoch_dir, None) is None


@pytest.mark.parametrize(("next_watermark", "expected"), [(9000, 9000), (0, 5000)])
def test_the_batch_that_spark_would_begin_without_new_data(
    next_watermark: int, expected: int
) -> None:
    commit = f'v1\n{{"nextBatchWatermarkMs":{next_watermark}}}'.encode()

    begun = next_batch(f"v1\n{HEAD}\n17\n-".encode(), commit, 4, now=1_700_000_000.5)

    version, head, *sources = begun.decode().split("\n")
    assert (version, sources) == ("v1", ["17", "-"])
    assert json.loads(head) == {
        "batchWatermarkMs": expected,
        "batchTimestampMs": 1_700_000_000_500,
        "conf": {"a": "b"},
    }
