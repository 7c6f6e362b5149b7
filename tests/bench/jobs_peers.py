"""What people do without an operator: a driver made by kubectl, and one made by spark-submit.

Both go on from the same checkpoint after a change. Neither waits for the executors of the driver
that was deleted, and neither can take a savepoint.
"""

import json
import subprocess
from typing import Any, Final

from dev.cluster.programs import tool_environment
from dev.console import Problem
from dev.jobs import RUNTIME_IMAGE, SHORT_CONF, SparkJob, job_objects
from tests.bench.jobs_ground import SCRIPT, Trial
from tests.cluster.namespace import Namespace

__all__ = ["MEMORY", "REQUEST", "Created", "Submitted", "submission_rights"]

REQUEST: Final = "100m"
"""Of processor, for drivers and executors alike."""
MEMORY: Final = {"driver": "700m", "executor": "600m"}
_SAME: Final = {
    "spark.executor.instances": "1",
    "spark.executor.cores": "1",
    "spark.executor.memory": MEMORY["executor"],
    "spark.driver.memory": MEMORY["driver"],
    "spark.kubernetes.executor.request.cores": REQUEST,
    "spark.sql.shuffle.partitions": "2",
    **SHORT_CONF,
    # So that these JVMs, too, begin with the archive of Spark's classes.
    "spark.driver.extraClassPath": "/opt/python/pyspark/classpath.jar",
}

_SUBMIT: Final = r"""
import os, resource, subprocess, sys
command = [os.environ["SPARK_HOME"] + "/bin/spark-submit", *sys.argv[1:]]
done = subprocess.run(command, capture_output=True, text=True)
if done.returncode != 0:
    said = [line for line in done.stderr.splitlines() if not line.startswith("\tat ")]
    sys.exit("\n".join(said)[-3000:])
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print(used.ru_utime + used.ru_stime)
"""


class Created:
    """The driver pod of dev/jobs.py, made and deleted by kubectl."""

    def __init__(self, trial: Trial) -> None:
        self._trial, self._runs = trial, 0
        self.requests: list[int] = []
        """That kubectl made for each start and stop, in turn."""

    @property
    def _name(self) -> str:
        # Another one each time: executors of the former driver may still be there by their names.
        return f"{self._trial.name}-{self._runs}"

    def start(self, *further: str) -> None:
        """Make configuration and pod."""
        self._runs += 1
        job = SparkJob(
            self._name,
            [*self._trial.arguments, *further],
            claim="data",
            executors=1,
            conf=_SAME,
        )
        namespace = self._trial.namespace
        objects = job_objects(job, namespace=namespace.name)
        manifest = {"apiVersion": "v1", "kind": "List", "items": objects}
        self._kubectl("create", "-f", "-", text=json.dumps(manifest))

    def stop(self) -> None:
        """Delete the pod, and wait until it is gone."""
        self._kubectl("delete", "pod", self._name)

    def _kubectl(self, *arguments: str, text: str | None = None) -> None:
        self.requests.append(_counted(self._trial.namespace, *arguments, text=text))


class Submitted:
    """spark-submit in cluster mode, from a pod of the runtime image."""

    def __init__(self, trial: Trial) -> None:
        self._trial = trial
        self.processor: list[float] = []
        """Seconds that each submission took."""

    def start(self, *further: str) -> None:
        """Submit."""
        conf = {
            **_SAME,
            "spark.kubernetes.namespace": self._trial.namespace.name,
            "spark.kubernetes.authenticate.driver.serviceAccountName": "spark",
            "spark.kubernetes.container.image": RUNTIME_IMAGE,
            "spark.kubernetes.container.image.pullPolicy": "IfNotPresent",
            "spark.kubernetes.driver.pod.name": self._trial.name,
            "spark.kubernetes.driver.request.cores": REQUEST,
            "spark.kubernetes.submission.waitAppCompletion": "false",
            **_volume("driver"),
            **_volume("executor"),
        }
        options = [part for key in conf for part in ("--conf", f"{key}={conf[key]}")]
        said = self._trial.namespace.python(
            "toolbox",
            _SUBMIT,
            *("--master", "k8s://https://kubernetes.default.svc", "--deploy-mode", "cluster"),
            *("--name", self._trial.name, *options),
            *(f"local://{SCRIPT}", *self._trial.arguments, *further),
        )
        self.processor.append(float(said.split()[-1]))

    def stop(self) -> None:
        """Delete the driver's pod, and wait until it is gone."""
        self._trial.namespace.kubectl("delete", "pod", self._trial.name)


def submission_rights() -> list[dict[str, Any]]:
    """spark-submit makes what the account of a driver need not, and applies it with patches."""
    group = "rbac.authorization.k8s.io"
    name = {"name": "spark-submit"}
    verbs = ["get", "list", "watch", "create", "patch", "delete"]
    made = {"": ["configmaps", "pods", "services"], "networking.k8s.io": ["networkpolicies"]}
    rules = [
        {"apiGroups": [each], "resources": kinds, "verbs": verbs} for each, kinds in made.items()
    ]
    role = {"apiVersion": f"{group}/v1", "kind": "Role", "metadata": name, "rules": rules}
    binding = {
        "apiVersion": f"{group}/v1",
        "kind": "RoleBinding",
        "metadata": name,
        "roleRef": {"apiGroup": group, "kind": "Role", **name},
        "subjects": [{"kind": "ServiceAccount", "name": "spark"}],
    }
    return [role, binding]


def _volume(role: str) -> dict[str, str]:
    volume = f"spark.kubernetes.{role}.volumes.persistentVolumeClaim.data"
    return {f"{volume}.options.claimName": "data", f"{volume}.mount.path": "/data"}


def _counted(namespace: Namespace, *arguments: str, text: str | None) -> int:
    """Run kubectl, and count its requests to the API server, which it tells when it is chatty."""
    cluster = namespace.cluster
    done = subprocess.run(
        ["kubectl", *cluster.kubectl_arguments, "-n", namespace.name, "-v=6", *arguments],
        env=tool_environment(),
        input=text,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    if done.returncode != 0:
        raise Problem(
            f"kubectl {' '.join(arguments)} failed: {done.stderr[-2000:]}",
            remedy="mend what kubectl says.",
        )
    return sum("round_trippers.go" in line for line in done.stderr.splitlines())
