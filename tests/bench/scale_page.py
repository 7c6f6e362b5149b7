"""Figures of many jobs as a page: what each number of them costs, against what was promised."""

import datetime
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import matplotlib
from pydantic import TypeAdapter

from tests.bench.scale_run import Cost, Keeping

__all__ = ["Measured", "draw", "keep", "page", "today"]

_MEMORY = ((1000, 300.0), (3000, 600.0))
"""Up to so many jobs, so many MB at most."""
_IDLE, _REACTION, _STARTS, _OBSERVED = 0.10, 2.0, 300.0, 60.0
_KEPT = 0.05
"""Of a core, for ten thousand savepoints that are only kept."""
_MEMORY_OF_ONE = 20.0
"""KB of a savepoint that is only kept."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """One number of jobs, and when it was."""

    date: str
    cost: Cost
    keeping: Keeping | None = None


_ALL = TypeAdapter(list[Measured])


def today() -> str:
    """As the page says it."""
    return datetime.datetime.now(datetime.UTC).date().isoformat()


def keep(file: Path, found: Measured) -> list[Measured]:
    """Put it in the place of the former one of so many jobs; all of them, fewest jobs first."""
    known = _ALL.validate_json(file.read_bytes()) if file.exists() else []
    by_jobs = {each.cost.jobs: each for each in (*known, found)}
    everything = [by_jobs[jobs] for jobs in sorted(by_jobs)]
    file.write_bytes(_ALL.dump_json(everything, indent=1) + b"\n")
    return everything


def page(found: Sequence[Measured], *, machine: Mapping[str, str], plot: str) -> str:
    """docs/scale.md."""
    costs = [each.cost for each in found]
    parts = [
        "# Many jobs",
        "Written by `make bench-scale`. Do not edit; run it again.",
        f"![What the operator costs against the number of jobs]({plot})",
        "## What is promised",
        _table(("what", "promised", "measured", "met"), _promises(found)),
        "## What it costs",
        _table(("figure", *(f"{cost.jobs} jobs" for cost in costs)), _rows(costs)),
        f"Measured on {', '.join(f'{each.date} ({each.cost.jobs})' for each in found)}.",
        *(_judging(each.keeping) for each in found if each.keeping is not None),
        _METHOD.strip(),
        "## Machine",
        _table(("what", "value"), machine.items()),
    ]
    return "\n\n".join(parts) + "\n"


def _promises(found: Sequence[Measured]) -> Iterable[tuple[str, ...]]:
    for each in found:
        if each.cost.jobs >= _MEMORY[0][0]:
            yield from _of_jobs(each.cost)
        if each.keeping is not None:
            yield from _of_savepoints(each.keeping, each.cost)


def _of_jobs(cost: Cost) -> Iterable[tuple[str, ...]]:
    most = next(limit for jobs, limit in _MEMORY if cost.jobs <= jobs)
    of = f"{cost.jobs} jobs: "
    memory = max(cost.memory, cost.restarted_memory)
    yield _promise(f"{of}memory", f"< {most:.0f} MB", f"{memory:.0f} MB", memory < most)
    share = cost.idle_processor
    yield _promise(f"{of}processor, idle", "< 10 % of a core", f"{share:.1%}", share < _IDLE)
    p99 = cost.reaction_p99
    yield _promise(f"{of}reaction to a change, p99", "< 2 s", f"{p99:.2f} s", p99 < _REACTION)
    rate = cost.starts_per_minute
    yield _promise(f"{of}starts per minute, one core", "≥ 300", f"{rate:.0f}", rate >= _STARTS)
    until = cost.observed
    yield _promise(
        f"{of}its start to a look at each", "< 60 s", f"{until:.1f} s", until < _OBSERVED
    )


def _of_savepoints(found: Keeping, without: Cost) -> Iterable[tuple[str, ...]]:
    of = f"{found.jobs} jobs, {found.savepoints} savepoints: "
    one = 1024 * (found.memory_with - found.memory) / found.savepoints
    yield _promise(
        f"{of}memory of one that is kept",
        f"< {_MEMORY_OF_ONE:.0f} KB",
        f"{one:.1f} KB",
        one < _MEMORY_OF_ONE,
    )
    share = found.idle_processor
    more = share - without.idle_processor
    yield _promise(f"{of}processor of them, idle", "< 5 % of a core", f"{more:.1%}", more < _KEPT)
    yield _promise(f"{of}processor, idle", "< 10 % of a core", f"{share:.1%}", share < _IDLE)
    yield _promise(f"{of}judged by retention", "100%", f"{found.judged:.0%}", found.judged == 1)
    until = found.observed
    yield _promise(
        f"{of}its start to a look at each job", "< 60 s", f"{until:.1f} s", until < _OBSERVED
    )


def _judging(found: Keeping) -> str:
    """What happens once, and is in no figure of an operator that has nothing to do."""
    if found.judged_after is None or found.judging_processor is None:
        return "Savepoints: measured while some of them were still being judged for the first time."
    each = 1000 * found.judging_processor
    return (
        f"An operator that finds {found.savepoints} savepoints of which nobody has told yet why "
        f"they stay has told so of all of them after {found.judged_after:.0f} s, with {each:.1f} "
        f"ms of processor time for each. Then a pass over a job takes "
        f"{found.job_pass_with * 1000:.1f} ms, and {found.job_pass * 1000:.1f} ms without any."
    )


def _promise(what: str, promised: str, measured: str, met: bool) -> tuple[str, ...]:
    return what, promised, measured, "yes" if met else "**no**"


def _rows(costs: Sequence[Cost]) -> Iterable[tuple[str, ...]]:
    def row(title: str, *values: str) -> tuple[str, ...]:
        return (title, *values)

    yield row("memory of an operator without jobs", *(f"{c.empty_memory:.0f} MB" for c in costs))
    yield row("memory, all run", *(f"{c.memory:.0f} MB" for c in costs))
    yield row("the most of it until then", *(f"{c.peak_memory:.0f} MB" for c in costs))
    yield row("memory after a restart", *(f"{c.restarted_memory:.0f} MB" for c in costs))
    yield row("processor, idle", *(f"{c.idle_processor:.1%}" for c in costs))
    yield row("requests per second, idle", *(f"{c.idle_requests:.1f}" for c in costs))
    yield row("starts per minute", *(f"{c.starts_per_minute:.0f}" for c in costs))
    yield row("processor time of a start", *(f"{c.start_processor * 1000:.0f} ms" for c in costs))
    yield row("requests of a start", *(f"{c.start_requests:.1f}" for c in costs))
    yield row("of them writes", *(f"{c.start_writes:.1f}" for c in costs))
    yield row("changes per second", *(f"{c.changes_per_second:g}" for c in costs))
    yield row("reaction to a change, median", *(f"{c.reaction_median:.2f} s" for c in costs))
    yield row("reaction to a change, p99", *(f"{c.reaction_p99:.2f} s" for c in costs))
    yield row("from its start to a look at each", *(f"{c.observed:.1f} s" for c in costs))


def _table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def draw(costs: Sequence[Cost], target: Path) -> None:
    """Four small pictures: each figure against the number of jobs, and its limit."""
    matplotlib.use("svg")
    matplotlib.rcParams["svg.hashsalt"] = "sparkpoint"
    from matplotlib import pyplot

    jobs = [cost.jobs for cost in costs]
    panels = (
        ("memory [MB]", [cost.memory for cost in costs], _MEMORY[-1][1]),
        ("processor, idle [% of a core]", [100 * c.idle_processor for c in costs], 100 * _IDLE),
        ("reaction, p99 [s]", [cost.reaction_p99 for cost in costs], _REACTION),
        ("start to a look at each [s]", [cost.observed for cost in costs], _OBSERVED),
    )
    canvas, axes = pyplot.subplots(1, len(panels), figsize=(13, 3), layout="constrained")
    for place, (title, values, limit) in zip(axes, panels, strict=True):
        place.plot(jobs, values, marker="o", color="#2a7f62")
        place.axhline(limit, color="#c0392b", linewidth=1, linestyle="--")
        place.set_xlabel("jobs")
        place.set_title(title, fontsize=9)
        place.set_xlim(left=0)
        place.set_ylim(bottom=0)
    canvas.savefig(target, metadata={"Date": None})
    pyplot.close(canvas)


_METHOD = """\
## How it is measured

