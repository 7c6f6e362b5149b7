"""`job logs`: what the driver, or an executor, of the present attempt has written."""

import codecs
from dataclasses import dataclass
from typing import Final

from sparkpoint.cli.answer import Answer, Settings, write_text
from sparkpoint.cli.jobs.cluster import ATTEMPT, EPOCH, JOB, PODS, ROLE, Cluster, Object
from sparkpoint.cli.jobs.errors import NotFoundError
from sparkpoint.cli.jobs.facts import metadata
from sparkpoint.cli.jobs.finding import find_job
from sparkpoint.cli.jobs.session import Place, open_cluster

__all__ = ["Logs", "show_logs"]

_EXECUTOR_NUMBER: Final = "spark-exec-id"
"""Spark's own label."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Logs:
    """Which log, and how much of it."""

    follow: bool = False
    previous: bool = False
    executor: int | None = None
    tail: int | None = None


def show_logs(settings: Settings, place: Place, name: str, wanted: Logs) -> Answer:
    """Print a log as it comes; with `--json`, one document with all of it."""
    cluster = open_cluster(place)
    find_job(cluster, name)
    pod = _find_pod(cluster, name, wanted)
    query = {"container": str(pod["spec"]["containers"][0]["name"])}
    if wanted.follow:
        query["follow"] = "true"
    if wanted.tail is not None:
        query["tailLines"] = str(wanted.tail)
    pieces = cluster.log(metadata(pod)["name"], **query)
    about = {"namespace": cluster.namespace, "job": name, "pod": metadata(pod)["name"]}
    # A letter may be cut in two between two pieces.
    decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
    if settings.json:
        log = decoder.decode(b"".join(pieces.chunks()), final=True)
        return Answer(document={**about, "log": log}, text="")
    try:
        for piece in pieces.chunks():
            write_text(decoder.decode(piece))
    finally:
        pieces.close()
    return Answer(document={}, text="")


def _find_pod(cluster: Cluster, name: str, wanted: Logs) -> Object:
    drivers = _pods(cluster, {JOB: name, ROLE: "driver"})
    place = 1 if wanted.previous else 0
    if len(drivers) <= place:
        which = "an earlier driver" if wanted.previous and drivers else "a driver"
        raise NotFoundError(
            f"Job {name} has no pod of {which}. See why: sparkpoint job status {name}"
        )
    driver = drivers[place]
    if wanted.executor is None:
        return driver
    labels = metadata(driver)["labels"]
    attempt = {JOB: name, ROLE: "executor", EPOCH: labels[EPOCH], ATTEMPT: labels[ATTEMPT]}
    executors = _pods(cluster, attempt)
    numbers = {metadata(pod)["labels"].get(_EXECUTOR_NUMBER, ""): pod for pod in executors}
    if str(wanted.executor) not in numbers:
        there = ", ".join(sorted(numbers, key=lambda text: (len(text), text))) or "none"
        raise NotFoundError(f"Job {name} has no pod of executor {wanted.executor}; it has: {there}")
    return numbers[str(wanted.executor)]


def _pods(cluster: Cluster, labels: dict[str, str]) -> list[Object]:
    """By attempt, newest first."""

    def number(pod: Object) -> tuple[int, int]:
        worn = metadata(pod).get("labels") or {}
        return int(worn.get(EPOCH) or 0), int(worn.get(ATTEMPT) or 0)

    return sorted(cluster.list(PODS, labels=labels), key=number, reverse=True)
