"""What a driver that waits at its gate saves: from the opening, and from a cold start, to a commit.

Both begin from the same savepoint. `rehearsed` has tried the query on a copy of it before.
"""

import time
from collections.abc import Iterator
from pathlib import Path

from sparkpoint.savepoint import Repository
from sparkpoint.storage import DirectoryStore
from tests.bench.measure import Figure, Sample, Series, remove, settle
from tests.bench.runtime_ground import (
    SCRIPT,
    Load,
    await_true,
    busy_setting,
    newest_commit,
    savepoint,
)
from tests.bench.table import Section
from tests.spark.runtime.driver import agent_of, agent_options, driving

__all__ = ["measure_gate"]

_KEYS = 100_000
_ROWS = 10_000
_LONGEST = 300.0
_NAME = "before"


def measure_gate(folder: Path, *, scale: float, repetitions: int) -> Section:
    """Run everything."""
    load, repository = Load(max(1000, int(_KEYS * scale)), _ROWS), folder / "repository"
    _make_savepoint(folder / "first", load, repository)
    rounds = [dict(_round(folder / str(number), load, repository)) for number in range(repetitions)]
    series = {name: Series(name, [each[name] for each in rounds]) for name in rounds[0]}
    cold = series["peer: cold start"]
    return Section(
        "gate",
        f"First commit of a driver that begins from a savepoint of {load.keys} keys",
        [
            _figure("From the opened gate to the first commit", cold, series["gate"]),
            _figure("The same, rehearsed before", cold, series["gate, rehearsed"]),
        ],
        list(series.values()),
    )


def _make_savepoint(root: Path, load: Load, repository: Path) -> None:
    setting = busy_setting(root)
    options = agent_options(setting)
    with (
        driving(setting, SCRIPT, *load.arguments, options=options) as driver,
        agent_of(driver) as agent,
    ):
        enough = load.keys // load.rows_per_batch + 1
        await_true(f"batch {enough}", lambda: newest_commit(setting) >= enough, seconds=_LONGEST)
        savepoint(agent, _NAME, repository)
    remove(root)


def _round(root: Path, load: Load, repository: Path) -> Iterator[tuple[str, Sample]]:
    yield "peer: cold start", _cold(root / "cold", load, repository)
    yield "gate", _gated(root / "gated", load, repository)
    yield "gate, rehearsed", _gated(root / "rehearsed", load, repository, "--rehearse", _NAME)


def _cold(root: Path, load: Load, repository: Path) -> Sample:
    setting = busy_setting(root)
    settle()
    options = ("--restore", _NAME, "--repository", str(repository))
    begun = time.perf_counter()
    with driving(setting, SCRIPT, *load.arguments, options=options):
        seconds = _until_commit(root, repository, begun)
    remove(root)
    return Sample(seconds=seconds, total=seconds)


def _gated(root: Path, load: Load, repository: Path, *further: str) -> Sample:
    setting = busy_setting(root)
    settle()
    restore = ("--restore", _NAME, "--repository", str(repository))
    options = (*restore, "--gated", *agent_options(setting), *further)
    started = time.perf_counter()
    with (
        driving(setting, SCRIPT, *load.arguments, options=options) as driver,
        agent_of(driver) as agent,
    ):
        await_true("the gate", lambda: agent.progress().phase == "gated", seconds=_LONGEST)
        begun = time.perf_counter()
        agent.open_gate(1)
        seconds = _until_commit(root, repository, begun)
        total = time.perf_counter() - started
    remove(root)
    return Sample(seconds=seconds, total=total)


def _until_commit(root: Path, repository: Path, begun: float) -> float:
    """What comes after the last batch of the savepoint is new."""
    setting = busy_setting(root)
    found = Repository.open(DirectoryStore(repository)).find(_NAME)
    batch = found.manifest.queries[0].batch
    await_true("a commit", lambda: newest_commit(setting) > batch, seconds=_LONGEST)
    return time.perf_counter() - begun


def _figure(title: str, cold: Series, ours: Series) -> Figure:
    return Figure(
        title=title,
        peer="cold driver start to first commit",
        peer_value=cold.seconds,
        ours=ours.seconds,
        bound="loading the state, and planning the first batch",
    )
