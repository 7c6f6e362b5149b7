"""What the parts of the runtime tell each other, and what the agent tells the world.

Every document is a pydantic model: the agent sends them, the client reads them, the termination
message is one of them.
"""

from datetime import datetime
from enum import Enum
from typing import Literal, Protocol

from pydantic import BaseModel, ConfigDict

__all__ = [
    "EndReason",
    "ErrorInfo",
    "GateInfo",
    "Hindrance",
    "Job",
    "OperationState",
    "Progress",
    "QueryEnd",
    "QueryProgress",
    "QuerySink",
    "RehearsalInfo",
    "RehearsedQuery",
    "SavepointOperation",
    "SavepointRequest",
    "SavepointSummary",
    "SinkKind",
    "StopOperation",
    "StopReport",
    "StopRequest",
    "Termination",
    "Verdict",
]

Verdict = Literal["compatible", "incompatible", "unknown"]
"""What a rehearsal says; `unknown`: it could not find out."""
Hindrance = Literal["savepoint", "script"]
"""What kept a rehearsal from its verdict beyond doubt: the savepoint could not be copied, or the
script failed before its first query."""
SinkKind = Literal["file", "delta", "iceberg", "kafka", "foreachBatch", "other"]
"""As a manifest has it."""


class Document(BaseModel):
    """Fields that a reader does not know are from a newer writer, and are ignored."""

    model_config = ConfigDict(frozen=True, extra="ignore", hide_input_in_errors=True)


class ErrorInfo(Document):
    """An exception in words that fit into a status field."""

    type: str
    """The Python class, or Spark's error class such as STATE_STORE_VALUE_SCHEMA_NOT_COMPATIBLE."""
    message: str
    where: str | None = None
    """`script.py:12` where the script is to blame."""
    retry_helps: bool = False
    """Whether the same request may succeed later."""
    remedy: str | None = None
    """What to do about it, if the message does not say so itself."""


class QuerySink(Document):
    """Where a query writes, as Spark says it."""

    kind: SinkKind
    uri: str | None = None
    """Its place, where it has one that restores can look at."""


class QueryProgress(Document):
    """One query as its listener has seen it last."""

    name: str
    id: str
    run_id: str
    active: bool
    batch: int | None = None
    """The last batch that was reported as done; None before the first one."""
    input_rows: int = 0
    """Rows read since this run began: a counter, which rates between two looks can be made of."""
    input_rows_per_second: float = 0
    processed_rows_per_second: float = 0
    batch_seconds: float = 0
    state_rows: int = 0
    state_counts: int = 0
    """Stores of partitions that the rows were counted in: more than there are if the batch, or a
    part of it, was computed more than once, and then rows were counted more than once, too."""
    state_bytes: int = 0
    """Memory used by the state stores, as Spark reports it."""
    state_file_bytes: int = 0
    """RocksDB's files on the executors' disks; 0 for the provider that keeps all in memory."""
    watermark: str | None = None
    last_commit: datetime | None = None
    trigger_active: bool = False
    checkpoint: str = ""
    sink: QuerySink | None = None
    """None: Spark did not tell."""
    error: ErrorInfo | None = None


class GateInfo(Document):
    """Whether queries may start."""

    epoch: int
    state: Literal["none", "waiting", "open", "closed"]
    """`none`: not gated. `closed`: this epoch is over, nothing starts any more."""
    waiting_since: datetime | None = None


class RehearsedQuery(Document):
    """What one query's batch on a copy of its checkpoint showed."""

    verdict: Verdict | None = None
    """None: it is under way."""
    error: ErrorInfo | None = None
    note: str | None = None
    """What else a person should know."""
    input_rows: int | None = None
    """Rows that the batch read; with 0 no function of the script has seen any of them."""
    seconds: float | None = None
    """From `start()` to the commit."""


class RehearsalInfo(Document):
    """What a trial run on a copy of a savepoint showed."""

    savepoint: str
    state: Literal["running", "done"]
    verdict: Verdict | None = None
    """The worst of all queries'; None while it is under way."""
    error: ErrorInfo | None = None
    """What kept it from finding out, if that is none of a single query."""
    hindrance: Hindrance | None = None
    """Whose error it is, where that is certain."""
    queries: dict[str, RehearsedQuery] = {}


class Progress(Document):
    """Answer of GET /v1/progress."""

    job: str
    epoch: int
    phase: Literal["starting", "rehearsing", "gated", "running", "stopping", "ended"]
    gate: GateInfo
    queries: list[QueryProgress]
    rehearsal: RehearsalInfo | None = None
    now: datetime | None = None
    """By the driver's clock, which the other times are of, too: whoever has another clock can tell
    how long ago they were. None: an agent from before this was told."""


