"""What the end of a driver means: its exit code and its last word. Pure."""

from dataclasses import dataclass
from typing import assert_never

from sparkpoint.runtime.exits import Exit
from sparkpoint.runtime.model import (
    EndReason,
    ErrorInfo,
    Hindrance,
    RehearsalInfo,
    StopReport,
    Termination,
)
from sparkpoint.runtime.options import FailurePolicy
from sparkpoint.runtime.script import ScriptEnd

__all__ = [
    "Cause",
    "Ending",
    "conclude",
    "incompatible",
    "query_failed",
    "refusal",
    "script_cause",
]


@dataclass(frozen=True, slots=True)
class Cause:
    """Why the driver ends: the first that came."""

    reason: EndReason
    message: str
    operation: str | None = None
    error: ErrorInfo | None = None

    @property
    def is_script(self) -> bool:
        """Whether the script came to its end by itself."""
        return self.reason in (EndReason.SCRIPT_ENDED, EndReason.SCRIPT_FAILED)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """All that is known at the end."""

    epoch: int
    cause: Cause
    report: StopReport
    script: ScriptEnd | None
    """None: it still runs."""
    made_session: bool
    on_query_failure: FailurePolicy = "fail"
    savepoint: str | None = None
    hindrance: Hindrance | None = None
    """Of the rehearsal."""


def conclude(ending: Ending) -> Termination:
    """The last word."""
    cause = _verdict(ending)
    return Termination(
        reason=cause.reason,
        message=cause.message,
        exit_code=_exit_code(cause.reason, ending),
        clean=ending.report.clean,
        epoch=ending.epoch,
        operation=cause.operation,
        savepoint=ending.savepoint,
        queries=ending.report.queries,
        error=cause.error,
        hindrance=ending.hindrance,
    )


def refusal(reason: EndReason, message: str, *, exit_code: Exit, epoch: int) -> Termination:
    """The last word of a driver that did not get as far as the script."""
    return Termination(reason=reason, message=message, exit_code=exit_code, clean=True, epoch=epoch)


def incompatible(rehearsal: RehearsalInfo) -> Cause:
    """Why a driver does not start whose rehearsal went badly."""
    queries = rehearsal.queries.items()
    name, error = next((n, q.error) for n, q in queries if q.verdict == "incompatible")
    said = f" {error.type}: {error.message}" if error else ""
    message = f"The script cannot go on from savepoint {rehearsal.savepoint}: query {name!r}:{said}"
    return Cause(EndReason.INCOMPATIBLE, message, error=error)


def _verdict(ending: Ending) -> Cause:
    """The first cause, unless a dead query hides behind a script that ended."""
    cause = ending.cause
    failed = _first_failure(ending.report)
    if cause.is_script and failed is not None and ending.on_query_failure == "fail":
        name, error = failed
        return Cause(EndReason.QUERY_FAILED, query_failed(name, error), error=error)
    if cause.is_script and not ending.report.queries:
        return _without_query(cause, ending)
    return cause


def query_failed(name: str, error: ErrorInfo) -> str:
    """The sentence about a dead query."""
    where = f" at {error.where}" if error.where else ""
    return f"Query {name!r} died{where}: {error.type}: {error.message}"


def _first_failure(report: StopReport) -> tuple[str, ErrorInfo] | None:
    failures = ((name, end.error) for name, end in report.queries.items())
    return next(((name, error) for name, error in failures if error is not None), None)


def _without_query(cause: Cause, ending: Ending) -> Cause:
    lacking = "no query was started" if ending.made_session else "no Spark session was made"
    return Cause(cause.reason, f"{cause.message} ({lacking})", error=cause.error)


def _exit_code(reason: EndReason, ending: Ending) -> int:
    of_script = ending.script.code if ending.script else Exit.OK
    match reason:
        case EndReason.SCRIPT_ENDED | EndReason.SCRIPT_FAILED:
            return of_script
        case EndReason.QUERY_FAILED:
            return of_script or Exit.QUERY_FAILED
        case EndReason.STOPPED | EndReason.TERMINATED:
            return Exit.OK if ending.report.clean else Exit.UNCLEAN
        case EndReason.GATE_NOT_OPENED | EndReason.EPOCH_OVER:
            return Exit.NOT_ADMITTED
        case EndReason.INCOMPATIBLE:
            return Exit.INCOMPATIBLE
        case EndReason.REFUSED:
            return Exit.REFUSED
        case EndReason.INTERNAL:
            return Exit.INTERNAL
    assert_never(reason)


def script_cause(end: ScriptEnd) -> Cause:
    """What the end of the script means if nothing else came before."""
    if end.error is None:
        return Cause(EndReason.SCRIPT_ENDED, "The script ended.")
    error = end.error
    if error.type in ("SystemExit", "ScriptMissing"):
        return Cause(EndReason.SCRIPT_FAILED, error.message, error=error)
    where = f" at {error.where}" if error.where else ""
    message = f"The script failed{where}: {error.type}: {error.message}"
    return Cause(EndReason.SCRIPT_FAILED, message, error=error)
