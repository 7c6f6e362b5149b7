"""What the end of a rehearsed query means: a table from Spark's errors to a verdict. Pure.

`incompatible` is said only where Spark itself has refused the state or the offsets, or where the
query cannot process the rows of its batch; whatever may be the surroundings' fault is `unknown`.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from sparkpoint.runtime.model import ErrorInfo, RehearsedQuery, Verdict
from sparkpoint.runtime.tracebacks import last_words, place_in

__all__ = [
    "USER_CODE",
    "Thrown",
    "if_it_reads",
    "judge",
    "judge_refusal",
    "means_otherwise",
    "not_compared",
    "not_reached",
    "removed",
    "sources_changed",
    "topics_changed",
    "unreadable_offset",
    "weigh",
]

USER_CODE = "USER_CODE"
_LONGEST = 2000
_ANEW = "or give the query another name, under which it starts without state"


@dataclass(frozen=True, slots=True)
class Thrown:
    """One exception of a chain."""

    kind: str
    """Its class, without the package."""
    message: str
    condition: str | None = None
    """Spark's own name for it."""
    sql_state: str | None = None
    frames: tuple[str, ...] = ()
    """`Class.method`, innermost first."""


@dataclass(frozen=True, slots=True)
class _Rule:
    """The first rule that fits any exception of a chain decides."""

    verdict: Verdict
    remedy: str
    conditions: str = "(?!)"
    states: str = "(?!)"
    messages: str = "(?!)"
    frames: str = "(?!)"
    kind: str | None = None
    """What it is called, if not by Spark's condition."""

    def fits(self, thrown: Thrown) -> bool:
        return bool(
            re.fullmatch(self.conditions, thrown.condition or "")
            or re.match(self.states, thrown.sql_state or "")
            or re.search(self.messages, thrown.message)
            or (
                # What has a name is not known by where it comes from.
                thrown.condition is None
                and any(re.fullmatch(self.frames, frame) for frame in thrown.frames)
            )
        )


