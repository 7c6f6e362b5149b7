"""The driver of an attempt: its pod, its configuration, and what keeps it from being evicted."""

import math
from dataclasses import dataclass
from typing import Any, Final, Literal

from sparkpoint.api.errors import FieldError, InvalidResourceError
from sparkpoint.api.job import JobSpec
from sparkpoint.api.policies import Guarantee
from sparkpoint.controller.objects.conf import driver_conf
from sparkpoint.controller.objects.configuration import (
    as_json,
    conf_mounts,
    conf_volume,
    config_map,
    file_name,
)
from sparkpoint.controller.objects.environment import (
    environment,
    from_field,
    literal,
    local_directories,
    plain,
)
from sparkpoint.controller.objects.executors import DECOMMISSION, executor_pod_template
from sparkpoint.controller.objects.manifest import Manifest, Owner, attempt_labels, manifest
from sparkpoint.controller.objects.merge import filled, merge
from sparkpoint.controller.objects.places import (
    AGENT_PORT,
    BLOCK_MANAGER_PORT,
    CONF_FILE,
    DECOMMISSION_SCRIPT,
    DRIVER_CONTAINER,
    DRIVER_PORT,
    EXECUTOR_TEMPLATE,
    LOCAL_DIRECTORY,
    SPARK_CONF_DIR,
    TERMINATION_LOG,
    TOKEN_FILE,
    WORK_DIRECTORY,
    epoch_directory,
    script_path,
    ui_port,
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
from sparkpoint.controller.objects.script import Delivery, deliver
from sparkpoint.controller.objects.template import driver_template
from sparkpoint.lifecycle.naming import driver_name
from sparkpoint.lifecycle.record import Begin, Run

__all__ = ["Expectation", "Repository", "driver_objects", "repository_of"]

Expectation = Literal["empty", "restored", "any"]

_AFTER_THE_BUDGET: Final = 30
"""Seconds for the script's own end, and for Spark to dismiss its executors."""
_GUARANTEES: Final = {
    Guarantee.EXACTLY_ONCE: "exactly-once",
    Guarantee.AT_LEAST_ONCE: "at-least-once",
}
_SCRATCH: Final = (WORK_DIRECTORY, LOCAL_DIRECTORY)
_SCRAPED: Final = {
    "prometheus.io/scrape": "true",
    "prometheus.io/port": str(AGENT_PORT),
    "prometheus.io/path": "/metrics",
}
"""The agent's page needs no token. A template may say "false"."""
_TOKEN_VOLUME: Final = "sparkpoint-agent"  # noqa: S105 - a name


@dataclass(frozen=True, slots=True)
class Repository:
    """Where a savepoint is."""

    uri: str
    endpoint_url: str | None = None
    """Its S3 server, where that is not the one of the job."""


def repository_of(spec: JobSpec) -> Repository | None:
    """The job's own, if it has one."""
    if spec.savepoints is None:
        return None
    return Repository(spec.savepoints.repository, spec.savepoints.endpoint_url)


def driver_objects(
    owner: Owner,
    spec: JobSpec,
    run: Run,
    *,
    expect: Expectation,
    token_secret: str,
    script: str | None = None,
    repository: Repository | None = None,
) -> tuple[Manifest, ...]:
    """All that an attempt needs, the pod last: it must not wait for what a crash left unmade.

    `script` is what a script from a ConfigMap said when the revision was accepted; without it, it
    is taken as it is now. `repository` is where the savepoint is that the run begins from, if that
    is not the job's own. Executors dial the address of the driver's pod, so there is no Service.
    """
    name = driver_name(owner.name, run)
    labels = attempt_labels(owner, run, "driver")
    delivery = deliver(spec, script, config_map=name)
    files = {
        file_name(EXECUTOR_TEMPLATE): as_json(executor_pod_template(spec, name)),
        file_name(DECOMMISSION_SCRIPT): DECOMMISSION,
        **delivery.data,
    }
    restored = _restored(spec, run, repository)
    arguments = _arguments(owner, spec, run, expect=expect, restored=restored)
    return (
        config_map(owner, driver_conf(owner, spec, run), files, name=name, labels=labels),
        *([_budget(owner, name=name, labels=labels)] if spec.driver.disruption_budget else []),
        build_pod(
            owner,
            _defaults(run),
            driver_template(spec),
            {"spec": _own(spec, delivery, name=name, arguments=arguments, secret=token_secret)},
            name=name,
            labels=labels,
        ),
    )


def _budget(owner: Owner, *, name: str, labels: dict[str, str]) -> Manifest:
    return manifest(
        owner,
        "policy/v1",
        "PodDisruptionBudget",
        name=name,
        labels=labels,
        spec={
            # `maxUnavailable` would be reckoned from the owner's scale, which is that of executors.
            "minAvailable": 1,
            "selector": {"matchLabels": labels},
            # A driver that never became ready has nothing to lose.
            "unhealthyPodEvictionPolicy": "AlwaysAllow",
        },
    )


def _defaults(run: Run) -> dict[str, Any]:
    probed = {"name": DRIVER_CONTAINER, **_probes()}
    return {
        "metadata": {
            "annotations": {
                "kubectl.kubernetes.io/default-container": DRIVER_CONTAINER,
                "sparkpoint.dev/revision": run.revision.name,
                **_SCRAPED,
            }
        },
        "spec": merge(default_spec(DRIVER_CONTAINER), {"containers": [probed]}),
    }


def _probes() -> dict[str, Any]:
    def ask(path: str, **times: int) -> dict[str, Any]:
        return {"httpGet": {"path": path, "port": AGENT_PORT}, **times}

    return {
        # A restore may take its time before the agent answers; the operator has its own deadline.
        "startupProbe": ask("/healthz", periodSeconds=2, timeoutSeconds=2, failureThreshold=43_200),
        # The agent is a thread beside the user's own code: two minutes of silence, not one hiccup.
        "livenessProbe": ask("/healthz", periodSeconds=20, timeoutSeconds=10, failureThreshold=6),
        "readinessProbe": ask("/readyz", periodSeconds=5, timeoutSeconds=5, failureThreshold=3),
    }


def _own(
    spec: JobSpec, delivery: Delivery, *, name: str, arguments: list[str], secret: str
) -> dict[str, Any]:
    """What no template changes, and what the fields of the resource say."""
    token = {
        "secretName": secret,
        "items": [{"key": "token", "path": "token"}],
        "defaultMode": 0o444,
    }
    own = {
        "restartPolicy": "Never",
        "serviceAccountName": spec.service_account,
        "automountServiceAccountToken": True,
        "terminationGracePeriodSeconds": _grace(spec),
        "imagePullSecrets": [{"name": each.name} for each in spec.image_pull_secrets],
        "initContainers": delivery.init_containers,
        "containers": [_container(spec, delivery, arguments)],
        "volumes": [
            *storage_volumes(spec),
            *scratch_volumes(*_SCRATCH),
            *delivery.volumes,
            conf_volume(name),
            {"name": _TOKEN_VOLUME, "secret": token},
        ],
    }
    return filled(own)


def _container(spec: JobSpec, delivery: Delivery, arguments: list[str]) -> dict[str, Any]:
    own = environment(spec, spec.driver)
    # spark-defaults.conf cannot name what only the running pod knows.
    submit = "--conf spark.driver.host=$(POD_IP) pyspark-shell"
    fixed = [
        *local_directories(spec),
        from_field("POD_IP", "status.podIP"),
        plain("PYSPARK_SUBMIT_ARGS", submit),
        plain("SPARK_CONF_DIR", SPARK_CONF_DIR),
    ]
    token_directory = TOKEN_FILE.rpartition("/")[0]
    return {
        "name": DRIVER_CONTAINER,
        **image_fields(spec),
        "args": arguments,
        "workingDir": WORK_DIRECTORY,
        **merge(own, {"env": fixed}),
        "ports": _ports(spec),
        "resources": resources(spec.driver),
        "terminationMessagePath": TERMINATION_LOG,
        # For a driver that could not say a last word.
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "volumeMounts": [
            *storage_mounts(spec),
            *scratch_mounts(*_SCRATCH),
            *delivery.mounts,
            *conf_mounts(CONF_FILE, EXECUTOR_TEMPLATE),
            {"name": _TOKEN_VOLUME, "mountPath": token_directory, "readOnly": True},
        ],
    }


def _ports(spec: JobSpec) -> list[dict[str, Any]]:
    ports = {
        "agent": AGENT_PORT,
        "driver-rpc": DRIVER_PORT,
        "blockmanager": BLOCK_MANAGER_PORT,
        "spark-ui": ui_port(spec),
    }
    return [{"name": name, "containerPort": port} for name, port in ports.items()]


def _grace(spec: JobSpec) -> int:
    return math.ceil(spec.checkpoint.timeout.seconds) + _AFTER_THE_BUDGET


def _arguments(
    owner: Owner, spec: JobSpec, run: Run, *, expect: Expectation, restored: list[str]
) -> list[str]:
    """The runtime's command line. Arguments of the script may refer to `$(VARIABLES)`, as anywhere
    in Kubernetes; ours may not."""
    options = {
        "--epoch-dir": literal(epoch_directory(owner, spec, run)),
        "--epoch": str(run.epoch),
        "--job": f"{owner.namespace}/{owner.name}",
        "--revision": run.revision.name,
        "--expect": expect,
        "--agent-host": "$(POD_IP)",
        "--agent-port": str(AGENT_PORT),
        "--token-file": TOKEN_FILE,
        "--stop-budget": f"{spec.checkpoint.timeout.seconds:g}",
        "--on-query-failure": spec.checkpoint.on_failure.value.lower(),
        "--guarantee": _GUARANTEES[spec.checkpoint.guarantee],
        "--termination-log": TERMINATION_LOG,
    }
    if spec.checkpoint.interval is not None:
        options["--trigger-interval"] = f"{spec.checkpoint.interval.seconds:g}"
    if spec.storage.endpoint_url is not None:
        options["--endpoint-url"] = literal(spec.storage.endpoint_url)
    given = [part for option in options.items() for part in option]
    script = literal(script_path(spec))
    return ["driver", *given, "--gated", *restored, "--", script, *spec.args]


def _restored(spec: JobSpec, run: Run, repository: Repository | None) -> list[str]:
    origin = run.origin
    if origin.begin is not Begin.SAVEPOINT or origin.savepoint is None:
        return []
    found = repository or repository_of(spec)
    if found is None:
        raise InvalidResourceError(
            [
                FieldError(
                    "spec.savepoints",
                    f"the job is to begin from savepoint {origin.savepoint}, and nothing says in "
                    "which repository that is",
                    "set savepoints.repository",
                )
            ]
        )
    elsewhere = found.endpoint_url not in (None, spec.storage.endpoint_url)
    server = ["--repository-endpoint-url", literal(found.endpoint_url or "")] if elsewhere else []
    return [
        *("--restore", origin.savepoint, "--repository", literal(found.uri)),
        *("--sink", origin.sink.lower(), *server),
    ]
