"""`dispose`: takes a savepoint out of the repository, and frees the space if asked to.

Its children stay whole: objects that any savepoint needs are never removed.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from sparkpoint.savepoint import Repository
from sparkpoint.savepoint.catalogue import read_if_present
from sparkpoint.savepoint.collect import DEFAULT_GRACE
from sparkpoint.savepoint.errors import DamagedError, NoSuchSavepointError, SavepointError
from sparkpoint.savepoint.names import manifest_path
from sparkpoint.savepoint.progress import Amount
from sparkpoint.storage import open_store
from sparkpoint.storage.errors import StorageError
from sparkpoint.worker.given import Given
from sparkpoint.worker.model import Answer
from sparkpoint.worker.telling import Telling

__all__ = ["USAGE", "Disposal", "dispose", "read"]

USAGE = (
    "--repository URI --job NAMESPACE/NAME --name NAME [--id DIGEST] [--collect "
    "[--grace SECONDS]] [--endpoint-url URL]"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Disposal:
    """What the command line asks for."""

    repository: str
    endpoint_url: str | None
    namespace: str
    job: str
    name: str
    id: str | None
    """Only this one; a later savepoint of the same name stays."""
    grace: int | None
    """Seconds that unneeded objects stay; None: do not collect."""


def read(given: Given) -> Callable[[Telling], Answer]:
    """What the command line asks for."""
    namespace, job = given.job()
    collect = given.flag("--collect")
    if given.has("--grace") and not collect:
        given.refuse("--grace does nothing without --collect")
    grace = given.optional_number("--grace", int(DEFAULT_GRACE))
    disposal = Disposal(
        repository=given.place("--repository"),
        endpoint_url=given.endpoint(),
        namespace=namespace,
        job=job,
        name=given.name("--name"),
        id=given.digest("--id"),
        grace=grace if collect else None,
    )
    return partial(dispose, disposal)


def dispose(disposal: Disposal, telling: Telling) -> Answer:
    """Gone afterwards, whoever removed it."""
    repository = Repository.open(open_store(disposal.repository, disposal.endpoint_url))
    message = _withdraw(repository, disposal)
    if disposal.grace is None:
        return Answer(answer="Disposed", message=message)
    telling.start("collecting what no savepoint needs", Amount())
    words, freed = _collect(repository, disposal.grace)
    return Answer(answer="Disposed", message=f"{message} {words}", freed_bytes=freed)


def _withdraw(repository: Repository, disposal: Disposal) -> str:
    path = manifest_path(disposal.namespace, disposal.job, disposal.name)
    key = f"{disposal.namespace}/{disposal.job}/{disposal.name}"
    try:
        found = read_if_present(repository.store, path)
    except DamagedError as error:
        # There is no table to protect any more: without it nobody can be restoring this.
        repository.store.delete(path)
        return f"{key} was damaged and is deleted ({error})."
    if found is None:
        return f"{key} was gone already."
    if disposal.id is not None and found.id != disposal.id:
        return f"{key} was gone already; another savepoint has its name now, and stays."
    try:
        repository.delete(found)
    except NoSuchSavepointError:
        return f"{key} was gone already."
    return f"{key} is deleted."


def _collect(repository: Repository, grace: float) -> tuple[str, int | None]:
    """The savepoint is disposed of, whatever comes of this: a later collection does the rest."""
    try:
        result = repository.collect(grace=grace)
    except (SavepointError, StorageError) as error:
        return f"Its space is not freed yet: {error}", None
    freed, young = result.freed_bytes, result.plan.young_bytes
    return f"{freed} bytes were freed, {young} are too young.", freed
