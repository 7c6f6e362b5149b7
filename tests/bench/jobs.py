"""A job on Kubernetes: until its first commit, and without commits while it is changed.

Ours, a driver that is deleted and created by kubectl, and spark-submit in cluster mode take turns
on one cluster: the same image, script, input, resources and volume. The change is an argument.
Downtime is from the last commit of the old driver to the first one of the new driver.
"""

import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from dev.console import Problem, say
from tests.bench.jobs_ground import Commit, Trial, job_namespace, trying
from tests.bench.jobs_operated import Spending, operated_job, spending
from tests.bench.jobs_peers import Created, Submitted, submission_rights
from tests.bench.measure import Figure, Sample, Series
from tests.bench.table import Section
from tests.cluster.namespace import Namespace
from tests.cluster.operated import Job

__all__ = ["measure_jobs"]

_CHANGE = "--files-per-batch=2"
_NEXT_CHANGE = "--files-per-batch=3"
_WARM = 5
"""The batch before which nothing is changed: the job has found its pace."""
_KUBECTL, _SUBMIT = "peer: kubectl", "peer: spark-submit"

Samples = Iterator[tuple[str, Sample]]


def measure_jobs(folder: Path, *, scale: float, repetitions: int) -> Section:
    """Run everything. The state is small at any scale: what is measured does not depend on it."""
    with job_namespace() as namespace:
        namespace.apply(*submission_rights())
        _warm_up(namespace)
        rounds = [dict(_round(namespace, number)) for number in range(repetitions)]
    series = {name: Series(name, [each[name] for each in rounds]) for name in sorted(rounds[0])}
    return Section(
        "jobs",
        "A job of one executor on a Kubernetes of this machine, under the operator and without",
        _figures(series),
        list(series.values()),
    )


def _warm_up(namespace: Namespace) -> None:
    """Whoever comes first reads the image from the disk."""
    with trying(namespace, "warm") as trial:
        peer = Created(trial)
        peer.start()
        trial.await_batch(0)
        peer.stop()


def _round(namespace: Namespace, number: int) -> Samples:
    lives = [_created, _submitted, _operated]
    first = number % len(lives)
    for live in (*lives[first:], *lives[:first]):
        with trying(namespace, f"{live.__name__.strip('_')}-{number}") as trial:
            for name, sample in live(trial):
                say(f"    {name}: {sample.seconds:.3g} s")
                yield name, sample
            trial.check_counts()


def _created(trial: Trial) -> Samples:
    peer = Created(trial)
    first, downtime, stopped = _peer_life(trial, peer)
    start, stop = peer.requests[:2]
    yield f"{_KUBECTL}, first commit", _sample(first, requests=start)
    yield f"{_KUBECTL}, downtime", _sample(downtime, requests=stop + start)
    yield f"{_KUBECTL}, stop", _sample(stopped, requests=stop)


def _submitted(trial: Trial) -> Samples:
    peer = Submitted(trial)
    first, downtime, _ = _peer_life(trial, peer)
    yield f"{_SUBMIT}, first commit", _sample(first, processor=peer.processor[0])
    yield f"{_SUBMIT}, downtime", _sample(downtime, processor=peer.processor[1])


def _peer_life(trial: Trial, peer: Created | Submitted) -> tuple[float, float, float]:
    """Seconds until the first commit, without one during the change, and of the last stop."""
    begun = time.time()
    peer.start()
    first = trial.await_batch(0)[0].moment - begun
    trial.await_batch(_WARM)
    peer.stop()
    gone = time.time()
    peer.start(_CHANGE)
    commits = trial.await_commit_after(gone)
    downtime = _gap(
        [each for each in commits if each.moment <= gone],
        [each for each in commits if each.moment > gone],
    )
    begun = time.time()
    peer.stop()
    return first, downtime, time.time() - begun


def _operated(trial: Trial) -> Samples:
    job, cluster = operated_job(trial), trial.namespace.cluster
    with spending(cluster) as start:
        begun = time.time()
        job.apply()
        first = trial.await_batch(0)[0].moment - begun
        job.await_phase("Running")
    yield "first commit", _of(start, first)
    trial.await_batch(_WARM)
    with spending(cluster) as savepoint:
        name = f"{trial.name}-live"
        job.ask_for_savepoint(name)
        job.await_savepoint(name, "id")
    yield "savepoint", _of(savepoint, savepoint.seconds)
    job.spec["args"].append(_CHANGE)
    yield "downtime", _upgraded(trial, job)
    job.spec["args"][-1] = _NEXT_CHANGE
    del job.spec["upgrade"]
    yield "downtime, code tried before", _upgraded(trial, job)
    with spending(cluster) as stop:
        job.spec["suspend"] = True
        job.apply()
        job.await_phase("Suspended")
    yield "stop", _of(stop, stop.seconds)
    trial.namespace.kubectl("delete", "ssj", job.name, "--timeout=120s", timeout=150)


