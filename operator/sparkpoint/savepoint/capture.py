"""Capture: a consistent savepoint of a checkpoint, also of a running query.

Nothing is paused or locked. Each query is planned at its last commit, copied soonest-purged first,
and every file is compared with what the plan saw (size and stamp of exactly the version that was
read). If Spark purged or rewrote one meanwhile, the query is planned anew at a newer batch, a
bounded number of times; what was read already is not read again.

The order of writes (objects, table, manifest) and the lease around them are what keeps the
repository whole whenever we die: see docs/repository-format.md.
"""

import time
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from sparkpoint.checkpoint.errors import CheckpointError
from sparkpoint.checkpoint.overview import find_queries
from sparkpoint.checkpoint.plan import DEFAULT_MAX_CHAIN
from sparkpoint.savepoint import catalogue, publish
from sparkpoint.savepoint.catalogue import Savepoint
from sparkpoint.savepoint.describe import StateCount, describe_query
from sparkpoint.savepoint.errors import NameTakenError, NoQueryError
from sparkpoint.savepoint.garbage import seldom_searched
from sparkpoint.savepoint.leases import Lease, hold
from sparkpoint.savepoint.lineage import Lineage, no_lineage, read_lineage
from sparkpoint.savepoint.manifest import (
    FileSet,
    Manifest,
    Parent,
    SinkInfo,
    SourceInfo,
    Timing,
    canonical,
    format_for,
    moment,
)
from sparkpoint.savepoint.marker import Marker, read_marker
from sparkpoint.savepoint.names import check_name, manifest_path
from sparkpoint.savepoint.objects import ObjectWriter
from sparkpoint.savepoint.parents import continued
from sparkpoint.savepoint.progress import Progress, Silent
from sparkpoint.savepoint.sinknote import read_sink_note
from sparkpoint.savepoint.table import FileRecord, encode_table
from sparkpoint.savepoint.taking import QueryTaker, TakenQuery
from sparkpoint.storage import Store
from sparkpoint.storage.errors import NotFoundError

__all__ = ["CONTINUED", "LATEST", "NONE", "CaptureRequest", "CaptureResult", "capture"]

CONTINUED = "continued"
LATEST = "latest"
NONE = "none"
_SKEW = 60.0
"""Seconds that clocks may differ by before one of them is wrong."""
_TRIES = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class CaptureRequest:
    """What to capture, and how to call it."""

    namespace: str = "default"
    job: str
    name: str | None = None
    """A name with the time in it is made if there is none."""
    parent: str | Savepoint = CONTINUED
    """`continued`: what this checkpoint was last captured as or restored from, else the latest of
    the job; or `latest`, `none`, a name or id, or a savepoint that was found already."""
    queries: tuple[str, ...] = ()
    """Folders of queries below the checkpoint's root; all that are found if empty."""
    root_query: str = ""
    """The folder that a query at the root itself gets in the savepoint, and so where it is
    restored; the root again if empty."""
    batch: int | None = None
    """The last committed one if None."""
    tags: tuple[str, ...] = ()
    revision: str | None = None
    spark_version: str | None = None
    epoch: str | None = None
    trigger: str | None = None
    sinks: Mapping[str, SinkInfo] = field(default_factory=dict)
    """Folder -> where its query writes, if the caller knows; else the note beside the checkpoint
    tells (sinknote.py), or the savepoint that the same query goes on from."""
    counts: Mapping[str, StateCount] = field(default_factory=dict)
    """Folder -> how much state its query had when it was last heard of; else the snapshots tell."""
    tries: int = _TRIES
    max_chain: int = DEFAULT_MAX_CHAIN
    read_all: bool = False
    """Also read what an S3 server could copy and vouch for by itself."""
    accept_doubtful: bool = False
    """Take state that may be left from before a rewind by hand, with a warning."""


