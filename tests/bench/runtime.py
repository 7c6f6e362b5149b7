"""What live savepoints cost the job: its throughput while one is taken after the other.

One driver runs all the time, on all cores, with no input to wait for. Stretches with and without
captures take turns; each is counted from commit to commit, by the rows that the agent tells.
"""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path

from sparkpoint.runtime.client import SyncAgentClient
from sparkpoint.runtime.model import QueryProgress
from sparkpoint.savepoint import Repository
from sparkpoint.storage import DirectoryStore
from tests.bench.measure import Figure, Sample, Series
from tests.bench.runtime_ground import SCRIPT, Load, await_true, busy_setting, only_query, savepoint
from tests.bench.table import Section
from tests.spark.runtime.driver import Driver, agent_of, agent_options, driving

__all__ = ["measure_runtime"]

THROUGHPUT = 0.9
"""Of the rows per second without captures."""
_KEYS = 500_000
_ROWS = 25_000
_STRETCH = 20.0
"""Seconds."""
_MILLION = 1e6


def measure_runtime(folder: Path, *, scale: float, repetitions: int) -> Section:
    """Run everything."""
    load = Load(keys=max(1000, int(_KEYS * scale)), rows_per_batch=_ROWS)
    setting, repository = busy_setting(folder / "job"), folder / "repository"
    names = (f"live-{number:04d}" for number in count())
    quiet, captured = [], []
    options = agent_options(setting)
    with (
        driving(setting, SCRIPT, *load.arguments, options=options) as driver,
        agent_of(driver) as agent,
    ):
        _await_state(agent, load)
        # The first one takes all of the state, the others what has changed.
        savepoint(agent, next(names), repository)
        for _ in range(repetitions):
            quiet.append(_stretch(agent))
            with _capturing(driver, names, repository) as taken:
                captured.append(_stretch(agent))
            captured[-1] = _with_count(captured[-1], len(taken))
        state = only_query(agent)
    _check(repository)
    series = {
        "peer: no capture": Series("peer: no capture", quiet),
        "captures": Series("captures", captured),
    }
    rows = state.state_rows if state else 0
    return Section(
        "runtime",
        f"A driver on all cores, {rows} keys of state, one live savepoint after the other",
        [_figure(series["peer: no capture"], series["captures"])],
        list(series.values()),
    )


def _await_state(agent: SyncAgentClient, load: Load) -> None:
    def is_full() -> bool:
        query = only_query(agent)
        return query is not None and query.state_rows >= load.keys

    await_true("a state with all keys", is_full, seconds=900)


def _stretch(agent: SyncAgentClient) -> Sample:
    """Seconds per million rows, from one commit to another."""
    first = _next_commit(agent, _told(agent))
    begun, last = time.monotonic(), first
    while time.monotonic() - begun < _STRETCH:
        last = _next_commit(agent, last)
    rows = last.input_rows - first.input_rows
    seconds = _moment(last) - _moment(first)
    return Sample(seconds=_MILLION * seconds / rows, total=seconds, numbers={"rows": rows})


def _next_commit(agent: SyncAgentClient, before: QueryProgress) -> QueryProgress:
    await_true("a commit", lambda: _told(agent).batch != before.batch, seconds=300)
    return _told(agent)


def _told(agent: SyncAgentClient) -> QueryProgress:
    time.sleep(0.05)
    query = only_query(agent)
    assert query is not None
    return query


def _moment(query: QueryProgress) -> float:
    assert query.last_commit is not None
    return query.last_commit.timestamp()


@contextmanager
def _capturing(driver: Driver, names: Iterator[str], repository: Path) -> Iterator[list[str]]:
    """One savepoint after the other, without a pause; the names of those that were made."""
    taken: list[str] = []
    failed: list[Exception] = []
    end = threading.Event()

    def capture() -> None:
        try:
            with agent_of(driver) as agent:
                while not end.is_set():
                    name = next(names)
                    savepoint(agent, name, repository)
                    taken.append(name)
        # The outermost loop of this thread: the benchmark ends with what went wrong.
        except Exception as error:
            failed.append(error)

    thread = threading.Thread(target=capture, name="captures")
    thread.start()
    try:
        yield taken
    finally:
        end.set()
        thread.join(300)
    if failed:
        raise failed[0]


def _with_count(sample: Sample, captures: int) -> Sample:
    return Sample(
        seconds=sample.seconds,
        total=sample.total,
        numbers={**sample.numbers, "captures": captures},
    )


def _check(repository: Path) -> None:
    """A savepoint that cannot be restored would cost nothing, and be worth nothing."""
    opened = Repository.open(DirectoryStore(repository))
    found = opened.verify(opened.list().savepoints)
    if problems := [problem for each in found for problem in each.problems]:
        raise RuntimeError(f"problems in savepoints: {problems[:5]}")


def _figure(quiet: Series, captured: Series) -> Figure:
    rates = f"{_MILLION / captured.seconds:.0f} of {_MILLION / quiet.seconds:.0f} rows/s"
    share = quiet.seconds / captured.seconds
    return Figure(
        title=f"Time per million rows while savepoints are taken (throughput ≥ {THROUGHPUT:g})",
        peer="no capture",
        peer_value=quiet.seconds,
        ours=captured.seconds,
        target=round(1 / THROUGHPUT, 2),
        bound=f"{rates}, a throughput of {share:.2f}; "
        f"{captured.number('captures'):.0f} savepoints in each stretch, on the driver's own cores",
    )
