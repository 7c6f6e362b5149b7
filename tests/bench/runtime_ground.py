"""A busy driver to measure on: its setting, and what its agent tells of it."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from dev.console import Problem
from sparkpoint.runtime.client import SyncAgentClient
from sparkpoint.runtime.model import OperationState, QueryProgress, SavepointRequest
from tests.spark.runtime.driver import Setting
from tests.spark.workloads.providers import PROVIDERS

__all__ = [
    "SCRIPT",
    "Load",
    "await_true",
    "busy_setting",
    "newest_commit",
    "only_query",
    "savepoint",
]

SCRIPT = Path(__file__).parent / "runtime_job.py"
_QUERY = "busy"


@dataclass(frozen=True, slots=True)
class Load:
    """How much the job has to do."""

    keys: int
    rows_per_batch: int

    @property
    def arguments(self) -> tuple[int, int]:
        """Of the script."""
        return self.keys, self.rows_per_batch


def busy_setting(root: Path) -> Setting:
    """A job on two cores, compiled as in production."""
    confs = {
        **PROVIDERS["rocksdb-changelog"],
        "spark.sql.shuffle.partitions": "4",
        "spark.sql.streaming.stateStore.minDeltasForSnapshot": "10",
        "spark.sql.codegen.wholeStage": "true",
    }
    return Setting(root, confs=confs, variables={"SPARK_SUBMIT_OPTS": ""})


def await_true(what: str, condition: Callable[[], object], *, seconds: float) -> None:
    """Wait, bounded, without taking much of the processor."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise Problem(
                f"{what} did not happen within {seconds:.0f} s.",
                remedy="look at the driver's log, or measure on a machine that is less busy.",
            )
        time.sleep(0.01)


def only_query(agent: SyncAgentClient) -> QueryProgress | None:
    """The busy query, once it runs."""
    queries = agent.progress().queries
    return queries[0] if queries else None


def savepoint(agent: SyncAgentClient, name: str, repository: Path) -> None:
    """Take one, and wait for it."""
    done = agent.savepoint(name, SavepointRequest(repository=str(repository)), wait=300)
    if done.state is not OperationState.DONE:
        raise Problem(
            f"The savepoint {name} was not made: {done.error}",
            remedy="repair that first: figures of something that fails say nothing.",
        )


def newest_commit(setting: Setting) -> int:
    """The last batch; -1 before the first one."""
    commits = (setting.checkpoint(_QUERY) / "commits").glob("[0-9]*")
    return max((int(path.name) for path in commits), default=-1)
