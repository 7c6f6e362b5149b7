"""A StatefulSparkJob as the API server shows it, with what was written down about it."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sparkpoint.controller.cluster import Object, metadata
from sparkpoint.controller.keys import Key, key_of
from sparkpoint.controller.objects import Owner
from sparkpoint.controller.podfacts import parse_time
from sparkpoint.controller.records import read_record
from sparkpoint.lifecycle.record import Record

__all__ = ["Job", "read_job"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One look at a job."""

    body: Object
    key: Key
    uid: str
    generation: int
    deleting: datetime | None
    """When it was asked to go."""
    record: Record

    @property
    def owner(self) -> Owner:
        """As the builders of objects want it."""
        return Owner(self.key.namespace, self.key.name, self.uid)

    @property
    def spec(self) -> Mapping[str, Any]:
        """As the user wrote it."""
        found: Mapping[str, Any] = self.body.get("spec") or {}
        return found

    @property
    def status(self) -> Mapping[str, Any]:
        """As it was written last."""
        found: Mapping[str, Any] = self.body.get("status") or {}
        return found


def read_job(body: Object) -> Job:
    """RecordError if its record cannot be read."""
    about = metadata(body)
    return Job(
        body=body,
        key=key_of(body),
        uid=about["uid"],
        generation=about.get("generation", 0),
        deleting=parse_time(about.get("deletionTimestamp")),
        record=read_record((body.get("status") or {}).get("record")),
    )
