"""The demo: a cluster, an S3 server, a job that counts URL visits while the log grows.

`python -m dev.demo up` raises what is missing and shows the job; running it again is quick.
"""

import argparse
import json
import os
import time
from pathlib import Path

from dev.cluster.lifecycle import Cluster, find_cluster, raise_cluster
from dev.console import Problem, run_command, say, step
from dev.image.load import load_images
from dev.jobs import (
    S3_CONF,
    SparkJob,
    job_objects,
    log_writer,
    service_account_objects,
    toolbox,
    volume_claim,
)

_NAMESPACE = "url-visits"
_S3_MANIFEST = Path(__file__).parent / "s3" / "seaweedfs.yaml"
_MAKE_BUCKET = """
import boto3
s3 = boto3.client("s3", endpoint_url="http://s3:8333", region_name="us-east-1")
if "data" not in [bucket["Name"] for bucket in s3.list_buckets()["Buckets"]]:
    s3.create_bucket(Bucket="data")
"""
_TOP_URLS = """
import json, pathlib
newest = {}
batches = sorted(pathlib.Path("/data/output").glob("batch=*"))
for batch in batches:
    for file in batch.glob("part-*.json"):
        rows = [json.loads(line) for line in file.read_text().splitlines()]
        newest.update((row["url"], row["count"]) for row in rows)
if newest:
    print(f"batch {int(batches[-1].name[6:])}, {sum(newest.values())} visits of {len(newest)} URLs")
    for url, count in sorted(newest.items(), key=lambda item: -item[1])[:5]:
        print(f"  {count:6d}  {url}")
"""


def main() -> None:
    """Parse the command line and run one command."""
    parser = argparse.ArgumentParser(prog="python -m dev.demo", description=__doc__)
    parser.add_argument("command", choices=["up", "down"])
    name, context = os.environ.get("CLUSTER", "demo"), os.environ.get("CONTEXT") or None
    if parser.parse_args().command == "up":
        _up(raise_cluster(name, context=context))
    else:
        cluster = find_cluster(name, context=context)
        with step("Removing the example job", usually="30 s"):
            cluster.kubectl("delete", "namespace", _NAMESPACE, "--ignore-not-found")


def _up(cluster: Cluster) -> None:
    load_images(cluster)
    _apply(cluster, [{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": _NAMESPACE}}])
    with step("Starting an S3 server and a log that grows", usually="15 s"):
        _kubectl(cluster, "apply", "-f", str(_S3_MANIFEST))
        shared = [*service_account_objects(), volume_claim("data"), toolbox("data")]
        _apply(cluster, [*shared, *log_writer("data")])
        _kubectl(cluster, "rollout", "status", "deployment/s3", "--timeout=120s")
        _kubectl(cluster, "wait", "--for=condition=Ready", "pod/toolbox", "--timeout=120s")
        _python(cluster, _MAKE_BUCKET)
    with step("Starting the job: a driver and two executors", usually="40 s"):
        arguments = ["--input=/data/input", "--output=/data/output"]
        job = SparkJob(
            "url-visits",
            [*arguments, "--checkpoint=s3a://data/checkpoint"],
            claim="data",
            conf=S3_CONF,
        )
        _forget_ended_driver(cluster)
        _apply(cluster, job_objects(job, namespace=_NAMESPACE))
        counts = _await_counts(cluster)
    with step("Taking a savepoint of the running job", usually="2 s"):
        checkpoint = "--checkpoint=s3://data/checkpoint/url_visits"
        _sparkpoint(cluster, "savepoint", "create", f"--job={_NAMESPACE}/url-visits", checkpoint)
    _show(cluster, counts)


def _forget_ended_driver(cluster: Cluster) -> None:
    """Remove a driver that has ended, so that the demo shows one that runs."""
    phase = _kubectl(
        *(cluster, "get", "pod", "url-visits", "--ignore-not-found"),
        *("-o", "jsonpath={.status.phase}"),
    )
    if phase in ("Failed", "Succeeded"):
        _kubectl(cluster, "delete", "pod", "url-visits")


def _await_counts(cluster: Cluster) -> str:
    deadline = time.monotonic() + 240
    while not (counts := _python(cluster, _TOP_URLS)):
        if time.monotonic() > deadline:
            pods = _kubectl(cluster, "get", "pods")
            log = _kubectl(cluster, "logs", "url-visits", "--tail=20")
            raise Problem(
                f"The job wrote no counts within 240 s.\n{pods}\n{log}",
                remedy="see the log above; `make demo-down demo` starts it afresh.",
            )
        time.sleep(1)
    return counts


def _show(cluster: Cluster, counts: str) -> None:
    print("\n" + _kubectl(cluster, "get", "pods"))
    print(counts)
    print(_sparkpoint(cluster, "log", "--graph"))
    say(
        "The job runs; its checkpoint is on S3. Next:\n"
        f"  {cluster.kubectl_hint} -n {_NAMESPACE} logs -f url-visits\n"
        "  make demo         again: newer counts\n"
        "  make demo-down    removes the job\n"
        "  make cluster-down ends the cluster"
    )


def _sparkpoint(cluster: Cluster, *arguments: str) -> str:
    """Run our command line in a pod that reaches the S3 server."""
    environment = ["AWS_ENDPOINT_URL=http://s3:8333", "AWS_DEFAULT_REGION=us-east-1"]
    repository = "SPARKPOINT_REPOSITORY=s3://data/savepoints"
    program = ["python3", "-m", "sparkpoint.cli.main", *arguments]
    return _kubectl(cluster, "exec", "toolbox", "--", "env", *environment, repository, *program)


def _apply(cluster: Cluster, objects: list[dict[str, object]]) -> None:
    manifest = json.dumps({"apiVersion": "v1", "kind": "List", "items": objects})
    _kubectl(cluster, "apply", "-f", "-", text=manifest)


def _python(cluster: Cluster, program: str) -> str:
    return _kubectl(cluster, "exec", "-i", "toolbox", "--", "python3", "-", text=program)


def _kubectl(cluster: Cluster, *arguments: str, text: str | None = None) -> str:
    return cluster.kubectl("-n", _NAMESPACE, *arguments, text=text, timeout=150)


if __name__ == "__main__":
    run_command(main)
