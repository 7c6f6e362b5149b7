"""Stages side by side, and what came of each run."""

import contextlib
import datetime
import queue
import threading
import time
import traceback
from collections.abc import Iterator, Sequence

from dev.cluster.lifecycle import Cluster
from dev.console import say
from tests.chaos.ground import grounds, stage_on
from tests.chaos.matrix import Case, Fault, Run
from tests.chaos.play import Played, Player
from tests.chaos.results import Result, Results
from tests.chaos.stage import STAGE_ERRORS

__all__ = ["judged", "run_all"]

_MOST_MISHAPS = 3
"""Of stages that cannot be opened or closed, before a lane gives up."""


def run_all(
    cluster: Cluster, runs: Sequence[Run], results: Results, lanes: int, deadline: float
) -> bool:
    """Whether any failed. Side by side what concerns one job; on a cluster of its own what all jobs
    of one would feel."""
    failed = False
    for alone, on_s3 in ((False, False), (False, True), (True, False)):
        chosen = [
            run
            for run in runs
            if run.fault.is_of_cluster is alone and (run.fault is Fault.S3) is on_s3
        ]
        if chosen and time.monotonic() < deadline:
            # Whoever holds a Lease loses it when the API server does not answer.
            lane = _Lane(chosen, results, deadline, on_s3=on_s3, in_turn=alone)
            with _places(cluster, min(lanes, len(chosen)), alone=alone) as places:
                lane.work(places)
            failed = failed or lane.failed
    return failed


def _places(
    cluster: Cluster, number: int, *, alone: bool
) -> contextlib.AbstractContextManager[list[Cluster]]:
    """The cluster of each lane."""
    return grounds(cluster, number) if alone else contextlib.nullcontext([cluster] * number)


def judged(run: Run, played: Played) -> Iterator[tuple[Case, Result | None]]:
    """What is known of each cell; None: the phase has to be tried by itself.

    The operation may have gone another way after a fault, or the answer to its record was lost.
    """
    planned = played.ended in (f"{run.kind.value} Succeeded", "Deleted")
    for case in run.cases:
        if case.phase in played.struck:
            yield case, Result("passed", round(played.seconds, 1), _today())
        elif len(run.cases) > 1:
            # Also where nothing was there to strike: the strike before may have taken it.
            yield case, None
        elif case.phase in played.missed or planned:
            yield case, Result("not applicable", 0, _today(), _why(case, played.missed))
        else:
            note = f"It never came to this phase, and ended as {played.ended}."
            yield case, Result("failed", round(played.seconds, 1), _today(), note)


class _Lane:
    """Threads that take runs from one queue, each on a stage of its own."""

    def __init__(
        self,
        runs: Sequence[Run],
        results: Results,
        deadline: float,
        *,
        on_s3: bool,
        in_turn: bool,
    ) -> None:
        self._results, self._on_s3, self._in_turn = results, on_s3, in_turn
        self._deadline = deadline
        self._runs: queue.SimpleQueue[Run] = queue.SimpleQueue()
        for run in runs:
            self._runs.put(run)
        self._lock = threading.Lock()
        self.failed = False

    def work(self, clusters: Sequence[Cluster]) -> None:
        """One thread on each, until all are done or time is up."""
        workers = [threading.Thread(target=self._work, args=[each]) for each in clusters]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()

    def _work(self, cluster: Cluster) -> None:
        mishaps = 0
        while self._has_more() and mishaps < _MOST_MISHAPS:
            try:
                # A stage on which something failed tells nothing about the next run.
                with stage_on(cluster, on_s3=self._on_s3, in_turn=self._in_turn) as stage:
                    player = Player(stage)
                    while self._has_more() and self._take(player):
                        pass
            except STAGE_ERRORS as mishap:
                self.failed, mishaps = True, mishaps + 1
                say(f"✗ a stage could not be opened or closed: {mishap}")

    def _has_more(self) -> bool:
        return time.monotonic() < self._deadline and not self._runs.empty()

    def _take(self, player: Player) -> bool:
        """One run; False if this stage is of no more use."""
        try:
            run = self._runs.get_nowait()
        except queue.Empty:
            return False
        began = time.monotonic()
        try:
            played = player.play(run)
        except STAGE_ERRORS as failure:
            return self._failed(run, time.monotonic() - began, str(failure))
        # The outermost loop: a mistake of ours must neither end the lane nor lose the run.
        except Exception as mistake:
            words = f"{mistake!r}\n{traceback.format_exc()}"
            return self._failed(run, time.monotonic() - began, words)
        for case, result in judged(run, played):
            self._keep(case, result)
        say("\n".join([f"✓ {run.name}: {_told(played)}", *played.seen]))
        return True

    def _failed(self, run: Run, seconds: float, failure: str) -> bool:
        self.failed = True
        result = Result("failed", round(seconds, 1), _today(), failure.partition("\n")[0])
        for case in run.cases:
            # Which of several it was is found out by running each alone.
            self._keep(case, result if len(run.cases) == 1 else None)
        say(f"{failure}\n✗ {run.name}\n  again: make chaos STEPS={_steps(run)}")
        return False

    def _keep(self, case: Case, result: Result | None) -> None:
        if result is None:
            self._runs.put(Run(case.kind, (case.phase,), case.fault))
            return
        self.failed = self.failed or result.result == "failed"
        with self._lock:
            self._results.put(case, result)


def _told(played: Played) -> str:
    struck = "+".join(phase.value for phase in played.struck) or "nothing"
    return f"{played.ended}, struck {struck}, {played.seconds:.0f} s"


def _why(case: Case, missed: Sequence[object]) -> str:
    if case.phase in missed:
        return f"No {case.fault.value} was there before the phase was over."
    return "The phase had nothing to do: it was over at once, and never written."


def _steps(run: Run) -> str:
    return ",".join(case.name for case in run.cases)


def _today() -> str:
    return datetime.datetime.now(datetime.UTC).date().isoformat()
