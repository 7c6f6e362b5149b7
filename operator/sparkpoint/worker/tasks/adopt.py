"""`adopt`: a savepoint of a checkpoint that another job has left behind, for a new job to begin
from.

The checkpoint is an epoch directory with a folder per query, or that of a single query; then the
name of the query must be said, as the new job will look for it there. It is only read.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from sparkpoint.runtime.identity import folder_of_name
from sparkpoint.runtime.summaries import summarize
from sparkpoint.savepoint import CaptureRequest, Manifest, Repository, Savepoint
from sparkpoint.savepoint.capture import NONE
from sparkpoint.savepoint.catalogue import read_if_present
from sparkpoint.savepoint.errors import NameTakenError, NoQueryError
from sparkpoint.savepoint.names import manifest_path
from sparkpoint.storage import Store, open_store
from sparkpoint.worker.given import Given
from sparkpoint.worker.model import Answer
from sparkpoint.worker.summary import detail
from sparkpoint.worker.survey import Stage, Survey, look_at
from sparkpoint.worker.telling import Telling

__all__ = ["USAGE", "Adoption", "read", "take"]

USAGE = (
    "--checkpoint URI --job NAMESPACE/NAME --repository URI --name NAME "
    "[--query NAME… | --as NAME] [--parent continued|latest|none|NAME|ID] [--revision R] "
    "[--trigger T] [--tag T]… [--spark-version V] [--endpoint-url URL] [--source-endpoint-url URL]"
)
_TRIGGER = "adopt"


@dataclass(frozen=True, slots=True, kw_only=True)
class Adoption:
    """What the command line asks for."""

    checkpoint: str
    checkpoint_endpoint: str | None
    repository: str
    repository_endpoint: str | None
    namespace: str
    job: str
    name: str
    queries: tuple[str, ...]
    """Their folders, made of their names; all that are found if empty."""
    single: bool
    """The name is that of the only query, and chooses none of several."""
    parent: str
    revision: str | None
    trigger: str
    tags: tuple[str, ...]
    spark_version: str | None
    """Unknown by default: it was another job's."""


def read(given: Given) -> Callable[[Telling], Answer]:
    """What the command line asks for."""
    namespace, job = given.job()
    endpoint = given.endpoint()
    queries, name = given.many("--query"), given.optional("--as")
    if queries and name:
        given.refuse("--as and --query exclude each other: --as names the only query")
    adoption = Adoption(
        checkpoint=given.place("--checkpoint"),
        checkpoint_endpoint=given.optional("--source-endpoint-url") or endpoint,
        repository=given.place("--repository"),
        repository_endpoint=endpoint,
        namespace=namespace,
        job=job,
        name=given.name("--name"),
        queries=tuple(map(folder_of_name, (name,) if name else queries)),
        single=name is not None,
        parent=given.optional("--parent") or NONE,
        revision=given.optional("--revision"),
        trigger=given.optional("--trigger") or _TRIGGER,
        tags=given.names("--tag"),
        spark_version=given.optional("--spark-version"),
    )
    return partial(take, adoption)


def take(adoption: Adoption, telling: Telling) -> Answer:
    """The savepoint, made now or before."""
    source = open_store(adoption.checkpoint, adoption.checkpoint_endpoint)
    store = open_store(adoption.repository, adoption.repository_endpoint)
    path = manifest_path(adoption.namespace, adoption.job, adoption.name)
    made = read_if_present(store, path)
    if made is not None:
        return _made(adoption, source, made, Repository.open(store))
    survey = look_at(source)
    chosen = _chosen(adoption, source, survey)
    # Of a query that never began a batch there is nothing to take.
    begun = tuple(name for name in chosen if survey.queries[name] is not Stage.NEW)
    if not any(survey.queries[name] is Stage.COMMITTED for name in begun):
        return Answer(
            answer="NothingCommitted",
            message=f"No batch was ever committed in {source.uri}: there is no state to adopt.",
        )
    repository = Repository.init(store)
    for note in repository.notes:
        telling.note(note)
    try:
        made = repository.capture(source, _request(adoption, begun), progress=telling).savepoint
    except NameTakenError as error:
        if error.existing is None:
            raise
        made = error.existing
    left_out = tuple(name for name in chosen if name not in begun)
    return _made(adoption, source, made, repository, left_out=left_out)


def _chosen(adoption: Adoption, source: Store, survey: Survey) -> tuple[str, ...]:
    """Which folders are meant; NoQueryError if there is none, or not the one that was asked for."""
    if not survey.queries:
        raise NoQueryError(
            f"{source.uri} holds no checkpoint of a streaming query: neither offsets/ and metadata "
            "there, nor folders with them one level below. Check the path."
        )
    if survey.is_single:
        if len(adoption.queries) != 1:
            raise NoQueryError(
                f"{source.uri} is the checkpoint of a single query. Say how the new job calls it "
                "(--as; spec.checkpoint.adoptAs of a job), or give the directory above it."
            )
        return ("",)
    if adoption.single:
        raise NoQueryError(
            f"{source.uri} holds a folder per query ({', '.join(survey.queries)}), and each keeps "
            "its name. Leave out the new one (--as; spec.checkpoint.adoptAs of a job), or give the "
            "folder of one query."
        )
    unknown = sorted(set(adoption.queries) - set(survey.queries))
    if unknown:
        names = ", ".join(survey.queries)
        raise NoQueryError(f"{source.uri} has no query {unknown[0]!r}; it has {names}.")
    return adoption.queries or tuple(survey.queries)


def _request(adoption: Adoption, chosen: tuple[str, ...]) -> CaptureRequest:
    return CaptureRequest(
        namespace=adoption.namespace,
        job=adoption.job,
        name=adoption.name,
        parent=adoption.parent,
        queries=chosen,
        root_query=adoption.queries[0] if chosen == ("",) else "",
        tags=adoption.tags,
        revision=adoption.revision,
        spark_version=adoption.spark_version,
        trigger=adoption.trigger,
    )


def _made(
    adoption: Adoption,
    source: Store,
    made: Savepoint,
    repository: Repository,
    *,
    left_out: tuple[str, ...] = (),
) -> Answer:
    """The answer; NameTakenError if it is not what this command would make."""
    manifest = made.manifest
    same = (
        (manifest.source.uri, source.uri, "checkpoint"),
        (manifest.revision, adoption.revision, "revision"),
        (manifest.trigger, adoption.trigger, "trigger"),
    )
    for was, wanted, what in (*same, *_other_queries(adoption, manifest)):
        if was != wanted:
            raise NameTakenError(
                f"{repository.store.uri}/{made.path} exists already, of {what} {was}; this one is "
                f"of {wanted}. Choose another name, or delete that savepoint.",
                made,
            )
    repository.tag(made, adoption.tags)
    return Answer(
        answer="Captured",
        message=f"{made.key} is in the repository.",
        savepoint=summarize(made, repository.store.uri, left_out=left_out),
        details=detail(manifest),
    )


def _other_queries(adoption: Adoption, manifest: Manifest) -> list[tuple[str, str, str]]:
    """Queries that were not asked for; some that were may have had nothing to take."""
    held, wanted = {query.prefix for query in manifest.queries}, set(adoption.queries)
    if not wanted or held <= wanted:
        return []
    return [(", ".join(sorted(held)), ", ".join(sorted(wanted)), "query")]
