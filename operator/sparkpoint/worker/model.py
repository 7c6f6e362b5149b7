"""The one document that a worker answers with: its termination message, and its standard output.

The savepoint in it has the shape that the agent answers with, so whoever asked need not care which
of the two has made it.
"""

from datetime import datetime
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field

from sparkpoint.runtime.model import Document, SavepointSummary

__all__ = ["Answer", "Details", "QueryDetails", "Word"]

Word = Literal[
    "Captured",
    "NothingCommitted",
    "Removed",
    "Disposed",
    "Verified",
    "Corrupt",
    "Inspected",
    "Fetched",
    "Repartitioned",
    "Compatible",
    "Incompatible",
    "Unknown",
    "Failed",
    "Refused",
]
"""`Failed` and `Refused` are the two that leave the question open."""


def _clean(text: object) -> object:
    """A name on a disk need not be text; JSON must be."""
    if not isinstance(text, str):
        return text
    return text.encode("utf-8", "backslashreplace").decode()


Text = Annotated[str, BeforeValidator(_clean)]


class QueryDetails(Document):
    """One query in a savepoint."""

    name: str
    """Its folder, which is its name wherever that can be a folder's."""
    id: str
    batch: int
    partitions: int | None = None
    """Of its state; None if it has none."""
    provider: str | None = None
    watermark: datetime | None = None
    """None before the first event."""
    pending: bool = False
    rows: int | None = None
    """Counted by a deep verification."""


class Details(Document):
    """What a manifest says beyond the summary."""

    namespace: str
    job: str
    revision: str | None = None
    spark_version: str | None = None
    trigger: str | None = None
    epoch: str | None = None
    source: str = ""
    """The checkpoint that was captured."""
    queries: tuple[QueryDetails, ...] = ()


class Answer(Document):
    """What came of the task."""

    answer: Word
    message: Text = ""
    retry_helps: bool = False
    """Of a failure, or of what is not known: whether the same command may come to more later."""
    kind: str | None = None
    """Of a failure, or of a trial without a verdict on the code whose reason is certain, in one
    word: NameTaken, Unreachable, SavepointUnreadable, …"""
    unforeseen: bool = False
    """Of a failure: a fault of ours, whose trace is in the log."""
    savepoint: SavepointSummary | None = None
    details: Details | None = None
    problems: tuple[Text, ...] = ()
    """What is wrong with a savepoint, a trial or a command line, one by one."""
    notes: tuple[Text, ...] = ()
    """What else is good to know of a trial."""
    removed: tuple[Text, ...] = ()
    """Epoch directories that were found, and are gone."""
    freed_bytes: int | None = None
    """What a collection took from the repository; None: there was none."""
    omitted: dict[str, int] = Field(default_factory=dict)
    """Field -> how many of its items did not fit into a termination message."""

    @property
    def batches(self) -> dict[str, int]:
        """The batch of each query in the savepoint."""
        return dict(self.savepoint.batches) if self.savepoint else {}
