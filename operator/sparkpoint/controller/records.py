"""Records of jobs and savepoints in their status, and back, without loss."""

from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError
from pydantic.alias_generators import to_camel

from sparkpoint.controller.errors import RecordError
from sparkpoint.lifecycle.record import Record
from sparkpoint.lifecycle.savepointworld import SavepointRecord

__all__ = ["read_record", "read_savepoint_record", "write_record", "write_savepoint_record"]


class _Written(BaseModel):
    """Gives the plain dataclasses of a record the configuration that they are read with."""

    # A field that is not known is of a newer operator: writing the record without it would lose it.
    model_config = ConfigDict(extra="forbid", alias_generator=to_camel, hide_input_in_errors=True)


class _Job(_Written):
    record: Record


class _Savepoint(_Written):
    record: SavepointRecord


def write_record(record: Record) -> dict[str, Any]:
    """As JSON for the status; what is absent is left out."""
    return _write(_Job(record=record))


def write_savepoint_record(record: SavepointRecord) -> dict[str, Any]:
    """The same of a savepoint."""
    return _write(_Savepoint(record=record))


def _write(written: _Written) -> dict[str, Any]:
    found: dict[str, Any] = written.model_dump(mode="json", by_alias=True, exclude_none=True)
    record: dict[str, Any] = found["record"]
    return record


def read_record(written: dict[str, Any] | None) -> Record:
    """What was written; a job that nothing was written about has an empty record."""
    try:
        return _Job.model_validate({"record": written or {}}).record
    except ValidationError as error:
        raise _unreadable(error) from error


def read_savepoint_record(written: dict[str, Any] | None) -> SavepointRecord:
    """The same of a savepoint."""
    try:
        return _Savepoint.model_validate({"record": written or {}}).record
    except ValidationError as error:
        raise _unreadable(error) from error


def _unreadable(error: ValidationError) -> RecordError:
    where = ", ".join(".".join(str(part) for part in each["loc"]) for each in error.errors())
    return RecordError(
        f"status.{where} cannot be read. Was it edited, or written by a newer operator? Put it "
        "back, or run that operator."
    )
