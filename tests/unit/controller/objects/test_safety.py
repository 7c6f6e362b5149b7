"""Pods that reach into their node are refused, with the path of what is wrong."""

from typing import Any

import pytest

from sparkpoint.controller import objects
from tests.unit.controller.objects.samples import OWNER, golden_spec, make_run, make_spec


def with_container(**fields: Any) -> dict[str, Any]:
    return {"containers": [{}, {"name": "side", **fields}]}


def with_context(**fields: Any) -> dict[str, Any]:
    return with_container(securityContext=fields)


_UNSAFE: dict[str, tuple[dict[str, Any], str]] = {
    "host path": (
        {"volumes": [{"name": "a"}, {"name": "b", "hostPath": {"path": "/"}}]},
        "volumes[1].hostPath",
    ),
    "host network": ({"hostNetwork": True}, "hostNetwork"),
    "host processes": ({"hostPID": True}, "hostPID"),
    "host IPC": ({"hostIPC": True}, "hostIPC"),
    "privileged": (with_context(privileged=True), "containers[1].securityContext.privileged"),
    "privileged before": (
        {"initContainers": [{"name": "early", "securityContext": {"privileged": True}}]},
        "initContainers[0].securityContext.privileged",
    ),
    "capability": (
        with_context(capabilities={"add": ["CHOWN", "SYS_ADMIN"]}),
        "containers[1].securityContext.capabilities.add",
    ),
    "host port": (
        with_container(ports=[{"containerPort": 80, "hostPort": 80}]),
        "containers[1].ports[0].hostPort",
    ),
    "proc": (with_context(procMount="Unmasked"), "containers[1].securityContext.procMount"),
    "seccomp": (
        {"securityContext": {"seccompProfile": {"type": "Unconfined"}}},
        "securityContext.seccompProfile",
    ),
    "AppArmor": (
        with_context(appArmorProfile={"type": "Unconfined"}),
        "containers[1].securityContext.appArmorProfile",
    ),
    "SELinux": (
        with_context(seLinuxOptions={"type": "spc_t"}),
        "containers[1].securityContext.seLinuxOptions",
    ),
    "sysctl": (
        {"securityContext": {"sysctls": [{"name": "kernel.msgmax", "value": "1"}]}},
        "securityContext.sysctls",
    ),
    "host process": (
        with_context(windowsOptions={"hostProcess": True}),
        "containers[1].securityContext.windowsOptions.hostProcess",
    ),
    "probe": (
        with_container(livenessProbe={"httpGet": {"host": "169.254.169.254", "port": 80}}),
        "containers[1].livenessProbe.httpGet.host",
    ),
    "hook": (
        with_container(lifecycle={"preStop": {"tcpSocket": {"host": "db", "port": 1}}}),
        "containers[1].lifecycle.preStop.tcpSocket.host",
    ),
}


@pytest.mark.parametrize("role", ["driver", "executor"])
@pytest.mark.parametrize(("spec", "path"), _UNSAFE.values(), ids=_UNSAFE)
def test_what_reaches_into_the_node_is_told_with_its_path(
    role: str, spec: dict[str, Any], path: str
) -> None:
    fields: dict[str, Any] = {"driver": {}, "executor": {"instances": 1}}
    fields[role]["podTemplate"] = {"spec": spec}

    [error] = objects.unsafe_templates(make_spec(**fields))

    assert error.path == f"spec.{role}.podTemplate.spec.{path}"
    assert "--allow-unsafe-pods" in error.remedy


def test_an_annotation_that_switches_protection_off_is_told() -> None:
    key = "container.apparmor.security.beta.kubernetes.io/spark"

    [error] = objects.unsafe_parts({"metadata": {"annotations": {key: "unconfined"}}}, "Pod a")

    assert error.path == f"Pod a.metadata.annotations[{key}]"


_SAFE: list[dict[str, Any]] = [
    {"hostNetwork": False, "volumes": None, "containers": None},
    with_context(privileged=False, capabilities={"add": ["NET_BIND_SERVICE"], "drop": ["ALL"]}),
    with_context(procMount="Default", seLinuxOptions={"level": "s0:c1"}, runAsUser=0),
    {"securityContext": {"sysctls": [{"name": "net.ipv4.tcp_syncookies", "value": "1"}]}},
    with_container(ports=[{"containerPort": 80}], livenessProbe={"httpGet": {"port": 80}}),
    {"volumes": [{"name": "a", "secret": {"secretName": "s"}}, {"name": "b", "emptyDir": {}}]},
    # Of any shape: whether it is one at all is judged elsewhere.
    {"volumes": "x", "containers": [5, None], "securityContext": []},
]


@pytest.mark.parametrize("spec", _SAFE)
def test_what_stays_in_the_pod_is_fine(spec: dict[str, Any]) -> None:
    assert list(objects.unsafe_parts({"spec": spec}, "Pod a")) == []


@pytest.mark.parametrize("name", ["minimal", "full"])
def test_all_that_the_operator_makes_of_itself_is_safe(name: str) -> None:
    spec, run = golden_spec(name), make_run()
    pods = [
        *objects.driver_objects(OWNER, spec, run, expect="any", token_secret="s", script="x"),
        objects.worker_pod(OWNER, spec, name="w", arguments=()),
        *objects.spark_worker_objects(OWNER, spec, name="t", arguments=(), script="x"),
    ]

    assert [error for pod in pods for error in objects.unsafe_parts(pod, "Pod")] == []
