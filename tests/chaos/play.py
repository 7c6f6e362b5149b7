"""One run: an operation with a fault in its phases, and everything checked after it."""

import time
from dataclasses import dataclass, field
from typing import Any

from sparkpoint.lifecycle.phases import Kind, Phase
from tests.chaos.faults import strike
from tests.chaos.matrix import Run
from tests.chaos.operations import Operations
from tests.chaos.stage import Stage

__all__ = ["Played", "Player"]

_CAPTURED_BY_THE_STOP = (Kind.UPGRADE, Kind.REPARTITION, Kind.SUSPEND, Kind.RESTORE, Kind.DELETE)
"""A worker captures if the driver dies in Stop."""
_NOT_CAPTURED = (Kind.RESCALE, Kind.RESTART)
"""They go on in the same directory, and capture only what is left to a driver that vanished."""


@dataclass(slots=True)
class Played:
    """What happened."""

    struck: list[Phase] = field(default_factory=list)
    missed: list[Phase] = field(default_factory=list)
    """Reached, and there was nothing that the fault could be done to."""
    ended: str = ""
    """How the operation ended, in a word."""
    seconds: float = 0.0
    seen: tuple[str, ...] = ()
    """Attempts that lived beside each other, with what was reported of their pods."""


class Player:
    """Plays runs on one stage, one after the other."""

    def __init__(self, stage: Stage) -> None:
        self.stage, self._operations = stage, Operations(stage)

    def play(self, run: Run) -> Played:
        """A CaseError if something is not as it must be."""
        stage, played, began = self.stage, Played(), time.monotonic()
        self._operations.prepare(run.kind, run.phases)
        before, known = stage.record().get("sequence", 0), len(stage.witness.sightings)
        points = {(run.kind, phase) for phase in run.phases}
        if run.phases == (Phase.CAPTURE,):
            points.add((run.kind, Phase.STOP))
        stage.operator.breakpoints.arm(points)
        with stage.watching(), stage.feeding():
            self._operations.trigger(run.kind, run.phases)
            if run.after is not None:
                time.sleep(run.after)
                strike(stage, run.fault, None)
            while self._goes_on(run, played, before):
                pass
        stage.operator.breakpoints.arm([])
        # What was not reached may be so in this moment.
        stage.operator.breakpoints.release()
        played.ended = self._end(run.kind)
        played.seen = tuple(stage.witness.sightings[known:])
        self._operations.tidy(run.kind)
        played.seconds = time.monotonic() - began
        return played

    def _goes_on(self, run: Run, played: Played, before: int) -> bool:
        """Until the operator is held, and then strike; False if the operation is over."""
        stage, held = self.stage, self.stage.operator.breakpoints.held
        stage.wait(f"{run.kind.value} to end", lambda: held() or self._is_over(run.kind, before))
        hit = held()
        if hit is None:
            return False
        phase = Phase(hit.phase)
        if phase not in run.phases:
            self._lead_to_capture(run.kind)
            stage.operator.breakpoints.release()
            return True
        hurt = strike(stage, run.fault, hit)
        (played.struck if hurt else played.missed).append(phase)
        return True

    def _lead_to_capture(self, kind: Kind) -> None:
        if kind in _CAPTURED_BY_THE_STOP:
            self._operations.kill_driver()
        elif kind in _NOT_CAPTURED:
            self._operations.vanish()

    def _is_over(self, kind: Kind, before: int) -> bool:
        stage = self.stage
        if kind is Kind.DELETE:
            return stage.api.job(stage.job.name) is None
        return stage.record().get("sequence", 0) > before and stage.is_calm()

    def _end(self, kind: Kind) -> str:
        """How it ended, and peace."""
        stage = self.stage
        if kind is Kind.DELETE:
            stage.wait("its pods to go", lambda: not stage.orphans(), 90)
            stage.check()
            return "Deleted"
        last: dict[str, Any] = stage.status().get("lastOperation") or {}
        stage.settle()
        return f"{last.get('kind')} {last.get('result')}"
