"""`repartition`: a savepoint with the same state in another number of partitions, made of one that
is there.

The one that is there stays as it is. Asked again, also after it was killed at any moment, the
task answers with the savepoint that it made before. With `--check` nothing is made: it is looked
whether it could be, without Spark.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from sparkpoint.runtime.orders import Order
from sparkpoint.runtime.summaries import summarize
from sparkpoint.savepoint import Repository, Savepoint
from sparkpoint.savepoint.catalogue import read_if_present
from sparkpoint.savepoint.errors import NameTakenError
from sparkpoint.savepoint.names import manifest_path
from sparkpoint.savepoint.progress import Amount
from sparkpoint.state import RepartitionRequest, check_repartition
from sparkpoint.state import repartition as repartition_state
from sparkpoint.state.errors import NothingToDoError, UnsupportedStateError
from sparkpoint.state.pinned import PARTITIONS
from sparkpoint.storage import open_store
from sparkpoint.worker.given import Given
from sparkpoint.worker.model import Answer
from sparkpoint.worker.summary import detail
from sparkpoint.worker.tasks.borrowing import borrowed
from sparkpoint.worker.tasks.capture import order_of
from sparkpoint.worker.tasks.inspect import Wanted, find, read_wanted
from sparkpoint.worker.telling import Telling

__all__ = ["USAGE", "Move", "read", "repartition"]

USAGE = (
    "--repository URI --job NAMESPACE/NAME (--name NAME | --id DIGEST) --partitions N "
    "(--as NAME [--scratch PATH] | --check [--epoch-dir URI --epoch N "
    "[--source-endpoint-url URL]]) [--endpoint-url URL]"
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
    if given.flag("--check"):
        return _read_look(given)
    move = Move(
        wanted=read_wanted(given),
        partitions=given.number("--partitions"),
        name=given.name("--as"),
        scratch=given.path("--scratch") if given.has("--scratch") else None,
    )
    return partial(repartition, move)


def _read_look(given: Given) -> Callable[[Telling], Answer]:
    wanted, partitions = read_wanted(given), given.number("--partitions")
    if not given.has("--epoch-dir"):
        return partial(_look, wanted, partitions)
    return partial(_look_at_what_runs, order_of(given, given.name("--name")), wanted, partitions)


def _look_at_what_runs(order: Order, wanted: Wanted, partitions: int, telling: Telling) -> Answer:
    """There is no savepoint yet: one is taken for the look, and removed again."""
    with borrowed(order, telling) as captured:
        if captured.savepoint is None:
            return captured.model_copy(update={"answer": "Unknown"})
        return _look(wanted, partitions, telling)


def _look(wanted: Wanted, partitions: int, telling: Telling) -> Answer:
    """Whether it could be made of this savepoint, or of one like it."""
    telling.start("looking", Amount())
    repository = Repository.open(open_store(wanted.repository, wanted.endpoint_url))
    savepoint = find(repository, wanted)
    try:
        said = check_repartition(repository, savepoint, partitions)
    except UnsupportedStateError as error:
        return Answer(answer="Incompatible", message=str(error), problems=(str(error),))
    return Answer(answer="Compatible", message=said, details=detail(savepoint.manifest))


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