A real etcd and API server, the garbage collector and nothing else of Kubernetes; all jobs are in
one namespace. The operator is a process of its own on one core; etcd, the API server, whoever
applies and watches the jobs, and the pods share what is left of the machine, which is why starts
per minute are bounded by all of them together and not by the operator (its processor time of a
start says what it could do).

**Pods are played** by one process (`tests/scale/pods.py`): it binds them, writes their status,
and gives each driver an address of its own on the loopback network, where its agent answers as
the runtime's does: after 6 s at the gate, a first commit 2 s later and one every 10 s, stops with
a savepoint, last words in the termination message. Each driver makes one executor. KWOK is not
used: its pods change by rules and by the clock, while a driver ends because its agent was asked
to, with words that say what the agent has done; and an agent needs the token of its pod's Secret.
So whoever plays the pods has to be whoever plays the agents.

- **Starts**: from the first of all jobs that are applied as fast as the API server takes them to
  the last one that runs with its first batch committed.
- **Idle**: 90 s in which nobody changes anything; queries commit, and the status tells so. They
  begin when each job was looked at once more after the last of them had begun to run.
- **Reaction**: up to a hundred jobs are changed, so many in a second, each once; from the answer to
  the PATCH to the watch event that shows the operation of that generation written down, as whoever
  watches the job from outside sees it. All the upgrades that follow go on meanwhile, with dozens
  of requests each of the operator and of whoever plays the pods: the API server has one core with
  everything else here, takes about 200 requests in a second, and answers late when it is asked for
  more. With more changes in a second than it can serve upgrades, its queue is what is measured.
