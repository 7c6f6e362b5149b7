"""`rehearse`: whether a revision of the code can go on from a savepoint, tried on a copy of it.

The runtime does it, in a driver of its own with a local master, behind a gate that nobody opens.
What cannot be found out is `Unknown`, and no failure: the operator decides what that is worth.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from sparkpoint.checkpoint.errors import CheckpointError
from sparkpoint.runtime.model import (
    EndReason,
    ErrorInfo,
    Hindrance,
    RehearsalInfo,
    RehearsedQuery,
    Termination,
)
from sparkpoint.runtime.orders import Order
from sparkpoint.savepoint import Repository, Savepoint
from sparkpoint.savepoint.errors import NoQueryError, SavepointError
from sparkpoint.state.errors import StateError
from sparkpoint.state.preflight import preflight
from sparkpoint.storage import open_store
from sparkpoint.storage.errors import StorageError
from sparkpoint.worker.given import Given
from sparkpoint.worker.model import Answer, Word
from sparkpoint.worker.tasks.borrowing import borrowed
from sparkpoint.worker.tasks.capture import installed_spark, order_of
from sparkpoint.worker.telling import Telling

__all__ = ["USAGE", "Trial", "called", "ended", "judged", "read"]

USAGE = (
    "--savepoint NAME|ID --repository URI --job NAMESPACE/NAME [--epoch-dir URI --epoch N "
    "[--source-endpoint-url URL]] [--deadline SECONDS] [--master local[N]] [--conf KEY=VALUE]… "
    "[--scratch PATH] [--functions] [--single] [--replay] [--endpoint-url URL] -- script.py "
    "[argument…]"
)
_DEADLINE = 600
_MASTER = "local[1]"
_WORDS: dict[str, Word] = {
    "compatible": "Compatible",
    "incompatible": "Incompatible",
    "unknown": "Unknown",
}
_KINDS: dict[Hindrance, str] = {"savepoint": "SavepointUnreadable", "script": "ScriptRaises"}
"""What is certain although there is no verdict: it will be the same when the job has stopped."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """What the command line asks for."""

    savepoint: str
    repository: str
    endpoint_url: str | None
    job: str
    deadline: int
    master: str
    conf: tuple[str, ...]
    scratch: Path | None
    """Where the copy is put; the usual place for temporary files if None."""
    functions: bool
    """Whether functions that are sinks are called, with rows that will come again."""
    command: tuple[str, ...]
    """The script and its arguments."""
    single: bool = False
    """Whether the savepoint may be of a single query's checkpoint, without a folder. No driver
    begins from such a one: this is for whoever only asks about the code."""
    replay: bool = False
    """Whether the last batch is done again, and what comes of it compared."""
    keep: str | None = None
    """A repository for what the trial has made."""
    order: Order | None = None
    """The savepoint is not there yet: how it is to be taken. It goes when there is a verdict."""


def read(given: Given) -> Callable[[Telling], Answer]:
    """What the command line asks for."""
    master = given.optional("--master") or _MASTER
    if not master.startswith("local"):
        given.refuse(f"--master is {master!r}: a rehearsal runs in this pod, give local[N]")
    conf = given.many("--conf")
    for each in conf:
        if not each.startswith("spark.") or "=" not in each:
            given.refuse(f"--conf is {each[:200]!r}: give spark.key=value")
    command = given.rest()
    if not command:
        given.refuse("there is no script: write `-- script.py` at the end")
    trial = Trial(
        savepoint=given.text("--savepoint"),
        repository=given.place("--repository"),
        endpoint_url=given.endpoint(),
        job="/".join(given.job()),
        deadline=given.optional_number("--deadline", _DEADLINE),
        master=master,
        conf=conf,
        scratch=given.path("--scratch") if given.has("--scratch") else None,
        functions=given.flag("--functions"),
        single=given.flag("--single"),
        replay=given.flag("--replay"),
        command=command,
        order=order_of(given, given.name("--savepoint")) if given.has("--epoch-dir") else None,
    )
    return partial(_rehearse, trial)


def _rehearse(trial: Trial, telling: Telling) -> Answer:
    if trial.order is None:
        return _verdict(trial, telling)
    with borrowed(trial.order, telling) as captured:
        if captured.savepoint is None:
            return captured.model_copy(update={"answer": "Unknown"})
        return _verdict(trial, telling)


def _verdict(trial: Trial, telling: Telling) -> Answer:
    if (refusal := _told_by_files(trial, installed_spark())) is not None:
        return refusal
    # Late: no other task needs the agent's client and its libraries.
    from sparkpoint.worker.trial import perform

    match perform(trial, telling):
        case RehearsalInfo() as info:
            answer = judged(info)
        case last:
            return ended(last)
    return _replayed(trial, answer, telling) if trial.replay else answer


def _replayed(trial: Trial, answer: Answer, telling: Telling) -> Answer:
    """The same with what the last batch shows, if nothing is wrong so far."""
    from sparkpoint.worker.replay import compare, weighed
    from sparkpoint.worker.trial import perform

    if answer.answer != "Compatible":
        return answer
    repository, savepoint = _savepoint_of(trial)
    found = compare(repository, savepoint, trial, perform, telling=telling)
    return weighed(answer, found)


def _savepoint_of(trial: Trial) -> tuple[Repository, Savepoint]:
    namespace, _, job = trial.job.partition("/")
    repository = Repository.open(open_store(trial.repository, trial.endpoint_url))
    return repository, repository.find(trial.savepoint, namespace=namespace, job=job)


def _told_by_files(trial: Trial, spark_version: str | None) -> Answer | None:
    """What is certain without a trial; some of it Spark would do wrongly without an error."""
    try:
        repository, savepoint = _savepoint_of(trial)
        if not trial.single and (refusal := _nowhere(savepoint)) is not None:
            return refusal
        found = preflight(repository, savepoint, spark_version=spark_version, conf={})
    except (SavepointError, StorageError, CheckpointError, StateError):
        return None  # the driver says what cannot be read, and whether that may pass
    problems = tuple(
        f"query {called(each.query)}: {each.message} {each.remedy}"
        for each in found
        if each.is_obstacle
    )
    if not problems:
        return None
    message = f"Savepoint {savepoint.key}: {problems[0]}"
    return Answer(answer="Incompatible", message=message, problems=problems)


def _nowhere(savepoint: Savepoint) -> Answer | None:
    """What the driver would say when the job has stopped: it is the same for any code."""
    # Late: no other task needs it.
    from sparkpoint.runtime.restoring import check_folders

    try:
        check_folders(savepoint)
    except NoQueryError as error:
        kind, message = _KINDS["savepoint"], str(error)
        return Answer(answer="Incompatible", kind=kind, message=message, problems=(message,))
    return None


def judged(info: RehearsalInfo) -> Answer:
    """The verdict of a rehearsal that came to one."""
    queries = info.queries.items()
    bad = [_problem(name, query) for name, query in queries if query.verdict != "compatible"]
    problems = tuple([_words(info.error)] if info.error else []) + tuple(bad)
    notes = [f"{name}: {query.note}" for name, query in queries if query.note]
    answer = _WORDS[info.verdict or "unknown"]
    said = problems[0] if problems else f"{len(info.queries)} queries have made a batch of it."
    if info.hindrance == "script":
        said = f"The script fails before its first query: {said}"
    return Answer(
        answer=answer,
        kind=_KINDS[info.hindrance] if info.hindrance is not None else None,
        message=" ".join([f"Savepoint {info.savepoint}: {said}", *notes]),
        retry_helps=answer == "Unknown" and _may_be_known(info),
        problems=problems,
    )


def _may_be_known(info: RehearsalInfo) -> bool:
    """Whether another try may come to a verdict: nothing of what is in the way stays."""
    errors = [query.error for query in info.queries.values() if query.verdict != "compatible"]
    if info.error is not None:
        errors.append(info.error)
    return bool(errors) and all(each is not None and each.retry_helps for each in errors)


def ended(last: Termination | None) -> Answer:
    """What to say of a driver that has ended before there was a verdict."""
    if last is None:
        message = (
            "The driver of the rehearsal ended without a word, or did not come to an end in time. "
            "Its log is above; if it ran out of memory, give the driver more."
        )
        return Answer(answer="Unknown", message=message, retry_helps=True)
    message = f"The driver of the rehearsal ended before its verdict: {last.message}"
    kind = _KINDS[last.hindrance] if last.hindrance is not None else last.reason.value
    return Answer(answer="Unknown", message=message, kind=kind, retry_helps=_may_pass(last))


def _may_pass(last: Termination) -> bool:
    """Whether it ended for something else than what is tried."""
    told = last.error is not None and last.error.retry_helps
    return told or last.reason is EndReason.TERMINATED


def _problem(name: str, query: RehearsedQuery) -> str:
    said = _words(query.error) if query.error else "no verdict."
    return f"query {called(name)}: {said}"


def called(folder: str) -> str:
    """A savepoint of a single query's checkpoint has no folder to call it by."""
    return folder or "(the only one)"


def _words(error: ErrorInfo) -> str:
    where = f" ({error.where})" if error.where else ""
    remedy = f" {error.remedy}" if error.remedy else ""
    return f"{error.type}: {error.message}{where}{remedy}"
