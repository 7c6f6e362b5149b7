"""`local status`, `savepoint` and `stop`: what the agent of a local run is asked for."""

import uuid
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeVar

from sparkpoint.cli.answer import Answer, Settings
from sparkpoint.cli.exits import Exit
from sparkpoint.cli.progress import Counter, shown_progress
from sparkpoint.cli.work import localtext
from sparkpoint.cli.work.localerrors import AgentFailedError
from sparkpoint.cli.work.localhome import find_home
from sparkpoint.cli.work.localreach import (
    AgentUnreachableError,
    Run,
    await_end,
    last_word,
    reached,
    termination,
)
from sparkpoint.cli.work.places import open_repository
from sparkpoint.runtime.model import (
    ErrorInfo,
    OperationState,
    SavepointOperation,
    SavepointRequest,
    SavepointSummary,
    StopOperation,
    StopReport,
    StopRequest,
)
from sparkpoint.runtime.summaries import summarize
from sparkpoint.savepoint.names import check_name
from sparkpoint.savepoint.progress import Amount

__all__ = ["make_savepoint", "show_status", "stop_run"]

_LOOK = 0.3
"""Seconds between two looks, each of which ends early if there is something to see."""

AnyOperation = TypeVar("AnyOperation", SavepointOperation, StopOperation)


def show_status(given: Path | None) -> Answer:
    """How the queries are doing."""
    home = find_home(given)
    with reached(home) as run:
        progress = run.client.progress()
    notes = [f"Query {q.name} died: {q.error.message}" for q in progress.queries if q.error]
    return Answer(
        document=localtext.status_document(home, run.note, progress),
        text=localtext.status_text(run.note, progress, datetime.now(UTC)),
        notes=tuple(notes),
    )


def make_savepoint(
    settings: Settings, given: Path | None, *, name: str | None, tags: tuple[str, ...]
) -> Answer:
    """A savepoint of all queries while they run."""
    home = find_home(given)
    name = check_name(name or _new_name(), "savepoint")
    with reached(home) as run, shown_progress(settings) as bar:
        made = _capture(run, name, tags, bar)
    notes = [f"Query {query} has not begun yet and is not in it." for query in made.left_out]
    return Answer(
        document=localtext.savepoint_document(home, run.note, made),
        text=localtext.savepoint_text(run.note, made),
        notes=tuple(notes),
    )


def stop_run(settings: Settings, given: Path | None, *, savepoint: str | None) -> Answer:
    """Stop at a boundary, with a savepoint there if one is wanted, and wait for the end."""
    home = find_home(given)
    if savepoint is not None:
        check_name(savepoint, "savepoint")
    with reached(home) as run, shown_progress(settings) as bar:
        report, made = _stop(run, savepoint, bar)
    ended = await_end(home)
    notes = () if ended else (f"Process {run.note.pid} still runs: it is ending Spark.",)
    alarm = "" if report.clean else _unclean(report)
    return Answer(
        document=localtext.stop_document(home, run.note, report.queries, report.seconds, made),
        text=localtext.stop_text(run.note, report.queries, report.seconds, made),
        notes=notes,
        alarm=alarm,
        exit=Exit.OK if report.clean else Exit.FAILED,
    )


def _new_name() -> str:
    return f"{datetime.now(UTC):%Y%m%dt%H%M%S}-{uuid.uuid4().hex[:6]}"


def _capture(run: Run, name: str, tags: tuple[str, ...], bar: Counter) -> SavepointSummary:
    asked = datetime.now(UTC)
    request = _request(run, tags)
    found = _followed(
        run.client.savepoint(name, request, wait=_LOOK),
        lambda: run.client.get_savepoint(name, wait=_LOOK),
        lambda operation: _show(bar, operation),
    )
    if found.error is not None:
        raise _failure(found.error)
    made = _result(found)
    # The agent answers a request that it has fulfilled before with what it made then: right for
    # programs, but a person who asks again means now.
    if made.created is not None and made.created < asked:
        raise AgentFailedError(
            f"Savepoint {name} exists already, made at {made.created:%H:%M:%S} UTC. Choose another "
            "name, or none.",
            kind="NameTaken",
        )
    return made