_RULES: tuple[_Rule, ...] = (
    _Rule(
        "incompatible",
        f"Leave keys and values of the stateful operator as they were, {_ANEW}.",
        r"STATE_STORE_(KEY|VALUE)_SCHEMA_NOT_COMPATIBLE"
        r"|STATE_STORE_INVALID_VALUE_SCHEMA_EVOLUTION"
        r"|STATE_STORE_(STATE_SCHEMA_FILES|VALUE_SCHEMA_EVOLUTION)_THRESHOLD_EXCEEDED"
        r"|STATE_STORE_COLUMN_FAMILY_SCHEMA_INCOMPATIBLE"
        r"|(STATE_STORE_|CANNOT_LOAD_STATE_STORE\.)(KEY|VALUE)_ROW_FORMAT_VALIDATION_FAILURE",
    ),
    _Rule(
        "incompatible",
        f"Leave the number, kind and order of stateful operators as they were, {_ANEW}.",
        r"STREAMING_STATEFUL_OPERATOR_(NOT_MATCH_IN_STATE_METADATA|MISSING_STATE_DIRECTORY)",
    ),
    _Rule(
        "incompatible",
        f"Set back what the message names, {_ANEW}.",
        r"STATE_STORE_INVALID_(VARIABLE_TYPE_CHANGE|CONFIG_AFTER_RESTART|PROVIDER)"
        r"|STREAM_STREAM_JOIN_INCOMPATIBLE_STATE_STORE_CONFIGS"
        r"|STATE_STORE_CHECKPOINT_IDS_NOT_SUPPORTED",
    ),
    _Rule(
        "incompatible",
        f"Leave number, kind, order and names of the sources as they were, {_ANEW}.",
        conditions=r"STREAMING_QUERY_EVOLUTION_ERROR(\..*)?",
    ),
    _Rule(
        "incompatible",
        f"Leave the number of sources as it was, {_ANEW}.",
        messages=r"There are \[\d+\] sources in the checkpoint offsets",
        kind="SOURCES_CHANGED",
    ),
    _Rule(
        "incompatible",
        f"Read from the same place as before, {_ANEW}.",
        messages=r"Wrong basePath ",
        kind="SOURCE_PATH_CHANGED",
    ),
    _Rule(
        "incompatible",
        "Run the job with a Spark that is at least as new as the one that wrote the savepoint.",
        messages=r"UnsupportedLogVersion|maximum supported log version is",
        kind="LOG_VERSION_NOT_SUPPORTED",
    ),
    _Rule(
        "unknown",
        "Give the executors more memory, or start again if nothing else ran there.",
        r"CANNOT_LOAD_STATE_STORE\.(.*_OUT_OF_MEMORY|UNRELEASED_THREAD_ERROR"
        r"|FAILED_TO_GET_CHANGELOG_WRITER)",
    ),
    _Rule(
        "unknown",
        "Look at what caused it: the state could not be loaded, maybe because its store is away.",
        r"CANNOT_LOAD_STATE_STORE\.UNCATEGORIZED",
    ),
    _Rule(
        "incompatible",
        # 4.0 numbers snapshots of state with unique ids otherwise than those after it.
        "Run the job with the line of Spark that wrote the savepoint.",
        r"CANNOT_LOAD_STATE_STORE\.CANNOT_READ_CHECKPOINT",
    ),
    _Rule(
        "incompatible",
        "Verify the savepoint with `sparkpoint savepoint verify`, and take another one if it is "
        "damaged.",
        r"CANNOT_LOAD_STATE_STORE(\..*)?"
        r"|STREAMING_CHECKPOINT_MISSING_METADATA_FILE"
        r"|STREAMING_UNFINISHED_REPARTITION_DETECTED"
        r"|STATE_STORE_ROW_CHECKSUM_VERIFICATION_FAILED"
        r"|CHECKPOINT_FILE_CHECKSUM_VERIFICATION_FAILED",
    ),
    _Rule(
        "unknown",
        "Look at the connector, which is Python code of its own, and at what it connects to.",
        r"PYTHON_(STREAMING_)?DATA_SOURCE_(RUNTIME_)?ERROR",
    ),
    _Rule(
        "incompatible",
        "Correct the function.",
        # Errors of external routines, as SQL calls functions in other languages.
        states=r"3[89]",
        messages=r"Traceback \(most recent call last\):",
        kind=USER_CODE,
    ),
    _Rule(
        "unknown",
        # Counted among errors of data by its state, and none of the code's.
        "The input of the batch is gone: look at the topic, or at the option failOnDataLoss.",
        r"KAFKA_DATA_LOSS(\..*)?",
    ),
    # 22: errors of data.
    _Rule("incompatible", "Change the expression so that it takes these rows.", states=r"22"),
    _Rule(
        "incompatible",
        f"Leave the kind of the source as it was, {_ANEW}.",
        frames=r".*Offset\$?\.apply|.*\.deserialize\w*",
        kind="SOURCE_KIND_CHANGED",
    ),
)

_UNFORESEEN = "If the cause may pass, start again; else look at the driver's log."


def judge(chain: Sequence[Thrown]) -> RehearsedQuery:
    """What it means that a query died of this; the outermost exception comes first."""
    for rule in _RULES:
        for thrown in chain:
            if rule.fits(thrown):
                return _found(rule, thrown)
    # The outermost says only that a query has failed.
    causes = chain[1:] or chain
    named = [thrown for thrown in causes if thrown.condition is not None]
    error = _error((named or causes)[-1], remedy=_UNFORESEEN, retry_helps=True)
    return RehearsedQuery(verdict="unknown", error=error)


def judge_refusal(kind: str, message: str, *, is_analysis: bool) -> RehearsedQuery:
    """What it means that Spark did not even start a query: it may not accept what is written."""
    # What is not there may be there later.
    final = is_analysis and not kind.endswith("_NOT_FOUND")
    remedy = "Change the query: Spark does not accept it." if final else _UNFORESEEN
    error = _error(Thrown(kind, message), remedy=remedy, retry_helps=not final)
    return RehearsedQuery(verdict="incompatible" if final else "unknown", error=error)


def unreadable_offset(chain: Sequence[Thrown]) -> RehearsedQuery:
    """A source that cannot read the offset which the savepoint has for it."""
    rule = next(rule for rule in _RULES if rule.kind == "SOURCE_KIND_CHANGED")
    return _found(rule, chain[0])


def if_it_reads(found: RehearsedQuery) -> RehearsedQuery:
    """What holds only if the last batch before the start has rows, and not for this savepoint."""
    told = found.error.message if found.error is not None else "nobody knows why"
    message = f"If the last batch before it begins has rows, it fails: {told}"
    error = found.error and found.error.model_copy(update={"message": message})
    return found.model_copy(update={"verdict": "unknown", "error": error})


