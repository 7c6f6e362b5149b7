"""The write-ahead log survives the way into the status and back, whatever it says."""

import json
from datetime import UTC, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sparkpoint.controller.errors import RecordError
from sparkpoint.controller.records import (
    read_record,
    read_savepoint_record,
    write_record,
    write_savepoint_record,
)
from sparkpoint.lifecycle.record import Record
from sparkpoint.lifecycle.savepointworld import SavepointRecord

TIMES = st.datetimes(
    min_value=datetime(2020, 1, 1), max_value=datetime(2100, 1, 1), timezones=st.just(UTC)
)
st.register_type_strategy(datetime, TIMES)
st.register_type_strategy(float, st.floats(allow_nan=False, allow_infinity=False))
RECORDS = st.from_type(Record)


def through_the_api_server(written: dict[str, object]) -> dict[str, object]:
    found: dict[str, object] = json.loads(json.dumps(written, allow_nan=False))
    return found


@given(RECORDS)
@settings(max_examples=40, deadline=None)
def test_a_jobs_record_comes_back_as_it_was_written(record: Record) -> None:
    assert read_record(through_the_api_server(write_record(record))) == record


@given(st.from_type(SavepointRecord))
@settings(max_examples=25, deadline=None)
def test_a_savepoints_record_comes_back_as_it_was_written(record: SavepointRecord) -> None:
    assert read_savepoint_record(through_the_api_server(write_savepoint_record(record))) == record


def test_a_job_that_nothing_was_written_about_has_an_empty_record() -> None:
    assert read_record(None) == Record()
    assert read_record({}) == Record()


def test_a_revision_from_before_partitions_were_written_down_is_read() -> None:
    revision = {"name": "r1", "code": "c1", "size": "s1", "state": "p1"}

    found = read_record({"stable": {"revision": revision}})

    assert found.stable is not None
    assert (found.stable.revision.fixed, found.stable.revision.partitions) == ("", None)


@pytest.mark.parametrize(
    "written",
    [
        {"fromTheFuture": 1},
        {"run": {"epoch": "one"}},
        {"operation": {"kind": "Dance"}},
        {"sequence": "many"},
    ],
)
def test_a_record_that_cannot_be_read_is_refused_with_the_field(written: dict[str, object]) -> None:
    with pytest.raises(RecordError, match=next(iter(written))):
        read_record(written)
