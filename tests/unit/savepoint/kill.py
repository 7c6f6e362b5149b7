"""Killing operations at random points: each runs in a forked child that gets SIGKILL.

Run as a program, so that one warm interpreter forks all children:

    python -m tests.unit.savepoint.kill FOLDER OPERATION COUNT SEED

After every kill the repository must verify, nothing that was published may be lost, and the same
operation again must succeed. It exits with 1 and says what broke otherwise.
"""

import os
import random
import shutil
import signal
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path

from sparkpoint.savepoint import CaptureRequest, Repository
from sparkpoint.savepoint.errors import NameTakenError, NoSuchSavepointError
from sparkpoint.savepoint.marker import files_of
from sparkpoint.storage import DirectoryStore
from sparkpoint.storage.digest import digest_of
from tests.unit.savepoint.synthetic import SyntheticQuery

__all__ = ["OPERATIONS", "main"]

OPERATIONS = ("capture", "materialize", "delete", "collect")
_WAIT = 60.0
_MEASURED = 2
"""The first run is slower than all that follow, and most kills would come too late."""


class Scene:
    """A checkpoint, a repository with two savepoints, and one operation to kill."""

    def __init__(self, folder: Path, operation: str) -> None:
        self.folder = folder
        self.query = SyntheticQuery(
            folder / "ck", provider="rocksdb", snapshot_bytes=300_000, partitions=3
        ).run(6)
        self.repository = Repository.init(DirectoryStore(folder / "repository"))
        self.capture("keep")
        self.action: Callable[[], object] = getattr(self, operation)
        self.round = 0

    def capture(self, name: str | None = None) -> None:
        request = CaptureRequest(job="visits", name=name or f"round-{self.round}")
        try:
            self.repository.capture(DirectoryStore(self.query.root), request)
        except NameTakenError:
            # The killed run got as far as publishing: that is the savepoint we asked for.
            return

    def materialize(self) -> None:
        target = DirectoryStore(self.folder / f"target-{self.round}")
        self.repository.materialize(self.repository.find("keep"), target)

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
        if self.action == self.capture or self.round % 5 == 0:
            self.query.batch()

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
            folder = self.folder / f"target-{self.round}"
            self._check_bytes(folder)
            self.repository.capture(
                DirectoryStore(folder), CaptureRequest(job="check", name=f"check-{self.round}")
            )
            shutil.rmtree(folder)

    def _check_bytes(self, folder: Path) -> None:
        """Every file of the savepoint is in the target, byte by byte, and no other."""
        planned = self.repository.files(self.repository.find("keep")).files
        restored = {
            entry.path: digest_of((folder / entry.path).read_bytes())
            for entry in files_of(DirectoryStore(folder)).values()
        }
        assert restored == {path: record.digest for path, record in planned.items()}


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


def main(folder: Path, operation: str, count: int, seed: str) -> int:
    """Kill so many times; how many kills hit a child that was still running."""
    scene = Scene(folder, operation)
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
    hits = main(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]), sys.argv[4])
    print(f"{hits} of {sys.argv[3]} kills hit a running {sys.argv[2]}")
