"""A cluster without nodes, somebody who plays its pods, and an operator of this checkout.

The operator is a process of this machine and not a pod: nobody else's memory and processor time is
in its figures, and it can be given a core of its own.
"""

import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Final

from prometheus_client.parser import text_string_to_metric_families

from dev.cache import exclusive
from dev.cluster.layout import Layout, find_layout
from dev.cluster.lifecycle import Cluster, delete_cluster, raise_cluster
from dev.console import Problem
from sparkpoint.controller.keys import FINALIZER
from sparkpoint.controller.records import write_savepoint_record
from sparkpoint.lifecycle.savepointworld import SavepointRecord, SavepointState, Taker
from tests.cluster.operated import example

__all__ = ["JOBS", "NAMESPACE", "Ground", "Operated", "job", "kept_savepoint", "scale_ground"]

NAMESPACE: Final = "scale"
JOBS: Final = f"/apis/sparkpoint.dev/v1alpha1/namespaces/{NAMESPACE}/statefulsparkjobs"
_ROOT: Final = Path(__file__).resolve().parents[2]
_TICKS: Final = os.sysconf("SC_CLK_TCK")
_MIB: Final = 1024


@dataclass(frozen=True, slots=True)
class Operated:
    """An operator that runs."""

    process: subprocess.Popen[bytes]
    port: int

    def processor(self) -> float:
        """Seconds of processor time that it has taken."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / _TICKS

    def memory(self) -> tuple[float, float]:
        """MB that are resident, now and at most."""
        text = Path(f"/proc/{self.process.pid}/status").read_text()
        found = dict(line.split(":", 1) for line in text.splitlines())
        return tuple(int(found[name].split()[0]) / _MIB for name in ("VmRSS", "VmHWM"))  # type: ignore[return-value]

    def metrics(self) -> dict[tuple[str, tuple[str, ...]], float]:
        """Name and values of labels -> number."""
        page = f"http://127.0.0.1:{self.port}/metrics"
        with urllib.request.urlopen(page, timeout=30) as answer:
            text = answer.read().decode()
        return {
            (each.name, tuple(each.labels.values())): each.value
            for family in text_string_to_metric_families(text)
            for each in family.samples
        }

    def requests(self) -> Mapping[str, float]:
        """Requests to the API server so far, by verb and resource."""
        name = "sparkpoint_operator_api_requests_total"
        found: dict[str, float] = {}
        for (metric, labels), value in self.metrics().items():
            if metric == name:
                key = " ".join(labels[:2])
                found[key] = found.get(key, 0) + value
        return found

    def observed(self, kind: str = "job") -> int:
        """How many resources of this kind it has looked at."""
        name = "sparkpoint_operator_resources"
        found = self.metrics().items()
        return int(sum(v for (m, labels), v in found if m == name and labels[0] == kind))


@dataclass(frozen=True, slots=True)
class Ground:
    """The cluster."""

    cluster: Cluster
    layout: Layout
    logs: Path

    @contextmanager
    def operator(self, *, core: int | None = None) -> Iterator[Operated]:
        """Run one, on a core of its own if told so; killed at the end."""
        port = _free_port()
        command = [sys.executable, "-m", "sparkpoint.controller", f"--health-port={port}"]
        environment = {**os.environ, "KUBECONFIG": str(self.layout.kubeconfig)}
        environment.pop("SPARKPOINT_CONTEXT", None)
        with _running("operator", command, self.logs, environment) as process:
            if core is not None:
                os.sched_setaffinity(process.pid, {core})
            yield Operated(process, port)


@contextmanager
def scale_ground(name: str, *, taking: float = 0.0) -> Iterator[Ground]:
    """A new cluster of that name with our definitions and a namespace; deleted at the end.

    Savepoints of drivers that run take so many seconds.
    """
    with exclusive(f"scale-of-{name}"):
        _remove(name)  # what a run that was killed left
        try:
            cluster = raise_cluster(name, nodeless=True)
            layout = find_layout(name)
            assert layout is not None
            ground = Ground(cluster, layout, layout.volatile)
            _prepare(ground)
            player = [sys.executable, "-m", "tests.scale", name, str(taking)]
            with _running("player", player, ground.logs):
                yield ground
        finally:
            _remove(name)


def _remove(name: str) -> None:
    if layout := find_layout(name):
        delete_cluster(layout)


def _prepare(ground: Ground) -> None:
    cluster, crds = ground.cluster, str(_ROOT / "crds")
    cluster.kubectl("apply", "--server-side", "-f", crds)
    cluster.kubectl("wait", "--for=condition=Established", "--timeout=60s", "-f", crds)
    cluster.kubectl("create", "namespace", NAMESPACE)
    cluster.kubectl(
        *("-n", NAMESPACE, "wait", "--for=create", "serviceaccount/default", "--timeout=30s")
    )
    script = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "script", "namespace": NAMESPACE},
        "data": {"url_visits.py": example()},
    }
    cluster.kubectl("apply", "-f", "-", text=json.dumps(script))


def job(number: int, **spec: Any) -> dict[str, Any]:
    """One of many, as people write them."""
    name = f"visits-{number:04d}"
    return {
        "apiVersion": "sparkpoint.dev/v1alpha1",
        "kind": "StatefulSparkJob",
        "metadata": {"name": name, "labels": {"team": f"team-{number % 20}"}},
        "spec": {
            "image": "registry.example/shop/visits:1.4.2",
            "application": {"script": {"configMap": {"name": "script", "key": "url_visits.py"}}},
            "args": [f"--input=s3://logs/{name}", f"--output=s3://counts/{name}", "--files=1"],
            "sparkConf": {"spark.sql.session.timeZone": "UTC"},
            "driver": {"cores": 1, "coreRequest": "100m", "memory": "700m"},
            "executor": {"cores": 1, "coreRequest": "100m", "memory": "600m", "instances": 2},
            "serviceAccount": "default",
            "state": {"provider": "RocksDB", "partitions": 8},
            "checkpoint": {"location": "s3://data/checkpoints"},
            "savepoints": {"repository": "s3://data/savepoints"},
            "storage": {"secretName": "s3", "region": "us-east-1"},
            "upgrade": {"handover": "Cold", "compatibility": "Skip"},
            **spec,
        },
    }


def kept_savepoint(job: str, turn: int, *, identity: str, taken: datetime) -> dict[str, Any]:
    """A complete one that a person asked for, as the operator leaves it: nothing is to be done to
    it but to keep it, which nobody has told yet."""
    name, moment = f"{job}-kept-{turn}", taken.isoformat().replace("+00:00", "Z")
    record = SavepointRecord(
        state=SavepointState.COMPLETED,
        taker=Taker.AGENT,
        epoch=1,
        started=taken,
        described=True,
        checked=True,
    )
    same = {"observedGeneration": 1, "lastTransitionTime": moment, "message": ""}
    return {
        "apiVersion": "sparkpoint.dev/v1alpha1",
        "kind": "SparkSavepoint",
        "metadata": {"name": name, "finalizers": [FINALIZER]},
        "spec": {"jobRef": {"name": job}},
        "status": {
            "phase": "Completed",
            "observedGeneration": 1,
            "failures": 0,
            "id": identity,
            "name": name,
            "repository": "s3://data/savepoints",
            "location": f"s3://data/savepoints/{job}/{name}.json",
            "epoch": 1,
            "batch": turn,
            "queries": [{"name": "visits", "batch": turn}],
            "clean": True,
            "files": 10,
            "bytes": 4096,
            "newBytes": 2048,
            "size": "4.0 KiB",
            "newSize": "2.0 KiB",
            "duration": "0.1s",
            "startedAt": moment,
            "completedAt": moment,
            "message": "",
            "conditions": [
                {"type": "Accepted", "status": "True", "reason": "Valid", **same},
                {"type": "Complete", "status": "True", "reason": "Completed", **same},
            ],
            "record": write_savepoint_record(record),
        },
    }


def _free_port() -> int:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        port: int = sock.getsockname()[1]
        return port


@contextmanager
def _running(
    name: str, command: list[str], logs: Path, environment: Mapping[str, str] | None = None
) -> Iterator[subprocess.Popen[bytes]]:
    file = logs / f"{name}.log"
    with file.open("ab") as log:
        process = subprocess.Popen(command, cwd=_ROOT, env=environment, stdout=log, stderr=log)
    try:
        time.sleep(0.5)
        if process.poll() is not None:
            raise Problem(f"{name} ended:\n{file.read_text()[-3000:]}", remedy="mend that.")
        yield process
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()
