"""The demo: a cluster, the operator, a job that counts URL visits while the log grows.

`python -m dev.demo up` raises what is missing, takes a savepoint, upgrades the job, and shows it;
running it again is quick.
"""

import argparse
import json
import os
import time
from pathlib import Path

from dev.cluster.lifecycle import Cluster, find_cluster, raise_cluster
from dev.console import Problem, run_command, say, step
from dev.image.load import load_images
from dev.jobs import EXAMPLE, log_writer, service_account_objects, toolbox, volume_claim
from dev.operator import install_operator

_NAMESPACE = "url-visits"
_JOB = "url-visits"
_MANIFESTS = EXAMPLE.parent
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
        with step("Removing the example job", usually="40 s"):
            # Before its namespace: the operator stops it at a boundary and lets it go.
            _kubectl(cluster, "delete", "ssj", "--all", "--ignore-not-found")
            cluster.kubectl("delete", "namespace", _NAMESPACE, "--ignore-not-found")


def _up(cluster: Cluster) -> None:
    load_images(cluster)
    with step("Installing the operator", usually="10 s"):
        install_operator(cluster)
    _apply(cluster, [{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": _NAMESPACE}}])
    with step("Starting an S3 server and a log that grows", usually="15 s"):
        _kubectl(cluster, "apply", "-f", str(_S3_MANIFEST))
        shared = [*service_account_objects(), volume_claim("data"), toolbox("data")]
        _apply(cluster, [*shared, *log_writer("data"), _script()])
        _kubectl(cluster, "rollout", "status", "deployment/s3", "--timeout=120s")
        _kubectl(cluster, "wait", "--for=condition=Ready", "pod/toolbox", "--timeout=120s")
        _python(cluster, _MAKE_BUCKET)
    if not _kubectl(cluster, "get", "ssj", _JOB, "--ignore-not-found"):
        _first_steps(cluster)
    _await_ready(cluster)
    _show(cluster)


def _first_steps(cluster: Cluster) -> None:
    """What a person would do on the first day: start, take a savepoint, change the job."""
    with step("kubectl apply -f examples/url-visits.yaml: a driver, two executors", usually="40 s"):
        _kubectl(cluster, "apply", "-f", str(_MANIFESTS / "url-visits.yaml"))
        _await_ready(cluster)
        _await_counts(cluster)
    with step("kubectl apply -f examples/url-visits-savepoint.yaml, while it runs", usually="5 s"):
        _kubectl(cluster, "apply", "-f", str(_MANIFESTS / "url-visits-savepoint.yaml"))
        wait = ("wait", "ssp/before-the-sale", "--for=jsonpath={.status.phase}=Completed")
        _kubectl(cluster, *wait, "--timeout=120s")
    with step("kubectl patch: an upgrade, two files per batch, with its state", usually="90 s"):
        add = [{"op": "add", "path": "/spec/args/-", "value": "--files-per-batch=2"}]
        _kubectl(cluster, "patch", "ssj", _JOB, "--type=json", "-p", json.dumps(add))
        wait = ("wait", f"ssj/{_JOB}", "--for=jsonpath={.status.lastOperation.kind}=Upgrade")
        _kubectl(cluster, *wait, "--timeout=240s")


def _script() -> dict[str, object]:
    """What `kubectl create configmap url-visits --from-file=...` makes."""
    data = {"url_visits.py": (EXAMPLE / "url_visits.py").read_text()}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": _JOB}, "data": data}


def _await_ready(cluster: Cluster) -> None:
    try:
        wait = ("wait", f"ssj/{_JOB}", "--for=condition=Ready", "--timeout=240s")
        _kubectl(cluster, *wait)
    except Problem as problem:
        pods = _kubectl(cluster, "get", "ssj,pods")
        status = _kubectl(cluster, "get", "ssj", _JOB, "-o", "jsonpath={.status.conditions}")
        raise Problem(
            f"The job was not ready within 240 s.\n{pods}\n{status}",
            remedy="see the conditions above; `make demo-down demo` starts it afresh.",
        ) from problem


def _await_counts(cluster: Cluster) -> str:
    deadline = time.monotonic() + 240
    while not (counts := _python(cluster, _TOP_URLS)):
        if time.monotonic() > deadline:
            raise Problem(
                f"The job wrote no counts within 240 s.\n{_kubectl(cluster, 'get', 'ssj,pods')}",
                remedy="`kubectl describe ssj` tells why; `make demo-down demo` starts it afresh.",
            )
        time.sleep(1)
    return counts


def _show(cluster: Cluster) -> None:
    print("\n" + _kubectl(cluster, "get", "ssj,ssp,pods"))
    print(_await_counts(cluster))
    print(_sparkpoint(cluster, "log", "--graph"))
    kubectl = f"{cluster.kubectl_hint} -n {_NAMESPACE}"
    say(
        "The job runs; its checkpoint and its savepoints are on S3. Next:\n"
        f"  {kubectl} scale ssj {_JOB} --replicas=3\n"
        f"  {kubectl} describe ssj {_JOB}\n"
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
    return cluster.kubectl("-n", _NAMESPACE, *arguments, text=text, timeout=270)


if __name__ == "__main__":
    run_command(main)
