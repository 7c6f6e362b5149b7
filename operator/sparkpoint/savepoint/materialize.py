"""Materialize: put a savepoint's checkpoint into a place where Spark can start from it.

The target is empty, or was filled by an earlier restore and not touched since (target.py): then
only the difference is copied. A note in the target (marker.py) says "filling" before the first
file and "complete" after the last, so a restore that was killed is never mistaken for a whole one,
and the same call again finishes it.
"""

import time
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial

from sparkpoint.savepoint import catalogue
from sparkpoint.savepoint.catalogue import Savepoint
from sparkpoint.savepoint.claim import Claim, claimed
from sparkpoint.savepoint.contents import Mode, new_query_ids, pieces_of
from sparkpoint.savepoint.filling import fill, run_all
from sparkpoint.savepoint.leases import hold_to_read, this_process
from sparkpoint.savepoint.manifest import format_for
from sparkpoint.savepoint.marker import Marker
from sparkpoint.savepoint.objects import read_record
from sparkpoint.savepoint.progress import Amount, Progress, Silent
from sparkpoint.savepoint.sinks import SinkAction, SinkPolicy, apply_sink, check_planned, plan_sinks
from sparkpoint.savepoint.target import check_ours, inspect
from sparkpoint.storage import Store

__all__ = ["MaterializeRequest", "MaterializeResult", "Mode", "materialize"]


@dataclass(frozen=True, slots=True, kw_only=True)
class MaterializeRequest:
    """How to restore."""

    mode: Mode = Mode.RESUME
    sink_policy: SinkPolicy = SinkPolicy.REFUSE
    sinks: Mapping[str, Store] = field(default_factory=dict)
    """Query folder -> where its file sink writes, for those that are to be looked at."""
    origin: Store | None = None
    """Where the checkpoint lay that was captured: if its query may run yet, its sink is its own."""
    verify: bool = False
    """Read what an S3 server would copy by itself before it does; all else is read anyway."""


@dataclass(frozen=True, slots=True)
class MaterializeResult:
    """What is in the target now, and what it took."""

    savepoint: Savepoint
    uri: str
    mode: Mode
    files: int
    bytes: int
    copied_files: int
    copied_bytes: int
    removed_files: int
    query_ids: Mapping[str, str]
    sink_actions: tuple[SinkAction, ...]
    seconds: float


def materialize(
    store: Store,
    savepoint: Savepoint,
    target: Store,
    request: MaterializeRequest,
    *,
    progress: Progress | None = None,
) -> MaterializeResult:
    """Fill the target with the savepoint's checkpoint."""
    begun = time.monotonic()
    progress = progress or Silent()
    manifest = savepoint.manifest
    purpose, pins = f"restore {savepoint.key}", [manifest.files.table]
    with hold_to_read(store, purpose, pins=pins, progress=progress) as lease:
        # Now that the lease pins it, it must still be there.
        savepoint = catalogue.reread(store, savepoint)
        table = catalogue.read_table(store, savepoint)
        plan = partial(
            plan_sinks,
            manifest,
            request.sinks,
            mode=request.mode,
            policy=request.sink_policy,
            origin=request.origin,
        )
        actions = plan()
        found = inspect(target)
        query_ids = _query_ids(found.marker, savepoint, request.mode)
        pieces = pieces_of(
            manifest,
            table,
            mode=request.mode,
            query_ids=query_ids,
            root=target.hadoop_uri,
            read=lambda record: read_record(store, record),
        )
        check_ours(target, found, pieces)
        kept = {p: n for p, n in found.good.items() if p in pieces and pieces[p].digest == n.digest}
        marker = Marker(
            # That of the note it will be: what reads this one must be able to read that one.
            format=format_for(piece.digest for piece in pieces.values()),
            state="filling",
            savepoint=savepoint.id,
            key=savepoint.key,
            mode=request.mode.value,
            attempt=uuid.uuid4().hex,
            owner=this_process(),
            query_ids=dict(query_ids),
            files=kept,
            paths=sorted({*found.live, *pieces}),
        )
        removed = [path for path in found.live if path not in pieces]
        missing = [piece for path, piece in pieces.items() if path not in kept]
        copied = Amount(len(missing), sum(piece.size for piece in missing))
        left = None if found.left is None else found.left.union(marker.paths)
        with claimed(target, marker, over=found.stamp, left=left) as claim:
            progress.start(f"restore {savepoint.key}", copied)
            _clear(target, removed, claim)
            fill(target, store, missing, progress, before=claim.check, verify=request.verify)
            if lease:
                lease.check()
            # Filling may have taken long, and whoever writes to the sinks has not waited for us.
            check_planned(actions, plan())
            for action in actions:
                apply_sink(action, request.sinks[action.query])
            target.sync()
            claim.check()
            check_planned([], plan())
            claim.complete(pieces)
    return MaterializeResult(
        savepoint=savepoint,
        uri=target.uri,
        mode=request.mode,
        files=len(pieces),
        bytes=sum(piece.size for piece in pieces.values()),
        copied_files=copied.files,
        copied_bytes=copied.bytes,
        removed_files=len(removed),
        query_ids=query_ids,
        sink_actions=tuple(actions),
        seconds=round(time.monotonic() - begun, 3),
    )


def _query_ids(marker: Marker | None, savepoint: Savepoint, mode: Mode) -> dict[str, str]:
    """A fork that is run again keeps the id it has announced."""
    if marker is not None and (marker.savepoint, marker.mode) == (savepoint.id, mode.value):
        return dict(marker.query_ids)
    return new_query_ids(savepoint.manifest, mode)


def _clear(target: Store, paths: list[str], claim: Claim) -> None:
    deletions = [partial(target.delete, path) for path in paths]
    run_all(deletions, threads=target.parallelism, name="clear", before=claim.check)
