"""A Spark job as plain Kubernetes objects, for the demo and for the tests of the ground.

The operator will make such pods from a StatefulSparkJob; this stays as its independent witness.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dev.classes import INTERPRETED, SHORT_LIVED
from dev.image.build import DEFAULT_SPARK_VERSION

__all__ = [
    "AGENT_PORT",
    "DRIVER_RIGHTS",
    "EXAMPLE",
    "LOG_LINES",
    "RUNTIME_IMAGE",
    "SHORT_CONF",
    "Runtime",
    "SparkJob",
    "job_objects",
    "log_writer",
    "service_account_objects",
    "toolbox",
    "volume_claim",
]

EXAMPLE = Path(__file__).parent.parent / "examples" / "url-visits"
RUNTIME_IMAGE = f"sparkpoint.dev/runtime:spark-{DEFAULT_SPARK_VERSION}"
S3_CONF = {
    "spark.hadoop.fs.s3a.endpoint": "http://s3:8333",
    "spark.hadoop.fs.s3a.path.style.access": "true",
    "spark.hadoop.fs.s3a.endpoint.region": "us-east-1",
    "spark.hadoop.fs.s3a.aws.credentials.provider": (
        "software.amazon.awssdk.auth.credentials.EnvironmentVariableCredentialsProvider"
    ),
    # Executors read the same keys from the same Secret as the driver.
    "spark.kubernetes.executor.secretKeyRef.AWS_ACCESS_KEY_ID": "s3:AWS_ACCESS_KEY_ID",
    "spark.kubernetes.executor.secretKeyRef.AWS_SECRET_ACCESS_KEY": "s3:AWS_SECRET_ACCESS_KEY",
}
"""What a job needs to reach the S3 server of `dev/s3/seaweedfs.yaml`."""

SHORT_CONF = {
    "spark.ui.enabled": "false",
    "spark.driver.extraJavaOptions": SHORT_LIVED,
    "spark.executor.extraJavaOptions": SHORT_LIVED,
    **INTERPRETED,
    # Spark's own 10 ms cost a fifth of a core for every query that is idle.
    "spark.sql.streaming.pollingDelay": "500ms",
}
"""Of jobs that live for minutes, several of them on two cores."""

LOG_LINES = 500
"""Of each file that the demo's log grows by."""

AGENT_PORT = 8478
"""Where the agent in a driver pod listens."""

DRIVER_RIGHTS = {
    "pods": "get list watch create delete deletecollection patch",
    "configmaps": "create deletecollection",
    "services": "deletecollection",
    "persistentvolumeclaims": "list create delete deletecollection patch",
}
"""What a driver asks of the API server about its executors; the chart's role has the same."""

Objects = list[dict[str, Any]]


@dataclass(frozen=True, slots=True)
class SparkJob:
    """What differs between jobs."""

    name: str
    arguments: Sequence[str]
    claim: str
    """The volume claim mounted at /data in the driver and in the executors."""
    executors: int = 2
    conf: Mapping[str, str] = field(default_factory=dict)
    runtime: "Runtime | None" = None
    """How the runtime is called; None: the bare script, without it."""


@dataclass(frozen=True, slots=True)
class Runtime:
    """What the driver's runtime is told."""

    epoch_dir: str
    epoch: int = 1
    token: str = "witness"
    """Of its agent, in a Secret of the job's name."""
    options: Sequence[str] = ()
    grace_seconds: int = 30


def service_account_objects() -> Objects:
    """An account that may do what a Spark driver does with its executors."""
    rules = [
        {"apiGroups": [""], "resources": [resource], "verbs": verbs.split()}
        for resource, verbs in DRIVER_RIGHTS.items()
    ]
    return [
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "spark"}},
        {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "Role",
            "metadata": {"name": "spark-driver"},
            "rules": rules,
        },
        {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "RoleBinding",
            "metadata": {"name": "spark-driver"},
            "roleRef": {
                "apiGroup": "rbac.authorization.k8s.io",
                "kind": "Role",
                "name": "spark-driver",
            },
            "subjects": [{"kind": "ServiceAccount", "name": "spark"}],
        },
    ]


def volume_claim(name: str) -> dict[str, Any]:
    """A claim on the default StorageClass."""
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": name},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "1Gi"}},
        },
    }


def job_objects(job: SparkJob, *, namespace: str) -> Objects:
    """The ConfigMap with script and configuration, and the driver pod."""
    conf = "\n".join(f"{key} {value}" for key, value in _conf(job, namespace).items())
    script = (EXAMPLE / "url_visits.py").read_text()
    objects: Objects = [
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": job.name},
            "data": {"spark-defaults.conf": conf, "job.py": script},
        },
        _driver_pod(job, namespace),
    ]
    if job.runtime is None:
        return objects
    secret = {"metadata": {"name": job.name}, "stringData": {"token": job.runtime.token}}
    return [{"apiVersion": "v1", "kind": "Secret", **secret}, *objects]


