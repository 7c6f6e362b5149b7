"""`inspect`: what a savepoint is, for whoever wants to adopt one that exists already."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from sparkpoint.runtime.summaries import summarize
from sparkpoint.savepoint import Repository, Savepoint
from sparkpoint.savepoint.catalogue import read_savepoint
from sparkpoint.savepoint.errors import DamagedError, NoSuchSavepointError
from sparkpoint.savepoint.names import manifest_path
from sparkpoint.storage import open_store
from sparkpoint.worker.given import Given
from sparkpoint.worker.model import Answer
from sparkpoint.worker.summary import detail
from sparkpoint.worker.telling import Telling

__all__ = ["USAGE", "Wanted", "find", "inspect", "read", "read_wanted"]

USAGE = (
    "--repository URI --job NAMESPACE/NAME (--name NAME | --id DIGEST) [--copy-from URI "
    "[--copy-from-endpoint-url URL]] [--endpoint-url URL]"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """A savepoint by its name, its id, or both: then both must fit."""

    repository: str
    endpoint_url: str | None
    namespace: str
    job: str
    name: str | None
    id: str | None


@dataclass(frozen=True, slots=True)
class _Origin:
    """Another repository, which the savepoint is to be copied from first."""

    repository: str
    endpoint_url: str | None


def read_wanted(given: Given) -> Wanted:
    """Which savepoint the command line means."""
    namespace, job = given.job()
    if not given.has("--name") and not given.has("--id"):
        given.refuse("--name is missing: give it, or --id")
    return Wanted(
        repository=given.place("--repository"),
        endpoint_url=given.endpoint(),
        namespace=namespace,
        job=job,
        name=given.optional_name("--name"),
        id=given.digest("--id"),
    )


def read(given: Given) -> Callable[[Telling], Answer]:
    """What the command line asks for."""
    wanted = read_wanted(given)
    place = given.optional_place("--copy-from")
    endpoint = given.optional("--copy-from-endpoint-url") or wanted.endpoint_url
    if given.has("--copy-from-endpoint-url") and place is None:
        given.refuse("--copy-from-endpoint-url does nothing without --copy-from")
    return partial(inspect, wanted, _Origin(place, endpoint) if place else None)


def inspect(wanted: Wanted, origin: _Origin | None, telling: Telling) -> Answer:
    """The summary of a savepoint, which is copied here first if it is elsewhere."""
    here = open_store(wanted.repository, wanted.endpoint_url)
    try:
        if origin is None:
            repository = Repository.open(here)
            savepoint = find(repository, wanted)
        else:
            there = Repository.open(open_store(origin.repository, origin.endpoint_url))
            repository = Repository.init(here)
            for note in repository.notes:
                telling.note(note)
            copied = there.copy(find(there, wanted), repository, progress=telling)
            savepoint = copied.savepoint
    except DamagedError as error:
        return Answer(answer="Corrupt", message=str(error), problems=(str(error),))
    return Answer(
        answer="Inspected",
        message=f"{savepoint.key} is in {repository.store.uri}.",
        savepoint=summarize(savepoint, repository.store.uri),
        details=detail(savepoint.manifest),
    )


def find(repository: Repository, wanted: Wanted) -> Savepoint:
    """The savepoint; NoSuchSavepointError also if the one of this name has another id."""
    if wanted.name is None:
        return repository.find(wanted.id or "", namespace=wanted.namespace, job=wanted.job)
    path = manifest_path(wanted.namespace, wanted.job, wanted.name)
    found = read_savepoint(repository.store, path)
    if wanted.id is not None and found.id != wanted.id:
        raise NoSuchSavepointError(
            f"{found.key} in {repository.store.uri} has the id {found.id}, not {wanted.id}: it is "
            "another savepoint."
        )
    return found
