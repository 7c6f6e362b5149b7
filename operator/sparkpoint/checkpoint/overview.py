"""What is in a checkpoint, for a person: cheap to make, and outspoken about hazards."""

from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

from sparkpoint.checkpoint.endings import END_BYTES, check_end, has_end
from sparkpoint.checkpoint.errors import (
    CheckpointError,
    DamagedError,
    NotACheckpointError,
    NothingCommittedError,
)
from sparkpoint.checkpoint.layout import group_state
from sparkpoint.checkpoint.logs import parse_query_id
from sparkpoint.checkpoint.model import BatchPlan, Checkpoint, PlannedFile
from sparkpoint.checkpoint.names import versioned_name
from sparkpoint.checkpoint.plan import batch_numbers, list_checkpoint, plan_files
from sparkpoint.checkpoint.reader import BatchReader, CheckpointStore, StoreReader
from sparkpoint.checkpoint.rewrite import absolute_schema_roots, is_operator_metadata_v2
from sparkpoint.storage.errors import NotFoundError
from sparkpoint.storage.interface import Entry

__all__ = ["find_queries", "read_checkpoint"]

_MARKS = ("metadata", "offsets", "commits")


def find_queries(store: CheckpointStore) -> list[str]:
    """Folders that are checkpoints of queries: `""` for the root itself, else names below it.

    Empty if there is none.
    """
    folders, files = store.children("")
    if _is_checkpoint(folders, files):
        return [""]
    return [name for name in sorted(folders) if _is_checkpoint(*store.children(name))]


def read_checkpoint(store: CheckpointStore) -> Checkpoint:
    """Describe the query at the store's root; what is wrong with its last batch becomes a hazard.

    NotACheckpointError if there is none.
    """
    files = list_checkpoint(store)
    reader = StoreReader(store)
    commits, offsets = batch_numbers(files, "commits"), batch_numbers(files, "offsets")
    if "metadata" not in files and not offsets:
        raise NotACheckpointError(
            "neither metadata nor offsets/ here: this is not the checkpoint of a query. "
            "Give the folder that contains them."
        )
    plan, problems = _plan(files, reader)
    last = commits[-1] if commits else None
    pending = offsets[-1] if offsets and (last is None or offsets[-1] > last) else None
    return Checkpoint(
        query_id=plan.query_id if plan else _query_id(files, reader, problems),
        batches=tuple(sorted(set(commits) & set(offsets))),
        last_committed=last,
        pending=pending,
        offsets=plan.offsets if plan else None,
        commit=plan.commit if plan else None,
        operators=plan.operators if plan else (),
        files=len(plan.files) if plan else 0,
        bytes=sum(file.size for file in plan.files) if plan else 0,
        hazards=(
            *problems,
            *(plan.warnings if plan else ()),
            *_log_hazards(commits, offsets, pending, stateful=bool(plan and plan.operators)),
            *_leftovers(files.values(), newest=max([*commits, *offsets], default=-1)),
            *(_schema_hazards(plan, reader) if plan else ()),
            *(_cut_off(plan, store) if plan else ()),
        ),
    )


def _is_checkpoint(folders: Iterable[str], files: Iterable[Entry]) -> bool:
    names = {*folders, *(entry.path.rsplit("/", 1)[-1] for entry in files)}
    # A job's folder may hold a query that is called `metadata`, but none without offsets.
    return "offsets" in names and len(names & set(_MARKS)) > 1


def _plan(files: Mapping[str, Entry], reader: StoreReader) -> tuple[BatchPlan | None, list[str]]:
    try:
        return plan_files(files, reader), []
    except NothingCommittedError as error:
        return None, [str(error)]
    except CheckpointError as error:
        return None, [f"the last committed batch cannot be taken: {error}"]


def _query_id(files: Mapping[str, Entry], reader: StoreReader, problems: list[str]) -> str:
    if "metadata" not in files:
        problems.append("metadata is missing, so the query's id is lost: Spark 4.2 refuses this.")
        return ""
    try:
        return parse_query_id(BatchReader(reader, batch=-1).read("metadata"))
    except CheckpointError as error:
        problems.append(str(error))
        return ""


def _log_hazards(
    commits: list[int], offsets: list[int], pending: int | None, *, stateful: bool
) -> list[str]:
    hazards = []
    if pending is not None:
        hazards.append(
            f"batch {pending} was begun and not committed: it did not stop at a boundary. "
            "Resuming the same job replays it; a fork or a rewind drops it."
        )
    gaps = [b for a, b in pairwise(commits) if b != a + 1]
    if gaps and stateful:
        hazards.append(f"the commit log has a gap before batch {gaps[-1]}: it was edited.")
    lost = sorted(set(commits) - set(offsets))
    if lost:
        hazards.append(f"batch {lost[-1]} is committed, but offsets/{lost[-1]} is missing.")
    return hazards


def _leftovers(files: Iterable[Entry], *, newest: int) -> list[str]:
    """State newer than any batch begun: the directory was rewound by deleting logs."""
    hazards = []
    for operator in group_state(files, {}).values():
        versions = {
            name.version: f"{store.folder}/{file}"
            for store in operator.stores.values()
            for file in store.live
            if (name := versioned_name(file)) and name.version > newest + 1
        }
        if versions:
            hazards.append(
                f"{versions[max(versions)]} is of batch {max(versions) - 1}, but the logs end at "
                f"batch {newest}: left from before a rewind. Plain Spark may load it and silently "
                "go on from the wrong state; a savepoint does not take it along."
            )
    return hazards


def _cut_off(plan: BatchPlan, store: CheckpointStore) -> list[str]:
    """State files that end too early, by a look at the end of each."""
    wanted = [file for file in plan.files if has_end(file.path, plan.offsets.conf)]

    def look(file: PlannedFile) -> str | None:
        start = max(0, file.size - END_BYTES)
        try:
            check_end(file.path, store.read_range(file.path, start, END_BYTES))
        except DamagedError as error:
            return f"the last committed batch cannot be taken: {error}"
        except NotFoundError:
            return None  # purged since it was listed
        return None

    with ThreadPoolExecutor(store.parallelism, "look") as pool:
        return [hazard for hazard in pool.map(look, wanted) if hazard is not None]


def _schema_hazards(plan: BatchPlan, reader: StoreReader) -> list[str]:
    wanted = [file.path for file in plan.files if is_operator_metadata_v2(file.path)]
    found = BatchReader(reader, batch=plan.batch).map(wanted, absolute_schema_roots)
    roots = {root for each in found.values() for root in each}
    return [
        f"operator metadata names its schemas below {root}: a plain copy breaks when that is gone. "
        "Restoring a savepoint rewrites it."
        for root in sorted(roots)
    ]
