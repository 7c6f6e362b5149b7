"""`repartition`: a savepoint with the same state in another number of partitions, made of one that
is there.

The one that is there stays as it is. Asked again, also after it was killed at any moment, the
task answers with the savepoint that it made before.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from sparkpoint.runtime.summaries import summarize
from sparkpoint.savepoint import Repository, Savepoint
from sparkpoint.savepoint.catalogue import read_if_present
from sparkpoint.savepoint.errors import NameTakenError
from sparkpoint.savepoint.names import manifest_path
from sparkpoint.state import RepartitionRequest
from sparkpoint.state import repartition as repartition_state
from sparkpoint.state.errors import NothingToDoError
from sparkpoint.state.pinned import PARTITIONS
from sparkpoint.storage import open_store
from sparkpoint.worker.given import Given
from sparkpoint.worker.model import Answer
from sparkpoint.worker.summary import detail
from sparkpoint.worker.tasks.inspect import Wanted, find, read_wanted
from sparkpoint.worker.telling import Telling

__all__ = ["USAGE", "Move", "read", "repartition"]

USAGE = (
    "--repository URI --job NAMESPACE/NAME (--name NAME | --id DIGEST) --partitions N --as NAME "
    "[--scratch PATH] [--endpoint-url URL]"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """What the command line asks for."""

    wanted: Wanted
    partitions: int
    name: str
    """Of the new savepoint."""
    scratch: Path | None
    """Where the copy is put; the usual place for temporary files if None."""


def read(given: Given) -> Callable[[Telling], Answer]:
    """What the command line asks for."""
    move = Move(
        wanted=read_wanted(given),
        partitions=given.number("--partitions"),
        name=given.name("--as"),
        scratch=given.path("--scratch") if given.has("--scratch") else None,
    )
    return partial(repartition, move)


def repartition(move: Move, telling: Telling) -> Answer:
    """Make it, or find that it was made; a savepoint that needs no change is its own answer."""
    wanted = move.wanted
    repository = Repository.open(open_store(wanted.repository, wanted.endpoint_url))
    parent = find(repository, wanted)
    if (made := _made_before(repository, parent, move)) is not None:
        return _answer(repository, made, f"{made.key} was made before.")
    request = RepartitionRequest(
        partitions=move.partitions, name=move.name, work_folder=move.scratch
    )
    try:
        result = repartition_state(repository, parent, request, progress=telling)
    except NothingToDoError as nothing:
        return _answer(repository, parent, str(nothing))
    except NameTakenError:
        # Another worker was faster, or has made something else of that name.
        if (made := _made_before(repository, parent, move)) is None:
            raise
        return _answer(repository, made, f"{made.key} was made meanwhile.")
    message = f"{result.savepoint.key}: {result.rows} rows in {move.partitions} partitions."
    return _answer(repository, result.savepoint, message)


def _made_before(repository: Repository, parent: Savepoint, move: Move) -> Savepoint | None:
    path = manifest_path(parent.manifest.namespace, parent.manifest.job, move.name)
    found = read_if_present(repository.store, path)
    if found is None or found.manifest.parent is None or found.manifest.parent.id != parent.id:
        return None
    stateful = [query for query in found.manifest.queries if query.operators]
    pinned = {query.conf.get(PARTITIONS) for query in stateful}
    return found if pinned == {str(move.partitions)} else None


def _answer(repository: Repository, savepoint: Savepoint, message: str) -> Answer:
    return Answer(
        answer="Repartitioned",
        message=message,
        savepoint=summarize(savepoint, repository.store.uri),
        details=detail(savepoint.manifest),
    )
