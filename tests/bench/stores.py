"""Our own stores, with an eye on them: how often they are asked, and how long a sync takes."""

import threading
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from sparkpoint.storage import DirectoryStore, Entry, Store, _files
from sparkpoint.storage._unsynced import Unsynced
from sparkpoint.storage.interface import SMALL_FILE, Children

__all__ = ["Watch", "leave_to_the_kernel", "open_watched"]


@dataclass(slots=True)
class Watch:
    """What was seen."""

    requests: int = 0
    """HTTP requests on S3; calls of the interface on a directory, where a call is a few system
    calls."""
    listed: int = 0
    """Entries that listings of a directory returned."""
    sync_seconds: float = 0.0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def asked(self, **_: object) -> None:
        """Count one request."""
        with self._lock:
            self.requests += 1

    def found(self, count: int) -> None:
        """Count entries of a listing."""
        with self._lock:
            self.listed += count


class WatchedDirectory(DirectoryStore):
    """A subclass and no wrapper, because stores treat other directories specially."""

    def __init__(self, path: str, watch: Watch, unsynced: Unsynced | None = None) -> None:
        super().__init__(path, unsynced=unsynced)
        self._watch = watch

    def list(self, prefix: str = "") -> Iterator[Entry]:
        """Counted."""
        self._watch.asked()
        found = 0
        for entry in super().list(prefix):
            found += 1
            yield entry
        self._watch.found(found)

    def children(self, prefix: str = "") -> Children:
        """Counted."""
        self._watch.asked()
        folders, files = super().children(prefix)
        self._watch.found(len(folders) + len(files))
        return folders, files

    def stat(self, path: str) -> Entry:
        """Counted."""
        self._watch.asked()
        return super().stat(path)

    def read_stamped(self, path: str, *, limit: int = SMALL_FILE) -> tuple[bytes, str]:
        """Counted; `read` comes here too."""
        self._watch.asked()
        return super().read_stamped(path, limit=limit)

    def create(self, path: str, data: bytes) -> None:
        """Counted."""
        self._watch.asked()
        super().create(path, data)

    def put(self, path: str, chunks: Iterable[bytes], *, draft: bool = False) -> int:
        """Counted."""
        self._watch.asked()
        return super().put(path, chunks, draft=draft)

    def sync(self) -> None:
        """Timed."""
        begun = time.perf_counter()
        super().sync()
        self._watch.sync_seconds += time.perf_counter() - begun


class _LeftToTheKernel(Unsynced):
    def sync(self) -> None:
        """Never: as `cp` does it."""


def leave_to_the_kernel() -> None:
    """From here on nothing is flushed but commit points: only so can ours be set beside `cp`."""
    global _unsynced
    _unsynced = _LeftToTheKernel
    vars(_files)["start_writeback"] = lambda *_: None


_unsynced: type[Unsynced] = Unsynced


def open_watched(uri: str, endpoint: str | None, watch: Watch) -> Store:
    """The store at a path or `s3://bucket/prefix`, each with its own client as in real use."""
    if not uri.startswith("s3://"):
        return WatchedDirectory(uri, watch, _unsynced(uri))
    # Only who uses S3 pays for boto3, in memory too.
    from sparkpoint.storage.s3 import S3Store, connect

    client = connect(uri, endpoint)
    client.meta.events.register("before-send.s3", watch.asked)
    parts = urlsplit(uri)
    return S3Store(client, bucket=parts.netloc, prefix=parts.path.strip("/"))
