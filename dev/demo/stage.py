"""Where the demo happens: commands as a person types them, shown and then run."""

import json
import os
import sys
import textwrap
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from dev.cluster.lifecycle import Cluster
from dev.cluster.programs import kubernetes_binaries
from dev.console import Problem, run_program, say

__all__ = ["JOB", "NAMESPACE", "Stage", "tell"]

NAMESPACE: Final = "url-visits"
JOB: Final = "url-visits"
_PAUSE: Final = 2.0
"""Seconds between two looks: each is a kubectl, on a machine that starts drivers meanwhile."""
_PROGRAMS: Final = Path(sys.executable).parent
_ON_S3: Final = (
    "AWS_ENDPOINT_URL=http://s3:8333",
    "AWS_DEFAULT_REGION=us-east-1",
    "SPARKPOINT_REPOSITORY=s3://data/savepoints",
)


def tell(text: str) -> None:
    """Some sentences for the person who looks on."""
    say(
        textwrap.fill(
            " ".join(text.split()), width=96, initial_indent="    ", subsequent_indent=" " * 4
        )
    )


def _show(command: str) -> None:
    say(f"    $ {command}")


@dataclass(frozen=True, slots=True)
class Stage:
    """The cluster, and the namespace of the example job in it."""

    cluster: Cluster

    def kubectl(self, *arguments: str, text: str | None = None) -> str:
        """Run kubectl, unseen."""
        return self.cluster.kubectl("-n", NAMESPACE, *arguments, text=text, timeout=270)

    def type_kubectl(self, *arguments: str) -> str:
        """Show a kubectl command, and run it."""
        _show(f"kubectl -n {NAMESPACE} {' '.join(map(_quoted, arguments))}")
        return self.kubectl(*arguments)

    def type_sparkpoint(self, *arguments: str) -> str:
        """Show a command of our own command line, and run it; Problem if it fails."""
        command = ["sparkpoint", "job", *arguments, "-n", NAMESPACE]
        _show(" ".join(map(_quoted, command)))
        return run_program(
            [_PROGRAMS / command[0], *command[1:], f"--context={self.cluster.context}"],
            env=self._environment(),
            timeout=600,
            failed=f"`{' '.join(command)}` failed",
            remedy="see what it says; `make demo` again goes on from here.",
        )

    def type_graph(self) -> str:
        """The tree of savepoints. In a pod, as the repository is inside of the cluster."""
        _show("sparkpoint log --graph --repository s3://data/savepoints")
        program = ["env", *_ON_S3, "python3", "-m", "sparkpoint.cli.main", "log", "--graph"]
        return self.kubectl("exec", "toolbox", "--", *program)

    def put_script(self, source: str, *, shown_as: str) -> None:
        """The script's ConfigMap, made anew or changed."""
        _show(
            f"kubectl -n {NAMESPACE} create configmap {JOB} --from-file={shown_as} "
            "--dry-run=client -o yaml | kubectl apply -f -"
        )
        data, about = {"url_visits.py": source}, {"name": JOB}
        self.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": about, "data": data})

    def apply(self, *objects: Mapping[str, Any]) -> None:
        """Make or change objects, unseen."""
        manifest = {"apiVersion": "v1", "kind": "List", "items": list(objects)}
        self.kubectl("apply", "-f", "-", text=json.dumps(manifest))

    def python(self, program: str, *arguments: str) -> str:
        """What a program prints in the toolbox, a pod that has the data's volume."""
        options = ("exec", "-i", "toolbox", "--", "python3", "-")
        return self.kubectl(*options, *arguments, text=program)

    def get(self, resource: str) -> dict[str, Any]:
        """An object as it is, such as `ssj/url-visits`; empty if there is none."""
        text = self.kubectl("get", resource, "-o", "json", "--ignore-not-found")
        found: dict[str, Any] = json.loads(text) if text else {}
        return found

    def status(self, resource: str = f"ssj/{JOB}") -> dict[str, Any]:
        """Its status."""
        status: dict[str, Any] = self.get(resource).get("status") or {}
        return status

    def await_true(self, what: str, look: Callable[[], object], *, seconds: float) -> None:
        """Look until it is so; Problem with how things stand if it is not in time."""
        deadline = time.monotonic() + seconds
        while not look():
            if time.monotonic() > deadline:
                raise Problem(
                    f"Waited {seconds:.0f} s for {what}.\n{self._how_it_stands()}",
                    remedy="see above, and `kubectl describe ssj`; `make demo` again goes on from "
                    "here, `make demo-down demo` begins afresh.",
                )
            time.sleep(_PAUSE)

    def hint(self) -> str:
        """What to type first so that the commands work in a person's own shell."""
        if self.cluster.layout is None:
            return f"kubectl config use-context {self.cluster.context}"
        programs = f"{kubernetes_binaries()}:{_PROGRAMS}"
        return f"export KUBECONFIG={self.cluster.kubeconfig} PATH={programs}:$PATH"

    def _environment(self) -> Mapping[str, str]:
        if self.cluster.kubeconfig is None:
            return os.environ
        # The node's addresses are on this machine; a proxy knows nothing of them.
        own = {"KUBECONFIG": str(self.cluster.kubeconfig), "NO_PROXY": "*", "no_proxy": "*"}
        return {**os.environ, **own}

    def _how_it_stands(self) -> str:
        conditions = self.status().get("conditions") or []
        told = [
            f"{each['type']} {each['status']}: {each.get('message', '')}" for each in conditions
        ]
        return "\n".join([self.kubectl("get", "ssj,ssp,pods"), *told])


def _quoted(word: str) -> str:
    return f"'{word}'" if set(word) & set(' {}[]"$*') else word
