"""The same job under the operator, and what the operator itself spends on it."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from prometheus_client.parser import text_string_to_metric_families

from dev.cluster.lifecycle import Cluster
from dev.console import Problem
from dev.operator import NAMESPACE
from tests.bench.jobs_ground import Trial
from tests.bench.jobs_peers import MEMORY, REQUEST
from tests.cluster.operated import Job, job_spec

__all__ = ["Spending", "operated_job", "spending"]

_REQUESTS = "sparkpoint_operator_api_requests_total"
_READING = ("get", "list")
_PROCESSOR = "process_cpu_seconds_total"


def operated_job(trial: Trial) -> Job:
    """A job with the resources of its peers, in the folder of the trial."""
    spec: dict[str, Any] = job_spec()
    small = {"cores": 1, "coreRequest": REQUEST}
    spec |= {
        "args": trial.arguments,
        "driver": {**small, "memory": MEMORY["driver"]},
        "executor": {**small, "memory": MEMORY["executor"], "instances": 1},
        "checkpoint": {"location": f"{trial.folder}/checkpoints"},
        "savepoints": {"repository": f"{trial.folder}/savepoints"},
    }
    job = Job(trial.namespace, spec, trial.name)
    job.put_script()
    return job


@dataclass(frozen=True, slots=True)
class _Spent:
    """By the operator since it started."""

    processor: float
    requests: float
    """To the API server; without those of its Lease, which it makes whether there are jobs or not.
    """
    writes: float
    """Those of them that change something."""


@dataclass(slots=True)
class Spending:
    """What one operation took; known when it is over."""

    seconds: float = 0.0
    processor: float = 0.0
    requests: float = 0.0
    writes: float = 0.0


@contextmanager
def spending(cluster: Cluster) -> Iterator[Spending]:
    """Measure what the body costs the operator."""
    found = Spending()
    before, begun = _spent(cluster), time.monotonic()
    yield found
    found.seconds = time.monotonic() - begun
    after = _spent(cluster)
    found.processor = after.processor - before.processor
    found.requests = after.requests - before.requests
    found.writes = after.writes - before.writes
    if found.processor < 0:
        raise Problem(
            "The operator was started anew while it was measured.",
            remedy="look at the log of its former container, and measure again.",
        )


def _spent(cluster: Cluster) -> _Spent:
    within = ("-n", NAMESPACE)
    pod = cluster.kubectl(*within, "get", "pods", "-o", "jsonpath={.items[0].metadata.name}")
    page = cluster.kubectl(
        "get", "--raw", f"/api/v1/namespaces/{NAMESPACE}/pods/{pod}:8080/proxy/metrics"
    )
    samples = [each for family in text_string_to_metric_families(page) for each in family.samples]
    requests = [
        each for each in samples if each.name == _REQUESTS and each.labels["resource"] != "leases"
    ]
    return _Spent(
        processor=sum(each.value for each in samples if each.name == _PROCESSOR),
        requests=sum(each.value for each in requests),
        writes=sum(each.value for each in requests if each.labels["verb"] not in _READING),
    )
