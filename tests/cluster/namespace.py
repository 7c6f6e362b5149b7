"""A namespace that a test works in: apply objects, wait for what matters, run things in pods."""

import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dev.cluster.lifecycle import Cluster
from dev.console import Problem

__all__ = ["Namespace"]

_LONGEST_PAUSE = 3.0
"""Seconds. A look costs a start of kubectl, which the pods that are waited for need more."""


@dataclass(frozen=True, slots=True)
class Namespace:
    """One namespace of one cluster."""

    cluster: Cluster
    name: str

    def kubectl(self, *arguments: str, text: str | None = None, timeout: float = 120) -> str:
        """Run kubectl in this namespace."""
        return self.cluster.kubectl("-n", self.name, *arguments, text=text, timeout=timeout)

    def apply(self, *objects: Mapping[str, Any]) -> None:
        """Create or change objects."""
        manifest = {"apiVersion": "v1", "kind": "List", "items": list(objects)}
        self.kubectl("apply", "-f", "-", text=json.dumps(manifest))

    def pods(self, selector: str) -> list[dict[str, Any]]:
        """The pods with these labels."""
        listed = json.loads(self.kubectl("get", "pods", "-l", selector, "-o", "json"))
        items: list[dict[str, Any]] = listed["items"]
        return items

    def python(self, pod: str, program: str, *arguments: str) -> str:
        """Run a Python program in a pod and return what it prints."""
        return self.kubectl("exec", "-i", pod, "--", "python3", "-", *arguments, text=program)

    def await_true(
        self,
        what: str,
        condition: Callable[[], object],
        *,
        seconds: float,
        pods: Sequence[str] = (),
    ) -> None:
        """Wait, bounded; on failure show the ends of the pods' logs."""
        deadline, pause = time.monotonic() + seconds, 0.5
        while not condition():
            if time.monotonic() > deadline:
                raise AssertionError(f"waited {seconds:.0f} s for {what}\n{self.describe(pods)}")
            time.sleep(pause)
            pause = min(_LONGEST_PAUSE, pause * 1.5)

    def describe(self, pods: Sequence[str]) -> str:
        """The state of all pods, and the logs of some."""
        logs = [self._log(pod) for pod in pods]
        return "\n".join([self.kubectl("get", "pods", "-o", "wide"), *logs])

    def _log(self, pod: str) -> str:
        try:
            return self.kubectl("logs", pod, "--tail=40", "--ignore-errors")
        except Problem as gone:
            return str(gone)
