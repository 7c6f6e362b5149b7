"""A StatefulSparkJob under the real operator: apply, change, watch, and know the truth."""

import copy
import json
from typing import Any

from dev.jobs import EXAMPLE, RUNTIME_IMAGE, SHORT_CONF
from tests.cluster.namespace import Namespace
from tests.cluster.visits import feed, lines_written, make_bucket, output, prepare, truth

__all__ = ["Job", "crashing_late", "example", "job_spec", "with_lines"]

_SCRIPT = "url_visits.py"
_WRITE = "\n    def write(batch: DataFrame, number: int) -> None:\n"
_CRASH = """        if number >= {batch}:
            raise RuntimeError("this revision crashes late")
"""
_AWAIT = "    query.awaitTermination()\n"
_LINES = """    (
        lines.writeStream.queryName("lines")
        .format("json")
        .option("path", f"{arguments.output}-lines")
        .option("checkpointLocation", f"{arguments.checkpoint}/lines")
        .start()
    )
    spark.streams.awaitAnyTermination()
"""
_FILES = """
import fnmatch, json, pathlib, sys
root, pattern = sys.argv[1:]
if root.startswith("s3://"):
    import boto3
    bucket, _, prefix = root[5:].partition("/")
    s3 = boto3.client("s3", endpoint_url="http://s3:8333", region_name="us-east-1")
    pages = s3.get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=prefix + "/")
    names = [each["Key"][len(prefix) + 1 :] for page in pages for each in page.get("Contents", [])]
else:
    files = [path for path in pathlib.Path(root).rglob("*") if path.is_file()]
    names = [str(path.relative_to(root)) for path in files]
print(json.dumps(sorted(fnmatch.filter(names, pattern))))
"""


def example() -> str:
    """The example's script, as people have it."""
    return (EXAMPLE / _SCRIPT).read_text()


def with_lines(source: str) -> str:
    """The same with a second query, which writes all lines to a file sink."""
    assert source.count(_AWAIT) == 1
    return source.replace(_AWAIT, _LINES)


def crashing_late(source: str, *, batch: int) -> str:
    """The same, but it fails from this batch on."""
    assert source.count(_WRITE) == 1
    return source.replace(_WRITE, _WRITE + _CRASH.format(batch=batch))


def job_spec(*, on_s3: bool = False, provider: str = "HDFSBacked") -> dict[str, Any]:
    """The URL visits job, small enough for two cores."""
    place = "s3://data" if on_s3 else "/data"
    storage: dict[str, Any] = {"volumes": [{"claimName": "data", "mountPath": "/data"}]}
    if on_s3:
        storage |= {"secretName": "s3", "endpointUrl": "http://s3:8333", "region": "us-east-1"}
    small = {"cores": 1, "coreRequest": "100m", "memory": "600m"}
    return {
        "image": RUNTIME_IMAGE,
        "application": {"script": {"configMap": {"name": "script", "key": _SCRIPT}}},
        "args": ["--input=/data/input", "--output=/data/output", "--checkpoint=/tmp/unused"],
        "sparkConf": dict(SHORT_CONF),
        "driver": {**small, "memory": "700m"},
        "executor": {**small, "instances": 1},
        "state": {"provider": provider, "partitions": 2},
        "checkpoint": {"location": f"{place}/checkpoints"},
        "savepoints": {"repository": f"{place}/savepoints"},
        "storage": storage,
        "upgrade": {"handover": "Cold", "compatibility": "Skip"},
        "restart": {"backoff": {"initial": "1s", "max": "10s"}},
    }


