"""Two sinks whose content can be read back exactly: Spark's file sink, and one file per batch."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlparse

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - as everybody writes it
from pyspark.sql.types import TimestampType

__all__ = ["batch_writer", "plain", "read_batches", "read_files"]

_LOG = "_spark_metadata"


def plain(frame: DataFrame, name: str) -> Column:
    """A column for JSON; times become milliseconds."""
    if isinstance(frame.schema[name].dataType, TimestampType):
        return F.unix_millis(name).alias(name)
    return F.col(name)


def batch_writer(sink: Path) -> Callable[[DataFrame, int], None]:
    """Write each batch to a file of its number: running it again replaces it."""

    def write(frame: DataFrame, batch: int) -> None:
        sink.mkdir(parents=True, exist_ok=True)
        rows = [row.asDict(recursive=True) for row in frame.collect()]
        hidden = sink / f".{batch}.json"
        hidden.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
        hidden.rename(sink / f"{batch}.json")

    return write


def read_batches(sink: Path) -> Iterator[dict[str, Any]]:
    """The rows that `batch_writer` wrote."""
    for path in sorted(sink.glob("[0-9]*.json")):
        yield from _rows(path)


def read_files(sink: Path) -> Iterator[dict[str, Any]]:
    """The rows that a reader of the file sink sees: those of the files in its log, each once."""
    added: dict[str, None] = {}
    for path in (sink / _LOG).glob("[0-9]*"):
        for line in path.read_text().splitlines()[1:]:
            added[json.loads(line)["path"]] = None
    for uri in added:
        # Older tests may have moved the sink; its log keeps absolute paths.
        yield from _rows(sink / Path(unquote(urlparse(uri).path)).name)


def _rows(path: Path) -> Iterator[dict[str, Any]]:
    for line in path.read_text().splitlines():
        yield json.loads(line)
