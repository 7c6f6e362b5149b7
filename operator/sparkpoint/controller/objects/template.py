"""The user's pod templates: whether they can be used, and made ready to be merged.

The API server judges a pod as a whole when it is made. Here is looked at only what merging relies
on, and what would keep Spark from starting.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from sparkpoint.api.errors import FieldError, InvalidResourceError
from sparkpoint.api.job import JobSpec
from sparkpoint.controller.objects.places import (
    DRIVER_CONTAINER,
    EXECUTOR_CONTAINER,
    WORKER_CONTAINER,
)

__all__ = [
    "driver_template",
    "executor_template",
    "template_errors",
    "unfit_templates",
    "worker_template",
]

_Template = dict[str, Any]

_PARTS: Final = ("apiVersion", "kind", "metadata", "spec")
_METADATA: Final = ("labels", "annotations")
_NAMED: Final = {
    "containers": "name",
    "env": "name",
    "envFrom": "",
    "hostAliases": "ip",
    "imagePullSecrets": "name",
    "initContainers": "name",
    "ports": "containerPort",
    "tolerations": "",
    "topologySpreadConstraints": "topologyKey",
    "volumeMounts": "mountPath",
    "volumes": "name",
}
"""Lists that are merged item by item, and what tells the items apart."""
_ENTRY: Final = ("command", "args", "workingDir")
_AGAIN: Final = ("restartPolicy", "restartPolicyRules")
"""Newer Kubernetes lets a single container be started again, whatever the pod says."""
_UNFIT: Final = {
    "activeDeadlineSeconds": (
        "would kill a stream that runs well",
        "remove it: restart and checkpoint.timeout have the deadlines of a job",
    ),
    "ephemeralContainers": (
        "cannot be in a pod that is made",
        "remove it, and use kubectl debug once the pod runs",
    ),
}
_SPARKS_LABEL: Final = "spark-app-selector"
_FOR_WORKERS: Final = ("env", "envFrom", "securityContext", "volumeDevices", "volumeMounts")


def template_errors(spec: JobSpec) -> list[FieldError]:
    """What is wrong with the templates of a job, so that no pod can be made of them."""
    return [error for given in _templates(spec) for error in _errors(*given)]


def unfit_templates(spec: JobSpec) -> list[FieldError]:
    """What a job must not have, and pods are made without."""
    return [error for given in _templates(spec) for error in _unfit(*given[:2])]


def _templates(spec: JobSpec) -> Iterator[tuple[Mapping[str, Any], str, str]]:
    yield spec.driver.pod_template, "spec.driver.podTemplate", DRIVER_CONTAINER
    yield spec.executor.pod_template, "spec.executor.podTemplate", EXECUTOR_CONTAINER


def driver_template(spec: JobSpec) -> _Template:
    """Labels, annotations and spec, with Spark's container in front and under its name.

    InvalidResourceError lists everything that is wrong with the templates.
    """
    return _prepared(_sound(spec).driver.pod_template, DRIVER_CONTAINER)


def executor_template(spec: JobSpec) -> _Template:
    """The same for executors."""
    return _prepared(_sound(spec).executor.pod_template, EXECUTOR_CONTAINER)


def worker_template(spec: JobSpec) -> _Template:
    """What of the driver's template is for workers: a place to run, and the way to the data.

    No other container: it would keep the pod running when the work is done. Init containers stay,
    as they may fetch what the data cannot be reached without.
    """
    template = driver_template(spec)
    spark = template["spec"]["containers"][0]
    kept = {key: spark[key] for key in _FOR_WORKERS if key in spark}
    container = {**kept, "name": WORKER_CONTAINER}
    return {**template, "spec": {**template["spec"], "containers": [container]}}


def _sound(spec: JobSpec) -> JobSpec:
    """What an earlier operator has accepted must still be healed: what no pod needs is no reason to
    make none."""
    if errors := template_errors(spec):
        raise InvalidResourceError(errors)
    return spec


def _prepared(template: Mapping[str, Any], name: str) -> _Template:
    metadata = template.get("metadata") or {}
    given = template.get("spec") or {}
    spec = {key: value for key, value in given.items() if key not in _UNFIT}
    containers = [dict(each) for each in spec.get("containers") or [{}]]
    spark = containers.pop(_index_of_spark(containers, name))
    return {
        "metadata": {key: metadata[key] for key in _METADATA if metadata.get(key)},
        "spec": {**spec, "containers": [{**spark, "name": name}, *containers]},
    }


def _index_of_spark(containers: list[Any], name: str) -> int:
    """The one with the name that Spark gives it; else the first."""
    names = [each.get("name") for each in containers]
    return names.index(name) if name in names else 0


def _errors(template: Mapping[str, Any], path: str, name: str) -> Iterator[FieldError]:
    for key in sorted(template.keys() - set(_PARTS)):
        yield FieldError(f"{path}.{key}", "a pod template has no such part", _USE_PARTS)
    yield from _metadata_errors(template.get("metadata") or {}, f"{path}.metadata")
    shape = list(_shape_errors(template.get("spec") or {}, f"{path}.spec"))
    yield from shape
    if not shape:
        yield from _entry_errors(template.get("spec") or {}, f"{path}.spec", name)


_USE_PARTS: Final = "use metadata and spec, as in the template of a Deployment"


def _metadata_errors(metadata: Any, path: str) -> Iterator[FieldError]:
    if not isinstance(metadata, Mapping):
        yield FieldError(path, "must be a mapping", _USE_PARTS)
        return
    for part in _METADATA:
        values = metadata.get(part) or {}
        if not isinstance(values, Mapping) or not all(_is_text(*each) for each in values.items()):
            remedy = "write name: value, with numbers and true or false in quotes"
            yield FieldError(f"{path}.{part}", "must map texts to texts", remedy)
        elif _SPARKS_LABEL in values:
            remedy = "remove it: Spark deletes what bears it when the driver ends"
            yield FieldError(f"{path}.{part}[{_SPARKS_LABEL}]", "is Spark's own label", remedy)


def _is_text(key: object, value: object) -> bool:
    return isinstance(key, str) and isinstance(value, str)


def _shape_errors(value: Any, path: str) -> Iterator[FieldError]:
    if not isinstance(value, Mapping):
        yield FieldError(path, "must be a mapping", "see the Kubernetes reference of pods")
        return
    for key, inner in value.items():
        if key in _NAMED and inner is not None:
            yield from _list_errors(key, inner, f"{path}.{key}")
        elif isinstance(inner, Mapping):
            yield from _shape_errors(inner, f"{path}.{key}")


def _list_errors(key: str, items: Any, path: str) -> Iterator[FieldError]:
    if not isinstance(items, list):
        yield FieldError(path, "must be a list", "begin each item with '- '")
        return
    field = _NAMED[key]
    for index, item in enumerate(items):
        at = f"{path}[{index}]"
        yield from _shape_errors(item, at)
        first = key == "containers" and index == 0
        if field and isinstance(item, Mapping) and not first and not item.get(field):
            yield FieldError(f"{at}.{field}", "is missing", "add it: items are told apart by it")


def _unfit(template: Mapping[str, Any], path: str) -> Iterator[FieldError]:
    spec = template.get("spec")
    for field, (message, remedy) in _UNFIT.items():
        if isinstance(spec, Mapping) and spec.get(field):
            yield FieldError(f"{path}.spec.{field}", message, remedy)


def _entry_errors(spec: Mapping[str, Any], path: str, name: str) -> Iterator[FieldError]:
    containers = spec.get("containers") or [{}]
    index = _index_of_spark(containers, name)
    for field in _ENTRY:
        if containers[index].get(field):
            at = f"{path}.containers[{index}].{field}"
            remedy = "remove it: this is Spark's container, which the image's entrypoint starts"
            yield FieldError(at, "is set by the operator", remedy)
    for field in _AGAIN:
        if containers[index].get(field):
            at = f"{path}.containers[{index}].{field}"
            remedy = "remove it: the operator starts another pod, once nobody else can write"
            yield FieldError(at, "Spark's container is never started again", remedy)
