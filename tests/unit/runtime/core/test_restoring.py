"""What a driver begins from, and what becomes of the sinks that the savepoint knows."""

from pathlib import Path
from typing import Any

import pytest

from sparkpoint.checkpoint.sink import SINK_LOG
from sparkpoint.runtime.model import ErrorInfo
from sparkpoint.runtime.options import RestoreOptions, SinkMode
from sparkpoint.runtime.restoring import Restoring
from sparkpoint.savepoint import CaptureRequest, Repository
from sparkpoint.savepoint.manifest import SinkInfo
from sparkpoint.savepoint.sinknote import write_sink_note
from sparkpoint.storage import DirectoryStore
from tests.unit.savepoint.synthetic import SyntheticQuery

BATCH = 5


class World:
    """A savepoint at batch 5 of the query `q`."""

    def __init__(
        self, root: Path, sink: SinkInfo | None, *, folder: str = "q", pending: bool = False
    ) -> None:
        query = SyntheticQuery(root / "first" / folder).run(BATCH + 1)
        if pending:
            query.begin(BATCH + 1)
        self._repository, self.epoch = root / "repository", root / "epoch"
        repository = Repository.init(DirectoryStore(self._repository))
        request = CaptureRequest(
            namespace="shop", job="visits", name="s", sinks={"q": sink} if sink else {}
        )
        repository.capture(DirectoryStore(root / "first"), request)

    def restore(self, mode: SinkMode, job: str = "shop/visits") -> ErrorInfo | None:
        """Restore it; what went wrong."""
        name, repository = "shop/visits/s", str(self._repository)
        options = RestoreOptions(savepoint=name, repository=repository, sink=mode)
        target = DirectoryStore(self.epoch)
        restoring = Restoring(options, target, job=job, endpoint_url=None)
        failed: list[ErrorInfo] = []
        restoring.begin(failed.append)
        assert restoring.wait() is (not failed)
        return failed[0] if failed else None


def written(root: Path, batches: int) -> SinkInfo:
    """A file sink with so many batches."""
    log = root / "sink" / SINK_LOG
    log.mkdir(parents=True)
    for number in range(batches):
        (log / str(number)).write_text("v1")
    return SinkInfo(kind="file", uri=str(root / "sink"))


def test_state_that_no_query_would_look_for_is_not_restored(tmp_path: Path) -> None:
    """A savepoint of a single query's checkpoint: it would begin anew, beside its state."""
    world = World(tmp_path, None, folder="")

    error = world.restore("resume")

    assert error is not None
    assert "adoptAs" in error.message
    assert not world.epoch.exists()


def test_a_sink_that_has_gone_on_is_refused_to_who_resumes(tmp_path: Path) -> None:
    world = World(tmp_path, written(tmp_path, BATCH + 3))

    error = world.restore("resume")

    assert error is not None
    assert "has output up to batch 7" in error.message
    assert not (world.epoch / "q").exists()


def test_a_driver_that_died_between_its_sinks_commit_and_its_own_is_resumed_without_a_person(
    tmp_path: Path,
) -> None:
    world = World(tmp_path, written(tmp_path, BATCH + 2), pending=True)

    assert world.restore("resume") is None

    left = {int(path.name) for path in (tmp_path / "sink" / SINK_LOG).iterdir()}
    assert left == set(range(BATCH + 1))
    assert (world.epoch / "q" / "offsets" / str(BATCH + 1)).exists()


@pytest.mark.parametrize(("kind", "told"), [("delta", True), ("iceberg", False), ("kafka", False)])
def test_a_table_that_would_skip_the_batch_in_flight_is_told_of(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, kind: Any, told: bool
) -> None:
    world = World(tmp_path, SinkInfo(kind=kind, uri="s3://lake/t"), pending=True)

    assert world.restore("resume") is None

    assert ("Batch 6 of query q was in flight" in caplog.text) is told


def test_a_sink_that_has_gone_on_is_cut_for_who_rewinds(tmp_path: Path) -> None:
    world = World(tmp_path, written(tmp_path, BATCH + 3))

    assert world.restore("rewind") is None

    left = {int(path.name) for path in (tmp_path / "sink" / SINK_LOG).iterdir()}
    assert left == set(range(BATCH + 1))
    assert (world.epoch / "q" / "commits" / str(BATCH)).exists()


