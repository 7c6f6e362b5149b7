"""Airflow on this machine: a home of its own, SQLite, and a connection to a played cluster.

The environment is set before anything of Airflow is imported: it reads it once.
"""

import json
import os
import shutil
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from sqlite3 import connect
from typing import Any

import pytest

from tests.airflow.home import ROOT, environment
from tests.airflow.operating import PlayedOperator
from tests.unit.airflow.world import savepoint
from tests.unit.cli.jobs.apiserver import ApiServer, served

HOME = Path(tempfile.mkdtemp(prefix="sparkpoint-airflow-"))
KUBECONFIG = HOME / "kubeconfig"

os.environ |= environment(HOME, KUBECONFIG, "shop")


def pytest_configure(config: pytest.Config) -> None:
    """What Airflow warns of is not ours to mend."""
    config.addinivalue_line("filterwarnings", "default")
    config.add_cleanup(lambda: shutil.rmtree(HOME, ignore_errors=True))


@dataclass
class Ground:
    """A cluster, and who operates it."""

    api: ApiServer
    operator: PlayedOperator

    def savepoints(self, job: str | None = None) -> list[dict[str, Any]]:
        """All of them, or those of a job."""
        return [
            body
            for (plural, _, _), body in sorted(self.api.objects.items())
            if plural == "sparksavepoints"
            and job in (None, body["spec"]["jobRef"]["name"])
            and not body["spec"].get("existing")
        ]

    def until(self, holds: Callable[[], Any]) -> None:
        """What is played takes a moment."""
        deadline = time.monotonic() + 60
        while not holds():
            assert time.monotonic() < deadline
            time.sleep(0.02)

    def verbs(self) -> dict[str, set[str]]:
        """Resource -> what was asked of it, in the words of a role."""
        found: dict[str, set[str]] = defaultdict(set)
        for method, path, _ in self.api.asked:
            plain, _, query = path.partition("?")
            *_, before, last = plain.split("/")
            named = last not in self.api.kinds
            verb = {"GET": "get" if named else "list", "POST": "create"}.get(method, method.lower())
            found[before if named else last].add("watch" if "watch=" in query else verb)
        return dict(found)


def aged(number: int, **more: Any) -> Any:
    """The savepoint `visits-<number>`, so many days old."""
    name = f"{more.get('of', 'visits')}-{number}"
    moment = (datetime.now(UTC) - timedelta(days=number)).isoformat()
    made = savepoint(name, **more, creationTimestamp=moment)
    made["status"] |= {"startedAt": moment, "completedAt": moment}
    return made


def write_kubeconfig(address: str, token: str, path: Path = KUBECONFIG) -> None:
    """The way to the cluster: the only thing that another one would need."""
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "here",
        "contexts": [{"name": "here", "context": {"cluster": "c", "user": "u"}}],
        "clusters": [{"name": "c", "cluster": {"server": address}}],
        "users": [{"name": "u", "user": {"token": token}}],
    }
    path.write_text(json.dumps(content))


def mount(place: Path) -> Path:
    """The DAGs as the kubelet lays out a ConfigMap: links to links."""
    content = place / "..2026_11_17"
    shutil.copytree(ROOT / "dags", content, ignore=shutil.ignore_patterns("__pycache__"))
    (place / "..data").symlink_to(content.name)
    for file in content.iterdir():
        (place / file.name).symlink_to(Path("..data") / file.name)
    return place


@pytest.fixture
def ground() -> Iterator[Ground]:
    """Empty."""
    with served() as (api, address):
        write_kubeconfig(address, api.token)
        yield Ground(api, PlayedOperator(api))


@pytest.fixture(scope="session")
def database() -> Path:
    """`dag.test()` does not make it. A copy of it as it is before any run."""
    from airflow.utils.db import initdb

    initdb()
    made = HOME / "new.db"
    # Not the file alone: what was written last is in another one.
    with closing(connect(HOME / "airflow.db")) as whole, closing(connect(made)) as copied:
        whole.backup(copied)
    return made


@pytest.fixture(scope="session")
def dagbag(database: Path) -> Any:
    """All DAGs of this repository."""
    from airflow.dag_processing.dagbag import DagBag

    return DagBag(str(ROOT / "dags"))
