"""State that only Spark reads: savepoints restored to a throw-away folder, their stores to Parquet.

Never the directory of a query, and never the repository itself: Spark's reader may write where it
reads.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from sparkpoint.savepoint import (
    Manifest,
    MaterializeRequest,
    Mode,
    Progress,
    Repository,
    Savepoint,
    SinkPolicy,
)
from sparkpoint.savepoint.manifest import QueryInfo
from sparkpoint.savepoint.progress import Amount
from sparkpoint.state.errors import SparkFailedError
from sparkpoint.state.spark.exporting import Export, Exported, Exports
from sparkpoint.state.spark.process import require_spark, run_spark
from sparkpoint.state.spark.words import condition_in
from sparkpoint.state.views import StateView
from sparkpoint.storage import DirectoryStore

__all__ = ["Wanted", "copy_to", "exported", "spark_room"]

_ROOM = 4
"""Free space per byte of a savepoint: the copy, and what Spark makes of it."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """One store of one query of a savepoint."""

    repository: Repository
    savepoint: Savepoint
    query: QueryInfo
    view: StateView


def spark_room(*manifests: Manifest) -> int:
    """Bytes that must be free for copies of these savepoints."""
    return _ROOM * sum(manifest.files.bytes for manifest in manifests)


def copy_to(repository: Repository, savepoint: Savepoint, folder: Path, progress: Progress) -> None:
    """Restore a savepoint as it is, to be thrown away."""
    whole = MaterializeRequest(mode=Mode.RESUME, sink_policy=SinkPolicy.IGNORE)
    repository.materialize(savepoint, DirectoryStore(folder), whole, progress=progress)


def exported(
    wanted: Sequence[Wanted],
    *,
    folder: Path,
    pairs: bool,
    progress: Progress,
) -> list[Path]:
    """Folders with the rows of each, in one start of Spark."""
    require_spark("state that only Spark can read")
    copies: dict[str, Path] = {}
    exports, folders = [], []
    for number, each in enumerate(wanted):
        if each.savepoint.id not in copies:
            copy = copies[each.savepoint.id] = folder / f"copy-{len(copies)}"
            copy_to(each.repository, each.savepoint, copy, progress)
        target = folder / f"rows-{number}"
        folders.append(target)
        exports.append(_export(each, copies[each.savepoint.id], target, pairs=pairs))
    progress.start("reading the state with Spark", Amount())
    order = Exports(scratch=str(folder), exports=exports).model_dump_json()
    answer = run_spark("sparkpoint.state.spark.exporting", order, folder)
    if (problem := Exported.model_validate_json(answer).problem) is not None:
        raise SparkFailedError(f"Spark cannot read this state: {condition_in(problem)}")
    return folders


def _export(wanted: Wanted, copy: Path, target: Path, *, pairs: bool) -> Export:
    return Export(
        checkpoint=str(copy / wanted.query.prefix),
        batch=wanted.query.batch,
        format=2 if wanted.query.commits_version > 1 else 1,
        options=dict(wanted.view.options),
        folder=str(target),
        pairs=pairs,
    )