def _conf(job: SparkJob, namespace: str) -> dict[str, str]:
    volume = "spark.kubernetes.executor.volumes.persistentVolumeClaim.data"
    return {
        "spark.master": "k8s://https://kubernetes.default.svc",
        "spark.kubernetes.namespace": namespace,
        "spark.kubernetes.authenticate.driver.serviceAccountName": "spark",
        "spark.kubernetes.container.image": RUNTIME_IMAGE,
        "spark.kubernetes.container.image.pullPolicy": "IfNotPresent",
        "spark.kubernetes.executor.podNamePrefix": job.name,
        "spark.kubernetes.executor.request.cores": "200m",
        f"{volume}.options.claimName": job.claim,
        f"{volume}.mount.path": "/data",
        "spark.executor.instances": str(job.executors),
        "spark.executor.cores": "1",
        "spark.executor.memory": "600m",
        "spark.driver.memory": "700m",
        "spark.sql.shuffle.partitions": "4",
        "spark.driver.extraClassPath": "/opt/python/pyspark/classpath.jar",
        **SHORT_CONF,
        **job.conf,
    }


def _driver_command(job: SparkJob, namespace: str) -> list[str]:
    script = ["/opt/job/job.py", *job.arguments]
    if job.runtime is None:
        return ["python3", *script]
    return [
        "driver",
        *("--epoch-dir", job.runtime.epoch_dir, "--epoch", str(job.runtime.epoch)),
        *("--job", f"{namespace}/{job.name}"),
        *("--agent-host", "$(POD_IP)", "--agent-port", str(AGENT_PORT)),
        *("--token-file", "/opt/agent/token", "--termination-log", "/dev/termination-log"),
        *job.runtime.options,
        *("--", *script),
    ]


def _driver_pod(job: SparkJob, namespace: str) -> dict[str, Any]:
    agent = ("agent", "/opt/agent", {"secret": {"secretName": job.name}})
    return _pod(
        job.name,
        labels={"app": job.name, "role": "driver"},
        command=_driver_command(job, namespace),
        grace_seconds=job.runtime.grace_seconds if job.runtime else 5,
        claim=job.claim,
        environment=[
            _from_field("POD_IP", "status.podIP"),
            _from_field("POD_NAME", "metadata.name"),
            # spark-defaults.conf cannot name what only the running pod knows.
            {
                "name": "PYSPARK_SUBMIT_ARGS",
                "value": "--conf spark.driver.host=$(POD_IP) "
                "--conf spark.kubernetes.driver.pod.name=$(POD_NAME) pyspark-shell",
            },
        ],
        volumes=[
            ("conf", "/opt/spark/conf", _config_map(job.name, "spark-defaults.conf")),
            ("job", "/opt/job", _config_map(job.name, "job.py")),
            *([agent] if job.runtime else []),
        ],
    )


def toolbox(claim: str) -> dict[str, Any]:
    """A pod in which tests and the demo write input and read output: no Spark, the same volume."""
    return _pod("toolbox", labels={"app": "toolbox"}, command=["sleep", "infinity"], claim=claim)


def log_writer(claim: str) -> Objects:
    """A pod that stands for nginx: a new log file every few seconds, for a day."""
    script = {"make_log.py": (EXAMPLE / "make_log.py").read_text()}
    arguments = ["/data/input", "--files=20000", f"--lines={LOG_LINES}", "--seconds-between=4"]
    return [
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "nginx"}, "data": script},
        _pod(
            "nginx",
            labels={"app": "nginx"},
            command=["python3", "/opt/job/make_log.py", *arguments],
            claim=claim,
            volumes=[("job", "/opt/job", _config_map("nginx", "make_log.py"))],
        ),
    ]


def _pod(
    name: str,
    *,
    labels: Mapping[str, str],
    command: Sequence[str],
    claim: str,
    environment: Sequence[Mapping[str, Any]] = (),
    volumes: Sequence[tuple[str, str, Mapping[str, Any]]] = (),
    grace_seconds: int = 5,
) -> dict[str, Any]:
    data = ("data", "/data", {"persistentVolumeClaim": {"claimName": claim}})
    mounted = [data, *volumes]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": dict(labels)},
        "spec": {
            "serviceAccountName": "spark",
            "restartPolicy": "Never",
            "enableServiceLinks": False,
            "terminationGracePeriodSeconds": grace_seconds,
            "securityContext": {
                "runAsNonRoot": True,
                "runAsUser": 185,
                "fsGroup": 185,
                "seccompProfile": {"type": "RuntimeDefault"},
            },
            "containers": [
                {
                    "name": "main",
                    "image": RUNTIME_IMAGE,
                    "imagePullPolicy": "IfNotPresent",
                    "args": list(command),
                    "envFrom": [{"secretRef": {"name": "s3", "optional": True}}],
                    "env": list(environment),
                    "resources": {"requests": {"cpu": "100m", "memory": "256Mi"}},
                    "volumeMounts": [{"name": n, "mountPath": path} for n, path, _ in mounted],
                    "securityContext": {
                        "allowPrivilegeEscalation": False,
                        "capabilities": {"drop": ["ALL"]},
                    },
                }
            ],
            "volumes": [{"name": n, **source} for n, _, source in mounted],
        },
    }


def _from_field(name: str, path: str) -> dict[str, Any]:
    return {"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}}


def _config_map(name: str, key: str) -> dict[str, Any]:
    return {"configMap": {"name": name, "items": [{"key": key, "path": key}]}}
