"""What Prometheus reads of a driver, written from values in memory.

There is no client library and no registry: everything is known at the time of a scrape.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from datetime import datetime

from sparkpoint.runtime.exposition import CONTENT_TYPE, Sample, family, head, value
from sparkpoint.runtime.model import Progress, QueryProgress, SavepointSummary

__all__ = ["CONTENT_TYPE", "SavepointFigures", "render_metrics"]


@dataclass(frozen=True, slots=True)
class SavepointFigures:
    """What became of the savepoints that this agent was asked for."""

    done: int = 0
    failed: int = 0
    running: int = 0
    bytes: int = 0
    new_bytes: int = 0
    seconds: float = 0
    last_done: float | None = None

    def with_done(self, summary: SavepointSummary, now: float) -> "SavepointFigures":
        """One more was made."""
        return replace(
            self,
            done=self.done + 1,
            bytes=self.bytes + summary.bytes,
            new_bytes=self.new_bytes + summary.new_bytes,
            seconds=self.seconds + summary.seconds,
            last_done=now,
        )

    def with_failed(self) -> "SavepointFigures":
        """One more failed."""
        return replace(self, failed=self.failed + 1)


def render_metrics(progress: Progress, savepoints: SavepointFigures) -> str:
    """The whole page."""
    namespace, _, name = progress.job.rpartition("/")
    info = {"job_namespace": namespace, "job_name": name, "epoch": str(progress.epoch)}
    lines = family("sparkpoint_job_info", "gauge", "Which job this is.", [(info, 1)])
    lines += family(
        "sparkpoint_job_phase",
        "gauge",
        "1 for the phase that the driver is in.",
        [({"phase": progress.phase}, 1)],
    )
    for suffix, kind, text, read in _QUERY:
        lines += family(f"sparkpoint_query_{suffix}", kind, text, _samples(progress, read))
    return "\n".join([*lines, *_savepoint_lines(savepoints), ""])


def _samples(progress: Progress, read: Callable[[QueryProgress], float | None]) -> Iterable[Sample]:
    for query in progress.queries:
        number = read(query)
        if number is not None:
            yield {"query": query.name}, number


_QUERY: tuple[tuple[str, str, str, Callable[[QueryProgress], float | None]], ...] = (
    ("active", "gauge", "1 while the query runs.", lambda q: q.active),
    (
        "trigger_active",
        "gauge",
        "1 while the query works through batches, 0 while it waits for input.",
        lambda q: q.trigger_active,
    ),
    ("batch", "gauge", "The last batch that was committed.", lambda q: q.batch),
    ("input_rows_total", "counter", "Rows read since this run began.", lambda q: q.input_rows),
    (
        "input_rows_per_second",
        "gauge",
        "Rate at which rows arrived for the last batch.",
        lambda q: q.input_rows_per_second,
    ),
    (
        "processed_rows_per_second",
        "gauge",
        "Rate at which the last batch was worked through.",
        lambda q: q.processed_rows_per_second,
    ),
    (
        "batch_duration_seconds",
        "gauge",
        "How long the last batch took.",
        lambda q: q.batch_seconds,
    ),
    ("state_rows", "gauge", "Rows in all state stores.", lambda q: q.state_rows),
    ("state_bytes", "gauge", "Memory used by all state stores.", lambda q: q.state_bytes),
    (
        "state_file_bytes",
        "gauge",
        "RocksDB's files on the executors' disks.",
        lambda q: q.state_file_bytes,
    ),
    (
        "watermark_timestamp_seconds",
        "gauge",
        "The watermark of the last batch; absent before the first event.",
        lambda q: datetime.fromisoformat(q.watermark).timestamp() if q.watermark else None,
    ),
    (
        "last_commit_timestamp_seconds",
        "gauge",
        "When the last batch was committed; absent before the first one.",
        lambda q: q.last_commit.timestamp() if q.last_commit else None,
    ),
)


def _savepoint_lines(figures: SavepointFigures) -> list[str]:
    lines = family(
        "sparkpoint_savepoints_total",
        "counter",
        "Savepoints by what became of them.",
        [({"result": "done"}, figures.done), ({"result": "failed"}, figures.failed)],
    )
    lines += family(
        "sparkpoint_savepoints_running",
        "gauge",
        "Savepoints under way or queued.",
        [({}, figures.running)],
    )
    lines += family(
        "sparkpoint_savepoint_bytes_total",
        "counter",
        "Bytes that the savepoints hold.",
        [({}, figures.bytes)],
    )
    lines += family(
        "sparkpoint_savepoint_new_bytes_total",
        "counter",
        "Bytes that the savepoints added to their repositories.",
        [({}, figures.new_bytes)],
    )
    lines += [
        *head("sparkpoint_savepoint_duration_seconds", "summary", "How long captures took."),
        f"sparkpoint_savepoint_duration_seconds_sum {value(figures.seconds)}",
        f"sparkpoint_savepoint_duration_seconds_count {figures.done}",
    ]
    last: list[Sample] = [] if figures.last_done is None else [({}, figures.last_done)]
    lines += family(
        "sparkpoint_savepoint_last_timestamp_seconds",
        "gauge",
        "When the last savepoint was made; absent before the first one.",
        last,
    )
    return lines
