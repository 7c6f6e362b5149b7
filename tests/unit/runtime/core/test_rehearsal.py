"""The course of a rehearsal, with queries that do what a test tells them."""

import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

from sparkpoint.runtime.conclusion import Course, conclude
from sparkpoint.runtime.errors import ScriptOver
from sparkpoint.runtime.execution import LostError
from sparkpoint.runtime.families import Columns
from sparkpoint.runtime.identity import Place
from sparkpoint.runtime.lastread import LastRead, Offsets, Part
from sparkpoint.runtime.model import ErrorInfo, RehearsalInfo, RehearsedQuery
from sparkpoint.runtime.options import RehearsalOptions
from sparkpoint.runtime.rehearsal import Rehearsal
from sparkpoint.runtime.scratch import scratch_beside
from sparkpoint.runtime.script import ScriptEnd
from sparkpoint.runtime.trials import Trials
from sparkpoint.runtime.verdict import Thrown
from sparkpoint.runtime.writing import Asked, Launch
from sparkpoint.savepoint import CaptureRequest, Repository
from sparkpoint.storage import DirectoryStore
from sparkpoint.worker.tasks.rehearse import judged
from tests.unit.runtime.core.fakes import FakeExecution
from tests.unit.savepoint.synthetic import SyntheticQuery

DEADLINE = 600.0
SCHEMA = Thrown("X", "no", "STATE_STORE_VALUE_SCHEMA_NOT_COMPATIBLE", "XXKST")


