"""What the operator counts, in the text format that Prometheus reads.

No label takes values without bound: neither ids nor messages nor names of savepoints. What is told
of a single job goes with the job, and is told by the operator that acts alone: what another one
knew when it acted last is old. Ages are reckoned when the page is read; all else is known by then.
"""

import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from sparkpoint.controller.keys import Key
from sparkpoint.controller.pulse import Pulse
from sparkpoint.runtime.exposition import Sample, family, head, labelled, value

__all__ = ["JobFigures", "Metrics"]

_PASS: Final = (0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 30.0)
_OPERATION: Final = (1.0, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1800.0, 3600.0)
_DOWNTIME: Final = (0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1800.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class JobFigures:
    """What is told of one job; None: there is nothing to tell. Times are those of a clock."""

    phase: str = "Unknown"
    ready: bool | None = None
    """The condition, of a job that should run."""
    degraded: str | None = None
    """The reason of the condition, if it holds."""
    savepoint_at: float | None = None
    expected: bool = False
    """Whether the job is one that gets newer savepoints."""
    missing_since: float | None = None
    """Since when there could have been a savepoint, if there is none."""
    verified_at: float | None = None
    bytes: int | None = None
    new_bytes: int | None = None
    interval: float | None = None


class _Histogram:
    """How often, and how long, by one label."""

    def __init__(self, name: str, text: str, label: str, bounds: Sequence[float]) -> None:
        self.name, self._text, self._label, self._bounds = name, text, label, bounds
        self._buckets: Counter[tuple[str, float]] = Counter()
        self._counts: Counter[str] = Counter()
        self._sums: dict[str, float] = {}

    def add(self, key: str, seconds: float) -> None:
        # A sum that falls is taken for a restart; what another operator's clock began may seem to
        # have ended before.
        seconds = max(0.0, seconds)
        self._counts[key] += 1
        self._sums[key] = self._sums.get(key, 0.0) + seconds
        for bound in self._bounds:
            if seconds <= bound:
                self._buckets[key, bound] += 1

    def lines(self) -> Iterable[str]:
        yield from head(self.name, "histogram", self._text)
        for key, count in sorted(self._counts.items()):
            for bound in self._bounds:
                labels = labelled({self._label: key, "le": str(bound)})
                yield f"{self.name}_bucket{labels} {self._buckets[key, bound]}"
            yield f"{self.name}_bucket{labelled({self._label: key, 'le': '+Inf'})} {count}"
            yield f"{self.name}_sum{labelled({self._label: key})} {value(self._sums[key])}"
            yield f"{self.name}_count{labelled({self._label: key})} {count}"


class Metrics:
    """Figures of one operator; read from the same event loop that writes them."""

    def __init__(self, *, now: Callable[[], float] = time.time) -> None:
        self._now = now
        self.pulse = Pulse(wall=now)
        self.acts: Callable[[], bool] = lambda: True
        """Whether this operator is the one that acts."""
        self._requests: Counter[tuple[str, ...]] = Counter()
        self._passes: Counter[tuple[str, ...]] = Counter()
        self._operations: Counter[tuple[str, ...]] = Counter()
        self._phases: dict[tuple[str, Key], str] = {}
        # Kept up to date, as there may be ten thousand savepoints when the page is read.
        self._resources: Counter[tuple[str, ...]] = Counter()
        self._jobs: dict[Key, JobFigures] = {}
        self._durations = _Histogram(
            "sparkpoint_operator_pass_duration_seconds", "How long passes took.", "kind", _PASS
        )
        self._spent = _Histogram(
            "sparkpoint_operation_seconds", "How long operations on jobs took.", "kind", _OPERATION
        )
        self._downtimes = _Histogram(
            "sparkpoint_operation_downtime_seconds",
            "From the last commit before an operation's stop to the first one after it.",
            "kind",
            _DOWNTIME,
        )

    def passed(self, kind: str, result: str, seconds: float) -> None:
        """A pass over a resource has ended."""
        self._passes[kind, result] += 1
        self._durations.add(kind, seconds)

    def asked(self, verb: str, resource: str, code: str) -> None:
        """The API server has answered a request, or has not."""
        self._requests[verb, resource, code] += 1

    def ended(self, kind: str, result: str, *, seconds: float, downtime: float | None) -> None:
        """An operation on a job has ended; only one that stopped a job and ran it on has a
        downtime."""
        self._operations[kind, result] += 1
        self._spent.add(kind, seconds)
        if downtime is not None:
            self._downtimes.add(kind, downtime)

    def seen(self, kind: str, key: Key, phase: str) -> None:
        """A resource is in this phase."""
        self._leave(kind, key)
        self._phases[kind, key] = phase
        self._resources[kind, phase] += 1

    def paused(self, key: Key, phase: str) -> None:
        """Nobody looks at it any more: what may change by itself is not told, nor are savepoints,
        as no newer ones are taken: the same as of a job that was paused before we began."""
        self.seen("job", key, phase)
        self.figures(key, JobFigures(phase=phase))

    def figures(self, key: Key, figures: JobFigures) -> None:
        """What is told of a job from now on."""
        self._jobs[key] = figures

    def gone(self, kind: str, key: Key) -> None:
        """A resource is no more, and nothing is told of it."""
        self._leave(kind, key)
        if kind == "job":
            self._jobs.pop(key, None)

    def _leave(self, kind: str, key: Key) -> None:
        former = self._phases.pop((kind, key), None)
        if former is None:
            return
        self._resources[kind, former] -= 1
        if not self._resources[kind, former]:
            del self._resources[kind, former]

    @property
    def jobs(self) -> int:
        """How many are known."""
        return len(self._jobs)

    def render(self) -> str:
        """The page."""
        acts = self.acts()
        lines = [
            *self._own_lines(acts=acts),
            *self._durations.lines(),
            *self._spent.lines(),
            *self._downtimes.lines(),
            *self._phase_lines(acts=acts),
            *self._job_lines(self._jobs if acts else {}),
        ]
        return "\n".join(lines) + "\n"

    def _own_lines(self, *, acts: bool) -> Iterable[str]:
        yield from family(
            "sparkpoint_leader", "gauge", "1 for the operator that acts.", [({}, acts)]
        )
        yield from family(
            "sparkpoint_operator_passes_total",
            "counter",
            "Passes over resources, by how they ended.",
            _counted(self._passes, "kind", "result"),
        )
        yield from family(
            "sparkpoint_operations_total",
            "counter",
            "Operations on jobs, by how they ended.",
            _counted(self._operations, "kind", "result"),
        )
        yield from family(
            "sparkpoint_operator_api_requests_total",
            "counter",
            "Requests to the API server, but for watches; code 0: no answer.",
            _counted(self._requests, "verb", "resource", "code"),
        )
        yield from family(
            "sparkpoint_queue_length",
            "gauge",
            "Passes that wait for their turn.",
            [({}, self.pulse.waiting)],
        )
        yield from family(
            "sparkpoint_operator_lists_pending",
            "gauge",
            "Lists of resources that have not ended once, so that nothing is known of these.",
            [({}, self.pulse.unlisted)],
        )
        last = self.pulse.ended_at
        yield from family(
            "sparkpoint_last_pass_timestamp_seconds",
            "gauge",
            "When a pass ended last; absent before the first one.",
            [({}, last)] if last is not None else [],
        )
        yield from family(
            "process_cpu_seconds_total",
            "counter",
            "Processor time of this process, user and system.",
            [({}, round(time.process_time(), 6))],
        )

    def _phase_lines(self, *, acts: bool) -> Iterable[str]:
        yield from family(
            "sparkpoint_operator_resources",
            "gauge",
            "Resources, by the phase that they are in.",
            _counted(self._resources, "kind", "phase") if acts else (),
        )

    def _job_lines(self, jobs: dict[Key, JobFigures]) -> Iterable[str]:
        every = (({**_job(key), "phase": told.phase}, 1) for key, told in jobs.items())
        name, text = "sparkpoint_operator_job_info", "1 for each job, and its phase."
        yield from family(name, "gauge", text, every)
        ready = (
            (_job(key), int(told.ready)) for key, told in jobs.items() if told.ready is not None
        )
        text = "1 while all queries of a job that should run do so and commit, else 0."
        yield from family("sparkpoint_job_ready", "gauge", text, ready)
        degraded = (
            ({**_job(key), "reason": told.degraded}, 1)
            for key, told in jobs.items()
            if told.degraded is not None
        )
        name = "sparkpoint_job_degraded"
        yield from family(name, "gauge", "1 while a job needs a person, and why.", degraded)
        now = self._now()
        for suffix, text, read in _SAVEPOINTS:
            found = ((key, read(told, now)) for key, told in jobs.items())
            samples = ((_job(key), number) for key, number in found if number is not None)
            yield from family(f"sparkpoint_savepoint_{suffix}", "gauge", text, samples)


_SAVEPOINTS: Final[tuple[tuple[str, str, Callable[[JobFigures, float], float | None]], ...]] = (
    (
        "age_seconds",
        "Age of a job's newest complete savepoint that is not known to be damaged.",
        lambda told, now: _age(told.savepoint_at, now),
    ),
    (
        "expected",
        "1 while a job runs and has a repository, so that newer savepoints are expected of it.",
        lambda told, _: 1 if told.expected else None,
    ),
    (
        "missing_seconds",
        "Age of a job that runs and has no such savepoint at all.",
        lambda told, now: _age(told.missing_since, now),
    ),
    (
        "verified_age_seconds",
        "Age of a job's newest savepoint that was checked and found good.",
        lambda told, now: _age(told.verified_at, now),
    ),
    ("bytes", "Bytes that a restore of the newest one brings back.", lambda told, _: told.bytes),
    (
        "new_bytes",
        "Bytes that the newest one added to its repository.",
        lambda told, _: told.new_bytes,
    ),
    (
        "interval_seconds",
        "Time between two savepoints as the schedule of the job has it now.",
        lambda told, _: told.interval,
    ),
)


def _age(moment: float | None, now: float) -> float | None:
    # Clocks of a driver and of the operator may differ a little.
    return None if moment is None else max(0.0, round(now - moment, 3))


def _job(key: Key) -> dict[str, str]:
    return {"namespace": key.namespace, "job": key.name}


def _counted(counts: Counter[tuple[str, ...]], *labels: str) -> Iterable[Sample]:
    for key, count in sorted(counts.items()):
        yield dict(zip(labels, key, strict=True)), count
