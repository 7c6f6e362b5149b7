"""The job between script, agent and signals: one cause ends it, once."""

import threading
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest
from pyspark.sql import SparkSession

from sparkpoint.runtime.ending import Cause
from sparkpoint.runtime.errors import IdentityError, PromiseError, ScriptOver
from sparkpoint.runtime.identity import Identity, Place
from sparkpoint.runtime.job import RunningJob
from sparkpoint.runtime.model import EndReason, ErrorInfo, QuerySink
from sparkpoint.runtime.options import Options
from sparkpoint.runtime.queries import StartedQuery
from sparkpoint.runtime.script import ScriptEnd
from sparkpoint.runtime.writing import Asked, Traits
from sparkpoint.savepoint.manifest import SinkInfo
from sparkpoint.savepoint.sinknote import read_sink_note
from sparkpoint.storage import DirectoryStore, open_store
from tests.support.waiting import await_true
from tests.unit.runtime.core.fakes import FakeExecution

TERMINATED = Cause(EndReason.TERMINATED, "SIGTERM was received.")
ERROR = ErrorInfo(type="ValueError", message="no such luck", where="job.py:12")


class World:
    """A job without Spark."""

    def __init__(self, root: Path, **options: object) -> None:
        least: dict[str, object] = {"epoch_dir": str(root), "epoch": 3, "job": "a/b", "script": "s"}
        # Options are checked where they are parsed.
        self.options = Options(**{**least, **options})  # type: ignore[arg-type]
        self.job = RunningJob(self.options, open_store(str(root)))
        self.executions: dict[str, FakeExecution] = {}

    def start(self, name: str | None, **traits: bool) -> FakeExecution:
        """As the script does."""
        return self.run(name, FakeExecution(name or "query", **traits))

    def run(
        self,
        name: str | None,
        execution: FakeExecution,
        *,
        sink: QuerySink | None = None,
        traits: Traits | None = None,
    ) -> FakeExecution:
        session = SimpleNamespace(
            _jsparkSession=SimpleNamespace(sessionUUID=lambda: "u"),
            streams=SimpleNamespace(addListener=lambda _: None),
        )
        asked = Asked(
            name,
            None,
            Place("s", 1),
            cast(SparkSession, session),
            traits=traits or Traits(),
        )
        with self.job.starting(asked) as begun:
            query = StartedQuery(
                Identity(begun.name, begun.name),
                begun.checkpoint,
                execution,
                on_end=self.job.query_ended,
                sink=sink,
            )
            self.job.register(query)
        return execution


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def in_thread(call: object) -> threading.Thread:
    assert callable(call)
    thread = threading.Thread(target=call, daemon=True)
    thread.start()
    return thread


def test_checkpoints_are_in_the_epoch_directory(world: World, tmp_path: Path) -> None:
    world.start("visits")

    assert world.job.checkpoints() == {"visits": f"file:{tmp_path}/visits"}
    assert [query.name for query in world.job.progress().queries] == ["visits"]
    assert world.job.progress().phase == "running"


def test_a_query_may_be_started_again_as_soon_as_spark_has_ended_it(world: World) -> None:
    class Unheard(FakeExecution):
        """Its end takes its time to get to us."""

        def await_end(self) -> None:
            heard.wait(60)

    heard = threading.Event()
    first = world.run(None, Unheard())
    with pytest.raises(IdentityError):
        world.start(None)

    first.interrupt()
    world.start(None)

    heard.set()
    world.job.end(TERMINATED)
    world.job.await_release()
    assert world.job.termination().clean


def test_nothing_starts_once_the_job_ends(world: World) -> None:
    world.start("a")
    assert world.job.end(TERMINATED)

    with pytest.raises(ScriptOver):
        world.start("b")

    world.job.await_release()
    assert set(world.job.termination().queries) == {"a"}


def test_the_first_cause_counts(world: World) -> None:
    assert world.job.end(TERMINATED)
    assert not world.job.end(Cause(EndReason.STOPPED, "later"))
    world.job.script_ended(ScriptEnd(1, ERROR))
    world.job.await_release()

    termination = world.job.termination()
    assert (termination.reason, termination.exit_code) == (EndReason.TERMINATED, 0)


def test_a_stop_holds_the_process_until_it_is_finished(world: World) -> None:
    world.start("a")

    report = world.job.stop("op-1", 30)

    assert report.clean
    assert world.job.stop("op-1", 30) is report
    assert (world.job.is_released, world.job.progress().phase) == (False, "stopping")
    world.job.finish("op-1", "before-upgrade")
    assert world.job.await_release().reason is EndReason.STOPPED
    termination = world.job.termination()
    assert (termination.operation, termination.savepoint) == ("op-1", "before-upgrade")
    assert world.job.progress().phase == "ended"


def test_a_second_operation_may_finish_what_a_failed_one_began(world: World) -> None:
    first = world.job.stop("op-1", 30)
    second = world.job.stop("op-2", 30)
    world.job.finish("op-2", None)

    assert first is second
    assert world.job.is_released


def test_sigterm_gives_a_stop_that_nobody_finishes_so_much_time(world: World) -> None:
    world.job.stop("op-1", 30)
    assert not world.job.end(TERMINATED)

    world.job.release_after(0.05)

    assert world.job.await_release().reason is EndReason.STOPPED


def test_the_script_waits_while_we_stop(world: World) -> None:
    execution = world.start("a", stubborn=True)
    assert world.job.end(TERMINATED, 0.3)

    query, session = in_thread(world.job.stopping_query), in_thread(world.job.stopping_context)
    query.join(10)
    session.join(10)

    assert execution.interrupted
    assert world.job.is_released


