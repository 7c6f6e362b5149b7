"""What can be wrong with a resource, or with a model of one.

ApiError
├── InvalidResourceError   a person wrote something that cannot be; lists every field
└── NotStructuralError     a model has no form that Kubernetes accepts; a mistake of ours
"""

from collections.abc import Sequence
from dataclasses import dataclass

__all__ = ["ApiError", "FieldError", "InvalidResourceError", "NotStructuralError"]


@dataclass(frozen=True, slots=True)
class FieldError:
    """One mistake: where it is, what it is, what to do."""

    path: str
    """As kubectl writes it: `spec.driver.env[0].name`, `spec.sparkConf[spark.master]`."""
    message: str
    remedy: str

    def __str__(self) -> str:
        return f"{self.path}: {self.message}; {self.remedy}"


class ApiError(Exception):
    """The root; trying again never helps."""


class InvalidResourceError(ApiError):
    """A resource that cannot be used."""

    def __init__(self, errors: Sequence[FieldError]) -> None:
        self.errors = tuple(errors)
        super().__init__("\n".join(str(error) for error in errors))


class NotStructuralError(ApiError):
    """A model that Kubernetes' structural schemas cannot express."""
