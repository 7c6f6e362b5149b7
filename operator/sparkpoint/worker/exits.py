"""Exit codes of a worker: a promise to the operator.

Where the meaning is the same, so is the runtime's code; no other code of the two is."""

from enum import IntEnum

from sparkpoint.worker.model import Answer

__all__ = ["Exit", "exit_of"]


class Exit(IntEnum):
    """How a worker ended."""

    OK = 0
    """There is an answer, a bad one too: Incompatible and Corrupt are answers."""
    REFUSED = 83
    """The command line cannot be used."""
    INTERNAL = 84
    """A fault of ours."""
    MAY_PASS = 90
    """It failed, and the same command may succeed later. Also: ended by a signal."""
    WILL_NOT_PASS = 91
    """It failed, and somebody must change something first."""


def exit_of(answer: Answer) -> Exit:
    """The code that goes with an answer."""
    match answer.answer:
        case "Refused":
            return Exit.REFUSED
        case "Failed" if answer.unforeseen:
            return Exit.INTERNAL
        case "Failed":
            return Exit.MAY_PASS if answer.retry_helps else Exit.WILL_NOT_PASS
        case _:
            return Exit.OK
