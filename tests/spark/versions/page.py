"""The table as a file for programs, and as a page for people. Pure."""

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.spark.versions.matrix import Measured, minor
from tests.spark.versions.queries import CASES

__all__ = ["FILE", "PAGE", "document", "page", "rendered"]

_DOCS = Path(__file__).resolve().parents[3] / "docs"
FILE, PAGE = _DOCS / "spark-versions.json", _DOCS / "spark-versions.md"
_EXACT = "exact"
_PREFACE = """\
# Which Spark goes on from whose state

Written by `make spark-versions`. Do not edit; run it again.

Every query below read half of its input on one version of Spark, was captured as a savepoint, and
read the rest on another version from the restored savepoint. What both halves wrote is compared,
row by row, with what it must be, computed in plain Python.

- **exact**: every row is right.
- **refused**: Spark does not begin the batch, and nothing is written. A rehearsal says so before
  anything is stopped: see [state.md](state.md#will-the-new-code-go-on-from-it).
- **wrong**: Spark runs on and says nothing. `state check`, and the operator before it stops a job,
  refuse these by what the files of the savepoint tell.
- **failed**: its process broke down, or did not end in time, or its savepoint could not be taken or
  restored. That says nothing about Spark; run it again.

A job that was brought to another Spark and does not prove itself is rolled back to the savepoint
from before the change, which its former Spark wrote itself: see
[lifecycle.md](lifecycle.md#when-something-new-fails).
"""
Results = Mapping[str, Mapping[str, Mapping[str, Mapping[str, str]]]]
"""Query -> provider -> from -> to -> what came of it."""


def document(measured: Measured, sparks: Sequence[str]) -> dict[str, Any]:
    """What is committed, for the tests of the rules that are made from it."""
    results: dict[str, Any] = {}
    for (query, provider, before, after), result in measured.results.items():
        of_query = results.setdefault(query, {}).setdefault(provider, {})
        of_query.setdefault(before, {})[after] = result
    return {
        "sparks": {minor(version): version for version in sparks},
        "results": results,
        "checkpoints": dict(measured.checkpoints),
    }


def rendered(content: Mapping[str, Any]) -> str:
    """As it is in the file."""
    return json.dumps(content, indent=1, ensure_ascii=False) + "\n"


def page(content: Mapping[str, Any]) -> str:
    """The page: what came of each pair of versions, and every case that is not exact."""
    sparks: Mapping[str, str] = content["sparks"]
    results: Results = content["results"]
    lines = [_PREFACE.rstrip(), "", "## From each version to each", ""]
    lines += ["| written by ↓, read by → | " + " | ".join(sparks.values()) + " |"]
    lines += ["|---" * (len(sparks) + 1) + "|"]
    for before, version in sparks.items():
        cells = [_cell(results, before, after) for after in sparks]
        lines.append(f"| **{version}** | " + " | ".join(cells) + " |")
    lines += ["", "## What is not exact", "", *_exceptions(results), ""]
    lines += ["## What was run", "", "| query | providers |", "|---|---|"]
    for query, providers in results.items():
        lines.append(f"| {query} | {', '.join(providers)} |")
    return "\n".join(lines) + "\n"


def _cell(results: Results, before: str, after: str) -> str:
    found = [each for *_, b, a, each in _all(results) if (b, a) == (before, after)]
    refused = sum(each.startswith("refused") for each in found)
    wrong = sum(each.startswith("wrong") for each in found)
    failed = sum(each.startswith("failed") for each in found)
    exact = found.count(_EXACT)
    said = ["all exact"] if exact == len(found) else [f"{exact} of {len(found)} exact"]
    said += [f"{refused} refused"] if refused else []
    said += [f"**{wrong} wrong**"] if wrong else []
    said += [f"{failed} failed"] if failed else []
    return ", ".join(said)


def _exceptions(results: Results) -> Iterator[str]:
    pairs: dict[tuple[str, str], dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for query, provider, before, after, told in _all(results):
        if told != _EXACT:
            pairs[query, told][f"{before} → {after}"].append(provider)
    yield "| query | what happens | from → to |"
    yield "|---|---|---|"
    for (query, told), found in pairs.items():
        alike: dict[str, list[str]] = defaultdict(list)
        for pair, providers in found.items():
            alike[", ".join(providers)].append(pair)
        listed = "; ".join(f"{', '.join(each)} ({who})" for who, each in alike.items())
        yield f"| {query} | {told} | {listed} |"


def _all(results: Results) -> Iterator[tuple[str, str, str, str, str]]:
    for query, provider in CASES:
        for before, row in results.get(query, {}).get(provider, {}).items():
            for after, result in row.items():
                yield query, provider, before, after, result
