"""Which part of a savepoint's state is meant: one query, one operator of it, one store of that.

What is not said must be the only one there; else all that could be meant is listed.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from sparkpoint.savepoint.manifest import Manifest, OperatorInfo, QueryInfo
from sparkpoint.state.errors import AmbiguousStateError, NoSuchStateError

__all__ = ["Selection", "chosen_operator", "chosen_store", "operators"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """What was said; None means whatever is there."""

    query: str | None = None
    operator: int | None = None
    store: str | None = None
    """A store, a state variable of `transformWithState`, or `timers`."""


def operators(manifest: Manifest, selection: Selection) -> list[tuple[QueryInfo, OperatorInfo]]:
    """All operators that may be meant; NoSuchStateError if none is."""
    queries = [q for q in manifest.queries if selection.query in (None, q.prefix)]
    if not queries:
        raise NoSuchStateError(
            f"Savepoint {manifest.name} has no query {selection.query!r}; it has "
            f"{_listed(q.prefix or '(the only one)' for q in manifest.queries)}."
        )
    found = [(q, o) for q in queries for o in q.operators]
    if not found:
        raise NoSuchStateError(f"Savepoint {manifest.name} holds no state.")
    chosen = [(q, o) for q, o in found if selection.operator in (None, o.id)]
    if not chosen:
        known = _listed(f"{o.id} ({o.name or 'unnamed'})" for _, o in found)
        raise NoSuchStateError(
            f"Savepoint {manifest.name} has no stateful operator {selection.operator}; it "
            f"has {known}."
        )
    return chosen


def chosen_operator(manifest: Manifest, selection: Selection) -> tuple[QueryInfo, OperatorInfo]:
    """The one that is meant."""
    found = operators(manifest, selection)
    if len(found) == 1:
        return found[0]
    if len({query.prefix for query, _ in found}) > 1:
        names = tuple(dict.fromkeys(query.prefix for query, _ in found))
        raise AmbiguousStateError(
            f"Savepoint {manifest.name} has state of several queries: {_listed(names)}. Say which "
            "with --query.",
            names,
        )
    numbers = tuple(f"{o.id} ({o.name or 'unnamed'})" for _, o in found)
    raise AmbiguousStateError(
        f"Savepoint {manifest.name} has several stateful operators: {_listed(numbers)}. Say which "
        "with --operator.",
        numbers,
    )


def chosen_store(names: Sequence[str], wanted: str | None, *, of: str) -> str:
    """The store that is meant out of those that there are."""
    if wanted is None and len(names) == 1:
        return names[0]
    if wanted is None:
        raise AmbiguousStateError(
            f"{of} has several stores: {_listed(names)}. Say which with --store.", tuple(names)
        )
    if wanted not in names:
        raise NoSuchStateError(f"{of} has no store {wanted!r}; it has {_listed(names)}.")
    return wanted


def _listed(names: Iterable[str]) -> str:
    return ", ".join(names)
