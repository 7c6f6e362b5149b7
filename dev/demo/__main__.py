"""The demo: the product on a cluster, through Helm, with a job that counts visits of a web site.

`python -m dev.demo up` raises what is missing and plays the scenes that have not been played yet;
running it again shows newer counts. `python -m dev.demo down` removes the jobs.
"""

import argparse
import os
import time
from pathlib import Path
from typing import Final

from dev.cluster.lifecycle import find_cluster, raise_cluster
from dev.console import run_command, say, step
from dev.demo.release import put_release
from dev.demo.stage import JOB, NAMESPACE, Stage, tell
from dev.demo.story import FORK, SCENES, await_exact_counts, await_exact_fork
from dev.image.load import load_images
from dev.jobs import log_writer, toolbox, volume_claim

_S3_MANIFEST: Final = Path(__file__).parent.parent / "s3" / "seaweedfs.yaml"
_MAKE_BUCKET: Final = """
import boto3
s3 = boto3.client("s3", endpoint_url="http://s3:8333", region_name="us-east-1")
if "data" not in [bucket["Name"] for bucket in s3.list_buckets()["Buckets"]]:
    s3.create_bucket(Bucket="data")
"""
_PLAYED: Final = "demo"
"""The ConfigMap that says which scenes have been played."""


def main() -> None:
    """Parse the command line and run one command."""
    parser = argparse.ArgumentParser(prog="python -m dev.demo", description=__doc__)
    parser.add_argument("command", choices=["up", "down"])
    name, context = os.environ.get("CLUSTER", "demo"), os.environ.get("CONTEXT") or None
    if parser.parse_args().command == "up":
        _up(Stage(raise_cluster(name, context=context)))
    else:
        _down(Stage(find_cluster(name, context=context)))


def _up(stage: Stage) -> None:
    began = time.monotonic()
    load_images(stage.cluster)
    _lay_ground(stage)
    say("    The commands below work in your own shell after")
    say(f"    $ {stage.hint()}")
    played = stage.get(f"configmap/{_PLAYED}").get("data") or {}
    for number, scene in enumerate(SCENES, start=1):
        title = f"{number}/{len(SCENES)} {scene.title}"
        if scene.name in played:
            say(f"==> {title}: played at {played[scene.name]}")
            continue
        with step(title, usually=scene.usually):
            scene.play(stage)
        played |= {scene.name: time.strftime("%H:%M:%S")}
        stage.apply(_memory(played))
    _show(stage)
    say(f"    The demo took {time.monotonic() - began:.0f} s.")


def _lay_ground(stage: Stage) -> None:
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}
    stage.apply(namespace)
    with step("The operator, with its definitions and rights, by Helm", usually="25 s"):
        put_release(stage.cluster)
    with step("An S3 server, and an nginx log that grows", usually="15 s"):
        stage.kubectl("apply", "-f", str(_S3_MANIFEST))
        stage.apply(volume_claim("data"), toolbox("data"), *log_writer("data"))
        stage.kubectl("rollout", "status", "deployment/s3", "--timeout=120s")
        stage.kubectl("wait", "--for=condition=Ready", "pod/toolbox", "--timeout=120s")
        stage.python(_MAKE_BUCKET)


def _memory(played: dict[str, str]) -> dict[str, object]:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": _PLAYED},
        "data": played,
    }


def _show(stage: Stage) -> None:
    say("==> How it stands")
    print("\n" + stage.type_kubectl("get", "ssj,ssp,pods"))
    counts = await_exact_counts(stage)
    if stage.get(f"ssj/{FORK}"):
        await_exact_fork(stage)
    print(f"batch {counts.batch}, {counts.total} visits of {len(counts.visits)} URLs, exact:")
    for url, count in sorted(counts.visits.items(), key=lambda item: -item[1])[:5]:
        print(f"  {count:6d}  {url}")
    tell("Every savepoint with what it began from: the stop of each operation, and the fork's own.")
    print("\n" + stage.type_graph())
    say(_what_to_try_next(stage))


def _what_to_try_next(stage: Stage) -> str:
    driver = f"-l sparkpoint.dev/job={JOB},sparkpoint.dev/role=driver"
    tries = [
        (f"sparkpoint job status {JOB} -n {NAMESPACE}", "all about it, and what to do about it"),
        (f"kubectl -n {NAMESPACE} describe ssj {JOB}", "what happened, as Events"),
        (f"sparkpoint job suspend {JOB} -n {NAMESPACE}", "then resume: it goes on from there"),
        (f"kubectl -n {NAMESPACE} delete pod {driver}", "and kubectl get ssj -w: it recovers"),
        (f"kubectl -n {NAMESPACE} delete ssj {FORK}", "the first job does not notice"),
        ("make demo", "again: newer counts, checked"),
        ("make demo-down", "removes the jobs"),
        ("make cluster-down", "ends the cluster"),
    ]
    told = [f"  {command}\n      {what}" for command, what in tries]
    return "\n".join(["The jobs run on. What to try next, after", f"  {stage.hint()}", *told])


def _down(stage: Stage) -> None:
    with step("Removing the example jobs", usually="40 s"):
        # Before their namespace: the operator stops them at a boundary and lets them go.
        stage.kubectl("delete", "ssj", "--all", "--ignore-not-found")
        stage.cluster.kubectl("delete", "namespace", NAMESPACE, "--ignore-not-found", timeout=270)


if __name__ == "__main__":
    run_command(main)
