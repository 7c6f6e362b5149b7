"""What a command has to say, and how it reaches the terminal, a pipe or a script.

Results go to stdout, everything else to stderr; with `--json`, stdout is one JSON document.
"""

import json
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass

from sparkpoint.cli.exits import Exit

__all__ = [
    "Answer",
    "OutputError",
    "Settings",
    "emit",
    "no_output",
    "printable",
    "tell",
    "write_document",
    "write_text",
]


class OutputError(Exception):
    """What the command has to say cannot be written down."""

    exit = Exit.FAILED
    """Unless the command itself has found something worse."""


@dataclass(frozen=True, slots=True)
class Settings:
    """What every command may be told."""

    endpoint_url: str | None = None
    json: bool = False
    quiet: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """The result of a command in both shapes."""

    document: Mapping[str, object]
    text: str
    notes: tuple[str, ...] = ()
    """What a person should know besides; on stderr, unless `--quiet`."""
    alarm: str = ""
    """Why the exit code is not 0; on stderr, whatever the options."""
    exit: Exit = Exit.OK


def emit(answer: Answer, settings: Settings) -> None:
    """Print it; what belongs on stderr also if stdout takes nothing, as OutputError says then."""
    try:
        _write(answer, settings)
    except OutputError as error:
        error.exit = answer.exit or Exit.FAILED
        raise
    finally:
        _tell_besides(answer, settings)


def _write(answer: Answer, settings: Settings) -> None:
    if settings.json:
        write_document(answer.document)
    elif answer.text:
        write_text(f"{printable(answer.text.rstrip())}\n")


def _tell_besides(answer: Answer, settings: Settings) -> None:
    for note in () if settings.quiet else answer.notes:
        tell(f"Note: {note}")
    if answer.alarm:
        tell(f"Error: {answer.alarm}")


def tell(text: str) -> None:
    """A line on stderr; nothing if that is closed, for print() would take stdout instead."""
    if sys.stderr is not None:
        print(printable(text), file=sys.stderr)


def printable(text: str) -> str:
    """Without control characters: a name in a checkpoint must not steer the terminal."""
    return "".join(c if c == "\n" or c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text)


def write_document(document: Mapping[str, object]) -> None:
    """One JSON document on stdout."""
    write_text(f"{json.dumps(document, indent=2, ensure_ascii=False)}\n")


def write_text(text: str) -> None:
    """Text on stdout; a reader that went away, such as `head`, ends the program without noise.

    OutputError if there is no stdout, or if it takes no more.
    """
    if sys.stdout is None:
        raise OutputError("The answer cannot be printed: standard output is closed.")
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except BrokenPipeError:
        _forget_output()
        raise SystemExit(Exit.PIPE_CLOSED) from None
    except OSError as error:
        raise no_output(error) from error
    except UnicodeEncodeError:
        encoding = sys.stdout.encoding or "ascii"
        sys.stdout.write(text.encode(encoding, "replace").decode(encoding))


def no_output(error: OSError) -> OutputError:
    """What is raised of an error of stdout, which is then written to no more."""
    _forget_output()
    return OutputError(f"The answer cannot be printed: {error.strerror}.")


def _forget_output() -> None:
    # Python flushes stdout once more at exit, which would complain again.
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
