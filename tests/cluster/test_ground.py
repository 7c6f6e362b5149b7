"""The ground is real: Spark in pods made through the API server, exact after a lost executor."""

import pytest

from tests.cluster.namespace import Namespace
from tests.cluster.visits import (
    JOB,
    feed,
    make_bucket,
    output,
    prepare,
    running_executors,
    start,
    truth,
)

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(900)]

_FILES_BEFORE, _FILES_AFTER = 4, 4

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


def _run_through_a_lost_executor(
    namespace: Namespace, *, checkpoint: str, count_commits: str
) -> None:
    feed(namespace, 0, _FILES_BEFORE)
    start(namespace, checkpoint)
    namespace.await_true(
        "two executors",
        lambda: len(running_executors(namespace)) == 2,
        seconds=240,
        pods=[JOB],
    )
    namespace.await_true(
        "two committed batches",
        lambda: int(namespace.python("toolbox", count_commits)) >= 2,
        seconds=240,
        pods=[JOB],
    )

    victim = running_executors(namespace)[0]
    owners = victim["metadata"]["ownerReferences"]
    namespace.kubectl(
        "delete", "pod", victim["metadata"]["name"], "--grace-period=0", "--force", "--wait=false"
    )
    feed(namespace, _FILES_BEFORE, _FILES_AFTER)

    expected = truth(_FILES_BEFORE + _FILES_AFTER)
    namespace.await_true(
        "counts equal to the recomputed truth",
        lambda: output(namespace) == expected,
        seconds=240,
        pods=[JOB],
    )
    namespace.await_true(
        "a second executor again",
        lambda: len(running_executors(namespace)) == 2,
        seconds=90,
        pods=[JOB],
    )
    assert owners[0]["name"] == JOB
    namespace.await_true(
        "one commit per file",
        lambda: int(namespace.python("toolbox", count_commits)) == _FILES_BEFORE + _FILES_AFTER,
        seconds=60,
        pods=[JOB],
    )
    # Nothing may be counted twice afterwards either.
    assert output(namespace) == expected


def test_counts_are_exact_with_a_checkpoint_on_a_volume_and_a_lost_executor(
    namespace: Namespace,
) -> None:
    prepare(namespace)

    _run_through_a_lost_executor(
        namespace, checkpoint="/data/checkpoint", count_commits=_COUNT_COMMITS
    )


def test_counts_are_exact_with_a_checkpoint_on_s3_and_a_lost_executor(s3: Namespace) -> None:
    prepare(s3)
    make_bucket(s3)

    _run_through_a_lost_executor(
        s3, checkpoint="s3a://data/checkpoint", count_commits=_LIST_COMMITS
    )