class Job:
    """One job in one namespace; `spec` is what a person keeps in git."""

    def __init__(self, namespace: Namespace, spec: dict[str, Any], name: str = "visits") -> None:
        self.namespace = namespace
        self.name = name
        self.spec = copy.deepcopy(spec)
        self.fed = 0

    @property
    def output(self) -> str:
        """The folder of its counts."""
        return str(self.spec["args"][1]).removeprefix("--output=")

    def begin(self, source: str | None = None) -> None:
        """Everything that it needs, some input, and wait until it runs with the right counts."""
        self.lay_ground()
        self.put_script(source)
        self.feed(2)
        self.apply()
        self.await_exact()
        self.await_phase("Running")
        self.namespace.kubectl("wait", "--for=condition=Ready", f"ssj/{self.name}", "--timeout=60s")

    def lay_ground(self) -> None:
        """The volume, the account, the bucket."""
        prepare(self.namespace)
        if self.spec["checkpoint"]["location"].startswith("s3:"):
            make_bucket(self.namespace)

    def put_script(self, source: str | None = None) -> None:
        """The ConfigMap with the script."""
        text = example() if source is None else source
        metadata = {"name": "script"}
        self.namespace.apply(
            {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {_SCRIPT: text}}
        )

    def apply(self) -> None:
        """What `kubectl apply --server-side` does with the file."""
        manifest = {
            "apiVersion": "sparkpoint.dev/v1alpha1",
            "kind": "StatefulSparkJob",
            "metadata": {"name": self.name},
            "spec": self.spec,
        }
        self.namespace.kubectl("apply", "--server-side", "-f", "-", text=json.dumps(manifest))

    def get(self) -> dict[str, Any]:
        """The resource as the API server has it."""
        found: dict[str, Any] = json.loads(
            self.namespace.kubectl("get", "ssj", self.name, "-o", "json")
        )
        return found

    def status(self) -> dict[str, Any]:
        """Its status."""
        status: dict[str, Any] = self.get().get("status") or {}
        return status

    def condition(self, kind: str) -> dict[str, Any]:
        """One condition; empty if there is none."""
        listed = self.status().get("conditions") or []
        return next((each for each in listed if each["type"] == kind), {})

    def feed(self, files: int) -> None:
        """More input; the job takes one file per batch."""
        feed(self.namespace, self.fed, files)
        self.fed += files

    def await_exact(self, *, seconds: float = 300) -> None:
        """The counts equal the recomputed truth of all that was fed."""
        self.namespace.await_true(
            f"counts of {self.fed} files",
            lambda: output(self.namespace, self.output) == truth(self.fed),
            seconds=seconds,
            pods=self.drivers(),
        )

    def await_lines(self, *, seconds: float = 300) -> None:
        """The file sink holds every line that was fed, once."""
        self.namespace.await_true(
            f"the lines of {self.fed} files",
            lambda: lines_written(self.namespace, "/data/output-lines") == truth(self.fed),
            seconds=seconds,
            pods=self.drivers(),
        )

    def files(self, root: str, pattern: str) -> list[str]:
        """What is stored below a folder of the volume or of the bucket."""
        found: list[str] = json.loads(self.namespace.python("toolbox", _FILES, root, pattern))
        return found

    def await_phase(self, *phases: str, seconds: float = 300) -> None:
        """The phase is one of these, and nothing is under way."""

        def reached() -> bool:
            status = self.status()
            settled = status.get("operation") is None
            current = status.get("observedGeneration") == self.get()["metadata"]["generation"]
            return status.get("phase") in phases and settled and current

        self._await(f"phase {' or '.join(phases)}", reached, seconds)

    def await_condition(self, kind: str, status: str, reason: str, *, seconds: float = 400) -> None:
        """A condition is so, for this reason."""

        def is_so() -> bool:
            found = self.condition(kind)
            return (found.get("status"), found.get("reason")) == (status, reason)

        self._await(f"{kind} {status} {reason}", is_so, seconds)

    def await_event(self, reason: str, *, seconds: float = 120) -> None:
        """Somebody who looks at the job's Events finds this one."""
        about = f"involvedObject.name={self.name},reason={reason}"
        self._await(
            f"event {reason}",
            lambda: self.namespace.kubectl("get", "events", f"--field-selector={about}", "-o=name"),
            seconds,
        )

    def ask_for_savepoint(self, name: str, **spec: Any) -> None:
        """What a person applies."""
        self.namespace.apply(
            {
                "apiVersion": "sparkpoint.dev/v1alpha1",
                "kind": "SparkSavepoint",
                "metadata": {"name": name},
                "spec": {"jobRef": {"name": self.name}, **spec},
            }
        )

    def savepoint(self, name: str) -> dict[str, Any]:
        """The status of one."""
        found = json.loads(self.namespace.kubectl("get", "ssp", name, "-o", "json"))
        status: dict[str, Any] = found.get("status") or {}
        return status

    def await_savepoint(self, name: str, *fields: str) -> dict[str, Any]:
        """Wait until it is complete and these fields are there."""

        def there() -> bool:
            status = self.savepoint(name)
            assert status.get("phase") != "Failed", status
            return status.get("phase") == "Completed" and all(field in status for field in fields)

        self._await(f"savepoint {name}", there, 300)
        return self.savepoint(name)

    def await_operation(self, kind: str, result: str, *, seconds: float = 400) -> dict[str, Any]:
        """The last operation is of this kind and ended so."""

        def ended() -> bool:
            last = self.status().get("lastOperation") or {}
            return (last.get("kind"), last.get("result")) == (kind, result)

        self._await(f"{kind} {result}", ended, seconds)
        last: dict[str, Any] = self.status()["lastOperation"]
        return last

    def _await(self, what: str, condition: Any, seconds: float) -> None:
        try:
            self.namespace.await_true(what, condition, seconds=seconds, pods=self.drivers())
        except AssertionError as error:
            error.add_note(json.dumps(self.status(), indent=1)[:6000])
            raise

    def drivers(self) -> list[str]:
        """Names of its driver pods, newest last."""
        return [pod["metadata"]["name"] for pod in self.driver_pods()]

    def driver_pods(self) -> list[dict[str, Any]]:
        """Its driver pods, newest last."""
        selector = f"sparkpoint.dev/job={self.name},sparkpoint.dev/role=driver"
        pods = self.namespace.pods(selector)
        return sorted(pods, key=lambda pod: pod["metadata"]["creationTimestamp"])

    def driver_arguments(self) -> list[str]:
        """What the newest driver's container is called with."""
        arguments: list[str] = self.driver_pods()[-1]["spec"]["containers"][0]["args"]
        return arguments
