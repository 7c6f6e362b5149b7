"""Processes of a Spark of some version, each for many queries: what takes one of them down does not
take the others along, and what was answered once is not asked again.
"""

import json
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyspark

from dev.console import say
from dev.sparks import other_spark
from tests.spark.versions.run import DEADLINE

__all__ = ["FAILED", "Answer", "Order", "answered"]

Answer = Mapping[str, Any]
CRASH = "CRASH"
"""What a query died of that took its process along."""
FAILED = (CRASH, DEADLINE)
"""Of the machine, perhaps: it says nothing about Spark."""
_ROOT = Path(__file__).resolve().parents[3]
_SECONDS = 1800
"""For one process, with up to sixty queries of a few seconds each."""
_TAIL = 2000


@dataclass(frozen=True, slots=True)
class Order:
    """A query, and where it runs."""

    query: str
    provider: str
    checkpoint: Path
    input: Path
    lay: Callable[[], None]
    """Put the checkpoint there as it is before the run, whatever an earlier one has left."""

    def document(self) -> dict[str, str]:
        """For the process."""
        return {
            "query": self.query,
            "provider": self.provider,
            "checkpoint": str(self.checkpoint),
            "input": str(self.input),
        }


def answered(folder: Path, name: str, spark: str, orders: Sequence[Order]) -> list[Answer]:
    """What came of each. What a former call of that name was told is not asked again, unless its
    process had broken down or had not ended."""
    kept = folder / f"{name}.answers"
    told: dict[str, Answer] = json.loads(kept.read_text()) if kept.exists() else {}
    done = {
        number: answer
        for number, order in enumerate(orders)
        if (answer := told.get(str(order.checkpoint))) and answer.get("died") not in FAILED
    }
    answers = _run_all(folder / name, spark, orders, done)
    partial = folder / f"{name}.partial"
    keys = [str(order.checkpoint) for order in orders]
    partial.write_text(json.dumps(dict(zip(keys, answers, strict=True))))
    partial.rename(kept)
    say(f"{name}: {len(answers)} queries, {sum('died' in each for each in answers)} died.")
    return answers


def _run_all(
    base: Path, spark: str, orders: Sequence[Order], known: Mapping[int, Answer]
) -> list[Answer]:
    done = dict(known)
    while left := [number for number in range(len(orders)) if number not in done]:
        attempt = _run(base, spark, orders, left)
        done |= attempt.answers
        # One of those that were under way: alone, it shows.
        for number in sorted(attempt.begun - set(done)):
            alone = _run(base, spark, orders, [number])
            done |= alone.answers or {number: {"died": CRASH, "of": alone.log}}
    return [done[number] for number in range(len(orders))]


@dataclass(frozen=True, slots=True)
class _Attempt:
    answers: Mapping[int, Answer]
    begun: frozenset[int]
    log: str


def _run(base: Path, spark: str, orders: Sequence[Order], numbers: Sequence[int]) -> _Attempt:
    """One process; AssertionError if it did not even begin."""
    for number in numbers:
        orders[number].lay()
    order, answer, log = (
        base.with_name(f"{base.name}.{kind}") for kind in ("order", "lines", "log")
    )
    order.write_text(json.dumps([orders[number].document() for number in numbers]))
    answer.write_text("")
    environment = None if spark == pyspark.__version__ else other_spark(spark)
    command = [sys.executable, "-m", "tests.spark.versions.run", str(order), str(answer)]
    with log.open("wb") as output:
        try:
            subprocess.run(
                command,
                cwd=_ROOT,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                timeout=_SECONDS,
                check=False,
            )
        except subprocess.TimeoutExpired:
            output.write(f"\nIt did not end within {_SECONDS} s.".encode())
    said = log.read_text(errors="replace")[-_TAIL:]
    # The last line may be cut off.
    lines = [json.loads(line) for line in answer.read_text().split("\n")[:-1]]
    assert lines, f"Spark {spark} does not start: {said}"
    assert lines[0]["spark"] == spark, f"Spark {lines[0]['spark']} ran in place of {spark}"
    answers = {numbers[line["number"]]: line["answer"] for line in lines if "answer" in line}
    begun = frozenset(numbers[line["begun"]] for line in lines if "begun" in line)
    assert begun or answers, f"Spark {spark} runs no query: {said}"
    return _Attempt(answers, begun, said)
