"""The ground is real: Spark in pods made through the API server, exact after a lost executor."""

import json
import runpy
from typing import Any

import pytest

from dev.jobs import (
    EXAMPLE,
    S3_CONF,
    SparkJob,
    job_objects,
    service_account_objects,
    toolbox,
    volume_claim,
)
from tests.cluster.namespace import Namespace

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(420)]

_LINES = 400
_FILES_BEFORE, _FILES_AFTER = 4, 4
_LOG = runpy.run_path(str(EXAMPLE / "make_log.py"))

_READ_OUTPUT = """
import json, pathlib, sys
newest = {}
for file in sorted(pathlib.Path("/data/output").glob("batch=*/part-*.json")):
    rows = [json.loads(line) for line in file.read_text().splitlines()]
    newest.update((row["url"], row["count"]) for row in rows)
print(json.dumps(newest))
"""

_MAKE_BUCKET = """
import boto3
s3 = boto3.client("s3", endpoint_url="http://s3:8333", region_name="us-east-1")
s3.create_bucket(Bucket="data")
"""

_LIST_COMMITS = """
import boto3
s3 = boto3.client("s3", endpoint_url="http://s3:8333", region_name="us-east-1")
listed = s3.list_objects_v2(Bucket="data", Prefix="checkpoint/url_visits/commits/")
print(len([o for o in listed.get("Contents", []) if o["Key"].rsplit("/", 1)[1].isdigit()]))
"""

_COUNT_COMMITS = """
import pathlib
commits = pathlib.Path("/data/checkpoint/url_visits/commits")
print(len([f for f in commits.glob("*") if f.name.isdigit()]) if commits.exists() else 0)
"""


def _prepare(namespace: Namespace) -> None:
    namespace.apply(*service_account_objects(), volume_claim("data"), toolbox("data"))
    namespace.kubectl("wait", "--for=condition=Ready", "pod/toolbox", "--timeout=90s")


def _feed(namespace: Namespace, first: int, files: int) -> None:
    arguments = ["/data/input", f"--first={first}", f"--files={files}", f"--lines={_LINES}"]
    namespace.python("toolbox", (EXAMPLE / "make_log.py").read_text(), *arguments)


def _start(namespace: Namespace, checkpoint: str) -> None:
    conf = S3_CONF if checkpoint.startswith("s3a:") else {}
    arguments = ["--input=/data/input", "--output=/data/output", f"--checkpoint={checkpoint}"]
    job = SparkJob("url-visits", arguments, claim="data", conf=conf)
    namespace.apply(*job_objects(job, namespace=namespace.name))


def _running_executors(namespace: Namespace) -> list[dict[str, Any]]:
    pods = namespace.pods("spark-role=executor")
    return [pod for pod in pods if pod["status"].get("phase") == "Running"]


def _output(namespace: Namespace) -> dict[str, int]:
    counts: dict[str, int] = json.loads(namespace.python("toolbox", _READ_OUTPUT))
    return counts


def _run_through_a_lost_executor(
    namespace: Namespace, *, checkpoint: str, count_commits: str
) -> None:
    _feed(namespace, 0, _FILES_BEFORE)
    _start(namespace, checkpoint)
    namespace.await_true(
        "two executors",
        lambda: len(_running_executors(namespace)) == 2,
        seconds=120,
        pods=["url-visits"],
    )
    namespace.await_true(
        "two committed batches",
        lambda: int(namespace.python("toolbox", count_commits)) >= 2,
        seconds=120,
        pods=["url-visits"],
    )

    victim = _running_executors(namespace)[0]
    owners = victim["metadata"]["ownerReferences"]
    namespace.kubectl(
        "delete", "pod", victim["metadata"]["name"], "--grace-period=0", "--force", "--wait=false"
    )
    _feed(namespace, _FILES_BEFORE, _FILES_AFTER)

    truth = _LOG["expected_visits"](range(_FILES_BEFORE + _FILES_AFTER), _LINES)
    namespace.await_true(
        "counts equal to the recomputed truth",
        lambda: _output(namespace) == truth,
        seconds=150,
        pods=["url-visits"],
    )
    namespace.await_true(
        "a second executor again",
        lambda: len(_running_executors(namespace)) == 2,
        seconds=90,
        pods=["url-visits"],
    )
    assert owners[0]["name"] == "url-visits"
    namespace.await_true(
        "one commit per file",
        lambda: int(namespace.python("toolbox", count_commits)) == _FILES_BEFORE + _FILES_AFTER,
        seconds=60,
        pods=["url-visits"],
    )
    # Nothing may be counted twice afterwards either.
    assert _output(namespace) == truth


def test_counts_are_exact_with_a_checkpoint_on_a_volume_and_a_lost_executor(
    namespace: Namespace,
) -> None:
    _prepare(namespace)

    _run_through_a_lost_executor(
        namespace, checkpoint="/data/checkpoint", count_commits=_COUNT_COMMITS
    )


def test_counts_are_exact_with_a_checkpoint_on_s3_and_a_lost_executor(s3: Namespace) -> None:
    _prepare(s3)
    s3.python("toolbox", _MAKE_BUCKET)

    _run_through_a_lost_executor(
        s3, checkpoint="s3a://data/checkpoint", count_commits=_LIST_COMMITS
    )
