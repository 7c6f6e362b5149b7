"""What the runtime itself may have to say.

DriverError
├── RefusedError         an option or the surroundings do not allow to run at all
├── IdentityError        a query has no name of its own; the script is to blame
├── PromiseError         a query cannot keep what the job promises about its output
└── ConnectError         the script made a Spark Connect session; nothing here reaches into one

ScriptOver              not an error: unwinds a script whose time is over
"""

__all__ = [
    "ConnectError",
    "DriverError",
    "IdentityError",
    "PromiseError",
    "RefusedError",
    "ScriptOver",
]


class DriverError(Exception):
    """Base of this tree."""


class RefusedError(DriverError):
    """Nothing was started, and the message says what to change."""


class IdentityError(DriverError):
    """A query whose checkpoint nobody could find again."""


class PromiseError(DriverError):
    """A query whose output could be there twice, or not at all, in a job that promises it once."""


class ConnectError(DriverError):
    """A session of Spark Connect."""


class ScriptOver(SystemExit):
    """Passes through `except Exception`, and through threads without a word."""
