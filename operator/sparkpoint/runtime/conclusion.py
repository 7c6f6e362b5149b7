"""What a rehearsal has shown, once it is over. Pure."""

from collections.abc import Mapping, Set
from dataclasses import dataclass

from sparkpoint.runtime.model import ErrorInfo, Hindrance, RehearsalInfo, RehearsedQuery
from sparkpoint.runtime.script import ScriptEnd
from sparkpoint.runtime.verdict import not_reached, removed, weigh

__all__ = ["Course", "conclude"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Course:
    """How it went."""

    savepoint: str
    expected: Set[str]
    """Folders of the savepoint's queries; none if it could not be copied."""
    started: Set[str]
    """Folders of the queries that the script has started."""
    found: Mapping[str, RehearsedQuery]
    """What is known of these, by name."""
    script: ScriptEnd
    copy_error: ErrorInfo | None = None
    not_seen: str | None = None
    """Why the script may have had more to start."""
    cut_short: str | None = None
    """Why time was over, if it was."""
    is_called_off: bool = False
    """The driver was told to end."""


def conclude(course: Course) -> RehearsalInfo:
    """The verdict on every query, and the worst of them."""
    queries = {
        name: query if query.verdict else _undone(query, course)
        for name, query in course.found.items()
    }
    for folder in course.expected - course.started:
        queries[folder] = _missing(folder, course)
    error = course.copy_error or _of_script(course)
    if not course.expected and error is None:
        error = _cut_short(course, "The savepoint was not copied")
    return RehearsalInfo(
        savepoint=course.savepoint,
        state="done",
        verdict=weigh(query.verdict for query in queries.values()),
        error=error,
        hindrance=_hindrance(course),
        queries=dict(sorted(queries.items())),
    )


def _hindrance(course: Course) -> Hindrance | None:
    """What is beyond doubt; a script that was cut short may have failed for that."""
    error = course.copy_error
    # No space for the copy says nothing about the savepoint.
    if error is not None and error.type != "Full" and not course.is_called_off:
        return "savepoint"
    begun = bool(course.started or course.found)
    fails = course.script.error is not None and course.cut_short is None
    return "script" if fails and not begun else None


def _of_script(course: Course) -> ErrorInfo | None:
    """What the script died of: if time was over, or Spark gave up one of its queries for something
    that passes, maybe of that."""
    error = course.script.error
    if error is None:
        return None
    found = (query.error for query in course.found.values())
    passes = course.cut_short is not None or any(each and each.retry_helps for each in found)
    return error.model_copy(update={"retry_helps": error.retry_helps or passes})


def _missing(folder: str, course: Course) -> RehearsedQuery:
    error = _of_script(course)
    if error is not None:
        why = f"the script failed before: {error.type}: {error.message}"
        return not_reached(folder, why, retry_helps=error.retry_helps)
    if course.cut_short is not None:
        late = _cut_short(course, "the script was not done")
        return not_reached(folder, late.message, retry_helps=late.retry_helps)
    if course.not_seen is not None:
        return not_reached(folder, course.not_seen, retry_helps=False)
    return removed(folder)


def _undone(query: RehearsedQuery, course: Course) -> RehearsedQuery:
    """With rows it has made its batch, and waits for its sources."""
    waits = query.input_rows is not None
    what = "Its sources did not take their last batch" if waits else "Its batch was not done"
    error = _cut_short(course, what)
    return query.model_copy(update={"verdict": "unknown", "error": error})


def _cut_short(course: Course, what: str) -> ErrorInfo:
    message = f"{what} {course.cut_short or 'when it was over'}."
    if course.is_called_off:
        return ErrorInfo(type="CALLED_OFF", message=message, retry_helps=True)
    remedy = "Allow more time with --rehearsal-deadline."
    return ErrorInfo(type="DEADLINE", message=message, remedy=remedy, retry_helps=True)
