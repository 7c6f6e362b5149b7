"""Every difference between two savepoints in one Parquet file.

Stores have different columns, so keys and values are JSON in it, which every reader can take apart.
"""

import importlib
import json
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from types import TracebackType
from typing import Any

from sparkpoint.state.arrow import arrow_library
from sparkpoint.state.diff import Change
from sparkpoint.state.errors import BadQueryError

__all__ = ["ChangeFile"]

_TOGETHER = 8192


class ChangeFile(AbstractContextManager["ChangeFile"]):
    """Grows until the context ends; it is there only when it is whole. Without a target, nothing
    is kept."""

    def __init__(self, target: Path | None) -> None:
        self._target = target
        self._waiting: list[Change] = []
        self._writer: Any = None
        if target is None:
            return
        if not target.parent.is_dir():
            raise BadQueryError(
                f"the directory {str(target.parent)!r} does not exist: make it first."
            )
        self._arrow = arrow_library("a file of differences")
        self._growing = target.with_name(f".{target.name}.growing")
        text, number = self._arrow.string(), self._arrow.int32()
        names = ("query", "operator", "store", "change", "key", "before", "after")
        self._schema = self._arrow.schema(
            [(name, number if name == "operator" else text) for name in names]
        )

    @property
    def take(self) -> Callable[[Change], None] | None:
        """What to call with each difference; None if nobody wants them."""
        return None if self._target is None else self._add

    def __enter__(self) -> "ChangeFile":
        if self._target is not None:
            parquet = importlib.import_module("pyarrow.parquet")
            self._writer = parquet.ParquetWriter(self._growing, self._schema)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._target is None:
            return
        try:
            if error is None:
                self._flush()
            self._writer.close()
            if error is None:
                self._growing.replace(self._target)
        finally:
            self._growing.unlink(missing_ok=True)

    def _add(self, change: Change) -> None:
        self._waiting.append(change)
        if len(self._waiting) >= _TOGETHER:
            self._flush()

    def _flush(self) -> None:
        columns = zip(*map(_row, self._waiting), strict=True)
        if self._waiting:
            self._writer.write_batch(
                self._arrow.record_batch(
                    [
                        self._arrow.array(values, field.type)
                        for values, field in zip(columns, self._schema, strict=True)
                    ],
                    schema=self._schema,
                )
            )
        self._waiting = []


def _row(change: Change) -> tuple[str | int | None, ...]:
    texts = (
        None if each is None else json.dumps(each, ensure_ascii=False)
        for each in (change.key, change.before, change.after)
    )
    return (change.query, change.operator, change.store, change.kind, *texts)