- **Restart**: the operator is killed, and another one is started; until its metrics have counted
  every job.
- **Savepoints**: complete ones that people asked for, 33 of each of 300 jobs; nothing is to be
  done but to keep them, and to tell in the status of each why. An operator is started that finds
  them all; once all are told of, it is idle, and measured as above; what the same jobs take
  without any is taken off. A pass is measured with its waiting for agents and the API server, on
  average over those 90 s, and so is one without any: that none gets longer is all that it says.

## What bounds it

Jobs that run well are looked at every 15 s, all of them together at most 20 times in a second;
their scripts in ConfigMaps are read every 15 s, ten in a second at most; a status that differs in
its progress alone is written every 30 s, five in a second at most. So looking
costs no more from 300 jobs on, and of 3,000 the progress that is shown may be ten minutes old.
What happens to a job, its pods or its savepoints wakes it at once, however many there are.

From a change of a spec to the operation that is written down there are four requests, one after
another (the script, the revision, an Event, the status), and a question to the agent, whose answer
is waited for up to 5 s. Savepoints are gone through when one of a job's changes, and judged when
that, the rules or who needs them change, or one has its time; five are written to in one pass at
most, so that a hundred in a second are told of by all looks together. Each is read once an hour.

A resource that waits is a timer and an entry in a few dictionaries, in which each name of a field
is kept once; kopf keeps a watch per kind. It has neither daemons (each holds the body with all its
`managedFields`) nor a diff base, for which it copies every object of every event; finalizers are
put on and taken off by passes, and all connections are counted, as each has 256 KB of buffers. Jobs
whose spec was changed go before what is under way.

A thousand jobs that are applied at once are as many events that kopf holds for a moment: what that
takes stays with the process, as Python gives memory back only in whole megabytes. An operator that
starts with the same jobs needs less: see the table.
"""
