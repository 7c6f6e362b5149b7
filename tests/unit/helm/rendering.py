"""The chart as the real Helm renders it, once for each set of values."""

import json
import os
import re
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


class _Loader(yaml.CSafeLoader):
    """In C: the definitions are long. And `1e3` is a number, as it is to the API server."""


_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:float", re.compile(r"[0-9]+(\.[0-9]*)?[eE][0-9]+$"), list("0123456789")
)


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


def render(
    values: Object | None = None, *, release: str = RELEASE, namespace: str = NAMESPACE
) -> Rendered:
    """The chart with these values; nobody may change what all share."""
    return _rendered(json.dumps(values or {}), release, namespace)


@cache
def _rendered(values: str, name: str, namespace: str) -> Rendered:
    done = _run(values, name, namespace)
    assert done.returncode == 0, done.stderr
    release = json.loads(done.stdout)
    hooks = [yaml.load(hook["manifest"], _Loader) for hook in release["hooks"]]
    objects = [body for body in yaml.load_all(release["manifest"], _Loader) if body]
    return Rendered(objects, hooks, release["info"]["notes"], release["manifest"])


def refusal(values: Object) -> str:
    """What Helm says to values that it refuses."""
    done = _run(json.dumps(values))
    assert done.returncode != 0, "Helm takes these values"
    return done.stderr


@cache
def _run(
    values: str, release: str = RELEASE, namespace: str = NAMESPACE
) -> subprocess.CompletedProcess[str]:
    # A dry run tells the notes and the hooks, too, and asks no cluster.
    command = [str(helm_binary()), "install", release, str(CHART), f"--namespace={namespace}"]
    return subprocess.run(
        [*command, "--dry-run=client", "--output=json", "--values=-"],
        input=values,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "KUBECONFIG": "/nonexistent"},
    )
