"""Reading resources as the API server tells them, also those of a newer operator: nothing here
fails because a field is missing or has a word that is not known."""

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

from sparkpoint.cli.jobs.cluster import Object

__all__ = [
    "completed_at",
    "condition",
    "is_looked_at",
    "is_settled",
    "job_of",
    "metadata",
    "moment_of",
    "newest_first",
    "spec_of",
    "status_of",
]

_LONG_AGO = datetime(1970, 1, 1, tzinfo=UTC)


def metadata(body: Object) -> dict[str, Any]:
    """Name, namespace and so on."""
    found: dict[str, Any] = body.get("metadata") or {}
    return found


def spec_of(body: Object) -> dict[str, Any]:
    """What is wished."""
    found: dict[str, Any] = body.get("spec") or {}
    return found


def status_of(body: Object) -> dict[str, Any]:
    """What the operator says; empty before it has looked."""
    found: dict[str, Any] = body.get("status") or {}
    return found


def condition(body: Object, kind: str) -> Mapping[str, Any]:
    """One condition, whatever the case of its name; empty if there is none."""
    listed = status_of(body).get("conditions") or []
    return next((each for each in listed if each.get("type", "").lower() == kind.lower()), {})


def is_looked_at(body: Object) -> bool:
    """Whether the operator has seen the newest spec."""
    seen = status_of(body).get("observedGeneration")
    return seen is not None and seen >= metadata(body).get("generation", 0)


def is_settled(body: Object) -> bool:
    """Whether the newest spec was seen and nothing is under way any more."""
    return is_looked_at(body) and status_of(body).get("operation") is None


def moment_of(text: object) -> datetime | None:
    """A time as Kubernetes writes it."""
    try:
        read = datetime.fromisoformat(str(text)) if text else None
    except ValueError:
        return None
    return read if read is None or read.tzinfo else read.replace(tzinfo=UTC)


def job_of(savepoint: Object) -> str:
    """The job that a SparkSavepoint names."""
    return str((spec_of(savepoint).get("jobRef") or {}).get("name", ""))


def completed_at(savepoint: Object) -> datetime | None:
    """When a SparkSavepoint was complete; None if it is not."""
    status = status_of(savepoint)
    if status.get("phase") != "Completed":
        return None
    return moment_of(status.get("completedAt"))


def newest_first(savepoints: Iterable[Object]) -> list[Object]:
    """By when they were complete, else made."""

    def age(body: Object) -> datetime:
        made = moment_of(metadata(body).get("creationTimestamp"))
        return completed_at(body) or made or _LONG_AGO

    return sorted(savepoints, key=age, reverse=True)
