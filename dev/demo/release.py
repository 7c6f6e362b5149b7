"""The operator of the demo: our chart as a release of Helm, put there as a person does."""

import json
from typing import Final

from dev.cluster.lifecycle import Cluster
from dev.console import say
from dev.demo.stage import NAMESPACE
from dev.helm import CHART, helm
from dev.operator import NAMESPACE as SYSTEM
from dev.operator import development_values

__all__ = ["put_release"]

_RELEASE: Final = "sparkpoint"
_SHOWN: Final = (
    f"helm upgrade --install {_RELEASE} helm/sparkpoint --namespace {SYSTEM} --create-namespace "
    f"--set 'jobs.namespaces={{{NAMESPACE}}}' --set image.tag=dev --wait"
)


def put_release(cluster: Cluster) -> None:
    """Install the chart, or upgrade it to this checkout's; then ask it whether it works."""
    _let_go_of_what_was_cut_off(cluster)
    say(f"    $ {_SHOWN}")
    values = {**development_values(), "jobs": {"namespaces": [NAMESPACE]}}
    _helm(
        cluster,
        *("upgrade", "--install", _RELEASE, str(CHART), "--create-namespace", "--values=-"),
        *("--wait", "--timeout=180s", *_of_a_local_cluster(cluster)),
        text=json.dumps(values),
    )
    say(f"    $ helm -n {SYSTEM} test {_RELEASE}")
    _helm(cluster, "test", _RELEASE, "--timeout=120s")


def _of_a_local_cluster(cluster: Cluster) -> tuple[str, ...]:
    """What is there without a release was applied by hand, and by nobody but a developer."""
    return ("--take-ownership", "--force-conflicts") if cluster.layout is not None else ()


def _let_go_of_what_was_cut_off(cluster: Cluster) -> None:
    """A Helm that was killed leaves a lock; definitions, jobs and data stay whatever we do here."""
    state = _state(cluster)
    if state == "pending-install":
        _helm(cluster, "uninstall", _RELEASE, "--no-hooks", "--wait", "--timeout=120s")
    elif state.startswith("pending-"):
        _helm(cluster, "rollback", _RELEASE, "--wait", "--timeout=180s")


def _state(cluster: Cluster) -> str:
    listed = json.loads(
        _helm(cluster, "list", "--pending", "--output=json", f"--filter=^{_RELEASE}$")
    )
    return str(listed[0]["status"]) if listed else ""


def _helm(cluster: Cluster, *arguments: str, text: str | None = None) -> str:
    return helm(*arguments, f"--namespace={SYSTEM}", on=cluster, text=text, timeout=240)