def _upgraded(trial: Trial, job: Job) -> Sample:
    former = sorted({each.folder for each in trial.await_batch(0)})
    with spending(trial.namespace.cluster) as spent:
        job.apply()
        commits = trial.await_successor(former)
        job.await_phase("Running", seconds=300)
    last = job.status()["lastOperation"]
    if (last["kind"], last["result"]) != ("Upgrade", "Succeeded"):
        raise Problem(
            f"The upgrade of {job.name} ended as {last['kind']} {last['result']}: {last}",
            remedy="repair that first: figures of something that fails say nothing.",
        )
    old = [each for each in commits if each.folder in former]
    # What was restored is there, too, as if it were committed anew.
    end = max(each.batch for each in old)
    new = [each for each in commits if each.folder not in former and each.batch > end]
    return _of(spent, _gap(old, new))


def _gap(old: Sequence[Commit], new: Sequence[Commit]) -> float:
    return min(each.moment for each in new) - max(each.moment for each in old)


def _sample(seconds: float, *, processor: float = 0.0, requests: float = 0.0) -> Sample:
    return Sample(
        seconds=seconds, total=seconds, processor=processor, numbers={"requests": requests}
    )


def _of(spent: Spending, seconds: float) -> Sample:
    return Sample(
        seconds=seconds,
        total=spent.seconds,
        processor=spent.processor,
        numbers={"requests": spent.requests, "writes": spent.writes},
    )


def _figures(series: dict[str, Series]) -> list[Figure]:
    return [*_times(series), *_processor(series), *_requests(series)]


def _times(series: dict[str, Series]) -> Iterator[Figure]:
    titles = {
        "first commit": "From kubectl apply to the first commit",
        "downtime": "Downtime of an upgrade",
        "downtime, code tried before": "Downtime of an upgrade whose code is tried before",
    }
    peers = {
        "first commit": {_KUBECTL: "kubectl create", _SUBMIT: "spark-submit, cluster mode"},
        "downtime": {_KUBECTL: "kubectl delete, create", _SUBMIT: "the same with spark-submit"},
    }
    for name, title in titles.items():
        counterpart = name.split(",")[0]
        for prefix, peer in peers[counterpart].items():
            yield Figure(
                title=title,
                peer=peer,
                peer_value=series[f"{prefix}, {counterpart}"].seconds,
                ours=series[name].seconds,
                bound=_bound(name, series[name]),
            )


def _bound(name: str, ours: Series) -> str:
    if name == "first commit":
        return "the start of two JVMs on the same cores, one after the other"
    return (
        "the start of the driver, after a stop at a boundary and a savepoint, which peers lack; "
        f"the whole operation takes {ours.total:.0f} s"
    )


_OPERATIONS = {
    "first commit": "a start",
    "savepoint": "a savepoint",
    "downtime": "an upgrade",
    "stop": "a stop with a savepoint",
}


def _processor(series: dict[str, Series]) -> Iterator[Figure]:
    peer = series[f"{_SUBMIT}, first commit"]
    for name, what in _OPERATIONS.items():
        yield Figure(
            title=f"Processor time of the operator for {what}",
            peer="one spark-submit",
            peer_value=peer.processor,
            ours=series[name].processor,
            bound=f"all that it does in these {series[name].total:.0f} s, its Lease included",
        )


def _requests(series: dict[str, Series]) -> Iterator[Figure]:
    peers = {
        "first commit": ("kubectl create", "first commit"),
        "savepoint": ("kubectl create of a driver", "first commit"),
        "downtime": ("kubectl delete, create", "downtime"),
        "stop": ("kubectl delete", "stop"),
    }
    for name, what in _OPERATIONS.items():
        peer, counterpart = peers[name]
        ours = series[name]
        yield Figure(
            title=f"Requests of the operator to the API server for {what}",
            peer=peer,
            peer_value=series[f"{_KUBECTL}, {counterpart}"].number("requests"),
            ours=ours.number("requests"),
            unit="calls",
            bound=f"{ours.number('writes'):.0f} of them write; the others look at the "
            "job, its pods and its script in every pass while something is under way",
        )
