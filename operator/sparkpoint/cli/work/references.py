"""What a person calls a savepoint: a name, a part of an id, a tag. Never guesses among several."""

import difflib
from collections.abc import Iterable

from sparkpoint.savepoint import Catalogue, Repository, Savepoint
from sparkpoint.savepoint.catalogue import Unreadable, read_savepoint
from sparkpoint.savepoint.errors import AmbiguousError, NoSuchSavepointError
from sparkpoint.savepoint.names import SAVEPOINTS

__all__ = ["AmbiguousReferenceError", "choose", "find", "find_unreadable"]

_SHORTEST_ID = 4
_HEX = frozenset("0123456789abcdef")


class AmbiguousReferenceError(AmbiguousError):
    """Several savepoints go by this; `candidates` are all of them."""

    def __init__(self, reference: str, found: Iterable[Savepoint]) -> None:
        each = sorted((savepoint.key, savepoint.id[:12]) for savepoint in found)
        self.candidates = tuple(key for key, _ in each)
        listed = "\n".join(f"  {key} ({identity})" for key, identity in each)
        super().__init__(
            f"{reference!r} could be any of these; give NAMESPACE/JOB/NAME or more of the id:"
            f"\n{listed}"
        )


def find(repository: Repository, reference: str) -> Savepoint:
    """The one savepoint that goes by this."""
    return choose(_candidates(repository, reference), reference, repository)


def _candidates(repository: Repository, reference: str) -> Catalogue:
    """All savepoints that may be meant; a full name saves reading those of other jobs."""
    parts = reference.split("/")
    if len(parts) == 3 and all(parts):
        return repository.list(namespace=parts[0], job=parts[1])
    return repository.list()


def choose(catalogue: Catalogue, reference: str, repository: Repository) -> Savepoint:
    """The one among these; an error that lists what it could be otherwise."""
    found = [each for each in catalogue.savepoints if _goes_by(each, reference)]
    if len(found) == 1:
        return found[0]
    if found:
        raise AmbiguousReferenceError(reference, found)
    damaged = find_unreadable(catalogue, reference)
    if damaged is not None:
        return read_savepoint(repository.store, damaged.path)  # raises what is wrong with it
    raise NoSuchSavepointError(
        f"No savepoint in {repository.store.uri} goes by {reference!r}."
        f"{_suggestion(catalogue, reference)} `sparkpoint savepoint list` shows what there is."
    )


def _goes_by(savepoint: Savepoint, reference: str) -> bool:
    names = (savepoint.manifest.name, savepoint.key, savepoint.key.split("/", 1)[1])
    may_be_id = len(reference) >= _SHORTEST_ID and _HEX.issuperset(reference)
    return (
        reference in names
        or reference in savepoint.tags
        or (may_be_id and savepoint.id.startswith(reference))
    )


def _suggestion(catalogue: Catalogue, reference: str) -> str:
    names = [each.manifest.name for each in catalogue.savepoints]
    tags = [tag for each in catalogue.savepoints for tag in each.tags]
    close = difflib.get_close_matches(reference.rsplit("/", 1)[-1], [*names, *tags], n=1)
    return f" Did you mean {close[0]!r}?" if close else ""


def find_unreadable(catalogue: Catalogue, reference: str) -> Unreadable | None:
    """A damaged manifest of exactly this NAMESPACE/JOB/NAME, or the only one of this name."""
    found = [
        each
        for each in catalogue.unreadable
        if (key := each.path.removeprefix(f"{SAVEPOINTS}/").removesuffix(".json")) == reference
        or key.rsplit("/", 1)[-1] == reference
    ]
    return found[0] if len(found) == 1 else None
