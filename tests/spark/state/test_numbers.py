"""Every operator, of both providers, goes on exactly in every number of partitions.

From four to one, to a number that does not divide it, to half, to twice, and to Spark's own 200; to
as many as there are is nothing to do.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from sparkpoint.savepoint.errors import NameTakenError
from sparkpoint.state import RepartitionRequest, repartition
from sparkpoint.state.errors import NothingToDoError
from tests.spark.state.several import Several
from tests.spark.state.workloads import FAMILIES, GLOBAL, LIMIT, WITHIN

_BEFORE = 4
_NUMBERS = (1, 3, _BEFORE // 2, 2 * _BEFORE)
_MOST = 200
_OPERATORS = ("aggregation", "dedup", "session", "join", "chained", "pandas", WITHIN.name)
_ON = {
    "hdfs": (*_OPERATORS, GLOBAL.name, LIMIT.name),
    "rocksdb": (*_OPERATORS, "transform"),
    "rocksdb-changelog": (*_OPERATORS, "transform"),
}
_AT_ONCE = 3
"""Operators side by side in 200 partitions: every store of each is open, and is looked after."""
_MORE = {each.name: each for each in (WITHIN, GLOBAL, LIMIT, FAMILIES)}
_APART = (
    ("rocksdb-v2", ("aggregation", "dedup", "session", "join", "pandas", "transform"), _NUMBERS),
    # By itself: the setting of its join is that of the session from then on.
    ("rocksdb-changelog", (FAMILIES.name,), _NUMBERS),
    # What else Spark would put where it does not look for it is refused.
    ("rocksdb", (GLOBAL.name,), (1, 3, 7)),
)


def _cases() -> Iterator[object]:
    """All operators at once, but some at a time in 200 partitions: these are 200 tasks for each
    stateful stage of each batch, so that one file is all that they go on with."""
    for provider, operators in _ON.items():
        for number in _NUMBERS:
            yield pytest.param(provider, operators, number, 5, id=f"{provider}-{number}")
        for begin in range(0, len(operators), _AT_ONCE):
            some = operators[begin : begin + _AT_ONCE]
            named = f"{provider}-{_MOST}-{'-'.join(some)}"
            yield pytest.param(provider, some, _MOST, 4, id=named)
    for provider, operators, numbers in _APART:
        for number in numbers:
            named = f"{provider}-{operators[-1]}-{number}"
            yield pytest.param(provider, operators, number, 5, id=named)


@pytest.mark.soak
@pytest.mark.timeout(3600)
@pytest.mark.parametrize(("provider", "operators", "partitions", "files"), list(_cases()))
def test_every_operator_goes_on_exactly_in_every_number(
    in_session: SparkSession,
    tmp_path: Path,
    provider: str,
    operators: tuple[str, ...],
    partitions: int,
    files: int,
) -> None:
    providers = dict.fromkeys(operators, provider)
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
    several.assert_exact("moved", several.run("moved", files=files, seconds=1800))
    assert all(found.good for found in several.repository.verify([savepoint, moved.savepoint]))
