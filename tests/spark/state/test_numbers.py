"""Every operator, of both providers, goes on exactly in every number of partitions.

From four to one, to a number that does not divide it, to half, to twice, and to Spark's own 200; to
as many as there are is nothing to do.
"""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from sparkpoint.savepoint.errors import NameTakenError
from sparkpoint.state import RepartitionRequest, repartition
from sparkpoint.state.errors import NothingToDoError
from tests.spark.state.several import Several
from tests.spark.state.workloads import GLOBAL, LIMIT, WITHIN

_BEFORE = 4
_NUMBERS = (1, 3, _BEFORE // 2, 2 * _BEFORE, 200)
_OPERATORS = ("aggregation", "dedup", "session", "join", "chained", "pandas", WITHIN.name)
_PROVIDERS = {
    "hdfs": dict.fromkeys((*_OPERATORS, GLOBAL.name, LIMIT.name), "hdfs"),
    "rocksdb": dict.fromkeys((*_OPERATORS, "transform"), "rocksdb"),
    "rocksdb-changelog": dict.fromkeys((*_OPERATORS, "transform"), "rocksdb-changelog"),
}
_MORE = {each.name: each for each in (WITHIN, GLOBAL, LIMIT)}


@pytest.mark.soak
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("partitions", _NUMBERS)
@pytest.mark.parametrize("providers", _PROVIDERS.values(), ids=_PROVIDERS)
def test_every_operator_goes_on_exactly_in_every_number(
    in_session: SparkSession, tmp_path: Path, providers: dict[str, str], partitions: int
) -> None:
    several = Several(in_session, tmp_path, providers, partitions=_BEFORE, more=_MORE)
    several.run("ck", files=3)
    savepoint = several.capture("ck", "first")
    with pytest.raises(NothingToDoError):
        repartition(several.repository, savepoint, RepartitionRequest(partitions=_BEFORE))
    request = RepartitionRequest(partitions=partitions)

    moved = repartition(several.repository, savepoint, request)

    with pytest.raises(NameTakenError):
        repartition(several.repository, savepoint, request)
    several.resume(moved.savepoint, "moved")
    several.assert_exact("moved", several.run("moved", files=5))
    assert all(found.good for found in several.repository.verify([savepoint, moved.savepoint]))
