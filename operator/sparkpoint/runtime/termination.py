"""The last word of a driver: at most 4 KiB of JSON where the kubelet looks for it, and in the log.

/dev/termination-log is a file that the kubelet has mounted: it is written in place, for it cannot
be replaced by another.
"""

import contextlib
import os
import sys
from pathlib import Path

from sparkpoint.runtime.model import ErrorInfo, QueryEnd, Termination
from sparkpoint.runtime.redaction import Redaction

__all__ = [
    "LIMIT",
    "flush_streams",
    "redacted",
    "render",
    "say",
    "shorten",
    "write_termination",
]

LIMIT = 4096
"""What the kubelet reads, in bytes."""
_LENGTHS = (1200, 400, 120)
"""Of a message: the first that makes all of it fit."""
_QUERIES = (50, 20, 5, 0)


def render(termination: Termination) -> str:
    """JSON of at most LIMIT bytes: long messages lose their middle, then long lists their end."""
    text = termination.model_dump_json(exclude_defaults=True)
    for length in _LENGTHS:
        if len(text.encode()) <= LIMIT:
            return text
        termination = _with_messages(termination, length)
        text = termination.model_dump_json(exclude_defaults=True)
    for count in _QUERIES:
        if len(text.encode()) <= LIMIT:
            break
        shorter = _with_queries(termination, count)
        text = shorter.model_dump_json(exclude_defaults=True)
    return text


def redacted(termination: Termination) -> Termination:
    """Without the secrets of this process's environment: it ends in the status of the job."""
    content = Redaction.of(os.environ).document(termination.model_dump())
    return Termination.model_validate(content)


def shorten(text: str, length: int) -> str:
    """The text without its middle if it is longer: the end of a traceback says what happened."""
    if len(text) <= length:
        return text
    mark = " … "
    head = (length - len(mark)) // 2
    return text[:head] + mark + text[len(text) - (length - len(mark) - head) :]


def write_termination(termination: Termination, path: Path | None) -> None:
    """Write it where the kubelet looks; a place that cannot be written to is only told of."""
    if path is None:
        return
    try:
        with path.open("w", encoding="utf-8") as file:
            file.write(render(redacted(termination)))
    except OSError as error:
        say(f"sparkpoint: the termination message cannot be written to {path}: {error}")


def say(line: str) -> None:
    """Put a line on standard error, past whatever the script has made of it."""
    flush_streams()
    # Nobody may be reading any more.
    with contextlib.suppress(OSError):
        os.write(2, f"{line}\n".encode("utf-8", "backslashreplace"))


def flush_streams() -> None:
    """Write out what the script has printed, whatever it has made of its streams."""
    for stream in (sys.stdout, sys.stderr):
        flush = getattr(stream, "flush", None)
        if callable(flush):
            # Closed, or nobody reads.
            with contextlib.suppress(OSError, ValueError):
                flush()


def _with_messages(termination: Termination, length: int) -> Termination:
    return termination.model_copy(
        update={
            "message": shorten(termination.message, length),
            "error": _shorter(termination.error, length),
            "queries": {
                name: _shorter_end(end, length) for name, end in termination.queries.items()
            },
        }
    )


def _shorter(error: ErrorInfo | None, length: int) -> ErrorInfo | None:
    if error is None:
        return None
    return error.model_copy(
        update={"message": shorten(error.message, length), "type": shorten(error.type, 120)}
    )


def _shorter_end(end: QueryEnd, length: int) -> QueryEnd:
    return end.model_copy(update={"error": _shorter(end.error, length)})


def _with_queries(termination: Termination, count: int) -> Termination:
    """The first few, those that tell of trouble before the others."""
    ranked = sorted(termination.queries.items(), key=lambda item: item[1].clean)
    return termination.model_copy(
        update={
            "queries": {shorten(name, 100): end for name, end in ranked[:count]},
            "queries_omitted": max(0, len(ranked) - count),
        }
    )
