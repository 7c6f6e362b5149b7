"""What can go wrong between the operator and the API server.

ClusterError
├── AlreadyExistsError    an object of that name is there
├── ConflictError         somebody else wrote meanwhile; look again
│   └── LeftoverError     an object of that name is of somebody who is gone, and is about to go
├── NotFoundError         the object is not there
├── ForbiddenError        a right is missing, or a quota is used up
├── UnprocessableError    the object itself is refused: it must change
│   └── TakenError        an object of that name is somebody else's, and stays
├── UnfitError            the operator must not begin here: a person must mend something first
└── UnavailableError      no answer, or none that counts; asking again helps
    └── ThrottledError    the API server has too much to do: later
RecordError               what was written down about a job cannot be read
"""

from datetime import datetime

__all__ = [
    "AlreadyExistsError",
    "ClusterError",
    "ConflictError",
    "ForbiddenError",
    "LeftoverError",
    "NotFoundError",
    "RecordError",
    "TakenError",
    "ThrottledError",
    "UnavailableError",
    "UnfitError",
    "UnprocessableError",
]


class ClusterError(Exception):
    """The API server did not do what was asked."""

    retry_helps = False


class AlreadyExistsError(ClusterError):
    """An object of that name is there already."""


class ConflictError(ClusterError):
    """The object changed since it was read."""

    retry_helps = True


class LeftoverError(ConflictError):
    """An object of that name will go by itself; it is marked `since` then, if it is."""

    def __init__(self, message: str, *, since: datetime | None) -> None:
        super().__init__(message)
        self.since = since


class NotFoundError(ClusterError):
    """There is no such object."""


class ForbiddenError(ClusterError):
    """A right is missing, or a quota is used up: somebody may lift it while we wait."""

    retry_helps = True

    @property
    def is_of_ending_namespace(self) -> bool:
        """Nothing can be made in a namespace that is being deleted: it is no news to anybody."""
        return "because it is being terminated" in str(self)


class UnprocessableError(ClusterError):
    """The object is refused as it is."""


class TakenError(UnprocessableError):
    """An object of that name is somebody else's: a person must decide which of the two stays."""


class UnfitError(ClusterError):
    """What the operator needs is not there, or is not as it needs it."""


class UnavailableError(ClusterError):
    """The API server did not answer, or is too busy."""

    retry_helps = True

    def __init__(self, message: str, *, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class ThrottledError(UnavailableError):
    """The API server has too much to do, and asks us to come back later."""


class RecordError(Exception):
    """A job's record is damaged: nothing may be done to the job before a person has looked."""

    retry_helps = False
