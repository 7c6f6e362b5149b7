"""Leases: what is being written or read now, so that a collection leaves it alone.

A lease is a small file with a time to live, renewed by its holder while it works. It pins tables:
objects that a pinned table names are kept although no manifest may name them any more. All times
are the store's own (the modification time of the lease), so hosts need not agree on theirs.

Creating a lease also proves the store: the second create of the same name must fail.
"""

import contextlib
import os
import socket
import threading
import time
import uuid
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from sparkpoint.savepoint.catalogue import read_with_entry
from sparkpoint.savepoint.errors import (
    DamagedError,
    LeaseLostError,
    NewerFormatError,
    UnsafeStoreError,
)
from sparkpoint.savepoint.manifest import Count, Digest, Strict, Text, canonical, parse_document
from sparkpoint.savepoint.names import LEASES, lease_path
from sparkpoint.savepoint.progress import Progress
from sparkpoint.storage import Store
from sparkpoint.storage.errors import (
    AccessDeniedError,
    AlreadyExistsError,
    ChangedError,
    FullError,
    NotFoundError,
    StorageError,
    TooLargeError,
)

__all__ = [
    "TTL",
    "ActiveLease",
    "Lease",
    "LeaseDocument",
    "hold",
    "hold_to_read",
    "owner_is_gone",
    "owner_is_known",
    "read_lease",
    "read_leases",
    "readable_leases",
    "this_process",
]

TTL = 300.0
"""Seconds after the last renewal at which a lease no longer counts."""
_RENEWALS_PER_TTL = 4
_LIMIT = 16 * 1024 * 1024
_UNKNOWN = "0"
_MARGIN = 0.7
"""The holder stops trusting its lease before anybody else does: clocks drift, requests linger."""


class LeaseDocument(Strict):
    """What a lease's file says."""

    format: Literal[1] = 1
    purpose: Text
    owner: Text
    """Which process, on which boot of which kernel."""
    host: Text
    token: Text = ""
    """Tells this lease from every other, also from its successor in the same process: on S3, equal
    content would have equal stamps."""
    pins: list[Digest]
    ttl: Annotated[float, Field(gt=0, le=86400)]
    started: float | None = None
    """By the store's clock; absent until the first renewal, where the file's own time says it."""
    renewals: Count = 0


@dataclass(frozen=True, slots=True)
class ActiveLease:
    """A lease as somebody else sees it."""

    path: str
    stamp: str
    document: LeaseDocument
    started: float
    modified: float

    def is_active(self, now: float) -> bool:
        """Whether it still counts at this time of the store's clock."""
        return now < self.modified + self.document.ttl and not owner_is_gone(self.document.owner)


class Lease:
    """A lease that we hold; renewed in the background until released."""

    def __init__(self, store: Store, path: str, document: LeaseDocument) -> None:
        self._store = store
        self._path = path
        self._document = document
        self._end = threading.Event()
        self._renewed = time.monotonic()
        self._stamp = ""
        self._begun = self._renewed
        self.started = 0.0
        self._thread = threading.Thread(target=self._renew_forever, name="lease", daemon=True)

    @property
    def path(self) -> str:
        """Where it is in the store."""
        return self._path

    def begin(self, *, over: str | None = None) -> None:
        """Take the lease; over an expired one of the same name if its stamp is given."""
        data = canonical(self._document)
        if over is None:
            self._store.create(self._path, data)
        else:
            self._store.replace(self._path, data, stamp=over)
        entry = self._store.stat(self._path)
        self._stamp, self.started = entry.stamp, entry.modified
        self._begun = time.monotonic()
        try:
            self._prove(data)
        except FullError:
            self._store.delete(self._path)
            raise
        self._thread.start()

    def _prove(self, data: bytes) -> None:
        """Find out whether the store honours create-only writes: everything else rests on that."""
        try:
            self._store.create(self._path, data)
        except AlreadyExistsError:
            return
        self._store.delete(self._path)
        raise UnsafeStoreError(
            f"{self._store.uri} let the same file be created twice: the server ignores "
            "If-None-Match, so two writers could overwrite each other's savepoints. Use a server "
            "with conditional writes (Amazon S3, MinIO, SeaweedFS, Ceph from Squid on)."
        )

    def now(self) -> float:
        """The time by the store's clock, as far as we can tell."""
        return self.started + (time.monotonic() - self._begun)

    def check(self) -> None:
        """LeaseLostError if it may have run out, so that what it pins may be gone."""
        if time.monotonic() - self._renewed > self._document.ttl * _MARGIN:
            raise LeaseLostError(
                f"The lease {self._store.uri}/{self._path} could not be renewed for too long, so a "
                "collection may have removed what this work relies on. Run it again."
            )

    def _renew_forever(self) -> None:
        pause = self._document.ttl / _RENEWALS_PER_TTL
        while not self._end.wait(pause):
            # A renewal that fails is tried again at the next turn; `check` tells when it is late.
            with contextlib.suppress(StorageError):
                self._renew()

    def _renew(self) -> None:
        try:
            self._write()
        except ChangedError:
            if not self._adopt():
                raise
            self._write()

    def _write(self) -> None:
        asked = time.monotonic()
        document = self._document.model_copy(
            update={"started": self.started, "renewals": self._document.renewals + 1}
        )
        self._store.replace(self._path, canonical(document), stamp=self._stamp)
        self._document = document
        self._stamp = self._store.stat(self._path).stamp
        self._renewed = asked

    def _adopt(self) -> bool:
        """Learn the stamp of a renewal whose answer got lost; False if the lease is not ours."""
        data, stamp = self._store.read_stamped(self._path, limit=_LIMIT)
        try:
            document = parse_document(LeaseDocument, data, f"{self._store.uri}/{self._path}")
        except (DamagedError, NewerFormatError):
            return False
        if document.token != self._document.token:
            return False
        self._document, self._stamp = document, stamp
        return True

    def release(self) -> None:
        """Stop renewing, and remove it unless somebody has taken it over."""
        self._end.set()
        if self._thread.is_alive():
            self._thread.join(timeout=60)
        with contextlib.suppress(NotFoundError):
            if self._store.stat(self._path).stamp == self._stamp or self._adopt():
                self._store.delete(self._path)


