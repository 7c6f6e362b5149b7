"""Killing operations at random points: each runs in a forked child that gets SIGKILL.

Run as a program, so that one warm interpreter forks all children:

    python -m tests.unit.savepoint.kill FOLDER OPERATION COUNT SEED [S3_PREFIX ENDPOINT_URL]

With an S3 prefix, checkpoint, repository and targets are there, else in the folder. After every
kill the repository must verify, nothing that was published may be lost, and the same operation
again must succeed. It exits with 1 and says what broke otherwise.
"""

import functools
import os
import random
import signal
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path

from sparkpoint.checkpoint.sink import SINK_LOG
from sparkpoint.savepoint import CaptureRequest, MaterializeRequest, Mode, Repository, SinkPolicy
from sparkpoint.savepoint.errors import NameTakenError, NoSuchSavepointError
from sparkpoint.savepoint.marker import files_of
from sparkpoint.storage import DirectoryStore, Store, open_store
from sparkpoint.storage.digest import digest_of
from tests.unit.savepoint.synthetic import SyntheticQuery

__all__ = ["OPERATIONS", "main"]

OPERATIONS = ("capture", "materialize", "truncate", "seed", "delete", "collect")
_WAIT = 60.0
_MEASURED = 2
"""The first run is slower than all that follow, and most kills would come too late."""
_KEPT = 6
"""Batches of the savepoint that is restored."""
_NEWER = 60
"""Entries of a sink's log that a rewind cuts, so that some kills hit it meanwhile."""


@functools.cache
def _opened(uri: str, endpoint_url: str, _process: int) -> Store:
    """A client takes long to make, and is asked for all the time."""
    return open_store(uri, endpoint_url)


class Scene:
    """A checkpoint, a repository with two savepoints, and one operation to kill."""

    def __init__(self, folder: Path, operation: str, place: tuple[str, str] | None) -> None:
        self.folder = folder
        self.place = place
        self.query = SyntheticQuery(
            folder / "ck", provider="rocksdb", snapshot_bytes=300_000, partitions=3
        ).run(_KEPT)
        self._carried: set[Path] = set()
        Repository.init(self.store("repository"))
        self.carry()
        self.capture("keep")
        self.action: Callable[[], object] = getattr(self, operation)
        self.round = 0

    def store(self, name: str) -> Store:
        """One that no other process shares a connection with."""
        if self.place is None:
            return DirectoryStore(self.folder / name)
        prefix, endpoint_url = self.place
        return _opened(f"{prefix}/{name}", endpoint_url, os.getpid())

    @property
    def repository(self) -> Repository:
        """The repository, opened anew."""
        return Repository.open(self.store("repository"))

    def carry(self) -> None:
        """Put what is new of the checkpoint where it is captured from."""
        if self.place is None:
            return
        source = self.store("ck")
        for path in self.query.root.rglob("*"):
            if path.is_file() and path not in self._carried:
                self._carried.add(path)
                source.put(str(path.relative_to(self.query.root)), [path.read_bytes()])

    def capture(self, name: str | None = None) -> None:
        request = CaptureRequest(job="visits", name=name or f"round-{self.round}")
        try:
            self.repository.capture(self.store("ck"), request)
        except NameTakenError:
            # The killed run got as far as publishing: that is the savepoint we asked for.
            return

    def materialize(self) -> None:
        target = self.store(f"target-{self.round}")
        self.repository.materialize(self.repository.find("keep"), target)

    def truncate(self) -> None:
        """A rewind that cuts the log of the file sink."""
        self._restore(Mode.REWIND, SinkPolicy.TRUNCATE)

    def seed(self) -> None:
        """A fork that gives a new file sink the beginning of its log."""
        self._restore(Mode.FORK, SinkPolicy.SEED)

    def _restore(self, mode: Mode, policy: SinkPolicy) -> None:
        sinks = {"": self.store(f"sink-{self.round}")}
        self.repository.materialize(
            self.repository.find("keep"),
            self.store(f"target-{self.round}"),
            MaterializeRequest(mode=mode, sinks=sinks, sink_policy=policy),
        )

    def delete(self) -> None:
        try:
            savepoint = self.repository.find(f"victim-{self.round}")
        except NoSuchSavepointError:
            return
        self.repository.delete(savepoint)

    def collect(self) -> None:
        self.repository.collect(grace=0)

    def arrange(self) -> None:
        """Something new to work on."""
        self.round += 1
        if self.action in (self.delete, self.collect):
            self.capture(f"victim-{self.round}")
        if self.action == self.collect:
            self.repository.delete(self.repository.find(f"victim-{self.round}"))
        if self.action == self.truncate:
            self._write_sink()
        if self.action == self.capture or self.round % 5 == 0:
            self.query.batch()
            self.carry()

    def _write_sink(self) -> None:
        """A log that goes on far after the savepoint, as Hadoop writes it on a local disk."""
        sink = self.store(f"sink-{self.round}")
        for number in range(_KEPT + _NEWER):
            sink.put(f"{SINK_LOG}/{number}", [b"v1"])
            if number >= _KEPT:
                sink.put(f"{SINK_LOG}/.{number}.crc", [b"crc"])

    def check(self) -> None:
        """Everything published is whole, and what must be there is there."""
        catalogue = self.repository.list()
        assert not catalogue.unreadable, catalogue.unreadable
        bad = [each for each in self.repository.verify(catalogue.savepoints) if not each.good]
        assert not bad, bad[0].problems
        assert "keep" in {each.manifest.name for each in catalogue.savepoints}

    def check_done(self) -> None:
        """What the operation promises, after it was run again to its end."""
        names = {each.manifest.name for each in self.repository.list().savepoints}
        if self.action == self.capture:
            assert f"round-{self.round}" in names
        if self.action == self.delete:
            assert f"victim-{self.round}" not in names
        if self.action == self.materialize:
            name = f"target-{self.round}"
            self._check_bytes(self.store(name))
            self.repository.capture(
                self.store(name), CaptureRequest(job="check", name=f"check-{self.round}")
            )
            self.store("").remove_folder(name, removed=lambda size: None)

        if self.action in (self.truncate, self.seed):
            log = [entry.path for entry in self.store(f"sink-{self.round}").list(SINK_LOG)]
            assert log == [f"{SINK_LOG}/{number}" for number in range(_KEPT)]
            for name in ("target", "sink"):
                self.store("").remove_folder(f"{name}-{self.round}", removed=lambda size: None)

    def _check_bytes(self, target: Store) -> None:
        """Every file of the savepoint is in the target, byte by byte, and no other."""
        planned = self.repository.files(self.repository.find("keep")).files
        restored = files_of(target)
        assert restored.keys() == planned.keys()
        for path, record in planned.items():
            assert digest_of(target.read(path), like=record.digest) == record.digest, path


