"""A job that runs no script, and the settings of its agent."""

import sys
import threading
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

from sparkpoint.runtime.model import (
    GateInfo,
    Progress,
    QueryEnd,
    QueryProgress,
    QuerySink,
    StopReport,
)
from sparkpoint.runtime.orders import CaptureSettings

__all__ = ["TOKEN", "FakeJob", "pretended", "real"]

TOKEN = "canary-2f6c1e0b7d"
"""Must never be seen in an answer or a log."""
_PRETENDED = Path(__file__).with_name("pretended.py")


class FakeJob:
    """Does what the protocol `Job` says, as the test wishes."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.epoch = 3
        self.queries = ["q"]
        self.active = True
        self.gate = GateInfo(epoch=3, state="none")
        self.stops: list[tuple[str, float | None]] = []
        self.finished: list[tuple[str, str | None]] = []
        self.may_stop = threading.Event()
        self.may_stop.set()
        self.stop_error: Exception | None = None
        self.finish_error: Exception | None = None
        self.sinks: dict[str, QuerySink] = {}
        self.before_stop: Callable[[], None] = lambda: None

    def progress(self) -> Progress:
        queries = [
            QueryProgress(
                name=name,
                id=f"id-{name}",
                run_id=f"run-{name}",
                active=self.active,
                batch=7,
                state_rows=12,
                state_counts=2,
                watermark="2026-01-02T03:04:05.678Z",
                last_commit=datetime(2026, 1, 2, 3, 4, 6, tzinfo=UTC),
                checkpoint=f"{self.root}/{name}",
                sink=self.sinks.get(name),
            )
            for name in self.queries
        ]
        return Progress(
            job="shop/visits",
            epoch=self.epoch,
            phase="gated" if self.gate.state == "waiting" else "running",
            gate=self.gate,
            queries=queries,
        )

    def stop(self, operation: str, budget_seconds: float | None) -> StopReport:
        self.stops.append((operation, budget_seconds))
        self.before_stop()
        if not self.may_stop.wait(30):
            raise TimeoutError("the test never let the job stop")
        if self.stop_error is not None:
            raise self.stop_error
        ends = {name: QueryEnd(batch=7, clean=True) for name in self.queries}
        return StopReport(clean=True, queries=ends, seconds=0.5)

    def finish(self, operation: str, savepoint: str | None) -> None:
        if self.finish_error is not None:
            raise self.finish_error
        self.finished.append((operation, savepoint))

    def open_gate(self, epoch: int) -> GateInfo:
        if epoch == self.gate.epoch:
            self.gate = GateInfo(epoch=self.gate.epoch, state="open")
        return self.gate

    def checkpoints(self) -> dict[str, str]:
        return {name: f"{self.root}/{name}" for name in self.queries}


def real(root: Path, epoch: int = 3) -> CaptureSettings:
    """Settings with the real process that captures."""
    return CaptureSettings(
        namespace="shop",
        job="visits",
        epoch=epoch,
        epoch_dir=str(root),
        revision="r1",
        spark_version="4.3.0",
    )


def pretended(root: Path) -> CaptureSettings:
    """Settings with a pretended process; see pretended.py."""
    command = (sys.executable, "-S", "-E", str(_PRETENDED))
    return CaptureSettings(
        namespace="shop", job="visits", epoch=3, epoch_dir=str(root), command=command
    )
