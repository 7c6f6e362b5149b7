"""What names do not tell: code does the last batch again, and `state check` compares."""

from collections.abc import Mapping
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.streaming.readwriter import DataStreamWriter

from tests.spark.workloads.inputs import SCHEMA, write_files
from tests.spark.workloads.providers import PROVIDERS
from tests.unit.cli.running import run, run_well

FILES = 2
TOTALS = "rows.groupBy('k').agg(F.count('*'), F.sum('v'))"
WINDOWS = "rows.groupBy('k', F.window('ts', '1 minute')).count()"
SUMS = "rows.groupBy('k').agg(F.sum(F.lit(7).cast('long')), F.sum('v'))"
"""Spark calls both columns of the state `sum`."""
JOIN = """rows.where("side = 'L'").select('id', 'v').join(
    rows.where("side = 'R'").select('id', F.col('k').alias('other')), 'id')"""
BEFORE = {
    "same": TOTALS,
    "rocks": TOTALS,
    "sums": SUMS,
    "column": TOTALS,
    "filtered": TOTALS,
    "window": WINDOWS,
    "session": "rows.groupBy('k', F.session_window('ts', '10 seconds')).count()",
    "case": "rows.dropDuplicates(['id', 'k'])",
    "join": JOIN,
    "joined": JOIN,
}
"""Query -> what has run."""
AFTER = {
    **BEFORE,
    "sums": SUMS.replace("F.sum('v')", "F.sum(F.col('v') * 2)"),
    "column": "rows.groupBy('k').agg(F.count('*'), F.sum(F.length('id').cast('long')))",
    "filtered": "rows.where('v > 300').groupBy('k').agg(F.count('*'), F.sum('v'))",
    "window": WINDOWS.replace("1 minute", "2 minutes"),
    "session": BEFORE["session"].replace("10", "40"),
    "case": "rows.withColumn('k', F.upper('k')).dropDuplicates(['id', 'k'])",
    "joined": JOIN.replace("'v'", "(F.col('v') * 2).alias('v')"),
}
"""The same types and the same names, and another meaning."""
CHANGED = {name for name, frame in AFTER.items() if frame != BEFORE[name]}
SCRIPT = """
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

spark = SparkSession.builder.getOrCreate()
stream = spark.readStream.schema("{schema}").option("maxFilesPerTrigger", 1)
rows = stream.json("{inputs}")
modes = {{"session": "complete", **dict.fromkeys(("case", "join", "joined"), "append")}}
for name, frame in {frames}.items():
    writer = eval(frame).writeStream.queryName(name).format("noop")
    writer = writer.outputMode(modes.get(name, "update"))
    {start}
"""
TRIED = """if name == "same":
        writer = writer.foreachBatch(lambda batch, number: open("written", "w").close())
    writer.start()"""
WAIT = "\nspark.streams.awaitAnyTermination()\n"


def script(folder: Path, frames: Mapping[str, str], start: str) -> str:
    return SCRIPT.format(schema=SCHEMA, inputs=folder / "in", frames=dict(frames), start=start)


@pytest.fixture
def nightly(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the repository `savepoints`, in it `nightly`, after two batches of each."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SPARKPOINT_REPOSITORY", "savepoints")
    write_files(tmp_path / "in", range(FILES))

    def finish(name: str, writer: DataStreamWriter) -> None:
        provider = "rocksdb-changelog" if name in ("rocks", "sums") else "hdfs"
        for key, value in PROVIDERS[provider].items():
            spark.conf.set(key, value)
        ready = writer.option("checkpointLocation", str(tmp_path / "epoch" / name))
        assert ready.trigger(availableNow=True).start().awaitTermination(120)

    exec(script(tmp_path, BEFORE, "finish(name, writer)"), {"finish": finish})
    run_well("savepoint", "create", "--checkpoint", "epoch", "--job", "visits", "--name", "nightly")
    return tmp_path


def test_code_that_means_something_else_is_told_by_what_it_makes_of_the_last_batch(
    nightly: Path,
) -> None:
    (nightly / "visits.py").write_text(script(nightly, AFTER, TRIED) + WAIT)
    # What no batch has read yet is not read by a trial either, and no sink gets anything.
    write_files(nightly / "in", range(FILES, FILES + 2))

    outcome = run("state", "check", "--savepoint", "nightly", "--json", "--", "visits.py")

    assert (outcome.code, outcome.document["verdict"]) == (1, "unknown"), outcome.document
    problems = {each.split()[1].rstrip(":"): each for each in outcome.document["problems"]}
    assert set(problems) == CHANGED
    assert all("STATE_DIFFERS" in each for each in problems.values())
    assert "by this code" in problems["column"]
    assert set(outcome.document["notes"]) == {
        f"{name}: its last batch, done again, made the same state."
        for name in ("same", "rocks", "join")
    }
    assert {path.name for path in nightly.iterdir()} == {"in", "epoch", "savepoints", "visits.py"}