def test_the_sink_of_another_job_is_not_cut(tmp_path: Path) -> None:
    world = World(tmp_path, written(tmp_path, BATCH + 3))

    error = world.restore("rewind", "shop/trial")

    assert error is not None
    assert "savepoint of another job" in error.message
    assert len(list((tmp_path / "sink" / SINK_LOG).iterdir())) == BATCH + 3
    assert world.restore("fork", "shop/trial") is None


@pytest.mark.parametrize("batches", [BATCH + 1, BATCH + 2])
def test_another_job_does_not_resume_in_the_midst_of_a_batch(tmp_path: Path, batches: int) -> None:
    """The job that was captured may go on, and have that batch in its sink at any moment."""
    world = World(tmp_path, written(tmp_path, batches), pending=True)

    error = world.restore("resume", "shop/trial")

    assert error is not None
    assert "batch 6 of query q was in flight" in error.message
    assert len(list((tmp_path / "sink" / SINK_LOG).iterdir())) == batches
    assert not (world.epoch / "q").exists()
    assert world.restore("fork", "shop/trial") is None


def test_another_job_resumes_between_two_batches(tmp_path: Path) -> None:
    world = World(tmp_path, written(tmp_path, BATCH + 1))

    assert world.restore("resume", "shop/trial") is None


def test_the_sink_that_a_fork_leaves_is_not_touched(tmp_path: Path) -> None:
    world = World(tmp_path, written(tmp_path, BATCH + 3))

    assert world.restore("fork") is None

    assert len(list((tmp_path / "sink" / SINK_LOG).iterdir())) == BATCH + 3


def test_a_sink_that_cannot_be_looked_at_is_believed_of_who_resumes_alone(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    world = World(tmp_path, SinkInfo(kind="file", uri="hdfs://cluster/out"))

    error = world.restore("rewind")
    assert error is not None
    assert error.type == "SinkConflict"
    assert "hdfs" in error.message

    assert world.restore("resume") is None
    assert "hdfs://cluster/out, cannot be looked at" in caplog.text


def test_a_sink_without_a_log_is_believed_of_who_resumes_alone(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    world = World(tmp_path, SinkInfo(kind="file", uri=str(tmp_path / "gone")))

    error = world.restore("rewind")
    assert error is not None
    assert error.type == "SinkConflict"
    assert "gone has no _spark_metadata" in error.message

    assert world.restore("resume") is None
    assert "gone, has no _spark_metadata" in caplog.text


def test_a_sink_that_is_new_was_looked_at(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    world = World(tmp_path, SinkInfo(kind="file", uri=str(tmp_path / "new")), pending=True)

    assert world.restore("resume") is None

    assert "new, has no _spark_metadata" in caplog.text
    assert "was not looked at" not in caplog.text


def test_a_file_sink_that_cannot_be_looked_at_may_skip_the_batch_in_flight(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    world = World(tmp_path, SinkInfo(kind="file", uri="hdfs://cluster/out"), pending=True)

    assert world.restore("resume") is None

    assert "Batch 6 of query q was in flight, and its sink (file) was not looked at" in caplog.text


def test_a_sink_whose_first_entry_was_never_finished_is_new(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    sink = written(tmp_path, 0)
    world = World(tmp_path, sink)
    (tmp_path / "sink" / SINK_LOG / ".0.5d1c.tmp").write_text("v1")

    assert world.restore("resume") is None

    assert "sink, has no _spark_metadata" in caplog.text


@pytest.mark.parametrize("sink", [None, SinkInfo(kind="file")])
def test_a_sink_that_nobody_knows_is_not_rewound(tmp_path: Path, sink: SinkInfo | None) -> None:
    world = World(tmp_path, sink)

    error = world.restore("rewind")

    assert error is not None
    assert error.type == "SinkConflict"
    assert "Where query q writes is not known" in error.message
    assert not (world.epoch / "q").exists()
    assert world.restore("resume") is None


def test_what_was_captured_without_a_driver_is_checked_and_rewound_all_the_same(
    tmp_path: Path,
) -> None:
    sink = written(tmp_path, BATCH + 3)
    write_sink_note(DirectoryStore(tmp_path / "first" / "q"), sink)
    world = World(tmp_path, None)

    refused = world.restore("resume")
    assert refused is not None
    assert "has output up to batch 7" in refused.message

    assert world.restore("rewind") is None
    left = {int(path.name) for path in (tmp_path / "sink" / SINK_LOG).iterdir()}
    assert left == set(range(BATCH + 1))
