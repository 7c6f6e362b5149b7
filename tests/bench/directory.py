"""Figures on one disk: first capture, next captures, materialize, all against `cp -r`."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

from tests.bench.ground import (
    check_same,
    copy_planned,
    link_tree,
    real_state,
    tree_bytes,
    warm,
)
from tests.bench.machine import MIB
from tests.bench.measure import (
    Figure,
    Sample,
    Series,
    bound_of,
    remove,
    run_ours,
    run_peer,
    settle,
)
from tests.bench.stages import STAGES
from tests.bench.table import Section

__all__ = [
    "against_cp",
    "copy_plainly",
    "copy_synced",
    "incremental_materialize",
    "measure_directory",
    "next_captures",
]

CAPTURE = 1.3
NEXT_BYTES = 0.10
NEXT_TIME = 0.20
_UNFLUSHED = "left to the kernel"
_SLACK = 1.05
"""What an incremental restore may copy beyond the files that differ: rewritten metadata."""


def measure_directory(folder: Path, *, scale: float, repetitions: int) -> Section:
    """Run everything; the state is real."""
    bench = _Directory(folder, real_state(scale))
    rounds = [dict(bench.round()) for _ in range(repetitions)]
    series = {name: Series(name, [each[name] for each in rounds]) for name in rounds[0]}
    size = tree_bytes(bench.wanted["loaded"])
    return Section(
        "directory",
        f"RocksDB with changelog made by Spark, {size / MIB:.0f} MiB in 64 partitions, on one disk",
        [
            *_captures(series),
            *next_captures(series, bound_of),
            *_like_with_like("Materialize", "materialize loaded", series),
            *incremental_materialize(series, bench.difference(), bound_of),
        ],
        list(series.values()),
    )


def copy_plainly(source: Path, target: Path) -> Sample:
    """`cp -r`: done when the page cache has it."""
    return run_peer(["cp", "-r", str(source), str(target)])


def copy_synced(source: Path, target: Path) -> Sample:
    """`cp -r` and `sync -f`: done when the disk has it, as ours is."""
    return run_peer(["cp", "-r", str(source), str(target)], ["sync", "-f", str(target)])


class _Directory:
    """The trees of this measurement. What is left to the kernel has a repository of its own."""

    def __init__(self, folder: Path, state: Path) -> None:
        self._state = state
        self._checkpoint = folder / "checkpoint"
        self._repository = folder / "repository"
        self._target = folder / "target"
        self._peer = folder / "peer"
        self.wanted = {name: folder / f"wanted-{name}" for name in ("loaded", "changed")}
        for name, path in self.wanted.items():
            copy_planned(state / name, path)
        warm(*self.wanted.values(), *(state / name for name in STAGES))

    def round(self) -> Iterator[tuple[str, Sample]]:
        """Every measurement once, peer and ours in turns."""
        yield "cp -r", self._copy(copy_plainly)
        yield "cp -r; sync -f", self._copy(copy_synced)
        yield from self._left_to_the_kernel()
        for stage in STAGES:
            self._enter(stage)
            yield f"capture {stage}", self._ours("capture", stage)
        settle()
        run_ours("verify", repository=str(self._repository), at_least=len(STAGES))
        yield from self._restores()
        remove(self._repository, self._checkpoint)

    def _left_to_the_kernel(self) -> Iterator[tuple[str, Sample]]:
        self._enter("loaded")
        yield f"capture loaded, {_UNFLUSHED}", self._ours("capture", "loaded", unflushed=True)
        settle()
        yield f"materialize loaded, {_UNFLUSHED}", self._restore("loaded", unflushed=True)
        check_same(self._target, self.wanted["loaded"])
        remove(self._target, self._repository)

    def _restores(self) -> Iterator[tuple[str, Sample]]:
        yield "materialize loaded", self._restore("loaded")
        check_same(self._target, self.wanted["loaded"])
        yield "materialize changed onto it", self._restore("changed")
        check_same(self._target, self.wanted["changed"])
        remove(self._target)

    def difference(self) -> int:
        """Bytes of the files that `changed` has and `loaded` has not."""
        old, new = self.wanted["loaded"], self.wanted["changed"]
        names = (path.relative_to(new) for path in new.rglob("*") if path.is_file())
        return sum((new / name).stat().st_size for name in names if not (old / name).exists())

    def _copy(self, copy: Callable[[Path, Path], Sample]) -> Sample:
        settle(self.wanted["loaded"])
        sample = copy(self.wanted["loaded"], self._peer)
        remove(self._peer)
        return sample

    def _enter(self, stage: str) -> None:
        """Let the checkpoint be that of the stage: old files stay the very same files."""
        if self._checkpoint.exists():
            remove(self._checkpoint)
        link_tree(self._state / stage, self._checkpoint)

    def _ours(self, operation: str, name: str, *, unflushed: bool = False) -> Sample:
        return run_ours(
            operation,
            repository=str(self._repository),
            checkpoint=str(self._checkpoint),
            name=name,
            warm=str(self._checkpoint),
            unflushed=unflushed,
        )

    def _restore(self, name: str, *, unflushed: bool = False) -> Sample:
        return run_ours(
            "materialize",
            repository=str(self._repository),
            name=name,
            target=str(self._target),
            warm=str(self._repository),
            unflushed=unflushed,
        )


def _captures(series: dict[str, Series]) -> list[Figure]:
    return _like_with_like("First capture", "capture loaded", series)


def _like_with_like(title: str, name: str, series: dict[str, Series]) -> list[Figure]:
    """What `cp` leaves to the kernel against the same of ours, what is on the disk against the
    same; and, as a promise was about that, what is on the disk against what is not."""
    unflushed = series[f"{name}, {_UNFLUSHED}"]
    plain, synced = against_cp(title, series[name], series, CAPTURE)
    disk = f"the disk takes {series['cp -r; sync -f'].sync:.3g} s for the bytes alone"
    return [
        Figure(
            title=f"{title}, {_UNFLUSHED}",
            peer="cp -r",
            peer_value=series["cp -r"].seconds,
            ours=unflushed.seconds,
            target=CAPTURE,
            bound=bound_of(unflushed),
        ),
        synced,
        replace(plain, title=f"{title}, on the disk", bound=f"{disk}; {plain.bound}"),
    ]


def against_cp(
    title: str, ours: Series, series: dict[str, Series], target: float | None
) -> list[Figure]:
    """Against both kinds of copy: the promise is about the plain one, which is the stricter."""
    return [
        Figure(
            title=title,
            peer=name,
            peer_value=series[name].seconds,
            ours=ours.seconds,
            target=target,
            bound=bound_of(ours),
        )
        for name in ("cp -r", "cp -r; sync -f")
    ]


def next_captures(series: dict[str, Series], bound: Callable[[Series], str]) -> Iterator[Figure]:
    """Of every stage after the first, against the first capture: bytes that are new, and time."""
    first = series["capture loaded"]
    names = {
        "changed": "1 % of the keys changed",
        "snapshot": "the same, after a new full snapshot",
        "compacted": "the same, after a compaction",
    }
    for stage, title in names.items():
        ours = series[f"capture {stage}"]
        yield Figure(
            title=f"Next capture: {title}",
            peer="first capture",
            peer_value=first.number("bytes") / MIB,
            ours=ours.number("new_bytes") / MIB,
            unit="MiB",
            target=NEXT_BYTES,
            bound="changelogs since the parent; its base is used again",
        )
        yield Figure(
            title=f"Next capture: {title}",
            peer="first capture",
            peer_value=first.seconds,
            ours=ours.seconds,
            target=NEXT_TIME,
            bound=bound(ours),
        )


def incremental_materialize(
    series: dict[str, Series], difference: int, bound: Callable[[Series], str]
) -> Iterator[Figure]:
    """Onto what was restored before, against the bytes that differ, and against all of it anew."""
    full, onto = series["materialize loaded"], series["materialize changed onto it"]
    yield Figure(
        title="Incremental materialize",
        peer="files that differ",
        peer_value=difference / MIB,
        ours=onto.number("copied_bytes") / MIB,
        unit="MiB",
        target=_SLACK,
        bound="the difference",
    )
    yield Figure(
        title="Incremental materialize",
        peer="full materialize",
        peer_value=full.seconds,
        ours=onto.seconds,
        target=NEXT_TIME,
        bound=bound(onto),
    )
