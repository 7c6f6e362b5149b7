"""Figures of the state tools, on state that Spark has made, against plain Spark in one session."""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from pyspark.sql import SparkSession

from dev.console import Problem, say
from tests.bench import state_job
from tests.bench.measure import Figure, Sample, Series, bound_of, run_ours, settle
from tests.bench.state_ground import PARTITIONS, Ground, make_ground, session, timed
from tests.bench.table import Section

__all__ = ["measure_state"]

_MILLION = 1_000_000
_SMALL, _LARGE = 1 * _MILLION, 5 * _MILLION
_TO = 2 * PARTITIONS
_KEY = "user-4242"
_SCRIPT = Path(state_job.__file__)
_CLI = str(Path(sys.executable).with_name("sparkpoint"))


def measure_state(folder: Path, *, scale: float, repetitions: int) -> Section:
    """Run everything; at full scale with one and with five million keys."""
    spark = session()
    grounds = {
        name: make_ground(spark, folder / name.replace(" ", ""), int(keys * scale))
        for name, keys in (("1 M", _SMALL), ("5 M", _LARGE))
    }
    rounds = [dict(_round(spark, grounds, number)) for number in range(repetitions)]
    spark.stop()
    series = {name: Series(name, [each[name] for each in rounds]) for name in rounds[0]}
    return Section(
        "state",
        f"State of the HDFS-backed provider, {PARTITIONS} partitions, a text and two longs a row",
        list(_figures(series, grounds)),
        list(series.values()),
    )


def _round(
    spark: SparkSession, grounds: dict[str, Ground], number: int
) -> Iterator[tuple[str, Sample]]:
    for name, ground in grounds.items():
        yield f"peer: rewrite {name}", _settled(partial(ground.rewrite, spark, _TO))
        yield (
            f"repartition {name}",
            _shown(
                "repartition",
                run_ours(
                    "repartition",
                    repository=str(ground.repository),
                    name="changed",
                    child=f"p{number}",
                    partitions=_TO,
                ),
            ),
        )
    small = grounds["1 M"]
    where = {"repository": str(small.repository)}
    yield "peer: outer join", _settled(lambda: small.outer_join(spark))
    yield "diff", _shown("diff", run_ours("diff", before="loaded", after="changed", **where))
    small.lookup(spark, _KEY)
    yield "peer: lookup", _settled(lambda: small.lookup(spark, _KEY))
    yield "query", _shown("query", run_ours("query", name="changed", key=_KEY, **where))
    yield "peer: restart", _settled(lambda: _restart(small))
    yield "check", _settled(lambda: _check(small))


def _settled(action: Callable[[], Sample]) -> Sample:
    settle()
    return action()


def _shown(name: str, sample: Sample) -> Sample:
    say(f"    {name}: {sample.seconds:.3g} s")
    return sample


def _restart(ground: Ground) -> Sample:
    """The job started by itself on a copy, for as long as it takes to find nothing new."""
    copy = ground.folder / "copy"
    shutil.rmtree(copy, ignore_errors=True)

    def start() -> None:
        shutil.copytree(ground.checkpoint, copy)
        _run([sys.executable, str(_SCRIPT), str(ground.inputs), str(copy)])

    return timed(start)


def _check(ground: Ground) -> Sample:
    where = ["--savepoint", "changed", "--repository", str(ground.repository)]
    script = ["--", str(_SCRIPT), str(ground.inputs), "unused"]
    return timed(lambda: _run([_CLI, "state", "check", *where, *script]))


def _run(command: list[str]) -> None:
    environment = {**os.environ, "PYSPARK_PYTHON": sys.executable}
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    if done.returncode != 0:
        raise Problem(
            f"{command[:5]} failed:\n{done.stdout[-1000:]}\n{done.stderr[-3000:]}",
            remedy="repair that first: figures of something that fails say nothing.",
        )


def _figures(series: dict[str, Series], grounds: dict[str, Ground]) -> Iterator[Figure]:
    for name, ground in grounds.items():
        millions = ground.keys / _MILLION
        yield Figure(
            title=f"Repartition {name} keys, {PARTITIONS} to {_TO}, per million keys",
            peer="Spark reads and writes the rows as Parquet",
            peer_value=series[f"peer: rewrite {name}"].seconds / millions,
            ours=series[f"repartition {name}"].seconds / millions,
            bound=bound_of(series[f"repartition {name}"]),
        )
    pairs = (
        ("Diff of two savepoints, 1 M keys, 1 % changed", "outer join", "diff", "Spark's reader"),
        ("Look up one key of 1 M, warm", "lookup", "query", "Spark's reader, warm session"),
        ("Check a script against 1 M keys, all in all", "restart", "check", "the job by itself"),
    )
    for title, peer, ours, words in pairs:
        found = series[ours]
        yield Figure(
            title=title,
            peer=words,
            peer_value=series[f"peer: {peer}"].seconds,
            ours=found.number("warm") if ours == "query" else found.seconds,
            bound=bound_of(found) if found.processor else "the start of Spark, and the copy",
        )
