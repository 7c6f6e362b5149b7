"""`sparkpoint job`, as a person types it, against the cluster of the tests."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from dev.cluster.lifecycle import Cluster
from tests.cluster.namespace import Namespace

__all__ = ["Cli"]

_SPARKPOINT = Path(sys.executable).parent / "sparkpoint"


class Cli:
    """The command line in one namespace."""

    def __init__(self, cluster: Cluster, namespace: Namespace, folder: Path) -> None:
        self._namespace = namespace
        self._kubeconfig = folder / "kubeconfig"
        text = cluster.kubectl("config", "view", "--raw", "--minify", "--flatten")
        self._kubeconfig.write_text(text)

    def run(self, *arguments: str, code: int = 0) -> str:
        """What it prints; it must end with this code."""
        done = subprocess.run(
            [_SPARKPOINT, "job", *arguments, "-n", self._namespace.name],
            env=os.environ | {"KUBECONFIG": str(self._kubeconfig)},
            capture_output=True,
            text=True,
            check=False,
            timeout=600,
        )
        assert done.returncode == code, f"{arguments}: {done.stdout}{done.stderr}"
        return done.stdout

    def document(self, *arguments: str, code: int = 0) -> Any:
        """The same in JSON."""
        return json.loads(self.run(*arguments, "--json", code=code))