@dataclass(frozen=True, slots=True)
class CaptureResult:
    """A new savepoint, and what it took."""

    savepoint: Savepoint
    read_bytes: int
    """What had to be read of the checkpoint; the rest was known from the parent, or an S3 server
    vouches for it. Samples that were read to see whether it is right do not count."""

    @property
    def seconds(self) -> float:
        """From the start of planning to just before the manifest appeared."""
        return self.savepoint.manifest.timing.seconds


def capture(
    store: Store,
    source: Store,
    request: CaptureRequest,
    *,
    unread: bool = False,
    progress: Progress | None = None,
    clock: Callable[[], float] = time.time,
) -> CaptureResult:
    """Make a savepoint of the checkpoint at `source`'s root.

    `unread`: whether the repository may have content that nobody but an S3 server has read.
    """
    progress = progress or Silent()
    started, begun = clock(), time.monotonic()
    request = _named(request, started)
    path = manifest_path(request.namespace, request.job, request.name or "")
    _check_free(store, path)
    queries = _queries(source, request)
    marker = read_marker(source)
    parent = _parent(store, source, marker, request)
    pins = [parent.manifest.files.table] if parent else []
    with hold(store, f"capture {path}", pins=pins) as lease, seldom_searched():
        lineage = _verified_lineage(store, source, marker, parent, progress)
        scope = f"{request.namespace}/{request.job}" if unread and not request.read_all else None
        with ObjectWriter(store, lineage.locations, scope=scope) as writer:
            taken = _take(source, queries, writer, lineage, request, progress, lease)
        records = [record for each in taken for record in each.records(writer)]
        manifest = _manifest(
            request,
            parent=lineage.savepoint,
            source=source,
            taken=taken,
            sinks=_sinks(source, queries, request, lineage, taken),
            files=_store_table(writer, records),
            timing=Timing(
                started=moment(_by_store(lease, started, time.monotonic() - begun)),
                seconds=round(time.monotonic() - begun, 3),
                tries=sum(each.tries for each in taken),
            ),
        )
        savepoint = publish.publish(
            store, canonical(manifest), path=path, lease=lease, writer=writer, tags=request.tags
        )
    return CaptureResult(savepoint, sum(each.read_bytes for each in taken))


def _named(request: CaptureRequest, started: float) -> CaptureRequest:
    for part, what in ((request.namespace, "namespace"), (request.job, "job")):
        check_name(part, what)
    for tag in request.tags:
        check_name(tag, "tag")
    if request.name is not None:
        check_name(request.name, "savepoint")
        return request
    stamp = moment(started).strftime("%Y%m%d-%H%M%S")
    return replace(request, name=f"{stamp}-{uuid.uuid4().hex[:6]}")


def _check_free(store: Store, path: str) -> None:
    """Fail before the work, not after it; the create-only write of the manifest decides in the
    end."""
    try:
        store.stat(path)
    except NotFoundError:
        return
    raise NameTakenError(
        f"{store.uri}/{path} exists already. Choose another name, or delete that savepoint.",
        catalogue.read_savepoint(store, path),
    )


def _queries(source: Store, request: CaptureRequest) -> tuple[str, ...]:
    found = find_queries(source)
    if not found:
        raise NoQueryError(
            f"{source.uri} holds no checkpoint of a streaming query: neither offsets/ and metadata "
            "there, nor folders with them one level below. Check the path."
        )
    unknown = sorted(set(request.queries) - set(found))
    if unknown:
        names = ", ".join(name or "(the root itself)" for name in found)
        raise NoQueryError(f"{source.uri} has no query {unknown[0]!r}; it has {names}.")
    # Somebody may name a query twice; a savepoint holds it once.
    return tuple(dict.fromkeys(request.queries)) or tuple(found)


