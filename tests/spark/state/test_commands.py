"""The commands that need Spark, as people type them: every example of their help pages."""

import shlex
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from sparkpoint.cli.main import root
from tests.spark.workloads.inputs import SCHEMA, write_files
from tests.unit.cli.running import run, run_well
from tests.unit.cli.test_help import examples_of, leaves

_SCRIPT = """
from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
rows = spark.readStream.schema("id string, k string, v long, side string, ts timestamp")
totals = rows.json("{inputs}").groupBy({keys}).count()
totals.writeStream.queryName("totals").outputMode("update").format("noop").start()
spark.streams.awaitAnyTermination()
"""


@pytest.fixture
def nightly(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the repository `savepoints`, in it `nightly`, and the script of its query."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SPARKPOINT_REPOSITORY", "savepoints")
    write_files(tmp_path / "in", range(2))
    spark.conf.unset("spark.sql.streaming.stateStore.providerClass")
    # A file a batch: the last one of several can be done again.
    rows = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).json(f"{tmp_path}/in")
    writer = rows.groupBy("k").count().writeStream.outputMode("update").format("noop")
    writer = writer.option("checkpointLocation", str(tmp_path / "epoch/totals"))
    assert writer.trigger(availableNow=True).start().awaitTermination(120)
    run_well("savepoint", "create", "--checkpoint", "epoch", "--job", "visits", "--name", "nightly")
    script = _SCRIPT.format(inputs=tmp_path / "in", keys='"k"')
    (tmp_path / "visits.py").write_text(script)
    return tmp_path


@pytest.mark.parametrize("name", ["state migrate", "state check"])
def test_the_examples_of_commands_that_need_spark_work(nightly: Path, name: str) -> None:
    for line in examples_of(dict(leaves(root))[name]):
        outcome = run(*shlex.split(line)[1:])

        assert outcome.code == 0, (line, outcome.err)
        assert all(note.startswith("Note: ") for note in outcome.err.splitlines()), outcome.err
    left = {path.name for path in nightly.iterdir()}
    assert left == {"in", "epoch", "savepoints", "visits.py"}


@pytest.mark.soak
def test_code_that_does_not_fit_is_told_with_a_remedy(nightly: Path) -> None:
    changed = _SCRIPT.format(inputs=nightly / "in", keys='"k", "side"')
    (nightly / "visits.py").write_text(changed)

    outcome = run("state", "check", "--savepoint", "nightly", "--json", "--", "visits.py")

    assert (outcome.code, outcome.document["verdict"]) == (3, "incompatible")
    (problem,) = outcome.document["problems"]
    assert problem.startswith("query totals: STATE_STORE_KEY_SCHEMA_NOT_COMPATIBLE: ")
    assert "Leave keys and values of the stateful operator as they were" in problem


@pytest.mark.soak
def test_a_script_without_a_query_gives_no_verdict(nightly: Path) -> None:
    (nightly / "visits.py").write_text("raise SystemExit('no')")

    outcome = run("state", "check", "--savepoint", "nightly", "--json", "--", "visits.py")

    assert (outcome.code, outcome.document["verdict"]) == (1, "unknown")
