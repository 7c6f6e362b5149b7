"""The beginning of the log of a fork's new sink: there before its first batch, and never later."""

import json
from pathlib import Path

import pytest

from sparkpoint.checkpoint.errors import CannotRewindError
from sparkpoint.checkpoint.sink import SINK_LOG
from sparkpoint.runtime import seeding
from sparkpoint.runtime.seeding import prepare_sink
from sparkpoint.savepoint import CaptureRequest, MaterializeRequest, Mode, Repository, SinkPolicy
from sparkpoint.savepoint.errors import SinkConflictError
from sparkpoint.savepoint.marker import MARKER
from sparkpoint.storage import DirectoryStore
from sparkpoint.storage.errors import AccessDeniedError, UnavailableError
from sparkpoint.storage.interface import Children
from tests.unit.savepoint.synthetic import SyntheticQuery


class World:
    """A savepoint at batch 5 of the query `q`, restored into an epoch."""

    def __init__(self, root: Path, mode: Mode = Mode.FORK, *, pending: bool = False) -> None:
        query = SyntheticQuery(root / "first" / "q").run(6)
        if pending:
            query.begin(6)
        repository = Repository.init(DirectoryStore(root / "repository"))
        source = DirectoryStore(root / "first")
        savepoint = repository.capture(source, CaptureRequest(job="j", name="s")).savepoint
        self.epoch, self.sink = DirectoryStore(root / "epoch"), root / "sink"
        request = MaterializeRequest(mode=mode, sink_policy=SinkPolicy.IGNORE)
        repository.materialize(savepoint, self.epoch, request)

    def seed(self, uri: str | None = None, *, job: str = "default/j") -> list[str]:
        """As before a start; the sink's log then."""
        place = uri or f"file:{self.sink}"
        prepare_sink(self.epoch, "q", place, job=job, endpoint_url=None)
        log = self.sink / SINK_LOG
        return sorted(path.name for path in log.iterdir()) if log.exists() else []


def test_a_fork_gets_an_empty_beginning_also_after_a_crash_in_between(tmp_path: Path) -> None:
    world = World(tmp_path)
    whole = world.seed()
    assert whole == ["0", "1", "2", "3", "4", "5"]

    (world.sink / SINK_LOG / "3").unlink()
    (world.sink / SINK_LOG / "4").unlink()

    assert world.seed() == whole
    assert (world.sink / SINK_LOG / "4").read_text() == "v1"


def test_a_fork_that_has_committed_is_left_alone(tmp_path: Path) -> None:
    world = World(tmp_path)
    commits = tmp_path / "epoch" / "q" / "commits"
    (commits / "6").write_bytes((commits / "5").read_bytes())

    assert world.seed() == []


@pytest.mark.parametrize("mode", list(Mode))
def test_a_sink_that_is_ahead_is_another_s_and_is_not_written_to(
    tmp_path: Path, mode: Mode
) -> None:
    world = World(tmp_path, mode)
    (world.sink / SINK_LOG).mkdir(parents=True)
    (world.sink / SINK_LOG / "17").write_text("v1")

    with pytest.raises(SinkConflictError, match="has output up to batch 17"):
        world.seed()


@pytest.mark.parametrize("mode", list(Mode))
def test_a_batch_that_reached_the_sink_and_was_not_committed_is_our_own(
    tmp_path: Path, mode: Mode
) -> None:
    world = World(tmp_path, mode)
    offsets = tmp_path / "epoch" / "q" / "offsets"
    (offsets / "6").write_bytes((offsets / "5").read_bytes())
    (world.sink / SINK_LOG).mkdir(parents=True)
    (world.sink / SINK_LOG / "6").write_text("v1")

    assert world.seed() == ["6"]


def test_a_batch_in_flight_whose_state_was_left_behind_is_cut_from_a_sink_that_nobody_knew(
    tmp_path: Path,
) -> None:
    world = World(tmp_path, Mode.RESUME, pending=True)
    (world.sink / SINK_LOG).mkdir(parents=True)
    for batch in range(7):
        (world.sink / SINK_LOG / str(batch)).write_text("v1")

    assert world.seed() == ["0", "1", "2", "3", "4", "5"]
    assert world.seed() == ["0", "1", "2", "3", "4", "5"]