class Tried(FakeExecution):
    """A trial that has made its batch, has failed, or goes on for ever."""

    def __init__(
        self,
        *,
        rows: int | None = 0,
        failure: Sequence[Thrown] = (),
        unreadable: Sequence[Thrown] = (),
        unrepeatable: Sequence[Thrown] = (),
        refuses: str | None = None,
        sources: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__()
        self._rows, self._failure, self._unreadable = rows, failure, unreadable
        self._unrepeatable = unrepeatable
        self._sources = sources or {"0": "KafkaV2[Subscribe[topic]]"}
        self._refuses = refuses
        self.asked: Offsets | None = None
        self.gathered: str | None = None
        self.is_cancelled = False

    def gather_jobs(self) -> None:
        self.gathered = threading.current_thread().name

    def cancel_jobs(self) -> None:
        self.is_cancelled = True

    def failure(self) -> Sequence[Thrown]:
        return self._failure

    def input_rows(self) -> int | None:
        return self._rows

    def unreadable(self, offsets: Offsets) -> Sequence[Thrown]:
        self.asked = offsets
        return self._unreadable

    def sources(self) -> Mapping[str, str]:
        return self._sources

    def unrepeatable(self, parts: Sequence[Part]) -> Sequence[Thrown]:
        return self._unrepeatable if parts else ()

    def begin(self, checkpoint: Path) -> None:
        """The code calls its state as the former one did."""
        self._schema = checkpoint / "state/0/0/_metadata/schema"
        self._names = self._schema.read_bytes()

    def write_schemas(self) -> None:
        if self._refuses is not None:
            raise LostError(self._refuses)
        try:
            self._schema.parent.mkdir(exist_ok=True)
            self._schema.write_bytes(self._names)
        except FileNotFoundError as gone:
            raise LostError("The copy was removed.") from gone

    def family_columns(self) -> dict[int, Columns]:
        return {}


class Slow(Tried):
    """Its sources answer when they are told to."""

    def __init__(self) -> None:
        super().__init__()
        self.is_asked, self.may_answer = threading.Event(), threading.Event()

    def unrepeatable(self, parts: Sequence[Part]) -> Sequence[Thrown]:
        self.is_asked.set()
        self.may_answer.wait(5)
        return ()


class Session:
    """As much of a session as is asked for."""

    reset = 0

    @property
    def streams(self) -> "Session":
        return self

    def resetTerminated(self) -> None:  # noqa: N802
        self.reset += 1


class World:
    """A savepoint of two queries, and a rehearsal on it without Spark."""

    def __init__(
        self, root: Path, *, repository: str = "repository", folders: Sequence[str] = ("a", "b")
    ) -> None:
        self.root, self.session, self.now = root, Session(), 0.0
        for name in folders:
            SyntheticQuery(root / "job" / name).run(2)
        made = Repository.init(DirectoryStore(root / "repository"))
        request = CaptureRequest(namespace="tests", job="job", name="one")
        made.capture(DirectoryStore(root / "job"), request)
        options = RehearsalOptions(
            savepoint="one", repository=str(root / repository), deadline=DEADLINE
        )
        self.is_called_off, self.nudged, self.gave_up = False, threading.Event(), ""
        self.executions: dict[str, Tried] = {}
        scratch = scratch_beside(str(root / "epoch"), None)
        assert scratch is not None
        scratch.begin(options, job="tests/job", endpoint_url=None)
        trials = Trials(scratch, observe=lambda query: cast(Tried, query))
        self.rehearsal = Rehearsal(
            options,
            scratch,
            trials,
            job="tests/job",
            is_called_off=lambda: self.is_called_off,
            nudge=self.nudged.set,
            monotonic=lambda: self.now,
        )

    def start(self, name: str, tried: Tried | None = None, *, ends: bool = False) -> object:
        """As the script does."""
        self.executions[name] = execution = tried or Tried()

        def as_trial(_: str, checkpoint: str, **__: object) -> SimpleNamespace:
            execution.begin(Path(checkpoint.removeprefix("file:")))
            return SimpleNamespace(_jsq=execution)

        return self.launch(name, SimpleNamespace(as_trial=as_trial), ends=ends)

    def launch(self, name: str, launch: object, *, ends: bool = False) -> object:
        session = cast(SparkSession, self.session)
        asked = Asked(name, None, Place("s", 1), session, ends)
        with self.rehearsal.starting(asked) as begun:
            return begun.launch(cast(Launch, launch))

    def wait(self, seconds: float | None = None, *, returns: bool = False) -> None:
        """As the script does at its end."""
        self.rehearsal.waiting(seconds, returns=returns)

    def await_decided(self, name: str) -> None:
        """Until a query has its verdict."""
        while self.rehearsal.info().queries[name].verdict is None:
            self.nudged.wait(0.01)

    def perform(self, script: Callable[[], None]) -> RehearsalInfo:
        def run() -> ScriptEnd:
            try:
                script()
            except ScriptOver:
                return ScriptEnd(0)
            except ValueError as error:
                return ScriptEnd(1, ErrorInfo(type="ValueError", message=str(error)))
            return ScriptEnd(0)

        def give_up(message: str) -> None:
            self.gave_up = message

        info = self.rehearsal.perform(run, give_up)
        assert not (self.root / "epoch.rehearsal").exists()
        return info


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def said(info: RehearsalInfo, name: str) -> tuple[str | None, str | None]:
    """Verdict and kind of error of a query."""
    query = info.queries[name]
    return query.verdict, query.error.type if query.error else None


def test_queries_that_make_their_batch_are_compatible_and_the_script_ends_where_it_waits(
    world: World,
) -> None:
    def script() -> None:
        world.start("a", Tried(rows=7))
        world.start("b")
        world.wait()
        raise AssertionError("it went on")

    info = world.perform(script)

    assert (info.savepoint, info.state, info.verdict) == ("tests/job/one", "done", "compatible")
    assert (info.queries["a"].input_rows, info.queries["b"].input_rows) == (7, 0)
    assert world.executions["b"].asked == {"0": '{"topic":{"0":1}}'}
    assert world.session.reset == 1
    assert info.error is None


def test_every_query_has_its_own_verdict(tmp_path: Path) -> None:
    world = World(tmp_path, folders=["a", "b", "c", "d", "e"])

    def script() -> None:
        world.start("a", Tried(rows=None, failure=[SCHEMA]))
        world.start("b", Tried(unreadable=[Thrown("MappingException", "no")]))
        world.start("c", Tried(unrepeatable=[Thrown("Error", "Wrong basePath /b for /a/1.json")]))
        world.start("d", Tried(sources={"0": "KafkaV2[Subscribe[other, more]]"}))
        world.start("e", Tried(sources={"events": "KafkaV2[Subscribe[topic]]"}))
        world.start("new")

    info = world.perform(script)

    assert info.verdict == "incompatible"
    assert said(info, "a") == ("incompatible", "STATE_STORE_VALUE_SCHEMA_NOT_COMPATIBLE")
    assert said(info, "b") == ("incompatible", "SOURCE_KIND_CHANGED")
    assert said(info, "c") == ("incompatible", "SOURCE_PATH_CHANGED")
    assert said(info, "d") == ("unknown", "SOURCE_TOPICS_CHANGED")
    assert said(info, "e") == ("unknown", "SOURCES_CHANGED")
    assert said(info, "new") == ("compatible", None)
    assert "without state" in str(info.queries["new"].note)


def test_an_idle_query_that_reads_elsewhere_is_not_compatible(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The batch before the savepoint had no files, and the one before the stop may have some."""

    class Moved(Tried):
        def unrepeatable(self, parts: Sequence[Part]) -> Sequence[Thrown]:
            earlier = ("0", '{"logOffset": 2}', '{"logOffset":3}')
            return [Thrown("Error", "Wrong basePath /b")] if earlier in parts else ()

    idle = {"0": '{"logOffset":3}'}
    monkeypatch.setattr("sparkpoint.runtime.scratch.last_read", lambda *_: LastRead(idle, idle))
    world, files = World(tmp_path), {"0": "FileStreamSource[file:/b]"}

    def script() -> None:
        world.start("a", Moved(sources=files))
        world.start("b", Tried(sources=files))

    info = world.perform(script)

    assert said(info, "a") == ("unknown", "SOURCE_PATH_CHANGED")
    assert said(info, "b") == ("compatible", None)


def test_a_savepoint_of_a_single_querys_checkpoint_is_that_of_the_only_query(
    tmp_path: Path,
) -> None:
    """`savepoint create --checkpoint` of one query, as people have them: there are no folders."""
    world = World(tmp_path, folders=[""])

    def script() -> None:
        world.start("visits", Tried(rows=3))
        world.wait()

    info = world.perform(script)

    assert info.verdict == "compatible"
    assert list(info.queries) == ["visits"]
    assert world.executions["visits"].asked == {"0": '{"topic":{"0":1}}'}


@pytest.mark.parametrize("ends", [True, False])
def test_which_of_several_queries_a_single_checkpoint_belongs_to_is_not_guessed(
    tmp_path: Path, ends: bool
) -> None:
    """The first that is started is tried before anybody knows of the other."""
    world = World(tmp_path, folders=[""])

    def script() -> None:
        world.start("totals", Tried(rows=None, failure=[SCHEMA]) if ends else Tried(rows=None))
        if ends:
            world.await_decided("totals")
        world.start("visits")
        # Too late to count.
        world.executions["totals"]._failure = [SCHEMA]
        world.rehearsal.stopping_query()
        world.wait()

    info = world.perform(script)

    assert info.verdict == "unknown"
    assert list(info.queries) == ["totals", "visits"]
    assert {said(info, name) for name in info.queries} == {("unknown", "WHICH_QUERY")}


def test_a_query_whose_names_cannot_be_compared_is_not_called_compatible(world: World) -> None:
    def script() -> None:
        world.start("a", Tried(refuses="no such method"))
        world.start("b")
        world.wait()

    info = world.perform(script)

    assert info.verdict == "unknown"
    assert said(info, "a") == ("unknown", "NAMES_NOT_COMPARED")
    assert "no such method" in str(info.queries["a"].error)
    assert said(info, "b") == ("compatible", None)


def test_a_query_that_is_not_started_any_more_is_one_that_is_lost(world: World) -> None:
    def script() -> None:
        world.start("a")
        world.wait()

    assert said(world.perform(script), "b") == ("incompatible", "QUERY_REMOVED")


@pytest.mark.parametrize("how", ["a timed one", "until input is processed", "for one that ends"])
def test_what_comes_after_a_wait_that_returns_is_not_known(world: World, how: str) -> None:
    def script() -> None:
        world.start("a", ends=how == "for one that ends")
        if how == "a timed one":
            world.wait(0.01)
            world.start("a")
        world.wait(returns=how == "until input is processed")

    assert said(world.perform(script), "b") == ("unknown", "NOT_REACHED")


def test_a_script_that_fails_says_why(world: World) -> None:
    def script() -> None:
        world.start("a")
        raise ValueError("no such table")

    info = world.perform(script)

    assert (info.verdict, said(info, "a")) == ("unknown", ("compatible", None))
    assert info.queries["b"].error is not None
    assert "ValueError: no such table" in info.queries["b"].error.message
    assert info.error is not None
    assert info.error.message == "no such table"
    assert info.hindrance is None


def test_a_script_that_fails_before_its_first_query_does_so_beyond_doubt(world: World) -> None:
    def script() -> None:
        raise ValueError("no such module")

    info = world.perform(script)

    assert (info.verdict, info.hindrance) == ("unknown", "script")
    assert info.error is not None
    assert info.error.message == "no such module"


def test_a_query_that_spark_refuses_is_told_to_the_script_too(world: World) -> None:
    class Refused(AnalysisException):
        def getCondition(self) -> str:  # noqa: N802
            return "STREAMING_OUTPUT_MODE"

    def refuse(*_: object, **__: object) -> None:
        raise Refused("[STREAMING_OUTPUT_MODE] Invalid streaming output mode: append.")

    def script() -> None:
        with pytest.raises(AnalysisException):
            world.launch("a", SimpleNamespace(as_trial=refuse))
        world.start("b")

    assert said(world.perform(script), "a") == ("incompatible", "STREAMING_OUTPUT_MODE")


def test_a_batch_that_takes_too_long_is_unknown(world: World) -> None:
    def script() -> None:
        world.start("a", Tried(rows=None))
        world.start("b")
        world.await_decided("b")
        world.now = DEADLINE + 1
        world.wait()

    info = world.perform(script)

    assert said(info, "a") == ("unknown", "DEADLINE")
    assert (said(info, "b"), info.verdict) == (("compatible", None), "unknown")


@pytest.mark.parametrize("called_off", [True, False])
def test_sources_that_do_not_answer_hold_no_rehearsal_up(world: World, called_off: bool) -> None:
    slow = Slow()

    def script() -> None:
        world.start("a", slow)
        assert slow.is_asked.wait(60)
        world.start("b")
        world.await_decided("b")
        world.now, world.is_called_off = 0 if called_off else DEADLINE + 1, called_off
        world.wait()

    info = world.perform(script)
    slow.may_answer.set()

    assert said(info, "a") == ("unknown", "CALLED_OFF" if called_off else "DEADLINE")
    assert "Its sources did not take their last batch" in str(info.queries["a"].error)
    assert said(info, "b") == ("compatible", None)
    # What Spark does for the question, in its thread, goes with it.
    assert (slow.gathered, slow.is_cancelled) == ("sparkpoint-rehearsal-ask", True)
    assert not world.executions["b"].is_cancelled


def test_a_query_that_ends_after_its_batch_has_the_verdict_of_its_sources(world: World) -> None:
    slow = Slow()

    def script() -> None:
        world.start("a", slow)
        assert slow.is_asked.wait(60)
        slow.interrupt()
        assert slow.await_end() is None
        slow.may_answer.set()
        world.await_decided("a")
        world.start("b")
        world.wait()

    assert said(world.perform(script), "a") == ("compatible", None)


def test_a_query_that_somebody_stops_before_its_batch_is_unknown(world: World) -> None:
    def script() -> None:
        world.start("a", Tried(rows=None))
        world.executions["a"].interrupt()
        world.start("b")
        world.wait()

    assert said(world.perform(script), "a") == ("unknown", "STOPPED")


def test_a_script_that_only_sleeps_is_ended_once_all_is_known(world: World) -> None:
    def script() -> None:
        world.start("a")
        world.start("b")
        world.await_decided("b")
        assert not world.nudged.is_set()
        world.now = 10
        assert world.nudged.wait(60)
        raise ScriptOver

    assert world.perform(script).verdict == "compatible"


def test_a_script_that_cannot_be_ended_ends_the_driver(world: World) -> None:
    def script() -> None:
        world.now = DEADLINE + 1000
        while not world.gave_up:
            world.nudged.wait(0.01)

    assert world.perform(script).verdict == "unknown"
    assert "without --rehearse" in world.gave_up


def test_the_end_of_the_driver_is_the_end_of_a_rehearsal(world: World) -> None:
    def script() -> None:
        world.start("a", Tried(rows=None))
        world.is_called_off = True
        # As the job does when it is told to end.
        world.rehearsal.close()
        world.wait()

    info = world.perform(script)

    assert said(info, "a") == ("unknown", "CALLED_OFF")
    assert said(info, "b") == ("unknown", "NOT_REACHED")


def test_a_savepoint_that_cannot_be_copied_ends_it_without_a_verdict(tmp_path: Path) -> None:
    world = World(tmp_path, repository="elsewhere")

    def script() -> None:
        world.start("a")
        raise AssertionError("it went on")

    info = world.perform(script)

    assert (info.verdict, info.queries) == ("unknown", {})
    assert info.error is not None
    assert info.error.type == "NotARepository"
    assert info.hindrance == "savepoint"


def test_other_threads_of_the_script_may_wait_without_ending_it(world: World) -> None:
    def in_thread(name: str) -> None:
        world.start(name)
        # Python itself lets a thread go that ends like this.
        with pytest.raises(ScriptOver):
            world.wait()

    def script() -> None:
        threads = [threading.Thread(target=in_thread, args=(name,)) for name in ("a", "b")]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)

    assert world.perform(script).verdict == "compatible"


def test_what_it_is_doing_is_shown_meanwhile(world: World) -> None:
    def script() -> None:
        world.start("a", Tried(rows=None))
        info = world.rehearsal.info()
        assert (info.state, info.verdict) == ("running", None)
        assert info.queries["a"].verdict is None
        assert not world.rehearsal.adding_listener()
        assert not world.rehearsal.stopping_context()
        world.executions["a"]._rows = 3
        world.rehearsal.stopping_query()
        assert world.rehearsal.info().queries["a"].verdict == "compatible"

    world.perform(script)


def test_a_stand_in_seems_to_have_just_begun(world: World) -> None:
    seen: list[object] = []

    def script() -> None:
        query = world.start("a", Tried(rows=None, failure=[SCHEMA]))
        seen.extend(getattr(query, name) for name in ("name", "isActive", "lastProgress"))
        seen.append(query.exception())  # type: ignore[attr-defined]
        query.stop()  # type: ignore[attr-defined]

    world.perform(script)

    assert seen == ["a", True, None, None]


def test_no_space_for_the_copy_says_nothing_about_the_savepoint() -> None:
    course = Course(
        savepoint="one",
        expected=set(),
        started=set(),
        found={},
        script=ScriptEnd(0),
        copy_error=ErrorInfo(type="Full", message="no space left"),
    )

    assert conclude(course).hindrance is None


MAY_PASS = ErrorInfo(type="TABLE_OR_VIEW_NOT_FOUND", message="no table", retry_helps=True)


@pytest.mark.parametrize(
    ("found", "cut_short", "passes"),
    [
        # It may have died of what its query died of.
        (MAY_PASS, None, True),
        (MAY_PASS.model_copy(update={"retry_helps": False}), None, False),
        (None, "within 600 s", True),
        (None, None, False),
    ],
)
def test_a_script_that_died_may_come_further_the_next_time(
    found: ErrorInfo | None, cut_short: str | None, passes: bool
) -> None:
    course = Course(
        savepoint="one",
        expected={"a", "b"},
        started={"a"},
        found={"a": RehearsedQuery(verdict="unknown" if found else "compatible", error=found)},
        script=ScriptEnd(1, ErrorInfo(type="SystemExit", message="1")),
        cut_short=cut_short,
    )

    info = conclude(course)

    assert info.error is not None
    assert info.error.retry_helps is passes
    missing = info.queries["b"].error
    assert missing is not None
    assert (missing.type, missing.retry_helps) == ("NOT_REACHED", passes)
    assert judged(info).retry_helps is passes


def test_a_query_that_was_not_reached_in_time_may_be_the_next_time() -> None:
    facts: dict[str, Any] = {
        "savepoint": "one",
        "expected": {"b"},
        "started": set(),
        "found": {},
        "script": ScriptEnd(0),
    }

    late = conclude(Course(**facts, cut_short="within 600 s")).queries["b"].error
    hidden = conclude(Course(**facts, not_seen="the script has threads.")).queries["b"].error

    assert late is not None
    assert late.retry_helps
    assert hidden is not None
    assert not hidden.retry_helps
