"""Worker pods: one task each, with the job's image, account and storage, and its place to run."""

from collections.abc import Sequence
from typing import Any, Final

from sparkpoint.api.job import JobSpec
from sparkpoint.controller.objects.conf import local_conf
from sparkpoint.controller.objects.configuration import conf_mounts, conf_volume, config_map
from sparkpoint.controller.objects.environment import environment, local_directories, plain
from sparkpoint.controller.objects.manifest import Manifest, Owner, worker_labels
from sparkpoint.controller.objects.merge import filled, merge
from sparkpoint.controller.objects.places import (
    CONF_FILE,
    LOCAL_DIRECTORY,
    SPARK_CONF_DIR,
    TERMINATION_LOG,
    WORK_DIRECTORY,
    WORKER_CONTAINER,
)
from sparkpoint.controller.objects.pods import (
    build_pod,
    default_spec,
    image_fields,
    resources,
    scratch_mounts,
    scratch_volumes,
    storage_mounts,
    storage_volumes,
)
from sparkpoint.controller.objects.script import deliver
from sparkpoint.controller.objects.template import worker_template
from sparkpoint.lifecycle.record import Run

__all__ = ["spark_worker_objects", "worker_pod"]

_SMALL: Final = {
    "requests": {"cpu": "100m", "memory": "256Mi"},
    "limits": {"memory": "1Gi"},
}
"""Files pass through in pieces; a manifest with a million of them is what needs memory."""


def worker_pod(
    owner: Owner, spec: JobSpec, *, name: str, arguments: Sequence[str], run: Run | None = None
) -> Manifest:
    """A pod for a task that needs no Spark: it depends on nothing but the job's storage.

    `arguments` are taken as they are: Kubernetes replaces `$(NAME)` in them, unless whoever made
    them saw to it (`workertasks.py` does).
    """
    return _pod(owner, spec, {}, name=name, arguments=arguments, run=run)


def spark_worker_objects(
    owner: Owner,
    spec: JobSpec,
    *,
    name: str,
    arguments: Sequence[str],
    run: Run | None = None,
    script: str | None = None,
) -> tuple[Manifest, ...]:
    """A pod for a task that runs Spark in one process, such as a trial of the job's script.

    It has the script where the driver has it, the driver's memory, and a ConfigMap of its own.
    """
    delivery = deliver(spec, script, config_map=name)
    labels = worker_labels(owner, run)
    spark = {
        **filled({"initContainers": delivery.init_containers}),
        "containers": [
            {
                "name": WORKER_CONTAINER,
                "env": [*local_directories(spec), plain("SPARK_CONF_DIR", SPARK_CONF_DIR)],
                "resources": resources(spec.driver),
                "volumeMounts": [
                    *scratch_mounts(LOCAL_DIRECTORY),
                    *delivery.mounts,
                    *conf_mounts(CONF_FILE),
                ],
            }
        ],
        "volumes": [*scratch_volumes(LOCAL_DIRECTORY), *delivery.volumes, conf_volume(name)],
    }
    return (
        config_map(owner, local_conf(owner, spec), delivery.data, name=name, labels=labels),
        _pod(owner, spec, spark, name=name, arguments=arguments, run=run),
    )


def _pod(
    owner: Owner,
    spec: JobSpec,
    further: dict[str, Any],
    *,
    name: str,
    arguments: Sequence[str],
    run: Run | None,
) -> Manifest:
    return build_pod(
        owner,
        {"spec": default_spec(WORKER_CONTAINER)},
        worker_template(spec),
        {"spec": merge(_own(spec, arguments), further)},
        name=name,
        labels=worker_labels(owner, run),
    )


def _own(spec: JobSpec, arguments: Sequence[str]) -> dict[str, Any]:
    container = {
        "name": WORKER_CONTAINER,
        **image_fields(spec),
        "args": ["python3", "-m", "sparkpoint.worker", *arguments],
        "workingDir": WORK_DIRECTORY,
        **environment(spec, spec.driver),
        "resources": _SMALL,
        "terminationMessagePath": TERMINATION_LOG,
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "volumeMounts": [*storage_mounts(spec), *scratch_mounts(WORK_DIRECTORY)],
    }
    own = {
        "restartPolicy": "Never",
        "serviceAccountName": spec.service_account,
        # The account is for the cloud's storage; the API server is the operator's business.
        "automountServiceAccountToken": False,
        "terminationGracePeriodSeconds": 30,
        "imagePullSecrets": [{"name": each.name} for each in spec.image_pull_secrets],
        "containers": [container],
        "volumes": [*storage_volumes(spec), *scratch_volumes(WORK_DIRECTORY)],
    }
    return filled(own)