def test_a_batch_in_flight_of_another_job_is_not_cut(tmp_path: Path) -> None:
    """Its query may go on, and have committed it since."""
    world = World(tmp_path, Mode.RESUME, pending=True)
    (world.sink / SINK_LOG).mkdir(parents=True)
    for batch in range(7):
        (world.sink / SINK_LOG / str(batch)).write_text("v1")

    with pytest.raises(SinkConflictError, match=r"default/j/s is .*another job.* batch 6 .*Fork"):
        world.seed(job="default/j2")
    assert (world.sink / SINK_LOG / "6").exists()


def test_a_batch_in_flight_is_cut_as_ever_after_a_restore_that_has_not_noted_whose_it_is(
    tmp_path: Path,
) -> None:
    world = World(tmp_path, Mode.RESUME, pending=True)
    note = tmp_path / "epoch" / MARKER
    note.write_text(json.dumps({**json.loads(note.read_text()), "key": None}))
    (world.sink / SINK_LOG).mkdir(parents=True)
    for batch in range(7):
        (world.sink / SINK_LOG / str(batch)).write_text("v1")

    assert world.seed(job="default/j2") == ["0", "1", "2", "3", "4", "5"]


@pytest.mark.parametrize("gone", [True, False])
def test_a_batch_in_flight_that_cannot_be_cut_is_told_with_its_query_and_the_way_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, gone: bool
) -> None:
    world = World(tmp_path, Mode.RESUME, pending=True)
    (world.sink / SINK_LOG).mkdir(parents=True)
    for batch in [6] if gone else range(7):
        (world.sink / SINK_LOG / str(batch)).write_text("v1")

    def refuse(self: DirectoryStore, path: str) -> None:
        raise AccessDeniedError(f"{path} is not yours.")

    monkeypatch.setattr(DirectoryStore, "delete", refuse)
    error = CannotRewindError if gone else AccessDeniedError

    with pytest.raises(error, match=r"Query q: batch 6 .*sink.* (is gone|not yours).* Fork"):
        world.seed()
    assert (world.sink / SINK_LOG / "6").exists()


def test_a_sink_that_does_not_answer_may_have_the_batch_in_flight(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = World(tmp_path, Mode.RESUME, pending=True)
    children = DirectoryStore.children

    def fail(self: DirectoryStore, prefix: str = "") -> Children:
        if prefix == SINK_LOG:
            raise UnavailableError("It has too much to do.")
        return children(self, prefix)

    monkeypatch.setattr(DirectoryStore, "children", fail)

    with pytest.raises(UnavailableError, match=r"Query q: batch 6 may be in .*too much to do"):
        world.seed()


def test_only_what_was_cut_is_told_as_cut(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    world = World(tmp_path, Mode.RESUME, pending=True)
    (world.sink / SINK_LOG).mkdir(parents=True)
    for batch in range(7):
        (world.sink / SINK_LOG / str(batch)).write_text("v1")
    caplog.set_level("INFO", "sparkpoint.runtime")

    with monkeypatch.context() as patched:
        patched.setattr(seeding, "cut_log", lambda *args, **options: None)
        world.seed()
    assert "is cut from" not in caplog.text

    world.seed()
    assert "Query q: batch 6 is cut from" in caplog.text


def test_a_batch_in_flight_that_was_done_again_here_stays_in_the_sink(tmp_path: Path) -> None:
    world = World(tmp_path, Mode.RESUME, pending=True)
    state = tmp_path / "epoch" / "q" / "state" / "0" / "0"
    (state / "7.delta").write_bytes((state / "6.delta").read_bytes())
    (world.sink / SINK_LOG).mkdir(parents=True)
    for batch in range(7):
        (world.sink / SINK_LOG / str(batch)).write_text("v1")

    assert world.seed() == ["0", "1", "2", "3", "4", "5", "6"]


@pytest.mark.parametrize("mode", [Mode.RESUME, Mode.REWIND])
def test_only_forks_have_new_sinks(tmp_path: Path, mode: Mode) -> None:
    assert World(tmp_path, mode).seed() == []


def test_an_epoch_that_was_not_restored_is_left_alone(tmp_path: Path) -> None:
    epoch, place = DirectoryStore(tmp_path / "e"), str(tmp_path / "sink")

    prepare_sink(epoch, "q", place, job="default/j", endpoint_url=None)

    assert not (tmp_path / "sink").exists()


def test_a_store_of_another_kind_is_no_reason_to_fail(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    assert World(tmp_path).seed("hdfs://cluster/out") == []

    assert "could not be looked at" in caplog.text
