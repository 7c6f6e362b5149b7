"""`capture`: a savepoint of all queries below an epoch directory that no driver of ours writes.

A driver on a lost node may still write there, so this is the live capture of the agent, by the very
same code: the same request is the same savepoint, whichever of the two has made it.
"""

from collections.abc import Callable
from functools import partial
from importlib import metadata

from sparkpoint.runtime.capturing import Capture, Reporter
from sparkpoint.runtime.model import SavepointSummary
from sparkpoint.runtime.orders import Order
from sparkpoint.runtime.summaries import summarize
from sparkpoint.savepoint import Repository, Savepoint
from sparkpoint.savepoint.capture import CONTINUED
from sparkpoint.savepoint.catalogue import read_if_present
from sparkpoint.savepoint.errors import NoQueryError
from sparkpoint.savepoint.names import manifest_path
from sparkpoint.storage import Store, open_store
from sparkpoint.worker.given import Given
from sparkpoint.worker.model import Answer
from sparkpoint.worker.summary import detail
from sparkpoint.worker.survey import Survey, look_at
from sparkpoint.worker.telling import Telling

__all__ = ["USAGE", "installed_spark", "order_of", "read", "take"]

USAGE = (
    "--epoch-dir URI --job NAMESPACE/NAME --epoch N --repository URI --name NAME "
    "[--parent continued|latest|none|NAME|ID] [--revision R] [--trigger T] [--tag T]… "
    "[--spark-version V] [--endpoint-url URL] [--source-endpoint-url URL]"
)


def read(given: Given) -> Callable[[Telling], Answer]:
    """What the command line asks for."""
    return partial(take, order_of(given, given.name("--name")))


def order_of(given: Given, name: str) -> Order:
    """A savepoint of this name of the directory that the command line names."""
    namespace, job = given.job()
    endpoint = given.endpoint()
    return Order(
        namespace=namespace,
        job=job,
        name=name,
        epoch=str(given.number("--epoch")),
        source=given.place("--epoch-dir"),
        source_endpoint=given.optional("--source-endpoint-url") or endpoint,
        repository=given.place("--repository"),
        repository_endpoint=endpoint,
        parent=given.optional("--parent") or CONTINUED,
        tags=given.names("--tag"),
        revision=given.optional("--revision"),
        trigger=given.optional("--trigger"),
        spark_version=given.optional("--spark-version") or installed_spark(),
        stops=False,
    )


def installed_spark() -> str | None:
    """The Spark of this image, which is the job's own."""
    try:
        return metadata.version("pyspark")
    except metadata.PackageNotFoundError:
        return None


def take(order: Order, telling: Telling) -> Answer:
    """The savepoint that was asked for, made now or before."""
    # Looked for first: once it is made, it counts no longer what has become of the directory.
    repository = open_store(order.repository, order.repository_endpoint)
    made = read_if_present(repository, manifest_path(order.namespace, order.job, order.name))
    if made is not None:
        return _made_before(order, made)
    source = open_store(order.source, order.source_endpoint)
    survey = look_at(source)
    if survey.is_single:
        raise NoQueryError(
            f"{source.uri} is the checkpoint of a single query, and not an epoch directory with a "
            "folder per query. Give the directory above it; `adopt` takes a single one."
        )
    if not survey.has_commits:
        return _nothing(source, survey)
    # As the store writes it: people and Spark have several spellings for a place.
    capture = Capture(order.model_copy(update={"source": source.uri}))
    capture.prepare()
    checkpoints = {name: f"{source.uri}/{name}" for name in survey.queries}
    return _captured(repository, capture.take(checkpoints, Reporter(telling.heard)), order)


def _made_before(order: Order, made: Savepoint) -> Answer:
    Capture(order).prepare()
    repository = Repository.open(open_store(order.repository, order.repository_endpoint))
    repository.tag(made, order.tags)
    return Answer(
        answer="Captured",
        message=f"{made.key} was made before.",
        savepoint=summarize(made, repository.store.uri),
        details=detail(made.manifest),
    )


def _nothing(source: Store, survey: Survey) -> Answer:
    held = ", ".join(survey.queries) or "no query"
    return Answer(
        answer="NothingCommitted",
        message=f"No batch was ever committed in {source.uri}, which holds {held}: there is no "
        "state to capture.",
    )


def _captured(repository: Store, summary: SavepointSummary, order: Order) -> Answer:
    path = manifest_path(order.namespace, order.job, order.name)
    found = read_if_present(repository, path)
    # Somebody may have deleted it since, which is none of our business.
    known = found if found is not None and found.id == summary.id else None
    return Answer(
        answer="Captured",
        message=f"{order.namespace}/{order.job}/{order.name} is in the repository.",
        savepoint=summary,
        details=detail(known.manifest) if known else None,
    )
