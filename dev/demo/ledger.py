"""What the counts must be: the log's content follows from the numbers of its files.

A job has read the files in their order, so that what it has counted is the truth of the first so
many files, or it is wrong. How many these are is found out from the counts themselves: the log
grows while we look.
"""

import json
import runpy
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from dev.demo.stage import Stage
from dev.jobs import EXAMPLE, LOG_LINES

__all__ = ["Counts", "explained_by", "read_counts", "visits_of"]

_LOG: Final = runpy.run_path(str(EXAMPLE / "make_log.py"))
_READ: Final = """
import json, pathlib, sys
folder, last = pathlib.Path(sys.argv[1]), int(sys.argv[2])
newest, columns = {}, []
for batch in sorted(folder.glob("batch=*")):
    if int(batch.name[6:]) > last:
        break
    for file in batch.glob("part-*.json"):
        for row in map(json.loads, file.read_text().splitlines()):
            newest[row["url"]], columns = row["count"], sorted(row)
files = len(list(pathlib.Path("/data/input").glob("access-*.log")))
print(json.dumps({"visits": newest, "columns": columns, "files": files}))
"""
"""Of committed batches alone: one that was begun, or is of a past that was undone, is not."""


@dataclass(frozen=True, slots=True)
class Counts:
    """What a job has written up to a committed batch."""

    batch: int
    visits: Mapping[str, int]
    columns: tuple[str, ...]
    """Of the newest row."""
    files: int
    """How many files the log has by now."""

    @property
    def total(self) -> int:
        """Visits of all URLs."""
        return sum(self.visits.values())


def read_counts(stage: Stage, batch: int, *, folder: str = "/data/output") -> Counts:
    """The newest count of every URL up to this batch."""
    found: dict[str, Any] = json.loads(stage.python(_READ, folder, str(batch)))
    return Counts(batch, found["visits"], tuple(found["columns"]), found["files"])


def visits_of(first: int, end: int) -> dict[str, int]:
    """How often each URL is in the files from `first` to before `end`."""
    counts: dict[str, int] = _LOG["expected_visits"](range(first, end), LOG_LINES)
    return counts


def explained_by(visits: Mapping[str, int], *, since: int, most: int) -> int | None:
    """After how many files a job that began with the state of `since` files tells these counts.

    It tells of URLs alone that it met, each with all of its visits. None: after no number of files
    up to `most`, which is to say that something was lost or counted twice.
    """
    totals, met = visits_of(0, since), set[str]()
    for end in range(since, most + 1):
        if {url: totals[url] for url in met} == dict(visits):
            return end
        for url, count in visits_of(end, end + 1).items():
            totals[url] = totals.get(url, 0) + count
            met.add(url)
    return None
