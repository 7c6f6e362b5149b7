"""`verify`: whether a savepoint can be restored: every byte is read, and deep, Spark loads it."""

from collections.abc import Callable
from functools import partial

from sparkpoint.runtime.summaries import summarize
from sparkpoint.savepoint import Repository, Savepoint
from sparkpoint.savepoint.errors import DamagedError, NoSuchSavepointError
from sparkpoint.storage import open_store
from sparkpoint.worker.deep import load_state
from sparkpoint.worker.given import Given
from sparkpoint.worker.model import Answer
from sparkpoint.worker.summary import detail
from sparkpoint.worker.tasks.inspect import Wanted, find, read_wanted
from sparkpoint.worker.telling import Telling

__all__ = ["USAGE", "read", "verify", "verify_deep"]

USAGE = (
    "--repository URI --job NAMESPACE/NAME (--name NAME | --id DIGEST) [--deep] "
    "[--endpoint-url URL]"
)


def read(given: Given) -> Callable[[Telling], Answer]:
    """What the command line asks for."""
    wanted = read_wanted(given)
    return partial(verify_deep if given.flag("--deep") else verify, wanted)


def verify(wanted: Wanted, telling: Telling) -> Answer:
    """Check the content: objects, digests, and whether the files are all that the batch needs."""
    repository = Repository.open(open_store(wanted.repository, wanted.endpoint_url))
    try:
        savepoint = find(repository, wanted)
    except DamagedError as error:
        return Answer(answer="Corrupt", message=str(error), problems=(str(error),))
    return _verify_content(repository, savepoint, telling)


def verify_deep(wanted: Wanted, telling: Telling) -> Answer:
    """The same, and let Spark load all state from a copy."""
    content = verify(wanted, telling)
    if content.answer != "Verified":
        return content
    repository = Repository.open(open_store(wanted.repository, wanted.endpoint_url))
    savepoint = find(repository, wanted)
    loaded = load_state(repository, savepoint, telling)
    details = detail(savepoint.manifest, rows=loaded.rows)
    if loaded.broken:
        return _corrupt(content, savepoint, loaded.broken)
    if loaded.unread:
        return content.model_copy(
            update={
                "answer": "Unknown",
                "message": f"{savepoint.key}: its content is right, but this Spark cannot read all "
                f"of its state back: {loaded.unread[0]}",
                "problems": loaded.unread,
                "details": details,
            }
        )
    message = f"{savepoint.key}: Spark has loaded {sum(loaded.rows.values())} rows of state."
    return content.model_copy(update={"message": message, "details": details})


def _verify_content(repository: Repository, savepoint: Savepoint, telling: Telling) -> Answer:
    checked = repository.verify([savepoint], progress=telling)
    if not checked:
        raise NoSuchSavepointError(f"{savepoint.key} was deleted while it was verified.")
    answer = Answer(
        answer="Verified",
        message=f"{savepoint.key}: {checked[0].files} files, {checked[0].bytes} bytes are right.",
        savepoint=summarize(savepoint, repository.store.uri),
        details=detail(savepoint.manifest),
    )
    return _corrupt(answer, savepoint, checked[0].problems) if checked[0].problems else answer


def _corrupt(answer: Answer, savepoint: Savepoint, problems: tuple[str, ...]) -> Answer:
    more = f" and {len(problems) - 1} more" if len(problems) > 1 else ""
    message = f"{savepoint.key} cannot be restored: {problems[0]}{more}"
    return answer.model_copy(update={"answer": "Corrupt", "message": message, "problems": problems})
