"""The template that Spark makes executor pods from.

Image, resources, name and labels are Spark's business, told in its configuration. All that its
configuration cannot say, or says for some kinds of values only, is in the template.
"""

from typing import Any, Final

from sparkpoint.api.job import JobSpec
from sparkpoint.controller.objects.environment import environment
from sparkpoint.controller.objects.manifest import Manifest
from sparkpoint.controller.objects.merge import merge
from sparkpoint.controller.objects.places import (
    DECOMMISSION_SCRIPT,
    EXECUTOR_CONTAINER,
    EXECUTOR_FILES,
    WORK_DIRECTORY,
)
from sparkpoint.controller.objects.pods import (
    default_spec,
    scratch_mounts,
    scratch_volumes,
    storage_mounts,
    storage_volumes,
)
from sparkpoint.controller.objects.template import executor_template

__all__ = ["DECOMMISSION", "executor_pod_template"]

DECOMMISSION: Final = """\
#!/bin/sh
# Runs before an executor's container is stopped: the executor hands over what it has and ends by
# itself, unless the pod's grace period is over first.
for process in /proc/[0-9]*; do
    if [ "$(cat "$process/comm" 2>/dev/null)" = java ] &&
        grep -q KubernetesExecutorBackend "$process/cmdline"; then
        number=${process#/proc/}
        kill -s PWR "$number"
        while kill -s 0 "$number" 2>/dev/null; do sleep 1; done
    fi
done
"""
"""What Spark's own image has as /opt/decom.sh, without the programs that an image may lack."""

_VOLUME = "sparkpoint-executor"


def executor_pod_template(spec: JobSpec, config_map: str) -> Manifest:
    """The template; `config_map` holds the script that is run before an executor is stopped."""
    pod: dict[str, Any] = {"apiVersion": "v1", "kind": "Pod", "spec": _defaults(spec)}
    merged = merge(merge(pod, executor_template(spec)), {"spec": _own(spec, config_map)})
    account = merged["spec"]["serviceAccountName"]
    # Spark looks at the old name of the field, and replaces both by the driver's if it is empty.
    return merge(merged, {"spec": {"serviceAccount": account}})


def _defaults(spec: JobSpec) -> dict[str, Any]:
    return {
        **default_spec(EXECUTOR_CONTAINER),
        "serviceAccountName": spec.service_account,
        # The account may stand for a role in a cloud; the API server is the driver's business.
        "automountServiceAccountToken": False,
    }


def _own(spec: JobSpec, config_map: str) -> dict[str, Any]:
    item = {
        "key": DECOMMISSION_SCRIPT.rpartition("/")[2],
        "path": DECOMMISSION_SCRIPT.rpartition("/")[2],
    }
    files = {"name": config_map, "items": [item], "defaultMode": 0o555}
    container = {
        "name": EXECUTOR_CONTAINER,
        "workingDir": WORK_DIRECTORY,
        **environment(spec, spec.executor),
        "volumeMounts": [
            *storage_mounts(spec),
            *scratch_mounts(WORK_DIRECTORY),
            {"name": _VOLUME, "mountPath": EXECUTOR_FILES, "readOnly": True},
        ],
    }
    return {
        "containers": [container],
        "volumes": [
            *storage_volumes(spec),
            *scratch_volumes(WORK_DIRECTORY),
            {"name": _VOLUME, "configMap": files},
        ],
    }
