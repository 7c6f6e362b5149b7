"""Where a query writes, out of what Spark says of its sink."""

import pytest

from sparkpoint.runtime.model import QuerySink
from sparkpoint.runtime.sinks import describe_sink

_STREAMING = "org.apache.spark.sql.execution.streaming"


@pytest.mark.parametrize(
    ("name", "text", "sink"),
    [
        (f"{_STREAMING}.FileStreamSink", "FileSink[/data/a[1]]", ("file", "/data/a[1]")),
        (f"{_STREAMING}.sinks.FileStreamSink", "FileSink[s3a://b/c d]", ("file", "s3a://b/c d")),
        ("org.apache.spark.sql.delta.sources.DeltaSink", "DeltaSink[/t]", ("delta", "/t")),
        ("org.apache.iceberg.spark.source.SparkTable", "shop.orders", ("iceberg", None)),
        ("org.apache.spark.sql.kafka010.KafkaTable", "KafkaTable", ("kafka", None)),
        (f"{_STREAMING}.sources.ForeachBatchSink", "ForeachBatchSink", ("foreachBatch", None)),
        (f"{_STREAMING}.ConsoleTable$", "ConsoleTable$@1f2e", ("other", None)),
        ("com.example.DeltaDashboardSink", "Board[/x]", ("other", None)),
    ],
)
def test_a_sink_is_known_by_its_class(name: str, text: str, sink: tuple[str, str | None]) -> None:
    found = describe_sink(name, text)

    assert found == QuerySink.model_validate({"kind": sink[0], "uri": sink[1]})
