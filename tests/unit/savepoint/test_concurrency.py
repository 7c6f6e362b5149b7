"""Real processes that capture, delete and collect in one repository at the same time."""

import multiprocessing
import time
from multiprocessing.queues import Queue
from pathlib import Path

from sparkpoint.savepoint import CaptureRequest, Repository
from sparkpoint.savepoint.errors import CollectorBusyError, NoSuchSavepointError, SavepointError
from sparkpoint.storage import DirectoryStore
from tests.unit.savepoint.synthetic import SyntheticQuery

_SECONDS = 1.5
_CONTEXT = multiprocessing.get_context("spawn")


def capturing(root: str, checkpoint: str, job: str, results: "Queue[str]") -> None:
    repository = Repository.open(DirectoryStore(root))
    end, number = time.monotonic() + _SECONDS, 0
    while time.monotonic() < end:
        number += 1
        request = CaptureRequest(job=job, name=f"n{number}")
        try:
            repository.capture(DirectoryStore(checkpoint), request)
        except SavepointError as error:
            if not error.retry_helps:
                results.put(f"capture: {error!r}")
                return
    results.put(f"ok capture {number}")


def deleting(root: str, results: "Queue[str]") -> None:
    repository = Repository.open(DirectoryStore(root))
    end, count = time.monotonic() + _SECONDS, 0
    while time.monotonic() < end:
        for savepoint in repository.list().savepoints[:-3]:
            try:
                repository.delete(savepoint)
                count += 1
            except NoSuchSavepointError:
                continue
    results.put(f"ok delete {count}")


def collecting(root: str, results: "Queue[str]") -> None:
    repository = Repository.open(DirectoryStore(root))
    end, freed = time.monotonic() + _SECONDS, 0
    while time.monotonic() < end:
        try:
            freed += repository.collect(grace=0.3).freed_bytes
        except CollectorBusyError:
            continue
    results.put(f"ok collect {freed}")


def test_processes_that_capture_delete_and_collect_at_once_lose_nothing(
    repository: Repository, tmp_path: Path
) -> None:
    query = SyntheticQuery(tmp_path / "ck", snapshot_bytes=300_000, retain=6).run(3)
    root, results = repository.store.uri, _CONTEXT.Queue()
    processes = [
        _CONTEXT.Process(target=capturing, args=(root, str(query.root), "a", results)),
        _CONTEXT.Process(target=capturing, args=(root, str(query.root), "b", results)),
        _CONTEXT.Process(target=deleting, args=(root, results)),
        _CONTEXT.Process(target=collecting, args=(root, results)),
    ]
    for process in processes:
        process.start()
    reports: list[str] = []
    deadline = time.monotonic() + 60
    while len(reports) < len(processes) and time.monotonic() < deadline:
        query.batch()
        time.sleep(0.05)
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
