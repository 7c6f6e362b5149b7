"""The entry point: the tree of commands, and what happens when one fails.

Errors that the packages below foresee become one sentence and an exit code (failures.py); a
traceback is shown only if SPARKPOINT_DEBUG=1 asks for it.
"""

import contextlib
import os
import signal
import sys
import traceback
from collections.abc import Sequence
from pathlib import PurePath
from types import FrameType

import click

from sparkpoint import __version__
from sparkpoint.cli.answer import OutputError, no_output, tell, write_document
from sparkpoint.cli.commands import catalogue, jobchanges
from sparkpoint.cli.commands.checkpoint import checkpoint
from sparkpoint.cli.commands.completion import completion
from sparkpoint.cli.commands.housekeeping import collect, log, retain
from sparkpoint.cli.commands.job import job
from sparkpoint.cli.commands.local import local
from sparkpoint.cli.commands.run import run
from sparkpoint.cli.commands.savepoint import savepoint
from sparkpoint.cli.commands.state import state
from sparkpoint.cli.exits import Exit
from sparkpoint.cli.failures import Failure, as_document, explain

__all__ = ["main", "root"]

_DONE = "What the command was to do is done; only its answer is lost."
_COMFORT = (
    "Nothing half-done is left that a later run could trip over: run the same command again, or "
    "another."
)
_INTERRUPTED = Failure(
    "Interrupted", f"Interrupted. {_COMFORT}", Exit.INTERRUPTED, retry_helps=True
)
_TERMINATED = Failure("Terminated", f"Terminated. {_COMFORT}", Exit.TERMINATED, retry_helps=True)
_ENDINGS = {signal.SIGINT: _INTERRUPTED, signal.SIGTERM: _TERMINATED}


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, prog_name="sparkpoint", message="%(prog)s %(version)s")
def root() -> None:
    """Savepoints for Spark Structured Streaming: take, keep, and bring back the state of a query.

    Works on any checkpoint, on disk or S3, of a running or a stopped query; needs neither Spark nor
    Kubernetes. `sparkpoint job` operates jobs in a cluster.
    """


for _command in (
    catalogue.list_command,
    catalogue.show,
    catalogue.verify,
    catalogue.delete,
    catalogue.tag,
):
    savepoint.add_command(_command)
for _command in jobchanges.COMMANDS:
    job.add_command(_command)
for _command in (
    savepoint,
    log,
    retain,
    collect,
    checkpoint,
    state,
    run,
    local,
    job,
    completion,
):
    root.add_command(_command)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command line; the exit code."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    ending = _leave_at_the_second_signal() if arguments is None else []
    try:
        code = root.main(given, prog_name=_program(), standalone_mode=False)
    except (click.Abort, KeyboardInterrupt):
        return _fail(next(iter(ending), _INTERRUPTED), given)
    except click.ClickException as error:
        return _fail_usage(error, given)
    except OutputError as error:
        # There is nowhere to print a document to.
        tell(f"Error: {error} {_DONE}")
        return int(error.exit)
    except Exception as error:
        if isinstance(error, OSError) and _is_of_help(error):
            tell(f"Error: {no_output(error)}")
            return int(Exit.FAILED)
        # The outermost loop: whatever it is, it ends here as a sentence.
        if os.environ.get("SPARKPOINT_DEBUG") == "1":
            traceback.print_exc()
        return _fail(explain(error), given)
    return int(code or 0)


def _is_of_help(error: OSError) -> bool:
    """Whether it came while click printed, which is a help page or the version: all else is
    printed by `emit`."""
    frames = traceback.walk_tb(error.__traceback__)
    return any(frame.f_code is click.echo.__code__ for frame, _ in frames)


def _leave_at_the_second_signal() -> list[Failure]:
    """Let the first Ctrl-C tidy up, which waits for the files under way, and the next end it all.

    That is as safe: a process that is killed at any point leaves nothing that others trip over.
    SIGTERM is the same, with another exit code: the list that is returned says which it was.
    """
    heard: list[Failure] = []

    def first(number: int, _frame: FrameType | None) -> None:
        heard.append(_ENDINGS[signal.Signals(number)])
        for each in _ENDINGS:
            signal.signal(each, second)
        raise KeyboardInterrupt

    def second(_number: int, _frame: FrameType | None) -> None:
        os.write(2, f"Error: {heard[0].message}\n".encode())
        os._exit(heard[0].exit)

    for each in _ENDINGS:
        signal.signal(each, first)
    return heard


def _program() -> str:
    """As the user called it: kubectl runs its plug-ins by their file's name."""
    name = PurePath(sys.argv[0]).name
    return "kubectl sparkpoint" if name.startswith("kubectl") else "sparkpoint"


def _fail(failure: Failure, given: list[str]) -> int:
    if "--json" in given:
        _try_document(failure)
    tell(f"Error: {failure.message}")
    return int(failure.exit)


def _try_document(failure: Failure) -> None:
    """The sentence on stderr and the exit code tell as much to whoever has no stdout."""
    with contextlib.suppress(OutputError):
        write_document(as_document(failure))


def _fail_usage(error: click.ClickException, given: list[str]) -> int:
    if "--json" in given:
        _try_document(Failure("Usage", error.format_message(), Exit.USAGE))
    error.show()
    return int(Exit.USAGE)


if __name__ == "__main__":
    sys.exit(main())
