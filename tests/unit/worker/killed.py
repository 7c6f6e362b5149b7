"""Killing a task at each of its effects in turn: every change to the disk is a point to die at.

Run as a program, so that one warm interpreter forks all children:

    python -m tests.unit.worker.killed FOLDER TASK STEP

For each STEP-th effect, a child is killed right before it, and the same task is run again to its
end. Whatever the point, the outcome must be the one of a run that nobody disturbed. It ends with an
AssertionError otherwise, and else prints at how many points it has killed.
"""

import itertools
import os
import shutil
import signal
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

from sparkpoint.savepoint import CaptureRequest, Repository
from sparkpoint.storage import DirectoryStore
from sparkpoint.worker.model import Answer
from sparkpoint.worker.process import answer_to
from tests.unit.savepoint.synthetic import SyntheticQuery
from tests.unit.state.test_savepoints import made

__all__ = ["TASKS"]

_EFFECTS = (
    "link",
    "replace",
    "unlink",
    "rmdir",
    "mkdir",
    "write",
    "writev",
    "fsync",
    "open",
    "utime",
)


class Scene:
    """An epoch directory, and an empty place beside it for each try."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.checkpoints = folder / "checkpoints"
        for name in ("clicks", "visits"):
            root = self.checkpoints / "shop/visits/epoch-3" / name
            SyntheticQuery(root, partitions=1, snapshot_bytes=300_000, seed=name).run(5)
        self.epoch_dir = self.checkpoints / "shop/visits/epoch-3"

    def fresh(self, number: int) -> Path:
        """Where a try works; what it needs of the last one's is there."""
        place = self.folder / f"try-{number}"
        place.mkdir()
        return place


class Task(Protocol):
    """Something to kill, and what must come of it all the same."""

    def arrange(self, place: Path) -> None:
        """What must be there before."""
        ...

    def run(self, place: Path) -> Answer:
        """Do it."""
        ...

    def seen(self, place: Path) -> str | None:
        """What the killed one has made already, if that must stay."""
        ...

    def check(self, place: Path, seen: str | None, answer: Answer) -> None:
        """AssertionError unless all is as it should be."""
        ...


class CaptureTask:
    """`capture`: the same single savepoint, whatever happens."""

    def __init__(self, scene: Scene) -> None:
        self._scene = scene

    def arrange(self, place: Path) -> None:
        """Nothing: the repository is made on the way."""

    def run(self, place: Path) -> Answer:
        return answer_to(
            [
                *("capture", "--epoch-dir", str(self._scene.epoch_dir), "--job", "shop/visits"),
                *("--epoch", "3", "--repository", str(place / "repository"), "--name", "first"),
                *("--tag", "keep"),
            ],
            {},
        )

    def seen(self, place: Path) -> str | None:
        if not (place / "repository/repository.json").exists():
            return None
        repository = Repository.open(DirectoryStore(place / "repository"))
        found = repository.list()
        assert not found.unreadable
        assert all(each.good for each in repository.verify(found.savepoints))
        assert all(each.tags == ("keep",) for each in found.savepoints)
        return found.savepoints[0].id if found.savepoints else None

    def check(self, place: Path, seen: str | None, answer: Answer) -> None:
        assert (answer.answer, answer.batches) == ("Captured", {"clicks": 4, "visits": 4}), answer
        repository = Repository.open(DirectoryStore(place / "repository"))
        (only,) = repository.list().savepoints
        assert answer.savepoint is not None
        assert only.id == answer.savepoint.id
        assert seen in (None, only.id), "another savepoint than the one that was there"
        assert only.tags == ("keep",)
        assert all(each.good for each in repository.verify([only]))
        again = self.run(place)
        assert again.savepoint is not None
        assert again.savepoint.id == only.id
        repository.collect(grace=0)
        assert all(each.good for each in repository.verify([only]))


