"""The runs of the table of Spark versions: what takes a process down, and a small table."""

import contextlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyspark
import pytest

from dev.console import Problem
from tests.spark.versions import __main__ as command
from tests.spark.versions import attempts, matrix
from tests.spark.versions.attempts import CRASH, FAILED, Answer, Order, answered
from tests.spark.versions.matrix import Measured, measure, minor
from tests.spark.versions.page import document, page
from tests.spark.versions.run import DEADLINE


class Processes:
    """That are played: a deadly query takes its process down, with the next one under way."""

    def __init__(self, *deadly: str) -> None:
        self.deadly = set(deadly)
        self.asked: list[list[str]] = []

    def run(self, _base: Path, _spark: str, orders: Sequence[Order], numbers: Sequence[int]) -> Any:
        """What the real one does."""
        names = [orders[number].query for number in numbers]
        self.asked.append(names)
        end = next((at for at, name in enumerate(names) if name in self.deadly), len(names))
        answers = {number: {"rows": [[1]]} for number in numbers[:end]}
        return attempts._Attempt(answers, frozenset(numbers[: end + 2]), "the log")


def _orders(folder: Path, *names: str) -> list[Order]:
    return [Order(name, "hdfs", folder / name, folder / "input", lambda: None) for name in names]


def test_a_query_that_takes_its_process_down_is_told_apart_from_its_neighbours(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    processes = Processes("c")
    monkeypatch.setattr(attempts, "_run", processes.run)

    answers = answered(tmp_path, "to-4.3.0", "4.3.0", _orders(tmp_path, *"abcdef"))

    assert [each.get("died", "") for each in answers] == ["", "", CRASH, "", "", ""]
    assert processes.asked == [list("abcdef"), ["c"], ["d"], ["e", "f"]]


def test_what_was_answered_is_not_asked_again_and_what_failed_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    processes = Processes("b")
    monkeypatch.setattr(attempts, "_run", processes.run)
    answered(tmp_path, "on-4.3.0", "4.3.0", _orders(tmp_path, *"ab"))
    processes.deadly, processes.asked = set(), []

    answers = answered(tmp_path, "on-4.3.0", "4.3.0", _orders(tmp_path, *"abc"))

    assert processes.asked == [["b", "c"]]
    assert [each["rows"] for each in answers] == [[[1]]] * 3
    assert set(FAILED) == {CRASH, DEADLINE}


@pytest.mark.parametrize(
    ("died", "expected"),
    [
        (CRASH, "failed: CRASH in the first half"),
        (DEADLINE, f"failed: {DEADLINE} in the first half"),
        (None, "failed: NoQueryError between the halves"),
        ("UNSUPPORTED_FEATURE", None),
    ],
)
def test_only_what_spark_refuses_is_left_out_of_the_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, died: str | None, expected: str | None
) -> None:
    answer: Answer = {"rows": []} if died is None else {"died": died, "of": "the log"}

    def played(_folder: Path, _name: str, _spark: str, orders: Sequence[Order]) -> Any:
        return [answer for _ in orders]

    monkeypatch.setattr(matrix, "answered", played)

    measured = measure(
        tmp_path, before=["4.2.1"], after=["4.2.1", "4.3.0"], cases=[("aggregation", "hdfs")]
    )

    cells = [("aggregation", "hdfs", "4.2", after) for after in ("4.2", "4.3")]
    assert measured.results == ({} if expected is None else dict.fromkeys(cells, expected))
    assert measured.checkpoints == {}


@pytest.mark.parametrize("result", ["exact", "failed: CRASH"])
def test_a_table_with_holes_does_not_pass_for_a_whole_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, result: str
) -> None:
    measured = Measured({("aggregation", "hdfs", "4.3", "4.3"): result}, {})

    def played(folder: Path, **_: Any) -> Measured:
        folder.mkdir(parents=True)
        return measured

    monkeypatch.setattr(command, "measure", played)
    monkeypatch.setattr(command, "cache_root", lambda: tmp_path)
    monkeypatch.setattr(command, "FILE", tmp_path / "table.json")
    monkeypatch.setattr(command, "PAGE", tmp_path / "table.md")
    whole = result == "exact"

    with contextlib.nullcontext() if whole else pytest.raises(Problem, match="1 cells failed"):
        command.main()

    assert (tmp_path / "table.md").exists()
    assert len(list((tmp_path / "versions").iterdir())) == (0 if whole else 1)


@pytest.mark.soak
@pytest.mark.timeout(900)
def test_a_small_table_is_measured_and_gone_on_with(tmp_path: Path) -> None:
    """The same run as `make spark-versions`, of this Spark alone."""
    spark, cases = pyspark.__version__, [("aggregation", "hdfs"), ("no state", "hdfs")]

    measured = measure(tmp_path, before=[spark], after=[spark], cases=cases)

    line = minor(spark)
    assert measured.results == {(*case, line, line): "exact" for case in cases}
    content = json.loads(json.dumps(document(measured, [spark])))
    assert "all exact" in page(content)
    assert set(content["checkpoints"]) == {f"{query} / hdfs / {line}" for query, _ in cases}
    assert measure(tmp_path, before=[spark], after=[spark], cases=cases) == measured
