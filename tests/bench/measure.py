"""Measuring: fresh processes, taken in turns, and the median of what they say."""

import json
import os
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from dev.console import Problem
from tests.bench.machine import cores
from tests.bench.memory import ready_memory

__all__ = [
    "Figure",
    "Sample",
    "Series",
    "bound_of",
    "remove",
    "run_ours",
    "run_peer",
    "settle",
]

_SYNC_SHARE = 0.35
_BUSY = 0.8
"""Cores in use from which on the processor counts as what bounds an operation."""


@dataclass(frozen=True, slots=True)
class Sample:
    """One run."""

    seconds: float
    """Of the operation itself."""
    total: float
    """Of the whole process, with its start."""
    processor: float = 0.0
    """Seconds of processor time that the operation took."""
    sync: float = 0.0
    """Seconds in the final sync, part of `seconds`."""
    rss: float = 0.0
    """Peak resident memory of the process in MB."""
    numbers: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Series:
    """The runs of one thing."""

    name: str
    samples: Sequence[Sample]

    @property
    def seconds(self) -> float:
        """The median."""
        return statistics.median(sample.seconds for sample in self.samples)

    @property
    def total(self) -> float:
        """The median of whole processes."""
        return statistics.median(sample.total for sample in self.samples)

    @property
    def sync(self) -> float:
        """The median of the final syncs."""
        return statistics.median(sample.sync for sample in self.samples)

    @property
    def processor(self) -> float:
        """The median of processor time."""
        return statistics.median(sample.processor for sample in self.samples)

    @property
    def rss(self) -> float:
        """The highest peak."""
        return max(sample.rss for sample in self.samples)

    def number(self, name: str) -> float:
        """The median of something else that was counted."""
        return statistics.median(sample.numbers[name] for sample in self.samples)


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """One line of the table."""

    title: str
    peer: str
    peer_value: float
    ours: float
    unit: str = "s"
    target: float | None = None
    """The ratio must not exceed this; None: shown, but nothing was promised."""
    bound: str = ""

    @property
    def ratio(self) -> float:
        """Ours to the peer's."""
        return self.ours / self.peer_value if self.peer_value else float("inf")

    @property
    def met(self) -> bool | None:
        """Whether the promise holds; None if there is none."""
        return None if self.target is None else self.ratio <= self.target


def run_ours(
    operation: str, environment: Mapping[str, str] | None = None, /, **task: object
) -> Sample:
    """Run an operation of tests/bench/child.py in a process of its own."""
    command = [sys.executable, "-m", "tests.bench.child", operation, json.dumps(task)]
    begun = time.perf_counter()
    done = subprocess.run(
        command, capture_output=True, text=True, env={**os.environ, **(environment or {})}
    )
    total = time.perf_counter() - begun
    if done.returncode != 0:
        raise Problem(
            f"The measured operation {operation!r} failed:\n{done.stderr[-4000:]}",
            remedy="repair that first: figures of something that fails say nothing.",
        )
    answer = json.loads(done.stdout.splitlines()[-1])
    return Sample(total=total, **answer)


def run_peer(*commands: Sequence[str]) -> Sample:
    """Run commands one after the other; of several, the last one is a sync."""
    ready_memory()
    begun = last = time.perf_counter()
    for command in commands:
        last = time.perf_counter()
        subprocess.run(command, check=True)
    ended = time.perf_counter()
    sync = ended - last if len(commands) > 1 else 0.0
    return Sample(seconds=ended - begun, total=ended - begun, sync=sync)


def settle(source: Path | None = None) -> None:
    """Write out what earlier runs left dirty, so that nobody pays for somebody else.

    `source` is copied once and the copy removed: so what is read next is in the page cache.
    """
    if source is not None:
        scratch = source.with_name("scratch")
        subprocess.run(["cp", "-r", str(source), str(scratch)], check=True)
        shutil.rmtree(scratch)
    os.sync()


def remove(*folders: Path) -> None:
    """Remove trees between runs, their effect on the disk included."""
    for folder in folders:
        shutil.rmtree(folder, ignore_errors=True)
    settle()


def bound_of(series: Series) -> str:
    """What an operation of ours mostly waits for, from what was measured."""
    sync, busy = series.sync / series.seconds, series.processor / series.seconds
    if sync >= _SYNC_SHARE:
        return f"disk: {sync:.0%} of the time is the final sync"
    where = f"{busy:.1f} of {cores()} cores busy, final sync {sync:.0%}"
    return f"processor: {where}" if busy >= _BUSY else f"waiting: {where}"
