"""Figures on history: a capture must cost the same with 200 savepoints before it as with one."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.bench.measure import Figure, Sample, Series, bound_of, run_ours, settle
from tests.bench.table import Section
from tests.support.s3 import running_s3_server
from tests.unit.savepoint.synthetic import SyntheticQuery

__all__ = ["measure_history"]

HISTORY = 200
SAME_COST = 1.2
"""What counts as "does not grow": time of so short an operation spreads by this much."""
_REPETITIONS = 7


@dataclass(frozen=True, slots=True)
class _Place:
    """Where two repositories are compared: one with a short history, one with a long one."""

    name: str
    root: str
    checkpoint: str
    environment: Mapping[str, str]
    endpoint: str | None = None

    def repository(self, kind: str) -> str:
        """Its location."""
        return f"{self.root}/{kind}"


def measure_history(folder: Path, *, scale: float, repetitions: int) -> Section:
    """Compare on a directory and on S3; the checkpoint is small, so that fixed costs show."""
    query = SyntheticQuery(folder / "small", provider="rocksdb", partitions=4).run(6)
    long = max(10, int(HISTORY * scale))
    times = max(repetitions, _REPETITIONS)
    disk = _Place("directory", str(folder / "history"), str(query.root), {})
    series = dict(_compare(disk, long=long, times=times))
    with running_s3_server(folder / "s3-history") as server:
        bucket = server.make_bucket("history")
        place = _Place(
            "S3", f"s3://{bucket}", str(query.root), server.environment(), server.endpoint_url
        )
        series |= dict(_compare(place, long=long, times=times))
    figures = [
        figure for name in ("directory", "S3") for figure in _figures(series, name, long=long)
    ]
    title = f"Capture with 1 and with {long} savepoints before it (small synthetic checkpoint)"
    return Section("history", title, figures, list(series.values()))


def _compare(place: _Place, *, long: int, times: int) -> Iterator[tuple[str, Series]]:
    for kind, count in (("short", 1), ("long", long)):
        _run(place, kind, "capture-often", name="before", count=count)
    samples: dict[str, list[Sample]] = {"short": [], "long": []}
    for number in range(times):
        for kind, found in samples.items():
            settle()
            found.append(_run(place, kind, "capture", name=f"measured-{number}"))
    for kind, found in samples.items():
        _run(place, kind, "verify", at_least=times + 1)
        yield f"{place.name} {kind}", Series(f"{place.name}, {kind} history", found)


def _run(place: _Place, kind: str, operation: str, **task: object) -> Sample:
    return run_ours(
        operation,
        place.environment,
        repository=place.repository(kind),
        checkpoint=place.checkpoint,
        endpoint=place.endpoint,
        **task,
    )


def _figures(series: Mapping[str, Series], name: str, *, long: int) -> Iterator[Figure]:
    short, after = series[f"{name} short"], series[f"{name} long"]
    yield Figure(
        title=f"{name}: time after {long} savepoints",
        peer="after 1 savepoint",
        peer_value=short.seconds,
        ours=after.seconds,
        target=SAME_COST,
        bound=bound_of(after),
    )
    yield Figure(
        title=f"{name}: requests after {long} savepoints",
        peer="after 1 savepoint",
        peer_value=short.number("requests"),
        ours=after.number("requests"),
        unit="requests" if name == "S3" else "calls",
        target=1.0,
        bound="one manifest and one table are read, whatever the history",
    )
    if name == "directory":
        yield Figure(
            title=f"{name}: entries listed after {long} savepoints",
            peer="after 1 savepoint",
            peer_value=short.number("listed"),
            ours=after.number("listed"),
            unit="entries",
            bound="the names of the job's own savepoints, to find the newest",
        )