class QueryEnd(Document):
    """Where a query stopped."""

    batch: int | None
    """The last committed one."""
    clean: bool
    """The offset log ends with the commit log: nothing is in flight."""
    error: ErrorInfo | None = None


class StopReport(Document):
    """How a stop went, per query."""

    clean: bool
    queries: dict[str, QueryEnd]
    seconds: float


class OperationState(Enum):
    """How far a named operation is."""

    RUNNING = "Running"
    DONE = "Done"
    FAILED = "Failed"


class SavepointRequest(Document):
    """Body of PUT /v1/savepoints/{name}."""

    repository: str
    endpoint_url: str | None = None
    parent: str = "continued"
    tags: tuple[str, ...] = ()
    revision: str | None = None
    trigger: str | None = None


class SavepointSummary(Document):
    """What a manifest says in short."""

    id: str
    name: str
    batches: dict[str, int]
    files: int
    bytes: int
    new_bytes: int
    seconds: float
    created: datetime | None = None
    parent: str | None = None
    """`namespace/job/name` of the savepoint before it."""
    location: str = ""
    """URI of the manifest."""
    pending: bool = False
    """A batch was begun and not committed: always false after a clean stop."""
    left_out: tuple[str, ...] = ()
    """Queries that have not begun a batch yet: there is nothing to take of them."""


class SavepointOperation(Document):
    """Answer of PUT and GET /v1/savepoints/{name}."""

    name: str
    state: OperationState
    stage: str = ""
    done_bytes: int = 0
    total_bytes: int = 0
    result: SavepointSummary | None = None
    error: ErrorInfo | None = None


class StopRequest(Document):
    """Body of PUT /v1/stop/{operation}."""

    savepoint_name: str | None = None
    """Capture under this name once every query stands at its boundary."""
    savepoint: SavepointRequest | None = None
    budget_seconds: float | None = None
    """How long running batches may take; the runtime's own budget if None."""


class StopOperation(Document):
    """Answer of PUT and GET /v1/stop/{operation}."""

    operation: str
    state: OperationState
    report: StopReport | None = None
    savepoint: SavepointOperation | None = None
    error: ErrorInfo | None = None


class EndReason(Enum):
    """Why the driver ended."""

    SCRIPT_ENDED = "ScriptEnded"
    SCRIPT_FAILED = "ScriptFailed"
    QUERY_FAILED = "QueryFailed"
    STOPPED = "Stopped"
    """On request of the agent."""
    TERMINATED = "Terminated"
    """By SIGTERM or SIGINT."""
    GATE_NOT_OPENED = "GateNotOpened"
    EPOCH_OVER = "EpochOver"
    INCOMPATIBLE = "Incompatible"
    """The rehearsal showed that the script cannot go on from the savepoint."""
    REFUSED = "Refused"
    """Something about the request or the surroundings: bad option, port taken, epoch directory."""
    INTERNAL = "InternalError"


class Termination(Document):
    """The termination message of the pod: at most 4 KiB of JSON."""

    reason: EndReason
    message: str
    exit_code: int
    clean: bool
    epoch: int
    operation: str | None = None
    """The stop that was asked for."""
    savepoint: str | None = None
    queries: dict[str, QueryEnd] = {}
    queries_omitted: int = 0
    """How many did not fit."""
    error: ErrorInfo | None = None
    hindrance: Hindrance | None = None
    """Of the rehearsal, if there was one: a driver may end before anybody has asked for it."""
    out_of_memory: bool = False
    """The kernel has killed processes of this container, which was at its limit of memory."""


class Job(Protocol):
    """What the agent needs of the running job; every call is safe from any thread."""

    def progress(self) -> Progress:
        """Everything as it is now, from memory: no call into Spark."""
        ...

    def stop(self, operation: str, budget_seconds: float | None) -> StopReport:
        """Bring every query to its boundary and keep it there; blocks; the same report again.

        The process does not end before `finish` is called for this operation.
        """
        ...

    def finish(self, operation: str, savepoint: str | None) -> None:
        """Let the process end now that everything about the stop is done."""
        ...

    def open_gate(self, epoch: int) -> GateInfo:
        """Let queries start if this is the epoch; any other one closes or refuses it."""
        ...

    def checkpoints(self) -> dict[str, str]:
        """Query -> URI of its checkpoint, for those that have been started."""
        ...
