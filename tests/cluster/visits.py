"""The URL visits job in pods: feeding it, reading its counts, knowing the truth."""

import json
import runpy
from typing import Any

from dev.jobs import (
    AGENT_PORT,
    EXAMPLE,
    S3_CONF,
    Runtime,
    SparkJob,
    job_objects,
    service_account_objects,
    toolbox,
    volume_claim,
)
from sparkpoint.runtime.model import Termination
from tests.cluster.namespace import Namespace

__all__ = [
    "JOB",
    "ask_agent",
    "driver_pod",
    "feed",
    "last_word",
    "lines_written",
    "make_bucket",
    "output",
    "prepare",
    "running_executors",
    "start",
    "truth",
    "visited",
]

JOB = "url-visits"

_LINES = 400
_LOG = runpy.run_path(str(EXAMPLE / "make_log.py"))

_READ_AGAIN = """
def reading_again(read):
    # A batch that is done again replaces files; what was listed may be gone when it is read.
    for left in reversed(range(20)):
        try:
            return read()
        except FileNotFoundError:
            if not left:
                raise
"""

_READ_OUTPUT = (
    _READ_AGAIN
    + """
import json, pathlib, sys
def read():
    newest = {}
    for file in sorted(pathlib.Path(sys.argv[1]).glob("batch=*/part-*.json")):
        rows = [json.loads(line) for line in file.read_text().splitlines()]
        newest.update((row["url"], row["count"]) for row in rows)
    return newest
print(json.dumps(reading_again(read)))
"""
)

_READ_LINES = (
    _READ_AGAIN
    + """
import collections, json, pathlib, re, sys
root = pathlib.Path(sys.argv[1])
def read():
    log = {int(p.name.split(".")[0]): p for p in (root / "_spark_metadata").glob("[0-9]*")}
    begin = max((n for n, p in log.items() if p.suffix == ".compact"), default=0)
    entries = [l for n, p in log.items() if n >= begin for l in p.read_text().splitlines()[1:]]
    counts = collections.Counter()
    for name in {json.loads(entry)["path"] for entry in entries}:
        for line in (root / name.rsplit("/", 1)[1]).read_text().splitlines():
            found = re.search(r'"(?:GET|HEAD|POST|PUT|DELETE) ([^ ?"]+)', json.loads(line)["value"])
            counts.update([found[1]] if found else [])
    return counts
print(json.dumps(reading_again(read)))
"""
)
"""What a reader of Spark's file sink sees, without Spark: the files that its log names."""

_CALL = """
import sys, urllib.request
method, url, token, body = sys.argv[1:]
request = urllib.request.Request(url, method=method, data=body.encode() or None)
request.add_header("Authorization", "Bearer " + token)
request.add_header("Content-Type", "application/json")
print(urllib.request.urlopen(request, timeout=90).read().decode())
"""

_MAKE_BUCKET = """
import boto3
s3 = boto3.client("s3", endpoint_url="http://s3:8333", region_name="us-east-1")
s3.create_bucket(Bucket="data")
"""


def prepare(namespace: Namespace) -> None:
    """The volume, and a pod from which tests look at it."""
    namespace.apply(*service_account_objects(), volume_claim("data"), toolbox("data"))
    namespace.kubectl("wait", "--for=condition=Ready", "pod/toolbox", "--timeout=90s")


def make_bucket(namespace: Namespace) -> None:
    """The bucket `data` on the namespace's S3 server."""
    namespace.python("toolbox", _MAKE_BUCKET)


def feed(namespace: Namespace, first: int, files: int) -> None:
    """Log files by number; the job takes one per batch."""
    arguments = ["/data/input", f"--first={first}", f"--files={files}", f"--lines={_LINES}"]
    namespace.python("toolbox", (EXAMPLE / "make_log.py").read_text(), *arguments)


def truth(files: int) -> dict[str, int]:
    """What the counts must be after so many files."""
    counts: dict[str, int] = _LOG["expected_visits"](range(files), _LINES)
    return counts


def visited(first: int, end: int) -> set[str]:
    """The URLs in these files."""
    return set(_LOG["expected_visits"](range(first, end), _LINES))


def start(namespace: Namespace, checkpoint: str, runtime: Runtime | None = None) -> None:
    """The driver; it makes its executors."""
    on_s3 = checkpoint.startswith("s3a:")
    arguments = ["--input=/data/input", "--output=/data/output", f"--checkpoint={checkpoint}"]
    job = SparkJob(JOB, arguments, claim="data", conf=S3_CONF if on_s3 else {}, runtime=runtime)
    namespace.apply(*job_objects(job, namespace=namespace.name))


def driver_pod(namespace: Namespace) -> dict[str, Any]:
    """As the API server has it."""
    found: dict[str, Any] = json.loads(namespace.kubectl("get", "pod", JOB, "-o", "json"))
    return found


def ask_agent(
    namespace: Namespace, method: str, path: str, body: object = None, *, token: str
) -> Any:
    """Ask the driver's agent, from another pod."""
    address = f"http://{driver_pod(namespace)['status']['podIP']}:{AGENT_PORT}{path}"
    text = json.dumps(body) if body is not None else ""
    return json.loads(namespace.python("toolbox", _CALL, method, address, token, text))


def last_word(namespace: Namespace) -> Termination:
    """What a driver that has ended has said of it, which agrees with its exit code."""
    state = driver_pod(namespace)["status"]["containerStatuses"][0]["state"]["terminated"]
    said = Termination.model_validate_json(state["message"])
    assert said.exit_code == state["exitCode"]
    return said


def running_executors(namespace: Namespace) -> list[dict[str, Any]]:
    """Those that Kubernetes says are running."""
    pods = namespace.pods("spark-role=executor")
    return [pod for pod in pods if pod["status"].get("phase") == "Running"]


def output(namespace: Namespace, folder: str = "/data/output") -> dict[str, int]:
    """The newest count of every URL."""
    counts: dict[str, int] = json.loads(namespace.python("toolbox", _READ_OUTPUT, folder))
    return counts


def lines_written(namespace: Namespace, folder: str) -> dict[str, int]:
    """The requests of every URL in the lines that a file sink holds."""
    counts: dict[str, int] = json.loads(namespace.python("toolbox", _READ_LINES, folder))
    return counts
