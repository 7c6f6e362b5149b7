"""Real processes that capture, delete and collect in one repository at the same time."""

import multiprocessing
import random
import time
from collections.abc import Iterator
from dataclasses import dataclass
from multiprocessing.queues import Queue
from pathlib import Path

import pytest

from sparkpoint.savepoint import CaptureRequest, Repository
from sparkpoint.savepoint.errors import NoSuchSavepointError, SavepointError
from sparkpoint.storage import DirectoryStore
from sparkpoint.storage.s3 import S3Store, connect
from tests.support.s3 import S3Server
from tests.unit.savepoint.synthetic import SyntheticQuery

_CONTEXT = multiprocessing.get_context("spawn")
_PAUSE = 0.05


@dataclass(frozen=True)
class Scene:
    """What a process is told: where the repository is, and how long to go on."""

    root: str
    """A path, or the name of a bucket."""
    endpoint: str | None
    seconds: float
    grace: float
    seed: int

    def open(self) -> Repository:
        if self.endpoint is None:
            return Repository.init(DirectoryStore(self.root))
        return Repository.init(S3Store(connect("s3://", self.endpoint), bucket=self.root))

    def rounds(self, who: str) -> Iterator[int]:
        """Numbers until the time is over, with pauses between them that the seed chooses."""
        pauses, number = random.Random(f"{self.seed} {who}"), 0
        end = time.monotonic() + self.seconds
        while time.monotonic() < end:
            number += 1
            yield number
            time.sleep(pauses.uniform(0, _PAUSE))


def capturing(scene: Scene, checkpoint: str, job: str, results: "Queue[str]") -> None:
    repository, number = scene.open(), 0
    for number in scene.rounds(job):
        request = CaptureRequest(job=job, name=f"n{number}")
        try:
            repository.capture(DirectoryStore(checkpoint), request)
        except SavepointError as error:
            if not error.retry_helps:
                results.put(f"capture: {error!r}")
                return
    results.put(f"ok capture {number}")


def deleting(scene: Scene, results: "Queue[str]") -> None:
    repository, count = scene.open(), 0
    for _ in scene.rounds("delete"):
        for savepoint in repository.list().savepoints[:-3]:
            try:
                repository.delete(savepoint)
                count += 1
            except NoSuchSavepointError:
                continue
    results.put(f"ok delete {count}")


def collecting(scene: Scene, results: "Queue[str]") -> None:
    # It is the only one, so that each has to end well.
    repository, freed = scene.open(), 0
    for _ in scene.rounds("collect"):
        freed += repository.collect(grace=scene.grace).freed_bytes
    results.put(f"ok collect {freed}")


def play(scene: Scene, folder: Path) -> None:
    """Let all of them work at once, while the query runs on; nothing may be lost."""
    query = SyntheticQuery(folder / "ck", snapshot_bytes=300_000, retain=6).run(3)
    repository, results = scene.open(), _CONTEXT.Queue()
    processes = [
        _CONTEXT.Process(target=capturing, args=(scene, str(query.root), "a", results)),
        _CONTEXT.Process(target=capturing, args=(scene, str(query.root), "b", results)),
        _CONTEXT.Process(target=deleting, args=(scene, results)),
        _CONTEXT.Process(target=collecting, args=(scene, results)),
    ]
    for process in processes:
        process.start()
    reports: list[str] = []
    deadline = time.monotonic() + scene.seconds + 60
    while len(reports) < len(processes) and time.monotonic() < deadline:
        query.batch()
        time.sleep(_PAUSE)
        while not results.empty():
            reports.append(results.get(timeout=1))
    for process in processes:
        process.join(timeout=30)

    assert [process.exitcode for process in processes] == [0, 0, 0, 0], reports
    assert all(report.startswith("ok") for report in reports), reports
    found = repository.list()
    assert not found.unreadable
    assert found.savepoints
    assert [v.problems for v in repository.verify(found.savepoints) if not v.good] == []


@pytest.mark.parametrize(
    ("seconds", "seed"),
    [(1.5, 1), pytest.param(120, 2, marks=pytest.mark.soak)],
)
def test_processes_that_capture_delete_and_collect_at_once_lose_nothing(
    tmp_path: Path, seconds: float, seed: int
) -> None:
    root = str(tmp_path / "repository")

    play(Scene(root, None, seconds, grace=0.3, seed=seed), tmp_path)


@pytest.mark.s3
@pytest.mark.parametrize(
    ("seconds", "seed"),
    [(4, 1), pytest.param(120, 2, marks=pytest.mark.soak)],
)
def test_processes_on_s3_that_capture_delete_and_collect_at_once_lose_nothing(
    tmp_path: Path,
    s3_server: S3Server,
    monkeypatch: pytest.MonkeyPatch,
    seconds: float,
    seed: int,
) -> None:
    for name, value in s3_server.environment().items():
        monkeypatch.setenv(name, value)
    bucket = s3_server.make_bucket(f"at-once-{seed}")

    # Less than a second is no grace there, as its times are whole seconds.
    play(Scene(bucket, s3_server.endpoint_url, seconds, grace=2.0, seed=seed), tmp_path)
