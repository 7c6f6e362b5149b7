"""What the agent and the process that captures tell each other: lines of JSON on its two pipes.

Both sides import this module, so it imports next to nothing.
"""

import sys
from dataclasses import dataclass
from urllib.parse import unquote

from pydantic import Field

from sparkpoint.runtime.model import (
    Document,
    ErrorInfo,
    QuerySink,
    SavepointRequest,
    SavepointSummary,
)

__all__ = ["CaptureSettings", "Counted", "Go", "Line", "Order", "folder_of"]


@dataclass(frozen=True, slots=True, kw_only=True)
class CaptureSettings:
    """What every savepoint of this driver has in common."""

    namespace: str = "default"
    job: str
    epoch: int
    epoch_dir: str
    endpoint_url: str | None = None
    """The S3 server of the epoch directory, and of a repository whose request names none."""
    revision: str | None = None
    spark_version: str | None = None
    # Not put on the path by `-P`: the folder of the user's script, whose modules may go by any
    # name. Tests put a pretended process here.
    command: tuple[str, ...] = (sys.executable, "-P", "-m", "sparkpoint.runtime.capturing")

    def order(self, name: str, request: SavepointRequest, *, stops: bool = False) -> "Order":
        """The order for one savepoint."""
        return Order(
            namespace=self.namespace,
            job=self.job,
            name=name,
            epoch=str(self.epoch),
            source=self.epoch_dir,
            source_endpoint=self.endpoint_url,
            repository=request.repository,
            repository_endpoint=request.endpoint_url or self.endpoint_url,
            parent=request.parent,
            tags=request.tags,
            revision=request.revision or self.revision,
            trigger=request.trigger,
            spark_version=self.spark_version,
            stops=stops,
        )


class Order(Document):
    """The first line to the process: what will be wanted. It looks whether that can be done."""

    namespace: str
    job: str
    name: str
    epoch: str
    source: str
    source_endpoint: str | None
    repository: str
    repository_endpoint: str | None
    parent: str
    tags: tuple[str, ...]
    revision: str | None
    trigger: str | None
    spark_version: str | None
    stops: bool
    """The job is stopped for it, so everything that can fail before must fail before."""


class Counted(Document):
    """The state of a query after a batch, as Spark has told it: see StateCount in savepoint/."""

    batch: int
    rows: int
    counts: int


class Go(Document):
    """The second line: now. Until then nothing of the checkpoint is read."""

    checkpoints: dict[str, str]
    """Query -> URI of its checkpoint."""
    sinks: dict[str, QuerySink]
    """Query -> where it writes, as far as that is known."""
    counted: dict[str, Counted] = Field(default_factory=dict)
    """Query -> how much state it had, as far as that is known."""


class Line(Document):
    """A line from the process; the last one has a result or an error."""

    ready: bool = False
    stage: str | None = None
    done_bytes: int = 0
    total_bytes: int = 0
    result: SavepointSummary | None = None
    error: ErrorInfo | None = None


def folder_of(epoch_dir: str, checkpoint: str) -> str | None:
    """The folder of a checkpoint right below the epoch directory; None if it is elsewhere."""
    parent, _, folder = _plain(checkpoint).rpartition("/")
    return folder if parent == _plain(epoch_dir) else None


def _plain(uri: str) -> str:
    """One spelling for all the ways in which Spark and people write a place."""
    uri = uri.rstrip("/")
    if uri.startswith("s3a:"):
        return f"s3:{uri.removeprefix('s3a:')}"
    if uri.startswith("file:///"):
        # As storage/ reads it: only this form is escaped.
        return unquote(uri.removeprefix("file://"))
    return uri.removeprefix("file:")
