"""Materialize: put a savepoint's checkpoint into a place where Spark can start from it.

The target is empty, or was filled by an earlier restore and not touched since: then only the
difference is copied. A note in the target (marker.py) says "filling" before the first file and
"complete" after the last, so a restore that was killed is never mistaken for a whole one, and the
same call again finishes it.
"""

import time
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial

from sparkpoint.savepoint import catalogue
from sparkpoint.savepoint.catalogue import Savepoint
from sparkpoint.savepoint.contents import Mode, Piece, new_query_ids, pieces_of
from sparkpoint.savepoint.errors import TargetChangedError, TargetNotEmptyError
from sparkpoint.savepoint.filling import fill, run_all
from sparkpoint.savepoint.leases import hold
from sparkpoint.savepoint.manifest import canonical
from sparkpoint.savepoint.marker import MARKER, FileNote, Marker, read_marker
from sparkpoint.savepoint.objects import read_record
from sparkpoint.savepoint.progress import Amount, Progress, Silent
from sparkpoint.savepoint.sinks import SinkAction, SinkPolicy, apply_sink, plan_sinks
from sparkpoint.storage import Entry, Store
from sparkpoint.storage.errors import AlreadyExistsError, ChangedError

__all__ = ["MaterializeRequest", "MaterializeResult", "Mode", "materialize"]


@dataclass(frozen=True, slots=True, kw_only=True)
class MaterializeRequest:
    """How to restore."""

    mode: Mode = Mode.RESUME
    sink_policy: SinkPolicy = SinkPolicy.REFUSE
    sinks: Mapping[str, Store] = field(default_factory=dict)
    """Query folder -> where its file sink writes, for those that are to be looked at."""


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


@dataclass(frozen=True, slots=True)
class _Found:
    """What the target held before."""

    marker: Marker | None
    stamp: str | None
    live: Mapping[str, Entry]
    good: Mapping[str, FileNote]
    """Files that an earlier restore put there, unchanged."""


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
    with hold(store, f"restore {savepoint.key}", pins=[manifest.files.table]) as lease:
        # Now that the lease pins it, it must still be there.
        savepoint = catalogue.reread(store, savepoint)
        table = catalogue.read_table(store, savepoint)
        actions = plan_sinks(manifest, request.sinks, mode=request.mode, policy=request.sink_policy)
        found = _inspect(target)
        query_ids = _query_ids(found.marker, savepoint, request.mode)
        pieces = pieces_of(
            manifest,
            table,
            mode=request.mode,
            query_ids=query_ids,
            root=target.hadoop_uri,
            read=lambda record: read_record(store, record),
        )
        kept = {p: n for p, n in found.good.items() if p in pieces and pieces[p].digest == n.digest}
        claim = _claim(
            target,
            found,
            Marker(
                state="filling",
                savepoint=savepoint.id,
                key=savepoint.key,
                mode=request.mode.value,
                attempt=uuid.uuid4().hex,
                query_ids=dict(query_ids),
                files=kept,
            ),
        )
        removed = [path for path in found.live if path not in pieces]
        missing = [piece for path, piece in pieces.items() if path not in kept]
        copied = Amount(len(missing), sum(piece.size for piece in missing))
        progress.start(f"restore {savepoint.key}", copied)
        _clear(target, removed)
        fill(target, store, missing, progress)
        lease.check()
        for action in actions:
            apply_sink(action, request.sinks[action.query])
        target.sync()
        _complete(target, claim, pieces)
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


def _inspect(target: Store) -> _Found:
    """Look at the target; refuse one that is neither empty nor ours."""
    marker = read_marker(target)
    live = {entry.path: entry for entry in target.list() if entry.path != MARKER}
    if marker is None:
        if live:
            raise TargetNotEmptyError(
                f"{target.uri} is not empty ({len(live)} files, such as {min(live)}), and no "
                "restore of ours filled it. Restore into a new place; nothing is ever mixed."
            )
        return _Found(None, None, {}, {})
    good = {
        path: note
        for path, note in marker.files.items()
        if path in live and (live[path].size, live[path].stamp) == (note.size, note.stamp)
    }
    if marker.complete:
        _check_untouched(target, marker, live, good)
    return _Found(marker, target.stat(MARKER).stamp, live, good)


def _check_untouched(
    target: Store, marker: Marker, live: Mapping[str, Entry], good: Mapping[str, FileNote]
) -> None:
    changed = sorted((set(live) | set(marker.files)) - set(good))
    if changed:
        raise TargetChangedError(
            f"{target.uri} was restored from {marker.savepoint[:12]} and changed since "
            f"({len(changed)} files, such as {changed[0]}): a query has run there. Restore into a "
            "new place, or remove this one if nothing in it is needed."
        )


def _query_ids(marker: Marker | None, savepoint: Savepoint, mode: Mode) -> dict[str, str]:
    """A fork that is run again keeps the id it has announced."""
    if marker is not None and (marker.savepoint, marker.mode) == (savepoint.id, mode.value):
        return dict(marker.query_ids)
    return new_query_ids(savepoint.manifest, mode)


def _claim(target: Store, found: _Found, marker: Marker) -> tuple[Marker, str]:
    """Say that filling begins; of two restores into one target the slower one fails."""
    data = canonical(marker)
    try:
        if found.stamp is None:
            target.create(MARKER, data)
        else:
            target.replace(MARKER, data, stamp=found.stamp)
    except (AlreadyExistsError, ChangedError) as error:
        raise TargetChangedError(
            f"Another restore into {target.uri} began at the same time. Let it finish first."
        ) from error
    for entry in target.abandoned():
        target.discard(entry)
    return marker, target.stat(MARKER).stamp


def _clear(target: Store, paths: list[str]) -> None:
    deletions = [partial(target.delete, path) for path in paths]
    run_all(deletions, threads=target.parallelism, name="clear")


def _complete(target: Store, claim: tuple[Marker, str], pieces: Mapping[str, Piece]) -> None:
    """Check that exactly the pieces are there, and write that down."""
    marker, stamp = claim
    live = {entry.path: entry for entry in target.list() if entry.path != MARKER}
    strange = sorted(
        path
        for path in set(live) ^ set(pieces)
        or {path for path in live if live[path].size != pieces[path].size}
    )
    if strange:
        raise TargetChangedError(
            f"Somebody else wrote to {target.uri} during the restore ({strange[0]}). Stop whatever "
            "runs there, and restore again."
        )
    notes = {
        path: FileNote(size=entry.size, stamp=entry.stamp, digest=pieces[path].digest)
        for path, entry in live.items()
    }
    done = marker.model_copy(update={"state": "complete", "files": notes})
    try:
        target.replace(MARKER, canonical(done), stamp=stamp)
    except ChangedError as error:
        raise TargetChangedError(
            f"Another restore into {target.uri} has taken over. Let it finish."
        ) from error
