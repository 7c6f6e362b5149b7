"""The operator's replicas as processes of this machine: who acts, freezing one, what it wrote."""

import json
import os
import re
import signal
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from dev.cluster.lifecycle import Cluster

__all__ = ["Replicas"]

_PROGRAM = b"sparkpoint.controller"
_REQUEST = re.compile(
    r'^sparkpoint_operator_api_requests_total\{(?=[^}]*verb="(?:create|update|patch|delete)")'
    r'(?![^}]*resource="leases")(?=[^}]*code="2\d\d")[^}]*\} (\S+)$',
    re.MULTILINE,
)
_LEADER = re.compile(r"^sparkpoint_leader (\S+)$", re.MULTILINE)
_LOOKED = re.compile(
    r'^sparkpoint_operator_api_requests_total\{(?=[^}]*verb="get")'
    r'(?=[^}]*resource="leases")[^}]*\} (\S+)$',
    re.MULTILINE,
)
# The pods' addresses are on this machine; a proxy knows nothing of them.
_DIRECTLY = urllib.request.build_opener(urllib.request.ProxyHandler({}))


@dataclass(frozen=True, slots=True)
class Replicas:
    """Those of one release."""

    cluster: Cluster
    namespace: str
    lease: str = "sparkpoint-operator"

    def acting(self) -> str:
        """The pod that holds the Lease; empty if nobody does, as when one has given it back."""
        held = self._get(f"lease/{self.lease}")["spec"]["holderIdentity"]
        return str(held).rpartition("_")[0]

    def acting_since(self) -> datetime:
        """When it took the Lease; its clock is this machine's."""
        return datetime.fromisoformat(self._get(f"lease/{self.lease}")["spec"]["acquireTime"])

    def pods(self) -> list[str]:
        """All of them."""
        selector = "app.kubernetes.io/component=operator"
        found = self._get("pods", "-l", selector)["items"]
        return [pod["metadata"]["name"] for pod in found]

    def writes(self, pod: str) -> float:
        """How many of its requests have changed something in the cluster, Leases left out."""
        return sum(float(count) for count in _REQUEST.findall(self._metrics(pod)))

    def leads(self, pod: str) -> bool:
        """Whether it says of itself that it acts."""
        return float(_LEADER.findall(self._metrics(pod))[0]) == 1

    def looks(self, pod: str) -> float:
        """How often it has looked at the Lease."""
        return sum(float(count) for count in _LOOKED.findall(self._metrics(pod)))

    @contextmanager
    def frozen(self, pod: str) -> Iterator[datetime]:
        """SIGSTOP for its process, then SIGCONT; yields when it was stopped."""
        processes = self._processes(pod)
        assert processes
        try:
            for process in processes:
                os.kill(process, signal.SIGSTOP)
            yield datetime.now(UTC)
        finally:
            for process in processes:
                os.kill(process, signal.SIGCONT)

    def _processes(self, pod: str) -> list[int]:
        uid = self._get(f"pod/{pod}")["metadata"]["uid"]
        return [
            int(folder.name)
            for folder in Path("/proc").iterdir()
            if folder.name.isdecimal() and _is_of(folder, uid)
        ]

    def _metrics(self, pod: str) -> str:
        address = self._get(f"pod/{pod}")["status"]["podIP"]
        with _DIRECTLY.open(f"http://{address}:8080/metrics", timeout=10) as page:
            text: str = page.read().decode()
        return text

    def _get(self, *what: str) -> dict[str, Any]:
        text = self.cluster.kubectl("-n", self.namespace, "get", *what, "-o", "json")
        found: dict[str, Any] = json.loads(text)
        return found


def _is_of(folder: Path, uid: str) -> bool:
    """Whether this process is the operator's, in the pod with this uid."""
    try:
        group = (folder / "cgroup").read_text().replace("_", "-")
        return uid in group and _PROGRAM in (folder / "cmdline").read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return False