def removed(folder: str) -> RehearsedQuery:
    """A query of the savepoint that the script starts no more."""
    named = f"a query {folder!r}, which the script does not start" if folder else ""
    error = ErrorInfo(
        type="QUERY_REMOVED",
        message=f"The savepoint has {named or 'a query, and the script starts none'}: its state "
        "would be left behind.",
        remedy="Start the query again under its old name, or restore a savepoint without it.",
    )
    return RehearsedQuery(verdict="incompatible", error=error)


def sources_changed(left: Sequence[str], rows: int) -> RehearsedQuery:
    """A query without a source that it had, by the name of it."""
    error = ErrorInfo(
        type="SOURCES_CHANGED",
        message=f"The savepoint has offsets of the source {', '.join(left)}, and the code has none "
        "of that name: Spark reads it no further, and whatever is new to it from its beginning, "
        "also what it has read under another name.",
        remedy=f"If it is left out for good, go on; else give it its name back, {_ANEW}.",
    )
    return RehearsedQuery(verdict="unknown", error=error, input_rows=rows)


def topics_changed(left: Sequence[str], rows: int) -> RehearsedQuery:
    """A query that reads other topics than its offsets are of."""
    error = ErrorInfo(
        type="SOURCE_TOPICS_CHANGED",
        message=f"The savepoint has offsets of {', '.join(left)}, and the code does not subscribe "
        "to it: its first batch with rows fails, or leaves that out with failOnDataLoss=false.",
        remedy=f"Subscribe to what was read before, too, {_ANEW}.",
    )
    return RehearsedQuery(verdict="unknown", error=error, input_rows=rows)


def means_otherwise(changes: Sequence[str], rows: int) -> RehearsedQuery:
    """A query that Spark runs, and whose state has other names than it had."""
    error = ErrorInfo(
        type="STATE_MEANS_OTHERWISE",
        message=f"Spark goes by types and takes the state, but {'; '.join(changes)}.",
        remedy=f"If these are only other names for the same, go on; else change it back, {_ANEW}.",
    )
    return RehearsedQuery(verdict="unknown", error=error, input_rows=rows)


def not_compared(why: str, rows: int, *, retry_helps: bool) -> RehearsedQuery:
    """A query that Spark runs, and of whose state nobody knows whether it means what it meant."""
    error = ErrorInfo(
        type="NAMES_NOT_COMPARED",
        message="Spark goes by types and takes the state, but what its columns and variables are "
        f"called could not be compared: {why}"[:_LONGEST],
        remedy=_UNFORESEEN,
        retry_helps=retry_helps,
    )
    return RehearsedQuery(verdict="unknown", error=error, input_rows=rows)


def not_reached(folder: str, why: str, *, retry_helps: bool) -> RehearsedQuery:
    """A query of the savepoint of which nobody knows whether the script would start it."""
    error = ErrorInfo(
        type="NOT_REACHED",
        message=f"Whether the script starts the query {folder!r} of the savepoint was not seen: "
        f"{why}",
        retry_helps=retry_helps,
    )
    return RehearsedQuery(verdict="unknown", error=error)


def weigh(verdicts: Iterable[Verdict | None]) -> Verdict:
    """The worst of all; nothing at all is nothing known."""
    found = set(verdicts)
    if "incompatible" in found:
        return "incompatible"
    return "compatible" if found == {"compatible"} else "unknown"


def _found(rule: _Rule, thrown: Thrown) -> RehearsedQuery:
    error = _error(thrown, remedy=rule.remedy, retry_helps=rule.verdict == "unknown")
    if rule.kind is not None:
        error = error.model_copy(update={"type": rule.kind})
    return RehearsedQuery(verdict=rule.verdict, error=error)


def _error(thrown: Thrown, *, remedy: str, retry_helps: bool) -> ErrorInfo:
    return ErrorInfo(
        type=thrown.condition or thrown.kind,
        message=_sentence(thrown.message) or thrown.kind,
        where=place_in(thrown.message),
        retry_helps=retry_helps,
        remedy=remedy,
    )


def _sentence(message: str) -> str:
    """Spark's message without the name before it and the state behind it."""
    text = re.sub(r"^\[[A-Z0-9_.]+\] ", "", last_words(message))
    return re.sub(r" SQLSTATE: [0-9A-Z]{5}.*", "", text, flags=re.DOTALL)[:_LONGEST]
