"""What Spark's errors mean in a rehearsal: one table, of errors as Spark 4.3 throws them."""

import pytest

from sparkpoint.runtime.model import Verdict
from sparkpoint.runtime.verdict import (
    Thrown,
    if_it_reads,
    judge,
    judge_refusal,
    not_reached,
    removed,
    unreadable_offset,
    weigh,
)

FAILED = Thrown(
    "StreamingQueryException",
    "[STREAM_FAILED] Query [id = 1] terminated with exception: … SQLSTATE: XXKST\n=== Streaming",
    "STREAM_FAILED",
    "XXKST",
)
UDF = (
    "[PYTHON_EXCEPTION] An exception was thrown from the Python worker: Traceback (most recent "
    'call last):\n  File "/x/site-packages/pyspark/worker.py", line 4207, in invoke_udf\n    a()\n'
    '  File "/jobs/visits.py", line 40, in clean\n    return 1 // 0\n'
    "ZeroDivisionError: integer division or modulo by zero\n"
)
RATE_FRAMES = (
    "Long.parseLong",
    "LongOffset$.apply",
    "RateStreamMicroBatchStream$$anon$1.deserialize",
)


@pytest.mark.parametrize(
    ("thrown", "verdict", "kind", "sentence"),
    [
        (
            Thrown(
                "StateStoreKeySchemaNotCompatible",
                "[STATE_STORE_KEY_SCHEMA_NOT_COMPATIBLE] Provided key schema does not match "
                "existing state key schema.\nPlease check. SQLSTATE: XXKST",
                "STATE_STORE_KEY_SCHEMA_NOT_COMPATIBLE",
                "XXKST",
            ),
            "incompatible",
            "STATE_STORE_KEY_SCHEMA_NOT_COMPATIBLE",
            "Provided key schema does not match existing state key schema.\nPlease check.",
        ),
        (
            Thrown("X", "[A_B] no", "STATE_STORE_VALUE_SCHEMA_NOT_COMPATIBLE", "XXKST"),
            "incompatible",
            "STATE_STORE_VALUE_SCHEMA_NOT_COMPATIBLE",
            "no",
        ),
        (
            Thrown("X", "no", "STREAMING_STATEFUL_OPERATOR_NOT_MATCH_IN_STATE_METADATA", "42K03"),
            "incompatible",
            "STREAMING_STATEFUL_OPERATOR_NOT_MATCH_IN_STATE_METADATA",
            "no",
        ),
        (
            Thrown("X", "no", "STREAMING_QUERY_EVOLUTION_ERROR.DUPLICATE_SOURCE_NAMES", "42KDE"),
            "incompatible",
            "STREAMING_QUERY_EVOLUTION_ERROR.DUPLICATE_SOURCE_NAMES",
            "no",
        ),
        (
            Thrown("X", "gone", "CANNOT_LOAD_STATE_STORE.UNEXPECTED_VERSION", "58030"),
            "incompatible",
            "CANNOT_LOAD_STATE_STORE.UNEXPECTED_VERSION",
            "gone",
        ),
        (
            Thrown("X", "v2, v1", "CANNOT_LOAD_STATE_STORE.CANNOT_READ_CHECKPOINT", "58030"),
            "incompatible",
            "CANNOT_LOAD_STATE_STORE.CANNOT_READ_CHECKPOINT",
            "v2, v1",
        ),
        (
            Thrown("X", "?", "CANNOT_LOAD_STATE_STORE.UNCATEGORIZED", "58030"),
            "unknown",
            "CANNOT_LOAD_STATE_STORE.UNCATEGORIZED",
            "?",
        ),
        (
            Thrown("X", "full", "CANNOT_LOAD_STATE_STORE.ROCKSDB_STORE_PROVIDER_OUT_OF_MEMORY"),
            "unknown",
            "CANNOT_LOAD_STATE_STORE.ROCKSDB_STORE_PROVIDER_OUT_OF_MEMORY",
            "full",
        ),
        (
            Thrown(
                "AssertionError",
                "assertion failed: There are [1] sources in the checkpoint offsets and now there "
                "are [2] sources requested by the query. Cannot continue.",
            ),
            "incompatible",
            "SOURCES_CHANGED",
            "assertion failed: There are [1] sources in the checkpoint offsets and now there are "
            "[2] sources requested by the query. Cannot continue.",
        ),
        (
            Thrown("NumberFormatException", 'For input string: "{}"', frames=RATE_FRAMES),
            "incompatible",
            "SOURCE_KIND_CHANGED",
            'For input string: "{}"',
        ),
        (
            Thrown("PythonException", UDF, "PYTHON_EXCEPTION", "38000"),
            "incompatible",
            "USER_CODE",
            "ZeroDivisionError: integer division or modulo by zero",
        ),
        (
            # Spark 4.2 gives it no name.
            Thrown("PythonException", UDF.removeprefix("[PYTHON_EXCEPTION] ")),
            "incompatible",
            "USER_CODE",
            "ZeroDivisionError: integer division or modulo by zero",
        ),
        (
            Thrown("X", UDF, "PYTHON_STREAMING_DATA_SOURCE_RUNTIME_ERROR", "38000"),
            "unknown",
            "PYTHON_STREAMING_DATA_SOURCE_RUNTIME_ERROR",
            "ZeroDivisionError: integer division or modulo by zero",
        ),
        (
            Thrown("X", "[CAST_X] 'k1' SQLSTATE: 22018\n== SQL", "CAST_X", "22018"),
            "incompatible",
            "CAST_X",
            "'k1'",
        ),
        (
            Thrown("X", "aged out", "KAFKA_DATA_LOSS.COULD_NOT_READ_OFFSET_RANGE", "22000"),
            "unknown",
            "KAFKA_DATA_LOSS.COULD_NOT_READ_OFFSET_RANGE",
            "aged out",
        ),
        (
            Thrown("X", "no such file", "FAILED_READ_FILE", "KD001"),
            "unknown",
            "FAILED_READ_FILE",
            "no such file",
        ),
        (Thrown("TimeoutException", ""), "unknown", "TimeoutException", "TimeoutException"),
    ],
)
def test_an_error_and_its_verdict(
    thrown: Thrown, verdict: Verdict, kind: str, sentence: str
) -> None:
    found = judge([FAILED, thrown])

    assert found.verdict == verdict
    assert found.error is not None
    assert (found.error.type, found.error.message) == (kind, sentence)
    assert found.error.remedy
    assert found.error.retry_helps == (verdict == "unknown")


