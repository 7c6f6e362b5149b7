"""Queries of the HDFS-backed provider go on exactly with RocksDB."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from sparkpoint.state.diff import DiffRequest, diff_state
from sparkpoint.state.migrate import MigrateRequest, migrate
from tests.spark.state.several import Several
from tests.spark.state.workloads import GLOBAL, WITHIN

_LEAN = ("aggregation", "session", "join")
_WHOLE = (*_LEAN, "dedup", "chained", "pandas", GLOBAL.name, WITHIN.name)


@pytest.mark.parametrize(
    "names", [_LEAN, pytest.param(_WHOLE, marks=pytest.mark.soak)], ids=["lean", "whole"]
)
def test_migrated_state_is_the_same_and_its_queries_go_on(
    in_session: SparkSession, tmp_path: Path, names: tuple[str, ...]
) -> None:
    more = {each.name: each for each in (GLOBAL, WITHIN)}
    several = Several(in_session, tmp_path, dict.fromkeys(names, "hdfs"), more=more)
    several.run("ck", files=3)
    savepoint = several.capture("ck", "first")

    result = migrate(several.repository, savepoint, MigrateRequest())

    child = result.savepoint
    assert child.manifest.name == "first-rocksdb"
    assert {o.provider for q in child.manifest.queries for o in q.operators} == {"rocksdb"}
    stores = diff_state(several.repository, savepoint, child, DiffRequest())
    assert all(store.missing is None for store in stores)
    assert sum(s.totals.added + s.totals.removed + s.totals.changed for s in stores) == 0
    assert sum(s.totals.same for s in stores) == result.rows > 0
    several.resume(child, "moved")
    # The session asks for the old provider: what the checkpoint says must win.
    several.assert_exact("moved", several.run("moved", files=5))
    files = [path.name for path in (tmp_path / "moved").rglob("[0-9]*.*")]
    assert not [name for name in files if name.endswith((".delta", ".snapshot"))]
    assert [name for name in files if name.endswith(".zip")]
