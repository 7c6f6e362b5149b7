"""What may be wrong with a local run; each class knows the exit code that it ends with.

LocalError
├── HomeBusyError        another process runs in this home
├── WrongHomeError       the home belongs to another job, or to something else
├── DamagedHomeError     its notes contradict what is there
├── NoHomeError          there is no home here
├── SeveralHomesError    there are several, and none was named
├── NotRunningError      nothing runs in this home
├── LackingError         something that is needed is not there: a package, Java, the script, a port
└── AgentFailedError     the agent did not do what it was asked for, or does not answer
"""

from typing import ClassVar

from sparkpoint.cli.exits import Exit

__all__ = [
    "AgentFailedError",
    "DamagedHomeError",
    "HomeBusyError",
    "LackingError",
    "LocalError",
    "NoHomeError",
    "NotRunningError",
    "SeveralHomesError",
    "WrongHomeError",
]


class LocalError(Exception):
    """Base of this tree."""

    exit: Exit = Exit.FAILED
    retry_helps: bool = False
    candidates: tuple[str, ...] = ()


class HomeBusyError(LocalError):
    """One process at a time."""

    exit = Exit.REFUSED
    retry_helps = True


class WrongHomeError(LocalError):
    """Running here would mix what does not belong together."""

    exit = Exit.REFUSED


class DamagedHomeError(LocalError):
    """Nobody can tell which state is the current one."""

    exit = Exit.DAMAGED


class NoHomeError(LocalError):
    """Nothing was ever run here."""

    exit = Exit.NOT_FOUND


class SeveralHomesError(LocalError):
    """Which one is meant?"""

    exit = Exit.REFUSED

    def __init__(self, message: str, candidates: tuple[str, ...]) -> None:
        super().__init__(message)
        self.candidates = candidates


class NotRunningError(LocalError):
    """There is nobody to talk to."""

    exit = Exit.NOT_FOUND


class LackingError(LocalError):
    """Told before anything is begun."""

    def __init__(self, message: str, exit_: Exit = Exit.FAILED) -> None:
        super().__init__(message)
        self.exit = exit_


class AgentFailedError(LocalError):
    """What the agent said, and the exit code that the command line has for it."""

    _EXITS: ClassVar[dict[str, Exit]] = {
        "BadName": Exit.USAGE,
        "BadRequest": Exit.USAGE,
        "BadLocation": Exit.USAGE,
        "NameTaken": Exit.REFUSED,
        "Conflict": Exit.REFUSED,
        "QueueFull": Exit.REFUSED,
        "StopUnderWay": Exit.REFUSED,
        "NothingCommitted": Exit.NOT_FOUND,
        "NoQuery": Exit.NOT_FOUND,
        "Damaged": Exit.DAMAGED,
        "Incomplete": Exit.DAMAGED,
    }

    def __init__(self, message: str, *, kind: str = "", retry_helps: bool = False) -> None:
        super().__init__(message)
        self.exit = self._EXITS.get(kind, Exit.FAILED)
        self.retry_helps = retry_helps
