"""The tracker, fed with what Spark says."""

import json
import threading

import pytest

from sparkpoint.runtime.progress import ProgressTracker

RUN = "aaaaaaaa-0000-0000-0000-000000000001"
STATEFUL = {
    "id": "id",
    "runId": RUN,
    "name": "visits",
    "timestamp": "2026-01-02T03:04:05.000Z",
    "batchId": 4,
    "batchDuration": 1500,
    "numInputRows": 100,
    "inputRowsPerSecond": 50.5,
    "processedRowsPerSecond": 66.6,
    "durationMs": {"addBatch": 1000, "triggerExecution": 1500},
    "eventTime": {"watermark": "2026-01-02T03:00:00.000Z"},
    "stateOperators": [
        {
            "operatorName": "stateStoreSave",
            "numRowsTotal": 10,
            "numStateStoreInstances": 2,
            "memoryUsedBytes": 1000,
            "customMetrics": {"rocksdbSstFileSize": 70},
        },
        {
            "operatorName": "dedupe",
            "numRowsTotal": 5,
            "numStateStoreInstances": 3,
            "memoryUsedBytes": 500,
        },
    ],
    "sources": [],
    "sink": {},
}


@pytest.fixture
def tracker() -> ProgressTracker:
    tracker = ProgressTracker()
    tracker.started("visits", "id", RUN, "/e3/visits")
    return tracker


def test_a_started_query_is_active_and_has_no_batch_yet(tracker: ProgressTracker) -> None:
    (query,) = tracker.queries()

    assert (query.name, query.id, query.run_id) == ("visits", "id", RUN)
    assert query.active
    assert query.trigger_active
    assert query.batch is None
    assert query.last_commit is None
    assert query.checkpoint == "/e3/visits"


def test_a_batch_tells_everything(tracker: ProgressTracker) -> None:
    tracker.progressed(json.dumps(STATEFUL))

    (query,) = tracker.queries()
    assert query.batch == 4
    assert (query.input_rows_per_second, query.processed_rows_per_second) == (50.5, 66.6)
    assert query.batch_seconds == 1.5
    assert (query.state_rows, query.state_bytes, query.state_file_bytes) == (15, 1500, 70)
    assert query.state_counts == 5
    assert query.watermark == "2026-01-02T03:00:00.000Z"
    assert query.last_commit is not None
    assert query.last_commit.isoformat() == "2026-01-02T03:04:06.500000+00:00"


def test_rows_add_up(tracker: ProgressTracker) -> None:
    tracker.progressed(json.dumps(STATEFUL))
    tracker.progressed(json.dumps({**STATEFUL, "batchId": 5, "numInputRows": 11}))

    assert tracker.queries()[0].input_rows == 111


@pytest.mark.parametrize("rate", ["NaN", "Infinity", "null", '"?"'])
def test_a_rate_that_is_none_counts_as_nothing(tracker: ProgressTracker, rate: str) -> None:
    text = json.dumps(STATEFUL).replace("50.5", rate).replace("66.6", rate)

    tracker.progressed(text)

    (query,) = tracker.queries()
    assert (query.input_rows_per_second, query.processed_rows_per_second) == (0, 0)


def test_the_least_that_spark_may_say_is_enough(tracker: ProgressTracker) -> None:
    tracker.progressed(json.dumps({"runId": RUN, "batchId": 0}))

    (query,) = tracker.queries()
    assert query.batch == 0
    assert query.watermark is None
    assert query.last_commit is None


def test_the_watermark_before_any_event_is_none(tracker: ProgressTracker) -> None:
    nothing = {"watermark": "1970-01-01T00:00:00.000Z"}
    tracker.progressed(json.dumps({**STATEFUL, "eventTime": nothing}))

    assert tracker.queries()[0].watermark is None


def test_an_idle_query_stays_active(tracker: ProgressTracker) -> None:
    tracker.progressed(json.dumps(STATEFUL))
    tracker.idle(RUN)

    (query,) = tracker.queries()
    assert query.active
    assert not query.trigger_active
    assert query.batch == 4


def test_a_failed_query_shows_its_error_without_plan_and_stack(tracker: ProgressTracker) -> None:
    text = (
        "org.apache.spark.sql.streaming.StreamingQueryException: [STREAM_FAILED] Query [id = 1] "
        "terminated with exception: division by zero\n=== Streaming Query ===\nIdentifier: x"
    )
    tracker.terminated(RUN, text, "STREAM_FAILED")

    (query,) = tracker.queries()
    assert not query.active
    assert query.error is not None
    assert query.error.type == "STREAM_FAILED"
    assert query.error.message.endswith("division by zero")


def test_an_error_in_python_is_its_last_line_and_the_line_of_the_script(
    tracker: ProgressTracker,
) -> None:
    text = (
        "py4j.Py4JException: An exception was raised by the Python Proxy. Return Message: "
        "Traceback (most recent call last):\n"
        '  File "/x/site-packages/pyspark/sql/utils.py", line 163, in call\n'
        "    self.func(DataFrame(jdf, wrapped_session_jdf), batch_id)\n"
        '  File "/jobs/visits.py", line 40, in save\n'
        '    raise ValueError("no such\\nthing")\n'
        "ValueError: no such\nthing\n\n\tat py4j.Protocol.getReturnValue(Protocol.java:476)\n"
    )
    tracker.terminated(RUN, text, "FOREACH_BATCH_USER_FUNCTION_ERROR")

    error = tracker.queries()[0].error
    assert error is not None
    assert error.type == "FOREACH_BATCH_USER_FUNCTION_ERROR"
    assert error.message == "ValueError: no such\nthing"
    assert error.where == "visits.py:40"


def test_a_stopped_query_has_no_error(tracker: ProgressTracker) -> None:
    tracker.terminated(RUN, None, None)

    (query,) = tracker.queries()
    assert not query.active
    assert query.error is None


def test_events_before_the_name_are_kept(tracker: ProgressTracker) -> None:
    early = {**STATEFUL, "runId": "early"}
    tracker.progressed(json.dumps(early))
    tracker.started("other", "id2", "early", "/e3/other")
    tracker.started("other", "id2", "early", "/e3/other")

    query = tracker.queries()[1]
    assert (query.name, query.batch, query.input_rows) == ("other", 4, 100)


def test_runs_that_are_never_named_are_not_shown_and_do_not_pile_up(
    tracker: ProgressTracker,
) -> None:
    for number in range(1000):
        tracker.progressed(json.dumps({**STATEFUL, "runId": f"rehearsal-{number}"}))

    assert len(tracker.queries()) == 1
    assert len(tracker._early) < 100


def test_a_query_that_is_started_again_begins_anew(tracker: ProgressTracker) -> None:
    tracker.progressed(json.dumps(STATEFUL))
    tracker.terminated(RUN, "boom", None)
    tracker.started("visits", "id", "run-2", "/e3/visits")
    # Late words about the former run are not about this one.
    tracker.progressed(json.dumps({**STATEFUL, "batchId": 99}))

    (query,) = tracker.queries()
    assert (query.run_id, query.active, query.batch) == ("run-2", True, None)
    assert query.error is None


def test_many_threads_lose_nothing(tracker: ProgressTracker) -> None:
    text = json.dumps(STATEFUL)

    def tell() -> None:
        for _ in range(100):
            tracker.progressed(text)

    threads = [threading.Thread(target=tell) for _ in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join(20)

    assert tracker.queries()[0].input_rows == 4 * 100 * 100