def test_the_line_of_the_script_is_named() -> None:
    found = judge([FAILED, Thrown("PythonException", UDF, "PYTHON_EXCEPTION", "38000")])

    assert found.error is not None
    assert found.error.where == "visits.py:40"


def test_what_says_most_decides_wherever_it_is_in_the_chain() -> None:
    outer = Thrown("SparkException", "…", "CANNOT_LOAD_STATE_STORE.UNCATEGORIZED", "58030")
    inner = Thrown("X", "rows", "STATE_STORE_VALUE_ROW_FORMAT_VALIDATION_FAILURE", "XX000")

    found = judge([FAILED, outer, inner])

    assert found.verdict == "incompatible"
    assert found.error is not None
    assert found.error.type == "STATE_STORE_VALUE_ROW_FORMAT_VALIDATION_FAILURE"


def test_an_error_with_a_name_is_not_known_by_where_it_comes_from() -> None:
    thrown = Thrown("X", "away", "KAFKA_UNREACHABLE", "08000", frames=RATE_FRAMES)

    assert judge([FAILED, thrown]).verdict == "unknown"


@pytest.mark.parametrize(
    ("kind", "is_analysis", "verdict"),
    [
        ("STREAMING_OUTPUT_MODE.UNSUPPORTED_OPERATION", True, "incompatible"),
        ("TABLE_OR_VIEW_NOT_FOUND", True, "unknown"),
        ("IllegalArgumentException", False, "unknown"),
    ],
)
def test_a_query_that_spark_does_not_start(kind: str, is_analysis: bool, verdict: Verdict) -> None:
    found = judge_refusal(kind, f"[{kind}] no. SQLSTATE: 42KDE", is_analysis=is_analysis)

    assert found.verdict == verdict
    assert found.error is not None
    assert found.error.type == kind


def test_what_is_known_of_queries_that_were_not_tried() -> None:
    gone, hidden = removed("visits"), not_reached("visits", "the script failed.", retry_helps=False)
    other = unreadable_offset([Thrown("MappingException", "No usable value for offset")])

    assert (gone.verdict, hidden.verdict) == ("incompatible", "unknown")
    assert gone.error is not None
    assert gone.error.type == "QUERY_REMOVED"
    assert "'visits'" in gone.error.message
    assert other.error is not None
    assert (other.verdict, other.error.type) == ("incompatible", "SOURCE_KIND_CHANGED")


@pytest.mark.parametrize(
    ("verdicts", "worst"),
    [
        ([], "unknown"),
        (["compatible", "compatible"], "compatible"),
        (["compatible", "unknown"], "unknown"),
        (["compatible", None], "unknown"),
        (["unknown", "incompatible", "compatible"], "incompatible"),
    ],
)
def test_the_worst_counts(verdicts: list[Verdict | None], worst: Verdict) -> None:
    assert weigh(verdicts) == worst


def test_what_fails_only_after_a_batch_with_rows_is_not_known_of_this_savepoint() -> None:
    moved = judge([Thrown("IllegalArgumentException", "Wrong basePath file:/b for file:/a/1")])

    found = if_it_reads(moved)

    assert moved.verdict == "incompatible"
    assert found.verdict == "unknown"
    assert found.error is not None
    assert found.error.type == "SOURCE_PATH_CHANGED"
    assert found.error.message.startswith("If the last batch before it begins has rows, it fails: ")