def test_a_script_that_stops_the_session_stops_at_a_boundary_and_may_go_on(world: World) -> None:
    world.start("a")

    world.job.stopping_context()

    assert world.job.progress().phase == "running"
    world.start("b")
    world.job.end(TERMINATED)
    world.job.await_release()
    assert world.job.termination().clean


def test_a_dead_query_ends_the_job_and_says_where(world: World) -> None:
    execution, other = world.start("bad"), world.start("good")
    execution.die(ERROR)

    assert world.job.await_release().reason is EndReason.QUERY_FAILED
    termination = world.job.termination()
    assert termination.exit_code == 80
    assert termination.error is not None
    assert termination.error.where == "job.py:12"
    assert "'bad' died at job.py:12: ValueError: no such luck" in termination.message
    assert termination.queries["good"].clean
    assert not other.interrupted


def test_a_dead_query_may_be_left_to_the_script(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    world = World(tmp_path, on_query_failure="ignore")
    world.start("bad").die(ERROR)
    world.start("good")

    world.job.script_ended(ScriptEnd(0))
    world.job.await_release()

    termination = world.job.termination()
    assert (termination.reason, termination.exit_code) == (EndReason.SCRIPT_ENDED, 0)
    await_true(lambda: "bad" in caplog.text, "a word of the query that died")


@pytest.mark.parametrize(
    ("made", "said"), [(True, "without starting a query"), (False, "without a Spark session")]
)
def test_a_script_that_did_nothing_is_told_of_in_the_log(
    world: World, caplog: pytest.LogCaptureFixture, made: bool, said: str
) -> None:
    if made:
        world.job.session_made(with_context=True)

    with caplog.at_level("WARNING", logger="sparkpoint.runtime"):
        world.job.script_ended(ScriptEnd(0))
    world.job.await_release()

    assert [said in record.getMessage() for record in caplog.records] == [True]
    assert "start()" in caplog.text
    assert world.job.termination().exit_code == 0


def test_a_script_that_has_waited_is_not_told_to_though_we_know_later_of_the_end(
    world: World, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    query = world.start("a")
    monkeypatch.setattr(query, "is_active", lambda: False)

    with caplog.at_level("WARNING", logger="sparkpoint.runtime"):
        world.job.script_ended(ScriptEnd(0))

    assert "awaitTermination" not in caplog.text


def test_a_script_that_failed_or_did_its_work_is_not_told_to_start_a_query(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    failed, stopped, done = World(tmp_path), World(tmp_path), World(tmp_path)
    done.start("a").interrupt()

    with caplog.at_level("WARNING", logger="sparkpoint.runtime"):
        failed.job.script_ended(ScriptEnd(1, ERROR))
        stopped.job.end(TERMINATED)
        stopped.job.script_ended(ScriptEnd(0))
        done.job.script_ended(ScriptEnd(0))

    assert "without" not in caplog.text


def test_a_later_epoch_ends_a_running_job_at_once(world: World) -> None:
    execution = world.start("a", stubborn=True)

    assert world.job.open_gate(4).state == "closed"

    assert world.job.await_release().reason is EndReason.EPOCH_OVER
    assert execution.interrupted
    assert world.job.termination().exit_code == 82


def test_the_gate_is_shown_and_its_deadline_ends_the_script(tmp_path: Path) -> None:
    world = World(tmp_path, gated=True, gate_deadline=0.05)
    assert world.job.progress().phase == "starting"

    with pytest.raises(ScriptOver):
        world.start("a")

    assert world.job.await_release().reason is EndReason.GATE_NOT_OPENED
    assert world.job.termination().exit_code == 82


def test_a_query_that_cannot_keep_the_promise_is_refused_before_the_gate(tmp_path: Path) -> None:
    world = World(tmp_path, guarantee="exactly-once", gated=True)
    kafka = Traits(sink="kafka", sources=("socket",))

    with pytest.raises(PromiseError, match="Query 'orders', started at s:1") as refused:
        world.run("orders", FakeExecution(), traits=kafka)

    assert "the sink kafka" in str(refused.value)
    assert "the source socket" in str(refused.value)
    assert "checkpoint.guarantee: AtLeastOnce" in str(refused.value)


def test_a_job_that_promises_less_lets_it_run(world: World) -> None:
    world.run("orders", FakeExecution(), traits=Traits(sink="kafka"))

    assert world.job.progress().phase == "running"


def test_the_sink_is_shown(world: World) -> None:
    sink = QuerySink(kind="file", uri="file:/data/out")

    world.run("visits", FakeExecution(), sink=sink)

    assert [query.sink for query in world.job.progress().queries] == [sink]


def test_the_sink_is_noted_beside_the_checkpoint(world: World, tmp_path: Path) -> None:
    query = DirectoryStore(tmp_path / "visits")

    world.job.seed(Identity("visits", "visits"), "file:/data/out")
    before = read_sink_note(query)
    world.run("visits", FakeExecution(), sink=QuerySink(kind="file", uri="file:/data/out"))

    assert before == read_sink_note(query) == SinkInfo(kind="file", uri="/data/out")


def test_a_note_that_cannot_be_written_does_not_end_the_query(
    world: World, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "visits").write_text("in the way")

    world.run("visits", FakeExecution(), sink=QuerySink(kind="kafka"))

    assert world.job.progress().phase == "running"
    assert "where it writes could not be noted" in caplog.text
