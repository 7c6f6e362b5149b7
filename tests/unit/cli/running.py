"""Running the command line inside the test's process, and looking at what came out."""

import contextlib
import io
import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sparkpoint.cli.main import main
from tests.unit.savepoint.synthetic import SyntheticQuery

__all__ = [
    "SAVEPOINT_KEYS",
    "Outcome",
    "file_sink",
    "make_checkpoint",
    "names",
    "run",
    "run_well",
]

SAVEPOINT_KEYS = {
    "id",
    "namespace",
    "job",
    "name",
    "created",
    "published",
    "parent",
    "tags",
    "revision",
    "sparkVersion",
    "trigger",
    "source",
    "pending",
    "queries",
    "files",
    "bytes",
    "newBytes",
    "seconds",
    "tries",
}
"""The documented shape of a savepoint."""


@dataclass(frozen=True)
class Outcome:
    """How a command ended, and what it said."""

    code: int
    out: str
    err: str

    @property
    def document(self) -> Mapping[str, Any]:
        """Stdout as the one JSON document that it must be."""
        content: Mapping[str, Any] = json.loads(self.out)
        return content


def run(*arguments: str | Path) -> Outcome:
    """Run one command line."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            code = main([str(each) for each in arguments])
        except SystemExit as leaving:
            code = int(leaving.code or 0)
    return Outcome(code, out.getvalue(), err.getvalue())


def run_well(*arguments: str | Path) -> Outcome:
    """Run one that must succeed."""
    outcome = run(*arguments)
    if outcome.code != 0:
        print(outcome.out, outcome.err, file=sys.stderr)
    assert outcome.code == 0
    return outcome


def make_checkpoint(root: Path, *, batches: int = 6) -> SyntheticQuery:
    """A checkpoint with RocksDB state."""
    return SyntheticQuery(root, provider="rocksdb", seed=root.name).run(batches)


def names(*arguments: str) -> list[str]:
    """Names of the savepoints that a command lists."""
    return [each["name"] for each in run_well(*arguments, "--json").document["savepoints"]]


def file_sink(root: Path, newest: int) -> Path:
    """A file sink's log as Spark leaves it."""
    log = root / "_spark_metadata"
    log.mkdir(parents=True)
    for batch in range(newest + 1):
        entry = {"path": f"file:{root}/part-{batch}", "action": "add"}
        (log / str(batch)).write_text(f"v1\n{json.dumps(entry)}")
    return root
