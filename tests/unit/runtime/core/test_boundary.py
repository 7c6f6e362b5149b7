"""Stopping at a boundary, whatever the query's thread does meanwhile."""

import itertools
from functools import partial

import pytest

from sparkpoint.runtime.boundary import end_at_boundary
from sparkpoint.runtime.execution import Where, where_is
from tests.unit.runtime.core.spark_loop import ModelLoop

RUNS = 2500
BATCH = "app//org.apache.spark.sql.execution.streaming.runtime.MicroBatchExecution."
SQL = "app//org.apache.spark.sql.execution.SQLExecution$."


@pytest.mark.parametrize("pending", [False, True])
def test_every_interleaving_that_chance_finds_ends_at_a_boundary(pending: bool) -> None:
    for seed in range(RUNS):
        loop = ModelLoop(seed, pending=pending)
        clock = itertools.count()

        stopped = end_at_boundary(
            loop,
            deadline=10_000,
            monotonic=partial(next, clock),
            sleep=lambda _: None,
        )
        loop.run_to_its_end()

        assert stopped, f"seed {seed}"
        assert loop.is_dead, f"seed {seed}"
        assert loop.offsets == loop.commits, f"seed {seed}"


def test_setting_the_flag_at_any_time_would_not_do() -> None:
    """What the model is worth: it finds the fault of the simpler ways."""
    unclean = 0
    for seed in range(500):
        loop = ModelLoop(seed)
        loop.end_after_turn()
        loop.run_to_its_end()
        unclean += loop.offsets != loop.commits
    assert unclean > 50


class Stuck(ModelLoop):
    """Holds its own lock for ever, as when a source does not answer."""

    def lock(self, seconds: float) -> bool:
        return False


class Planning(ModelLoop):
    """Plans for ever."""

    def where(self) -> Where:
        return Where.PLANNING

    def end_before_first_turn(self) -> bool:
        return False


class Hesitating(ModelLoop):
    """Never gets to a line that tells where it goes."""

    flagged = False

    def where(self) -> Where:
        return Where.BETWEEN

    def positions(self) -> tuple[int | None, int | None]:
        return 3, 3

    def end_before_first_turn(self) -> bool:
        return False

    def end_after_turn(self) -> None:
        self.flagged = True

    def go_on(self) -> None:
        self.flagged = False


@pytest.mark.parametrize("kind", [Stuck, Planning, Hesitating])
def test_the_deadline_ends_every_wait_and_leaves_the_query_as_it_was(kind: type[ModelLoop]) -> None:
    loop = kind(1)
    clock = itertools.count()

    assert not end_at_boundary(
        loop, deadline=100, monotonic=partial(next, clock), sleep=lambda _: None
    )
    assert not getattr(loop, "flagged", False)
    assert not loop._locked


@pytest.mark.parametrize(
    ("stack", "where"),
    [
        ([], Where.GONE),
        (["java.base@17/java.lang.Object.wait(Native Method)"], Where.OUTSIDE),
        (
            [
                "java.base@17/jdk.internal.misc.Unsafe.park(Native Method)",
                f"{BATCH}withProgressLocked(MicroBatchExecution.scala:1741)",
                f"{BATCH}constructNextBatch(MicroBatchExecution.scala:1072)",
                f"{BATCH}$anonfun$executeOneBatch$2(MicroBatchExecution.scala:747)",
                f"{BATCH}executeOneBatch(MicroBatchExecution.scala:736)",
            ],
            Where.CONSTRUCTING,
        ),
        (
            [
                f"{BATCH}$anonfun$runBatch$17(MicroBatchExecution.scala:1380)",
                "app//org.apache.spark.ProgressContext.reportTimeTaken(ProgressReporter.scala:192)",
                f"{BATCH}runBatch(MicroBatchExecution.scala:1363)",
                f"{BATCH}executeOneBatch(MicroBatchExecution.scala:736)",
            ],
            Where.PLANNING,
        ),
        (
            # A source that runs a query of its own while the batch is planned.
            [
                f"{SQL}withNewExecutionId(SQLExecution.scala:317)",
                "app//org.example.Source.getBatch(Source.scala:1)",
                f"{BATCH}$anonfun$runBatch$2(MicroBatchExecution.scala:1180)",
                f"{BATCH}runBatch(MicroBatchExecution.scala:1170)",
                f"{BATCH}executeOneBatch(MicroBatchExecution.scala:736)",
            ],
            Where.PLANNING,
        ),
        (
            [
                "java.base@17/jdk.internal.misc.Unsafe.park(Native Method)",
                f"{SQL}withNewExecutionId(SQLExecution.scala:317)",
                f"{BATCH}$anonfun$runBatch$18(MicroBatchExecution.scala:1409)",
                f"{BATCH}runBatch(MicroBatchExecution.scala:1409)",
                f"{BATCH}executeOneBatch(MicroBatchExecution.scala:736)",
            ],
            Where.EXECUTING,
        ),
        (
            [
                "java.base@17/jdk.internal.misc.Unsafe.park(Native Method)",
                f"{BATCH}withProgressLocked(MicroBatchExecution.scala:1741)",
                f"{BATCH}runBatch(MicroBatchExecution.scala:1436)",
                f"{BATCH}executeOneBatch(MicroBatchExecution.scala:736)",
            ],
            Where.EXECUTING,
        ),
        (
            [
                f"{BATCH}withProgressLocked(MicroBatchExecution.scala:1741)",
                f"{BATCH}executeOneBatch(MicroBatchExecution.scala:787)",
            ],
            Where.LEAVING,
        ),
        (
            [
                "java.base@17.0.15/java.lang.Thread.sleep(Native Method)",
                f"{BATCH}executeOneBatch(MicroBatchExecution.scala:799)",
            ],
            Where.LEAVING,
        ),
        (
            [
                "app//org.apache.spark.ProgressContext.startTrigger(ProgressReporter.scala:1)",
                f"{BATCH}executeOneBatch(MicroBatchExecution.scala:730)",
            ],
            Where.BETWEEN,
        ),
        (
            [
                "java.base@17/java.lang.Object.wait(Native Method)",
                "app//org.apache.spark.util.SystemClock.waitTillTime(Clock.scala:95)",
                "app//org.apache.spark.ProcessingTimeExecutor.execute(TriggerExecutor.scala:83)",
                f"{BATCH}runActivatedStream(MicroBatchExecution.scala:716)",
            ],
            Where.WAITING,
        ),
    ],
)
def test_a_stack_tells_where_the_thread_is(stack: list[str], where: Where) -> None:
    assert where_is(stack) is where
