"""The operator of one namespace as a process of this machine, to be killed and started again."""

import os
import signal
import subprocess
import sys
from pathlib import Path

from dev.cluster.lifecycle import Cluster
from tests.chaos.breakpoints import Breakpoints

__all__ = ["OperatorProcess"]

_CHECKOUT = Path(__file__).parent.parent.parent


class OperatorProcess:
    """At most one at a time."""

    def __init__(
        self, cluster: Cluster, namespace: str, folder: Path, *, in_turn: bool = False
    ) -> None:
        self._cluster, self._namespace, self._folder = cluster, namespace, folder
        # The next one of those that take turns waits until the Lease of one that died runs out.
        self._lease_namespace = namespace if in_turn else ""
        self.breakpoints = Breakpoints(folder)
        self.breakpoints.arm([])
        self.log = folder / "operator.log"
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it; what the former one has said stays in the log."""
        self.breakpoints.release()
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                [
                    *(sys.executable, "-m", "tests.chaos.launched"),
                    *(str(self._folder), str(os.getpid())),
                    *(f"--namespace={self._namespace}", f"--context={self._cluster.context}"),
                    *("--health-port=0", f"--lease-namespace={self._lease_namespace}"),
                ],
                cwd=_CHECKOUT,
                env={**os.environ, "KUBECONFIG": str(self._cluster.kubeconfig)},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )

    def kill(self) -> None:
        """SIGKILL; it has no chance to do anything."""
        if self._process is not None:
            self._process.send_signal(signal.SIGKILL)
            self._process.wait()
            self._process = None

    def is_running(self) -> bool:
        """Whether it has not ended by itself."""
        return self._process is not None and self._process.poll() is None

    def last_words(self, lines: int = 60) -> str:
        """The end of its log."""
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-lines:])
