"""Pods that reach out of themselves: into the node, its network, or the kernel.

What the `baseline` level of Kubernetes' Pod Security Standards forbids. Whoever may make jobs need
not be somebody who may make such pods, and the operator makes them with its own rights: it is asked
here, whatever the labels of the namespace say.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from sparkpoint.api.errors import FieldError
from sparkpoint.api.job import JobSpec

__all__ = ["unsafe_parts", "unsafe_templates"]

_REMEDY: Final = (
    "remove it, or let whoever runs the operator allow it with --allow-unsafe-pods for all jobs"
)
_HOST: Final = ("hostNetwork", "hostPID", "hostIPC")
_CONTAINERS: Final = ("containers", "initContainers", "ephemeralContainers")
_PROBES: Final = ("livenessProbe", "readinessProbe", "startupProbe")
_CAPABILITIES: Final = frozenset(
    [
        "AUDIT_WRITE",
        "CHOWN",
        "DAC_OVERRIDE",
        "FOWNER",
        "FSETID",
        "KILL",
        "MKNOD",
        "NET_BIND_SERVICE",
        "SETFCAP",
        "SETGID",
        "SETPCAP",
        "SETUID",
        "SYS_CHROOT",
    ]
)
_SYSCTLS: Final = frozenset(
    [
        "kernel.shm_rmid_forced",
        "net.ipv4.ip_local_port_range",
        "net.ipv4.ip_local_reserved_ports",
        "net.ipv4.ip_unprivileged_port_start",
        "net.ipv4.ping_group_range",
        "net.ipv4.tcp_fin_timeout",
        "net.ipv4.tcp_keepalive_intvl",
        "net.ipv4.tcp_keepalive_probes",
        "net.ipv4.tcp_keepalive_time",
        "net.ipv4.tcp_rmem",
        "net.ipv4.tcp_syncookies",
        "net.ipv4.tcp_wmem",
    ]
)
_SELINUX: Final = ("", "container_t", "container_init_t", "container_kvm_t", "container_engine_t")
_APPARMOR: Final = "container.apparmor.security.beta.kubernetes.io/"


def unsafe_templates(spec: JobSpec) -> list[FieldError]:
    """All that is unsafe in the templates of a job."""
    return [
        *unsafe_parts(spec.driver.pod_template, "spec.driver.podTemplate"),
        *unsafe_parts(spec.executor.pod_template, "spec.executor.podTemplate"),
    ]


def unsafe_parts(pod: Mapping[str, Any], path: str) -> Iterator[FieldError]:
    """All that is unsafe in a pod or a template of one, whatever shape it has."""
    spec, at = _mapping(pod.get("spec")), f"{path}.spec"
    for key in _HOST:
        if spec.get(key):
            yield _error(f"{at}.{key}", "would share the node's own namespace")
    for index, volume in enumerate(_list(spec.get("volumes"))):
        if _mapping(volume).get("hostPath") is not None:
            yield _error(f"{at}.volumes[{index}].hostPath", "would show the node's own files")
    yield from _context(_mapping(spec.get("securityContext")), f"{at}.securityContext")
    for kind in _CONTAINERS:
        for index, container in enumerate(_list(spec.get(kind))):
            yield from _container(_mapping(container), f"{at}.{kind}[{index}]")
    annotations = _mapping(_mapping(pod.get("metadata")).get("annotations"))
    for key, value in annotations.items():
        if str(key).startswith(_APPARMOR) and value == "unconfined":
            yield _error(f"{path}.metadata.annotations[{key}]", "would switch AppArmor off")


def _container(container: Mapping[str, Any], path: str) -> Iterator[FieldError]:
    yield from _context(_mapping(container.get("securityContext")), f"{path}.securityContext")
    for index, port in enumerate(_list(container.get("ports"))):
        if _mapping(port).get("hostPort"):
            yield _error(f"{path}.ports[{index}].hostPort", "would take a port of the node")
    hooks = _mapping(container.get("lifecycle"))
    asked = {**{key: container.get(key) for key in _PROBES}, **hooks}
    for key, handler in asked.items():
        for way in ("httpGet", "tcpSocket"):
            if _mapping(_mapping(handler).get(way)).get("host"):
                at = f"{path}.lifecycle.{key}" if key in hooks else f"{path}.{key}"
                yield _error(f"{at}.{way}.host", "would let the node ask another host")


def _context(context: Mapping[str, Any], path: str) -> Iterator[FieldError]:
    """Of a pod or of a container; what one of them does not have is not there."""
    for key, is_unsafe, message in _RULES:
        if is_unsafe(context):
            yield _error(f"{path}.{key}", message)


_Judge = Callable[[Mapping[str, Any]], bool]


def _is_unconfined(key: str) -> _Judge:
    return lambda context: _mapping(context.get(key)).get("type") == "Unconfined"


def _adds_capabilities(context: Mapping[str, Any]) -> bool:
    added = _list(_mapping(context.get("capabilities")).get("add"))
    return any(str(each).removeprefix("CAP_") not in _CAPABILITIES for each in added)


def _changes_kernel(context: Mapping[str, Any]) -> bool:
    return any(_mapping(e).get("name") not in _SYSCTLS for e in _list(context.get("sysctls")))


def _leaves_selinux(context: Mapping[str, Any]) -> bool:
    label = _mapping(context.get("seLinuxOptions"))
    usual = (label.get("type") or "") in _SELINUX
    return bool(label.get("user") or label.get("role")) or not usual


_RULES: Final[tuple[tuple[str, _Judge, str], ...]] = (
    (
        "privileged",
        lambda context: bool(context.get("privileged")),
        "would make the container an equal of the node",
    ),
    ("capabilities.add", _adds_capabilities, "would reach into the node"),
    (
        "procMount",
        lambda context: context.get("procMount") not in (None, "", "Default"),
        "would show more of the kernel than is usual",
    ),
    ("seccompProfile", _is_unconfined("seccompProfile"), "would switch seccomp off"),
    ("appArmorProfile", _is_unconfined("appArmorProfile"), "would switch AppArmor off"),
    ("sysctls", _changes_kernel, "would change the node's kernel"),
    (
        "windowsOptions.hostProcess",
        lambda context: bool(_mapping(context.get("windowsOptions")).get("hostProcess")),
        "would be a process of the node",
    ),
    ("seLinuxOptions", _leaves_selinux, "would leave the confinement of containers"),
)


def _error(path: str, message: str) -> FieldError:
    return FieldError(path, message, _REMEDY)


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