def run_child(action: Callable[[], object]) -> int:
    """Fork and run; the child's process id."""
    child = os.fork()
    if child:
        return child
    try:
        action()
    except BaseException:
        traceback.print_exc()
        os._exit(1)
    os._exit(0)


def reap(child: int) -> int:
    """Wait, bounded; the child's status."""
    deadline = time.monotonic() + _WAIT
    while time.monotonic() < deadline:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return status
        time.sleep(0.0005)
    os.kill(child, signal.SIGKILL)
    raise TimeoutError(f"the child did not end within {_WAIT} s")


def duration(scene: Scene) -> float:
    """How long the operation takes if nobody kills it."""
    scene.arrange()
    started = time.monotonic()
    assert reap(run_child(scene.action)) == 0
    return time.monotonic() - started


def main(folder: Path, operation: str, count: int, seed: str, place: tuple[str, str] | None) -> int:
    """Kill so many times; how many kills hit a child that was still running."""
    scene = Scene(folder, operation, place)
    chance = random.Random(seed)
    usual = min(duration(scene) for _ in range(_MEASURED))
    killed = 0
    for _ in range(count):
        scene.arrange()
        child = run_child(scene.action)
        time.sleep(chance.uniform(0, usual * 1.1))
        os.kill(child, signal.SIGKILL)
        killed += os.WIFSIGNALED(reap(child))
        scene.check()
        assert reap(run_child(scene.action)) == 0, "the same operation again failed"
        scene.check()
        scene.check_done()
    scene.repository.collect(grace=0)
    scene.check()
    return killed


if __name__ == "__main__":
    given = (sys.argv[5], sys.argv[6]) if len(sys.argv) > 5 else None
    hits = main(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]), sys.argv[4], given)
    print(f"{hits} of {sys.argv[3]} kills hit a running {sys.argv[2]}")
