"""A whole Airflow: api-server, scheduler, DAG processor and triggerer, each its own process."""

import json
import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.support.processes import end_session, session_of

__all__ = ["Load", "Stack"]

_PATIENCE = 300.0
"""Seconds: a busy machine is no failure."""
_POOL = "sparkpoint"
_TRIES = 5
"""Of a question that changes nothing, where the api-server has trouble with its database."""


def _free_port() -> int:
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        return int(listening.getsockname()[1])


@dataclass(frozen=True, slots=True)
class Load:
    """Of some processes."""

    seconds: float
    """Of a processor, also by children that have ended."""
    memory: int
    """Bytes; what several processes share is counted once."""


def _load(processes: Sequence[int]) -> Load:
    seconds, memory = 0.0, 0
    for process in processes:
        with suppress(FileNotFoundError, ProcessLookupError):
            stat = Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()
            seconds += sum(map(int, stat[11:15])) / os.sysconf("SC_CLK_TCK")
            rollup = Path(f"/proc/{process}/smaps_rollup").read_text()
            memory += 1024 * int(rollup.partition("\nPss:")[2].split()[0])
    return Load(seconds, memory)


class Stack:
    """Started once; every process may be killed and started again."""

    def __init__(
        self, home: Path, dags: Path, settings: dict[str, str], *, python: str = sys.executable
    ) -> None:
        self._home, self._port = home, _free_port()
        self._airflow = str(Path(python).parent / "airflow")
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        self._known_token = ""
        self._environment = {
            **os.environ,
            "AIRFLOW_HOME": str(home),
            "AIRFLOW__CORE__DAGS_FOLDER": str(dags),
            "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
            "AIRFLOW__CORE__EXECUTOR": "LocalExecutor",
            "AIRFLOW__CORE__PARALLELISM": "4",
            "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_ALL_ADMINS": "True",
            "AIRFLOW__CORE__EXECUTION_API_SERVER_URL": f"{self.address}/execution/",
            "AIRFLOW__CORE__DAGS_ARE_PAUSED_AT_CREATION": "True",
            # Who writes waits for the others instead of failing.
            "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": f"sqlite:///{home}/stack.db?timeout=120",
            "AIRFLOW__API__PORT": str(self._port),
            "AIRFLOW__API__BASE_URL": self.address,
            "AIRFLOW__API__MAXIMUM_PAGE_LIMIT": "1000",
            "AIRFLOW__API_AUTH__JWT_SECRET": "not-a-secret-but-long-enough-for-a-test-of-ours" * 2,
            "AIRFLOW__LOGGING__LOGGING_LEVEL": "INFO",
            "AIRFLOW__LOGGING__TRIGGER_LOG_SERVER_PORT": str(_free_port()),
            "AIRFLOW__LOGGING__WORKER_LOG_SERVER_PORT": str(_free_port()),
            # Nobody changes the DAGs.
            "AIRFLOW__DAG_PROCESSOR__MIN_FILE_PROCESS_INTERVAL": "3600",
            "AIRFLOW__SCHEDULER__SCHEDULER_IDLE_SLEEP_TIME": "0.2",
            # A scheduler that was killed is soon taken for dead, and its tasks begin anew.
            "AIRFLOW__SCHEDULER__SCHEDULER_HEARTBEAT_SEC": "2",
            "AIRFLOW__SCHEDULER__SCHEDULER_HEALTH_CHECK_THRESHOLD": "20",
            "AIRFLOW__SCHEDULER__ORPHANED_TASKS_CHECK_INTERVAL": "3",
            "AIRFLOW__TRIGGERER__JOB_HEARTBEAT_SEC": "1",
            "AIRFLOW__TRIGGERER__TRIGGERER_HEALTH_CHECK_THRESHOLD": "15",
            "SPARKPOINT_POOL": _POOL,
            **settings,
        }

    @property
    def address(self) -> str:
        """Of the api-server."""
        return f"http://127.0.0.1:{self._port}"

    def command(self, *arguments: str) -> None:
        """`airflow …`, to its end."""
        with (self._home / "commands.log").open("ab") as log:
            subprocess.run(
                [self._airflow, *arguments],
                env=self._environment,
                check=True,
                stdout=subprocess.DEVNULL,
                stderr=log,
            )

    def start(self, name: str, *arguments: str) -> None:
        """One component, in a session of its own so that all of it can be killed."""
        with (self._home / f"{name}.log").open("ab") as log:
            self._processes[name] = subprocess.Popen(
                [self._airflow, name, *arguments],
                env=self._environment,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def kill(self, name: str) -> None:
        """Without a word, with the tasks that it runs: as a pod that is gone."""
        process = self._processes.pop(name)
        end_session(process.pid)
        process.wait()

    def up(self, database: Path | None = None) -> None:
        """All of it, until it says that it is healthy; on a copy of a new database if there is one,
        as it takes long to make."""
        if database is None:
            self.command("db", "migrate")
        else:
            shutil.copyfile(database, self._home / "stack.db")
        self.start("api-server", "--port", str(self._port), "--workers", "1")
        for name in ("scheduler", "triggerer", "dag-processor"):
            self.start(name)
        self.until(self._is_healthy, lambda: "Airflow is not healthy")
        self.ask("POST", "/api/v2/pools", {"name": _POOL, "slots": 1, "include_deferred": True})

    def down(self) -> None:
        """All of it."""
        for name in list(self._processes):
            self.kill(name)

    def _is_healthy(self) -> bool:
        try:
            told = self.ask("GET", "/api/v2/monitor/health", token=False)
        except OSError:
            return False
        return all(told[name]["status"] == "healthy" for name in ("scheduler", "triggerer"))

    def until(
        self,
        holds: Callable[[], Any],
        otherwise: Callable[[], str],
        *,
        seconds: float = _PATIENCE,
        pause: float = 0.5,
    ) -> Any:
        """What it returns, once that is something; else what `otherwise` says, with the logs."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            for name, process in self._processes.items():
                assert process.poll() is None, f"{name} has ended: {self._logs(name)}"
            found = holds()
            if found:
                return found
            time.sleep(pause)
        raise AssertionError(f"{otherwise()}: {self._logs('*')}")

    def _logs(self, name: str) -> str:
        """The ends of them."""
        paths = sorted(self._home.glob(f"{name}.log"))
        return "\n".join(f"--- {path.name}\n{path.read_text()[-4000:]}" for path in paths)

    def ask(self, method: str, path: str, body: Any = None, *, token: bool = True) -> Any:
        """The REST API."""
        headers = {"Content-Type": "application/json"}
        if token:
            headers["Authorization"] = f"Bearer {self._token()}"
        request = urllib.request.Request(
            f"{self.address}{path}",
            method=method,
            headers=headers,
            data=None if body is None else json.dumps(body).encode(),
        )
        for left in reversed(range(_TRIES if method == "GET" else 1)):
            try:
                with urllib.request.urlopen(request, timeout=60) as answer:
                    return json.loads(answer.read() or b"null")
            except urllib.error.HTTPError as error:
                if error.code < 500 or not left:
                    raise
            except TimeoutError:
                if not left:
                    raise
            time.sleep(1)
        raise AssertionError("unreachable")

    def _token(self) -> str:
        """Asked for once."""
        if not self._known_token:
            self._known_token = str(self.ask("GET", "/auth/token", token=False)["access_token"])
        return self._known_token

    def pool(self, slots: int) -> None:
        """How many savepoints are under way at once."""
        wanted = {"pool": _POOL, "slots": slots, "description": "", "include_deferred": True}
        self.ask("PATCH", f"/api/v2/pools/{_POOL}", wanted)

    def pause(self, dag: str) -> None:
        """No further run of it begins."""
        self.ask("PATCH", f"/api/v2/dags/{dag}", {"is_paused": True})

    def known(self, dag: str) -> None:
        """Wait until the DAG was read, and let it run."""

        def unpaused() -> bool:
            try:
                self.ask("PATCH", f"/api/v2/dags/{dag}", {"is_paused": False})
            except urllib.error.HTTPError as error:
                if error.code != 404:
                    raise
                return False
            return True

        self.until(unpaused, lambda: f"{dag} is not known")

    def run(self, dag: str, **conf: Any) -> str:
        """Start a run; its id."""
        made = self.ask("POST", f"/api/v2/dags/{dag}/dagRuns", {"logical_date": None, "conf": conf})
        return str(made["dag_run_id"])

    def runs(self, dag: str) -> list[dict[str, Any]]:
        """All runs of it, oldest first."""
        found = self.ask("GET", f"/api/v2/dags/{dag}/dagRuns?order_by=run_after&limit=100")
        return list(found["dag_runs"])

    def state(self, dag: str, run: str) -> str:
        """Of a run."""
        return str(self.ask("GET", f"/api/v2/dags/{dag}/dagRuns/{run}")["state"])

    def ended(self, dag: str, run: str, *, seconds: float = _PATIENCE) -> str:
        """The state of a run, once it has ended."""
        return str(
            self.until(
                lambda: (state := self.state(dag, run)) in ("success", "failed") and state,
                lambda: f"{dag} has not ended: {json.dumps(self.tasks(dag, run), indent=1)}",
                seconds=seconds,
            )
        )

    def tasks(self, dag: str, run: str) -> list[dict[str, Any]]:
        """Its task instances."""
        found = self.ask("GET", f"/api/v2/dags/{dag}/dagRuns/{run}/taskInstances?limit=1000")
        return list(found["task_instances"])

    def deferred(self, dag: str, run: str, task: str) -> int:
        """How many of its instances were waited for by a trigger in their first try.

        By the files of their logs, in which each trigger writes apart from the worker.
        """
        where = self._home / "logs" / f"dag_id={dag}" / f"run_id={run}" / f"task_id={task}"
        files = where.glob("map_index=*/attempt=1.log.trigger.*")
        return len({path.parent for path in files})

    def load(self) -> dict[str, Load]:
        """What each component has taken so far, with all that it started; its tasks apart."""
        found = {}
        for name, process in self._processes.items():
            members = session_of(process.pid)
            own = [process.pid] if name == "scheduler" else members
            found[name] = _load(own)
            if name == "scheduler":
                found["workers"] = _load([member for member in members if member != process.pid])
        return found

    def read(self, name: str) -> str:
        """A file in its home; empty if there is none."""
        path = self._home / name
        return path.read_text() if path.exists() else ""

    def result(self, dag: str, run: str, task: str) -> Any:
        """What a task returned."""
        path = f"/api/v2/dags/{dag}/dagRuns/{run}/taskInstances/{task}/xcomEntries/return_value"
        found = self.ask("GET", f"{path}?deserialize=true")["value"]
        return json.loads(found) if isinstance(found, str) else found

    def links(self, dag: str, run: str, task: str) -> dict[str, str]:
        """The buttons of the first of its instances, and where they lead."""
        path = f"/api/v2/dags/{dag}/dagRuns/{run}/taskInstances/{task}/links?map_index=0"
        found: dict[str, str] = self.ask("GET", path)["extra_links"]
        return {name: link for name, link in found.items() if link}

    def mark_failed(self, dag: str, run: str, task: str, index: int) -> None:
        """One of its instances, as a person does who does not want to wait."""
        path = f"/api/v2/dags/{dag}/dagRuns/{run}/taskInstances/{task}/{index}"
        self.ask("PATCH", path, {"new_state": "failed"})

    def log(self, dag: str, run: str, task: str, index: int, number: int = 1) -> str:
        """What a task has written in one of its tries, its trigger included."""
        path = f"/api/v2/dags/{dag}/dagRuns/{run}/taskInstances/{task}/logs/{number}"
        return json.dumps(self.ask("GET", f"{path}?map_index={index}&full_content=true"))

    def clear(self, dag: str, run: str, *tasks: str) -> None:
        """As a person does who wants to have it done again."""
        wanted = {"dag_run_id": run, "task_ids": list(tasks), "dry_run": False}
        wanted |= {"only_failed": False, "include_downstream": True, "reset_dag_runs": True}
        self.ask("POST", f"/api/v2/dags/{dag}/clearTaskInstances", wanted)
