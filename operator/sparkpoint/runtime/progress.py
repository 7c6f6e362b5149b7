"""What the queries are doing, as Spark's listener tells it: no Spark job, no polling.

The launcher says which queries are the job's (`started`); events of any other run, such as a
rehearsal's, are heard and not shown.
"""

import json
import math
import threading
from collections import OrderedDict
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from sparkpoint.runtime.model import ErrorInfo, QueryProgress, QuerySink
from sparkpoint.runtime.tracebacks import last_words, place_in

if TYPE_CHECKING:
    from pyspark.sql.streaming.listener import StreamingQueryListener

__all__ = ["ProgressTracker"]

_EARLY = 32
"""Runs whose events are kept before the launcher has named them, or never names them."""
_LONGEST = 2000
_NO_WATERMARK = datetime.fromtimestamp(0, UTC)
"""What Spark says before it has seen an event."""
_UNKNOWN = "StreamingQueryException"

Changes = dict[str, object]


class ProgressTracker:
    """The last word about each query; every call is safe from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._queries: dict[str, QueryProgress] = {}
        self._names: dict[str, str] = {}
        self._early: OrderedDict[str, QueryProgress] = OrderedDict()

    def started(
        self,
        name: str,
        query_id: str,
        run_id: str,
        checkpoint: str,
        *,
        sink: QuerySink | None = None,
    ) -> None:
        """A query of the job was started, or started again under its name."""
        known = {"name": name, "id": query_id, "checkpoint": checkpoint, "sink": sink}
        with self._lock:
            if self._names.get(run_id) == name:
                return
            # Its first events may have come before `start()` returned.
            query = self._early.pop(run_id, None) or _nobody(run_id)
            self._queries[name] = query.model_copy(update=known)
            self._names = {run: each for run, each in self._names.items() if each != name}
            self._names[run_id] = name

    def queries(self) -> list[QueryProgress]:
        """All that were started, in the order of their first start."""
        with self._lock:
            return list(self._queries.values())

    def listener(self) -> "StreamingQueryListener":
        """A listener for one session; each session that starts queries needs its own."""
        # Late: the agent and its tests do without Spark.
        from sparkpoint.runtime.agent.listening import make_listener

        return make_listener(self)

    def progressed(self, text: str) -> None:
        """A batch was done; `text` is Spark's JSON about it."""
        content = json.loads(text)
        rows = _whole(content.get("numInputRows"))
        self._change(str(content["runId"]), _changes(content), rows=rows)

    def idle(self, run_id: str) -> None:
        """A trigger found nothing to do."""
        self._change(run_id, {"trigger_active": False})

    def terminated(self, run_id: str, exception: str | None, error_class: str | None) -> None:
        """The query has ended, by itself if there is an exception."""
        error = _error(exception, error_class) if exception is not None else None
        self._change(run_id, {"active": False, "trigger_active": False, "error": error})

    def _change(self, run_id: str, changes: Changes, *, rows: int = 0) -> None:
        with self._lock:
            name = self._names.get(run_id)
            if name is not None:
                self._queries[name] = _changed(self._queries[name], changes, rows)
                return
            before = self._early.pop(run_id, None) or _nobody(run_id)
            self._early[run_id] = _changed(before, changes, rows)
            while len(self._early) > _EARLY:
                self._early.popitem(last=False)


def _nobody(run_id: str) -> QueryProgress:
    """A run that is not named yet."""
    return QueryProgress(name="", id="", run_id=run_id, active=True, trigger_active=True)


def _changed(query: QueryProgress, changes: Changes, rows: int) -> QueryProgress:
    return query.model_copy(update={**changes, "input_rows": query.input_rows + rows})


def _changes(content: Mapping[str, Any]) -> Changes:
    """The fields of QueryProgress that Spark's document about a batch tells."""
    operators = content.get("stateOperators") or []
    durations = content.get("durationMs") or {}
    spent = _whole(durations.get("triggerExecution"))
    return {
        "batch": _whole(content.get("batchId")),
        "input_rows_per_second": _finite(content.get("inputRowsPerSecond")),
        "processed_rows_per_second": _finite(content.get("processedRowsPerSecond")),
        "batch_seconds": spent / 1000,
        "state_rows": sum(_whole(each.get("numRowsTotal")) for each in operators),
        "state_counts": sum(_whole(each.get("numStateStoreInstances")) for each in operators),
        "state_bytes": sum(_whole(each.get("memoryUsedBytes")) for each in operators),
        "state_file_bytes": sum(_file_bytes(each) for each in operators),
        "watermark": _watermark(content),
        # The time in the document is when the trigger fired.
        "last_commit": _moment(content.get("timestamp"), timedelta(milliseconds=spent)),
        "trigger_active": True,
    }


def _file_bytes(operator: Mapping[str, Any]) -> int:
    return _whole((operator.get("customMetrics") or {}).get("rocksdbSstFileSize"))


def _watermark(content: Mapping[str, Any]) -> str | None:
    text = (content.get("eventTime") or {}).get("watermark")
    moment = _moment(text, timedelta())
    return None if moment is None or moment == _NO_WATERMARK else str(text)


def _moment(text: object, later: timedelta) -> datetime | None:
    if not isinstance(text, str):
        return None
    return datetime.fromisoformat(text) + later


def _finite(value: object) -> float:
    """A rate; of the first batch Spark knows none and leaves it out, or says NaN."""
    number = float(value) if isinstance(value, int | float) else 0.0
    return number if math.isfinite(number) else 0.0


def _whole(value: object) -> int:
    """A count; Spark says -1 for one that it does not know."""
    return max(0, int(value)) if isinstance(value, int) else 0


def _error(exception: str, error_class: str | None) -> ErrorInfo:
    """The sentence, without the plan and the stacks below and above it."""
    message, where = last_words(exception)[:_LONGEST], place_in(exception)
    return ErrorInfo(type=error_class or _UNKNOWN, message=message, where=where)
