"""One operation in a fresh process: `python -m tests.bench.child capture '{"checkpoint": …}'`.

Prints one line of JSON: what it took, without the start of the interpreter and the imports.
"""

import importlib
import json
import resource
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeAlias

from sparkpoint.savepoint import CaptureRequest, Repository, Savepoint
from sparkpoint.state import RepartitionRequest, repartition
from sparkpoint.state.diff import DiffRequest, diff_state
from sparkpoint.state.query import QueryRequest, query_state
from tests.bench.measure import settle
from tests.bench.memory import ready_memory
from tests.bench.stores import Watch, leave_to_the_kernel, open_watched

__all__ = ["main"]

Numbers: TypeAlias = Mapping[str, float]
_JOB = "bench"


def main(arguments: list[str]) -> int:
    """Run the operation that the arguments name."""
    operation, task = _OPERATIONS[arguments[0]], json.loads(arguments[1])
    if task.get("endpoint"):
        importlib.import_module("sparkpoint.storage.s3")
    if task.get("unflushed"):
        leave_to_the_kernel()
    # Here, not in the parent: what is free again when the interpreter has started counts, too.
    settle(Path(task["warm"]) if "warm" in task else None)
    ready_memory()
    watch = Watch()
    begun, used = time.perf_counter(), _processor()
    numbers = operation(task, watch)
    seconds = time.perf_counter() - begun
    answer = {
        "seconds": seconds,
        "processor": _processor() - used,
        "sync": watch.sync_seconds,
        "rss": _peak_rss(),
        "numbers": {**numbers, "requests": watch.requests, "listed": watch.listed},
    }
    print(json.dumps(answer))
    return 0


def _processor() -> float:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def _peak_rss() -> float:
    """In MB. Not `ru_maxrss`: that one remembers the parent from before `exec`."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM"):
            return int(line.split()[1]) * 1024 / 1e6
    raise RuntimeError("/proc/self/status has no VmHWM.")


def _capture(task: dict[str, Any], watch: Watch) -> Numbers:
    endpoint = task.get("endpoint")
    repository = Repository.init(open_watched(task["repository"], endpoint, watch))
    source = open_watched(task["checkpoint"], endpoint, watch)
    request = CaptureRequest(job=_JOB, name=task["name"], read_all=task.get("read_all", False))
    result = repository.capture(source, request)
    files = result.savepoint.manifest.files
    return {
        "files": files.count,
        "bytes": files.bytes,
        "new_bytes": files.new_bytes,
        "read_bytes": result.read_bytes,
    }


def _capture_often(task: dict[str, Any], watch: Watch) -> Numbers:
    """Make a history: the same checkpoint under many names."""
    for number in range(task["count"]):
        _capture({**task, "name": f"{task['name']}-{number:04d}"}, watch)
    return {}


def _materialize(task: dict[str, Any], watch: Watch) -> Numbers:
    endpoint = task.get("endpoint")
    repository = Repository.open(open_watched(task["repository"], endpoint, watch))
    savepoint = repository.find(task["name"], namespace="default", job=_JOB)
    result = repository.materialize(savepoint, open_watched(task["target"], endpoint, watch))
    return {
        "files": result.files,
        "bytes": result.bytes,
        "copied_files": result.copied_files,
        "copied_bytes": result.copied_bytes,
    }


def _verify(task: dict[str, Any], watch: Watch) -> Numbers:
    """Check all savepoints; a problem is a failure of the whole benchmark."""
    repository = Repository.open(open_watched(task["repository"], task.get("endpoint"), watch))
    results = repository.verify(repository.list().savepoints)
    problems = [problem for result in results for problem in result.problems]
    if problems or len(results) < task.get("at_least", 1):
        raise RuntimeError(f"{len(results)} savepoints, problems: {problems[:5]}")
    return {"savepoints": len(results)}


def _repartition(task: dict[str, Any], watch: Watch) -> Numbers:
    repository, savepoint = _found(task, task["name"], watch)
    request = RepartitionRequest(partitions=task["partitions"], name=task["child"])
    return {"rows": repartition(repository, savepoint, request).rows}


def _diff(task: dict[str, Any], watch: Watch) -> Numbers:
    repository, before = _found(task, task["before"], watch)
    _, after = _found(task, task["after"], watch)
    (found,) = diff_state(repository, before, after, DiffRequest())
    return {"changed": found.totals.changed}


def _query(task: dict[str, Any], watch: Watch) -> Numbers:
    """Twice: the second one is warm."""
    repository, savepoint = _found(task, task["name"], watch)
    request = QueryRequest(where=f"key.k = '{task['key']}'")
    seconds = 0.0
    for _ in range(2):
        begun = time.perf_counter()
        with query_state(repository, savepoint, request) as found:
            if len(list(found.rows())) != 1:
                raise RuntimeError(f"there is not one row of {task['key']}")
        seconds = time.perf_counter() - begun
    return {"warm": seconds}


def _found(task: dict[str, Any], name: str, watch: Watch) -> tuple[Repository, Savepoint]:
    repository = Repository.open(open_watched(task["repository"], task.get("endpoint"), watch))
    return repository, repository.find(name, namespace="default", job=_JOB)


def _peer_server_copy(task: dict[str, Any], watch: Watch) -> Numbers:
    from tests.bench.s3peer import copy_on_server

    return copy_on_server(task, watch)


def _peer_stream(task: dict[str, Any], watch: Watch) -> Numbers:
    from tests.bench.s3peer import copy_through

    return copy_through(task, watch)


_OPERATIONS: Mapping[str, Callable[[dict[str, Any], Watch], Numbers]] = {
    "capture": _capture,
    "capture-often": _capture_often,
    "materialize": _materialize,
    "verify": _verify,
    "repartition": _repartition,
    "diff": _diff,
    "query": _query,
    "peer-server-copy": _peer_server_copy,
    "peer-stream": _peer_stream,
}

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