def _stop(
    run: Run, savepoint: str | None, bar: Counter
) -> tuple[StopReport, SavepointSummary | None]:
    name = f"local-{uuid.uuid4().hex[:8]}"
    request = StopRequest()
    if savepoint is not None:
        request = StopRequest(savepoint_name=savepoint, savepoint=_request(run, ()))
    try:
        found = _followed(
            run.client.stop(name, request, wait=_LOOK),
            lambda: run.client.get_stop(name, wait=_LOOK),
            lambda operation: _show(bar, operation.savepoint),
        )
    except AgentUnreachableError:
        return _told(run, name, savepoint)
    if found.error is not None:
        raise _stop_failure(found, found.error)
    if found.report is None:
        raise AgentFailedError("The agent stopped the run and did not say how it went.")
    return found.report, _result(found.savepoint) if found.savepoint else None


def _told(
    run: Run, operation: str, savepoint: str | None
) -> tuple[StopReport, SavepointSummary | None]:
    """The run ended before it could answer: what it wrote down on its way."""
    await_end(run.home)
    word = termination(run.home)
    if word is None or word.operation != operation or word.savepoint != savepoint:
        raise AgentFailedError(
            f"The run ended before it answered. {last_word(run.home)} Look at what it has printed."
        )
    report = StopReport(clean=word.clean, queries=word.queries, seconds=0)
    return report, None if savepoint is None else _found(run, savepoint)


def _found(run: Run, name: str) -> SavepointSummary:
    """A savepoint as the repository knows it."""
    place = Settings(endpoint_url=run.note.endpoint_url)
    found = open_repository(place, run.note.repository).find(f"{run.note.job}/{name}")
    return summarize(found, None)


def _followed(
    found: AnyOperation, look: Callable[[], AnyOperation], show: Callable[[AnyOperation], None]
) -> AnyOperation:
    while found.state is OperationState.RUNNING:
        show(found)
        found = look()
    return found


def _show(bar: Counter, operation: SavepointOperation | None) -> None:
    if operation is None or operation.total_bytes == 0:
        return  # queued, or looking around: there is nothing to measure yet
    if (bar.what, bar.total_bytes) != (operation.stage, operation.total_bytes):
        bar.start(operation.stage, Amount(0, operation.total_bytes))
    bar.advance(Amount(0, operation.done_bytes - bar.bytes))


def _request(run: Run, tags: tuple[str, ...]) -> SavepointRequest:
    return SavepointRequest(
        repository=run.note.repository,
        endpoint_url=run.note.endpoint_url,
        tags=tags,
        trigger="local",
    )


def _result(found: SavepointOperation) -> SavepointSummary:
    if found.result is None:
        raise AgentFailedError(
            f"The agent made savepoint {found.name} and did not say what is in it."
        )
    return found.result


def _failure(error: ErrorInfo) -> AgentFailedError:
    return AgentFailedError(error.message, kind=error.type, retry_helps=error.retry_helps)


def _stop_failure(found: StopOperation, error: ErrorInfo) -> AgentFailedError:
    what = (
        "The job runs on."
        if found.report is None
        else "The job stands at its boundary and waits: run the same command again, or "
        "`sparkpoint local stop` to end it without a savepoint."
    )
    message = f"{error.message} {what}"
    return AgentFailedError(message, kind=error.type, retry_helps=error.retry_helps)


def _unclean(report: StopReport) -> str:
    names = ", ".join(name for name, end in report.queries.items() if not end.clean)
    return (
        f"Not every query stands at a boundary ({names}): a batch took too long and was "
        "interrupted. Nothing is lost; the next run does it again."
    )
