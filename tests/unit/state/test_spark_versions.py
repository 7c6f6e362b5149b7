"""What files tell about another Spark, held against what was measured (docs/spark-versions.json).

Going on wrongly without a word must be refused by the files: nobody else sees it. Where Spark
itself refuses, they have to say something. What is exact must not be hindered.
"""

import base64
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from sparkpoint.savepoint.manifest import QueryInfo
from sparkpoint.state.compatibility import Finding, findings
from sparkpoint.storage.errors import NotFoundError

_FILE = Path(__file__).resolve().parents[3] / "docs" / "spark-versions.json"
_LINES = {"3.5", "4.0", "4.1", "4.2", "4.3"}
_UNSTEADY = {
    "prefix": "query",
    "id": "7b4c26e8-0000-4000-8000-000000000001",
    "watermark_ms": 0,
    "next_watermark_ms": 0,
    "timestamp_ms": 0,
    "sources": [],
    "pending": False,
}
"""What the table leaves out of a query, as it differs from run to run."""

Table = Mapping[str, Any]


@pytest.fixture(scope="module")
def table() -> Table:
    assert _FILE.exists(), f"{_FILE} is missing: nothing was measured. Run `make spark-versions`."
    found: Table = json.loads(_FILE.read_text())
    return found


def _cells(table: Table) -> Iterator[tuple[str, str, str, str, str]]:
    """Query, provider, from, to, and what came of it."""
    for query, providers in table["results"].items():
        for provider, rows in providers.items():
            for before, row in rows.items():
                for after, result in row.items():
                    yield query, provider, before, after, result


def _verdict(table: Table, checkpoint: str, version: str) -> list[Finding]:
    kept = table["checkpoints"][checkpoint]

    def read(path: str) -> bytes:
        if path not in kept["schemas"]:
            raise NotFoundError(path)
        return base64.b64decode(kept["schemas"][path])

    query = QueryInfo.model_validate({**_UNSTEADY, **kept["query"]})
    return findings(query, spark_version=version, conf={}, read=read)


def _disagreements(table: Table) -> list[str]:
    found = []
    for query, provider, before, after, result in _cells(table):
        checkpoint = f"{query} / {provider} / {before}"
        told = _verdict(table, checkpoint, table["sparks"][after])
        refused = any(each.is_obstacle for each in told)
        words = "; ".join(each.message for each in told) or "nothing is told"
        agrees = {"exact": not refused, "wrong": refused, "refused": bool(told)}
        kind = result.partition(":")[0]
        if not agrees.get(kind, False):
            found.append(f"{checkpoint} -> {after}: {result}, but {words}")
    return found


def test_every_pair_of_versions_was_measured_with_every_query(table: Table) -> None:
    assert set(table["sparks"]) == _LINES
    missing = [
        f"{query} / {provider} / {before}: {_LINES - set(row)}"
        for query, providers in table["results"].items()
        for provider, rows in providers.items()
        for before, row in rows.items()
        if set(row) != _LINES
    ]
    assert missing == []
    began = {before for _, _, before, _, _ in _cells(table)}
    assert began == _LINES, "queries of a whole line of Spark did not run"


def test_no_measurement_has_failed(table: Table) -> None:
    """Else nothing is known: `make spark-versions` again runs these alone."""
    assert [cell for cell in _cells(table) if cell[-1].startswith("failed")] == []


def test_every_query_goes_on_exactly_on_the_spark_that_it_began_on(table: Table) -> None:
    assert [cell for cell in _cells(table) if cell[2] == cell[3] and cell[-1] != "exact"] == []


def test_the_verdict_of_the_files_agrees_with_every_cell(table: Table) -> None:
    assert _disagreements(table) == []


@pytest.mark.parametrize(
    ("result", "commits_version", "agrees"),
    [
        ("exact", 1, True),
        ("exact", 2, False),
        ("wrong: 1 rows are missing", 2, True),
        ("wrong: 1 rows are missing", 1, False),
        ("refused: UnsupportedLogVersion", 2, True),
        ("refused: UnsupportedLogVersion", 1, False),
        ("failed: DEADLINE", 2, False),
    ],
)
def test_a_table_that_says_otherwise_is_found_out(
    result: str, commits_version: int, agrees: bool
) -> None:
    """A commit log of version 2 is what Spark 3.5 cannot read."""
    query = {"conf": {}, "operators": [], "batch": 1, "offsets_version": 1}
    query["commits_version"] = commits_version
    played = {
        "sparks": {"4.0": "4.0.5", "3.5": "3.5.9"},
        "results": {"aggregation": {"rocksdb": {"4.0": {"3.5": result}}}},
        "checkpoints": {"aggregation / rocksdb / 4.0": {"query": query, "schemas": {}}},
    }

    assert (_disagreements(played) == []) == agrees
