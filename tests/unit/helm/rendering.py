"""The chart as the real Helm renders it, once for each set of values."""

import json
import os
import subprocess
from dataclasses import dataclass
from functools import cache
from typing import Any

import yaml

from dev.helm import CHART, helm_binary

__all__ = ["NAMESPACE", "RELEASE", "Object", "Rendered", "refusal", "render"]

RELEASE = "sparkpoint"
NAMESPACE = "system"
Object = dict[str, Any]


@dataclass(frozen=True)
class Rendered:
    """What would be installed."""

    objects: list[Object]
    """Without hooks."""
    hooks: list[Object]
    notes: str
    manifest: str

    def of(self, kind: str) -> list[Object]:
        """All objects of a kind."""
        return [body for body in self.objects if body["kind"] == kind]

    def hook(self, event: str) -> Object:
        """The only one that is run at this event."""
        [found] = [b for b in self.hooks if b["metadata"]["annotations"]["helm.sh/hook"] == event]
        return found

    def one(self, kind: str, name: str | None = None) -> Object:
        """The only one of its kind, or of its name."""
        named = [b for b in self.of(kind) if name in (None, b["metadata"]["name"])]
        [found] = named
        return found


def render(values: Object | None = None) -> Rendered:
    """The chart with these values; nobody may change what all share."""
    return _rendered(json.dumps(values or {}))


@cache
def _rendered(values: str) -> Rendered:
    done = _run(values)
    assert done.returncode == 0, done.stderr
    release = json.loads(done.stdout)
    hooks = [yaml.load(hook["manifest"], yaml.CSafeLoader) for hook in release["hooks"]]
    # In C: the definitions are long.
    objects = [body for body in yaml.load_all(release["manifest"], yaml.CSafeLoader) if body]
    return Rendered(objects, hooks, release["info"]["notes"], release["manifest"])


def refusal(values: Object) -> str:
    """What Helm says to values that it refuses."""
    done = _run(json.dumps(values))
    assert done.returncode != 0, "Helm takes these values"
    return done.stderr


@cache
def _run(values: str) -> subprocess.CompletedProcess[str]:
    # A dry run tells the notes and the hooks, too, and asks no cluster.
    command = [str(helm_binary()), "install", RELEASE, str(CHART), f"--namespace={NAMESPACE}"]
    return subprocess.run(
        [*command, "--dry-run=client", "--output=json", "--values=-"],
        input=values,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "KUBECONFIG": "/nonexistent"},
    )
