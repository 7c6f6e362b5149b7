"""Making an answer fit into a termination message, and saying what did not.

A list that is too long loses its end, and `omitted` counts what is missing; a text loses its
middle, where an ellipsis stands then. Names of queries, batches and verdicts are never altered.
"""

import json
from collections.abc import Callable, Sequence
from typing import TypeVar

from sparkpoint.runtime.model import SavepointSummary
from sparkpoint.runtime.termination import LIMIT, shorten
from sparkpoint.worker.model import Answer, Details, QueryDetails

__all__ = ["render", "render_whole"]

_T = TypeVar("_T")

_STEPS = ((1500, 100), (1000, 40), (600, 20), (400, 10), (200, 5), (100, 2), (60, 0))
"""Longest text and longest list: the first pair that makes all of it fit."""
_SHORTEST = 8


def render_whole(answer: Answer) -> str:
    """The answer as JSON, on one line."""
    return answer.model_dump_json(exclude_defaults=True)


def render(answer: Answer) -> str:
    """The same in at most LIMIT bytes."""
    text = render_whole(answer)
    for longest, most in _STEPS:
        if len(text.encode()) <= LIMIT:
            break
        text = render_whole(_Cut(longest, most).answer(answer))
    return text


class _Cut:
    """Cuts one answer, and counts what it leaves out."""

    def __init__(self, longest: int, most: int) -> None:
        self._longest, self._most = longest, most
        self._omitted: dict[str, int] = {}

    def answer(self, answer: Answer) -> Answer:
        cut = {
            "message": self._text(answer.message),
            "kind": self._optional(answer.kind),
            "problems": self._texts("problems", answer.problems),
            "notes": self._texts("notes", answer.notes),
            "removed": self._texts("removed", answer.removed),
            "savepoint": answer.savepoint and self._savepoint(answer.savepoint),
            "details": answer.details and self._details(answer.details),
        }
        return answer.model_copy(update={**cut, "omitted": self._omitted})

    def _savepoint(self, savepoint: SavepointSummary) -> SavepointSummary:
        names = self._named("savepoint.batches", sorted(savepoint.batches), lambda name: name)
        return savepoint.model_copy(
            update={
                "batches": {name: savepoint.batches[name] for name in names},
                "location": self._text(savepoint.location),
                "parent": self._optional(savepoint.parent),
                "left_out": self._texts("savepoint.left_out", savepoint.left_out),
            }
        )

    def _details(self, details: Details) -> Details:
        return details.model_copy(
            update={
                "revision": self._optional(details.revision),
                "spark_version": self._optional(details.spark_version),
                "trigger": self._optional(details.trigger),
                "epoch": self._optional(details.epoch),
                "source": self._text(details.source),
                "queries": tuple(
                    self._query(each)
                    for each in self._named(
                        "details.queries", details.queries, lambda query: query.name
                    )
                ),
            }
        )

    def _query(self, query: QueryDetails) -> QueryDetails:
        return query.model_copy(
            update={"id": self._text(query.id), "provider": self._optional(query.provider)}
        )

    def _named(self, field: str, items: Sequence[_T], name: Callable[[_T], str]) -> Sequence[_T]:
        """The items, without those whose names are too long: a name is not shortened, for another
        one might look the same then."""
        short = [item for item in items if _json_size(name(item)) <= self._longest]
        kept = short[: self._most]
        if len(kept) < len(items):
            self._omitted[field] = len(items) - len(kept)
        return kept

    def _items(self, field: str, items: Sequence[_T]) -> Sequence[_T]:
        if len(items) > self._most:
            self._omitted[field] = len(items) - self._most
        return items[: self._most]

    def _texts(self, field: str, texts: Sequence[str]) -> tuple[str, ...]:
        return tuple(self._text(text) for text in self._items(field, texts))

    def _optional(self, text: str | None) -> str | None:
        return None if text is None else self._text(text)

    def _text(self, text: str) -> str:
        """Shortened so that it is short as JSON, too, where a control character takes six bytes."""
        length = min(len(text), self._longest)
        shorter = shorten(text, length)
        while _json_size(shorter) > self._longest and length > _SHORTEST:
            length = length * 3 // 4
            shorter = shorten(text, length)
        return shorter


def _json_size(text: str) -> int:
    return len(json.dumps(text, ensure_ascii=False).encode()) - len('""')
