"""What only a worker has to say; the trees of storage/, checkpoint/ and savepoint/ are said as they
are.

WorkerError
├── RefusedError         the command line cannot be used; all that is wrong with it is listed
├── UnreachableError     the directory cannot be looked at now
├── LostCommitsError     batches were committed here, and their commits are gone
├── OutsideError         what is to be removed is not where a job's data can be
├── FetchError           the file cannot be put where it should be
└── SparkError           the Spark process that was to help ended without a result
"""

from collections.abc import Sequence

__all__ = [
    "FetchError",
    "LostCommitsError",
    "OutsideError",
    "RefusedError",
    "SparkError",
    "UnreachableError",
    "WorkerError",
]


class WorkerError(Exception):
    """Base of this tree. `retry_helps` tells whether the same command may succeed later."""

    retry_helps = False


class RefusedError(WorkerError):
    """Nothing was begun."""

    def __init__(self, problems: Sequence[str], usage: str) -> None:
        listed = "".join(f"\n  - {problem}" for problem in problems)
        super().__init__(f"The command line cannot be used:{listed}\nUsage: {usage}")
        self.problems = tuple(problems)


class UnreachableError(WorkerError):
    """A volume that is not mounted, a server that does not answer, credentials that are refused."""

    retry_helps = True


class LostCommitsError(WorkerError):
    """Not the same as nothing committed: to begin afresh would lose state."""


class OutsideError(WorkerError):
    """A path that removal never touches."""


class FetchError(WorkerError):
    """The target cannot be written."""


class SparkError(WorkerError):
    """No verdict."""

    retry_helps = True
