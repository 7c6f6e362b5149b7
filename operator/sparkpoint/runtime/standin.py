"""What `start()` gives the script in a rehearsal: a query that seems to have just begun.

It never ends and never fails, whatever becomes of the trial behind it: a script that looks must not
go on to what it does after the end of a query.
"""

import uuid
from typing import Any

from pyspark.errors import StreamingQueryException
from pyspark.sql.streaming.listener import StreamingQueryProgress
from pyspark.sql.streaming.query import StreamingQuery

__all__ = ["StandIn"]


class StandIn(StreamingQuery):
    """Waiting for it is a matter of the hooks, as for every query."""

    # The names are PySpark's.

    def __init__(self, name: str) -> None:
        self._name, self._id, self._run_id = name, str(uuid.uuid4()), str(uuid.uuid4())

    @property
    def id(self) -> str:
        """Not the one that the query will have."""
        return self._id

    @property
    def runId(self) -> str:  # noqa: N802
        """That of nothing."""
        return self._run_id

    @property
    def name(self) -> str:
        """The query's own."""
        return self._name

    @property
    def isActive(self) -> bool:  # noqa: N802
        """Always."""
        return True

    @property
    def status(self) -> dict[str, Any]:
        """As before the first batch."""
        return {
            "message": "Initializing sources",
            "isDataAvailable": False,
            "isTriggerActive": False,
        }

    @property
    def recentProgress(self) -> list[StreamingQueryProgress]:  # noqa: N802
        """None yet."""
        return []

    @property
    def lastProgress(self) -> StreamingQueryProgress | None:  # noqa: N802
        """None yet."""
        return None

    def exception(self) -> StreamingQueryException | None:
        """It has not failed."""
        return None

    def explain(self, extended: bool = False) -> None:
        """There is no plan yet."""
        print("No physical plan. Waiting for data.")

    def stop(self) -> None:
        """The rehearsal ends it."""