@contextlib.contextmanager
def hold(
    store: Store,
    purpose: str,
    *,
    pins: Iterable[str] = (),
    path: str | None = None,
    over: str | None = None,
    ttl: float = TTL,
) -> Iterator[Lease]:
    """Hold a lease for a while; it is removed afterwards, also when the work fails."""
    document = LeaseDocument(
        purpose=purpose,
        owner=this_process(),
        host=socket.gethostname(),
        token=uuid.uuid4().hex,
        pins=sorted(pins),
        ttl=ttl,
    )
    lease = Lease(store, path or lease_path(uuid.uuid4().hex), document)
    lease.begin(over=over)
    try:
        yield lease
    finally:
        lease.release()


@contextlib.contextmanager
def hold_to_read(
    store: Store, purpose: str, *, pins: Iterable[str], progress: Progress
) -> Iterator[Lease | None]:
    """As `hold`, for whoever only reads: None, and a note, where this user may not write, or where
    there is no space left."""
    with contextlib.ExitStack() as stack:
        lease: Lease | None = None
        try:
            lease = stack.enter_context(hold(store, purpose, pins=pins))
        except (AccessDeniedError, FullError) as error:
            why = "has no space left" if isinstance(error, FullError) else "cannot be written to"
            progress.note(
                f"{store.uri} {why}, so no lease keeps a collection there from removing the "
                "savepoint if somebody deletes it while it is read."
            )
        yield lease


def read_lease(store: Store, path: str) -> ActiveLease | None:
    """One lease, also an expired one; None if there is none.

    DamagedError or NewerFormatError if it cannot be read: what it protects is unknown.
    """
    where = f"{store.uri}/{path}"
    try:
        data, present = read_with_entry(store, path, limit=_LIMIT)
        document = parse_document(LeaseDocument, data, where)
    except NotFoundError:
        return None
    except (DamagedError, TooLargeError) as error:
        raise DamagedError(
            f"The lease {where} cannot be read, and so nobody knows what it protects. Its holder "
            f"renews it as long as it lives: if it has not been written for {TTL:.0f} s, delete it."
        ) from error
    started = document.started if document.started is not None else present.modified
    return ActiveLease(path, present.stamp, document, started, present.modified)


def read_leases(store: Store) -> list[ActiveLease]:
    """Every lease, expired ones too; errors as for `read_lease` if one cannot be read."""
    # One that is gone was released meanwhile.
    return [lease for entry in store.list(LEASES) if (lease := read_lease(store, entry.path))]


def readable_leases(store: Store) -> list[ActiveLease]:
    """Every lease that can be read: for whoever only tells of them, and relies on none."""
    leases: list[ActiveLease] = []
    for entry in store.list(LEASES):
        with contextlib.suppress(DamagedError, NewerFormatError, StorageError):
            lease = read_lease(store, entry.path)
            leases += [lease] if lease else []
    return leases


def this_process() -> str:
    """Who we are, for others to find out whether we live: which process, on which boot."""
    return f"{_machine()} {os.getpid()} {_start_time(os.getpid())}"


def owner_is_known(owner: str) -> bool:
    """Whether it is a process of this host that we could see: else nobody here can tell."""
    machine, _, process = owner.rpartition(" ")[0].rpartition(" ")
    return machine == _machine() and process.isdigit()


def owner_is_gone(owner: str) -> bool:
    """Whether we can tell that the process is dead: only if it ran where we run, before."""
    if not owner_is_known(owner):
        return False
    process, start = owner.rsplit(" ", 2)[1:]
    try:
        os.kill(int(process), 0)
    except ProcessLookupError:
        return True
    except (PermissionError, OverflowError):
        pass  # it lives, as somebody else; or that was never a process
    # /proc may hide other users' processes, and then nobody knows when this one started.
    return _UNKNOWN not in (start, now := _start_time(int(process))) and now != start


def _machine() -> str:
    """Which kernel since which boot, and which set of process ids: containers have theirs."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return f"{boot}/{Path('/proc/self/ns/pid').readlink()}"
    except OSError:
        return f"unknown/{uuid.uuid4().hex}"


def _start_time(process: int) -> str:
    """When a process started, in the kernel's ticks: process ids are used again."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[19]
    except (OSError, IndexError):
        return _UNKNOWN