class RepartitionTask:
    """`repartition`: one savepoint of the other, which stays as it is."""

    def __init__(self, scene: Scene) -> None:
        """It has a repository of its own, anew each time."""

    def arrange(self, place: Path) -> None:
        made(place / "ck/q")
        repository = Repository.init(DirectoryStore(place / "repository"))
        request = CaptureRequest(namespace="shop", job="visits", name="first")
        repository.capture(DirectoryStore(place / "ck"), request)
        (place / "scratch").mkdir()

    def run(self, place: Path) -> Answer:
        return answer_to(
            [
                *("repartition", "--repository", str(place / "repository"), "--job", "shop/visits"),
                *("--name", "first", "--partitions", "7", "--as", "wide"),
                *("--scratch", str(place / "scratch")),
            ],
            {},
        )

    def seen(self, place: Path) -> str | None:
        found = self._savepoints(place)
        assert found["first"]
        return found.get("wide")

    def check(self, place: Path, seen: str | None, answer: Answer) -> None:
        assert answer.answer == "Repartitioned", answer
        assert answer.savepoint is not None
        found = self._savepoints(place)
        assert sorted(found) == ["first", "wide"]
        assert found["wide"] == answer.savepoint.id
        assert seen in (None, found["wide"]), "another savepoint than the one that was there"

    def _savepoints(self, place: Path) -> dict[str, str]:
        """Name -> id; all of them are whole."""
        repository = Repository.open(DirectoryStore(place / "repository"))
        listed = repository.list()
        assert not listed.unreadable
        assert all(each.good for each in repository.verify(listed.savepoints))
        return {each.manifest.name: each.id for each in listed.savepoints}


class DisposeTask:
    """`dispose`: gone, and the other one whole."""

    def __init__(self, scene: Scene) -> None:
        self._scene = scene

    def arrange(self, place: Path) -> None:
        for name in ("first", "other"):
            arguments = ("--repository", str(place / "repository"), "--name", name)
            answer = answer_to(
                [
                    *("capture", "--epoch-dir", str(self._scene.epoch_dir), "--epoch", "3"),
                    *("--job", "shop/visits", *arguments),
                ],
                {},
            )
            assert answer.answer == "Captured"

    def run(self, place: Path) -> Answer:
        repository = str(place / "repository")
        arguments = ["--job", "shop/visits", "--name", "first", "--collect", "--grace", "0"]
        return answer_to(["dispose", "--repository", repository, *arguments], {})

    def seen(self, place: Path) -> str | None:
        return None

    def check(self, place: Path, seen: str | None, answer: Answer) -> None:
        assert answer.answer == "Disposed", answer
        repository = Repository.open(DirectoryStore(place / "repository"))
        (only,) = repository.list().savepoints
        assert only.manifest.name == "other"
        assert all(each.good for each in repository.verify([only]))


class RemoveTask:
    """`remove`: gone, and nothing else."""

    def __init__(self, scene: Scene) -> None:
        """It has its own epoch directories, anew each time."""

    def arrange(self, place: Path) -> None:
        root = place / "checkpoints/shop/visits"
        for name in ("epoch-1", "epoch-2"):
            query = SyntheticQuery(root / name / "q", partitions=1, snapshot_bytes=10)
            query.run(2)
        (root / "epoch-2.old").mkdir()

    def run(self, place: Path) -> Answer:
        root = str(place / "checkpoints")
        return answer_to(["remove", "--root", root, "--job", "shop/visits"], {})

    def seen(self, place: Path) -> str | None:
        return None

    def check(self, place: Path, seen: str | None, answer: Answer) -> None:
        assert answer.answer == "Removed", answer
        left = [path.name for path in (place / "checkpoints/shop/visits").iterdir()]
        assert left == ["epoch-2.old"]


TASKS: dict[str, Callable[[Scene], Task]] = {
    "capture": CaptureTask,
    "repartition": RepartitionTask,
    "dispose": DisposeTask,
    "remove": RemoveTask,
}


def die_before(number: int) -> None:
    """Let this process be killed right before its effect of this number."""
    counter = itertools.count()

    def wrap(effect: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **more: Any) -> Any:
            reading = effect is os_open and not arguments[1] & os.O_CREAT
            if not reading and next(counter) == number:
                os.kill(os.getpid(), signal.SIGKILL)
            return effect(*arguments, **more)

        return call

    os_open = os.open
    for name in _EFFECTS:
        setattr(os, name, wrap(getattr(os, name)))


def killed_in(task: Task, place: Path, number: int) -> bool:
    """Run in a child that dies at this effect; False if it got to its end before."""
    child = os.fork()
    if child == 0:
        try:
            null = os.open(os.devnull, os.O_WRONLY)
            os.dup2(null, 2)
            die_before(number)
            task.run(place)
        except BaseException:
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status) or os.WEXITSTATUS(status) == 0, "the task itself failed"
    return os.WIFSIGNALED(status)


def main(folder: Path, name: str, step: int) -> int:
    """Kill at every point there is; at how many."""
    task = TASKS[name](scene := Scene(folder))
    for number in itertools.count(0, step):
        place = scene.fresh(number)
        task.arrange(place)
        hit = killed_in(task, place, number)
        seen = task.seen(place)
        task.check(place, seen, task.run(place))
        shutil.rmtree(place)
        if not hit:
            return number // step
    raise AssertionError("there is no last effect")


if __name__ == "__main__":
    print(main(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])), "points")
