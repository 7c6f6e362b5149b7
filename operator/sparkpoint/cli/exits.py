"""Exit codes: a promise to scripts, kept in docs/cli.md."""

from enum import IntEnum

__all__ = ["Exit"]


class Exit(IntEnum):
    """How a command ended."""

    OK = 0
    FAILED = 1
    """Storage did not do its part, or something unforeseen happened."""
    USAGE = 2
    """The command line makes no sense, or names a place that cannot be one."""
    REFUSED = 3
    """It could be done, but would be unsafe or would destroy something."""
    NOT_FOUND = 4
    """No such savepoint, query, checkpoint or repository."""
    DAMAGED = 5
    """Something is there, but not whole."""
    OPERATION_FAILED = 6
    """The operator did not succeed with what was asked of a job."""
    ROLLED_BACK = 7
    """It did not prove itself, and the job is back at what it was."""
    TIMED_OUT = 8
    """We waited long enough; it goes on by itself."""
    INTERRUPTED = 130
    """Ctrl-C."""
    PIPE_CLOSED = 141
    """Whoever read our output went away."""
    TERMINATED = 143
    """SIGTERM."""