def _parent(
    store: Store, source: Store, marker: Marker | None, request: CaptureRequest
) -> Savepoint | None:
    match request.parent:
        case Savepoint() as found:
            return found
        case "continued":
            return continued(store, source, marker, namespace=request.namespace, job=request.job)
        case "none":
            return None
        case "latest":
            return catalogue.newest(store, namespace=request.namespace, job=request.job)
        case reference:
            return catalogue.find(store, reference)


def _verified_lineage(
    store: Store,
    source: Store,
    marker: Marker | None,
    parent: Savepoint | None,
    progress: Progress,
) -> Lineage:
    """What the parent has, if it is still there now that the lease pins it."""
    if parent is None:
        return no_lineage()
    present = catalogue.read_if_present(store, parent.path)
    if present is None or present.id != parent.id:
        return no_lineage()
    return read_lineage(store, source, marker, present, progress)


def _take(
    source: Store,
    queries: tuple[str, ...],
    writer: ObjectWriter,
    lineage: Lineage,
    request: CaptureRequest,
    progress: Progress,
    lease: Lease,
) -> list[TakenQuery]:
    taken = []
    for folder in queries:
        prefix = folder or request.root_query
        taker = QueryTaker(
            source.child(folder),
            prefix=prefix,
            writer=writer,
            known=lineage.of_query(prefix),
            progress=progress,
            lease=lease,
        )
        try:
            each = taker.take(
                batch=request.batch,
                tries=request.tries,
                max_chain=request.max_chain,
                accept_doubtful=request.accept_doubtful,
            )
        except CheckpointError as error:
            # It knows paths below the query only; of several, a person must know which.
            error.add_note(source.child(folder).uri)
            raise
        taken.append(each)
    writer.flush()
    return taken


def _sinks(
    source: Store,
    queries: tuple[str, ...],
    request: CaptureRequest,
    lineage: Lineage,
    taken: list[TakenQuery],
) -> dict[str, SinkInfo | None]:
    """Prefix -> where the query writes, from whoever knows best; None if nobody does."""
    return {
        each.prefix: request.sinks.get(each.prefix)
        or read_sink_note(source.child(folder))
        or lineage.sink_of(each.prefix, each.plan.query_id)
        for folder, each in zip(queries, taken, strict=True)
    }


def _store_table(writer: ObjectWriter, records: list[FileRecord]) -> FileSet:
    data = encode_table(records)
    table = writer.add_object(data)
    return FileSet(
        table=table,
        table_bytes=len(data),
        count=len(records),
        bytes=sum(record.size for record in records),
        new_bytes=writer.new_bytes,
        new_objects=writer.new_objects,
    )


def _by_store(lease: Lease, started: float, seconds: float) -> float:
    """When it began: by our clock, or by the store's if ours is wrong. What is newest depends on
    it, and so what retention removes. Ours is the finer one."""
    by_store = lease.now() - seconds
    return by_store if abs(by_store - started) > _SKEW else started


def _manifest(
    request: CaptureRequest,
    *,
    parent: Savepoint | None,
    source: Store,
    taken: list[TakenQuery],
    sinks: Mapping[str, SinkInfo | None],
    files: FileSet,
    timing: Timing,
) -> Manifest:
    return Manifest(
        format=format_for(content.digest for each in taken for content in each.contents.values()),
        namespace=request.namespace,
        job=request.job,
        name=request.name or "",
        created=timing.started,
        parent=_parent_info(parent),
        source=SourceInfo(uri=source.uri, epoch=request.epoch),
        revision=request.revision,
        spark_version=request.spark_version,
        trigger=request.trigger,
        queries=[
            describe_query(
                each.plan,
                prefix=each.prefix,
                sink=sinks[each.prefix],
                count=request.counts.get(each.prefix),
            )
            for each in taken
        ],
        files=files,
        timing=timing,
    )


def _parent_info(parent: Savepoint | None) -> Parent | None:
    if parent is None:
        return None
    manifest = parent.manifest
    return Parent(id=parent.id, namespace=manifest.namespace, job=manifest.job, name=manifest.name)
