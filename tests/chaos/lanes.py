"""Stages side by side, and what came of each run."""

import datetime
import queue
import threading
import time
from collections.abc import Sequence

from dev.cluster.lifecycle import Cluster
from dev.console import say
from tests.chaos.ground import stage_on
from tests.chaos.matrix import Case, Fault, Run
from tests.chaos.play import Player
from tests.chaos.results import Result, Results
from tests.chaos.stage import STAGE_ERRORS

__all__ = ["run_all"]


def run_all(
    cluster: Cluster, runs: Sequence[Run], results: Results, lanes: int, deadline: float
) -> bool:
    """Whether any failed. Side by side what concerns one job; alone what all would feel."""
    failed = False
    for alone, on_s3 in ((False, False), (False, True), (True, False)):
        chosen = [
            run
            for run in runs
            if run.fault.is_of_cluster is alone and (run.fault is Fault.S3) is on_s3
        ]
        if chosen:
            lane = _Lane(cluster, chosen, results, deadline, on_s3=on_s3)
            lane.work(1 if alone else min(lanes, len(chosen)))
            failed = failed or lane.failed
    return failed


class _Lane:
    """Threads that take runs from one queue, each on a stage of its own."""

    def __init__(
        self,
        cluster: Cluster,
        runs: Sequence[Run],
        results: Results,
        deadline: float,
        *,
        on_s3: bool,
    ) -> None:
        self._cluster, self._results, self._on_s3 = cluster, results, on_s3
        self._deadline = deadline
        self._runs: queue.SimpleQueue[Run] = queue.SimpleQueue()
        for run in runs:
            self._runs.put(run)
        self._lock = threading.Lock()
        self.failed = False

    def work(self, threads: int) -> None:
        """Until all are done, or time is up."""
        workers = [threading.Thread(target=self._work) for _ in range(threads)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()

    def _work(self) -> None:
        while time.monotonic() < self._deadline and not self._runs.empty():
            # A stage on which something failed tells nothing about the next run.
            with stage_on(self._cluster, on_s3=self._on_s3) as stage:
                player = Player(stage)
                while time.monotonic() < self._deadline and self._take(player):
                    pass

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
            self._note(run, time.monotonic() - began, str(failure).splitlines()[0])
            say(f"{failure}\n✗ {run.name}\n  again: make chaos STEPS={_steps(run)}")
            return False
        seconds = time.monotonic() - began
        for case in run.cases:
            if case.phase in played.struck:
                self._keep(case, Result("passed", round(seconds, 1), _today()))
            else:
                self._keep(case, Result("not applicable", 0, _today(), _why(case, played.missed)))
        say("\n".join([f"✓ {run.name}: {played.ended}, {seconds:.0f} s", *played.seen]))
        return True

    def _note(self, run: Run, seconds: float, note: str) -> None:
        self.failed = True
        if len(run.cases) > 1:
            # Which of them it was is found out by running each alone.
            for case in run.cases:
                self._runs.put(Run(case.kind, (case.phase,), case.fault))
            return
        self._keep(run.cases[0], Result("failed", round(seconds, 1), _today(), note))

    def _keep(self, case: Case, result: Result) -> None:
        with self._lock:
            self._results.put(case, result)


def _why(case: Case, missed: Sequence[object]) -> str:
    if case.phase in missed:
        return f"No {case.fault.value} was there before the phase was over."
    return "The phase had nothing to do: it was over at once, and never written."


def _steps(run: Run) -> str:
    return ",".join(case.name for case in run.cases)


def _today() -> str:
    return datetime.datetime.now(datetime.UTC).date().isoformat()
