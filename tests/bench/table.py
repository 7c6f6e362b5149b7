"""Figures as text: the table that is printed, and the page that is kept."""

import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from tests.bench.measure import Figure, Series

__all__ = ["MEMORY_LIMIT", "Measured", "Section", "figure_rows", "memory_section", "page"]

MEMORY_LIMIT = 200.0
"""MB of resident memory that no operation may exceed."""
_HEADER = ("figure", "peer", "peer's", "ours", "ratio", "target", "met", "what bounds it")
_METHOD = """\
Every ratio comes from one run: peer and ours take turns on the same disk or server, the median of
the repetitions counts, and before each measurement everything dirty is written out. **Page cache:**
warm for both: before each measurement its source is copied once and the copy removed. **Memory** is
full of clean pages that are dropped first, as on a server in use: free memory a virtual machine
gives back to its host, and what it takes again costs many times what is written to it.
**Hashing** is on in ours and absent in `cp`.
**Durability:** ours ends with a sync of the file system, so what it says is saved survives a power
failure. `cp -r` alone does not promise that; `cp -r; sync -f` does. So there are three lines: like
against like twice (ours against `cp -r; sync -f`, and ours *left to the kernel*, without its sync,
against `cp -r`), and ours with its sync against a `cp -r` without. That one cannot be faster than
the disk takes the bytes: the bound says how long that takes alone. On S3 the server answers when it
has the object, for both.
**Time** is that of the operation in a fresh process, without the start of the interpreter and
imports; the series below show whole processes too. After each round all savepoints are verified,
and what was restored is compared byte by byte with what was captured.
"""


@dataclass(frozen=True, slots=True)
class Section:
    """Figures that belong together, and the series behind them."""

    name: str
    title: str
    figures: Sequence[Figure]
    series: Sequence[Series]


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """A section, and how it came about."""

    section: Section
    date: str
    scale: float
    repetitions: int
    load: float
    """Of the machine before it."""


def memory_section(found: Iterable[Measured]) -> Section:
    """The peak of every operation of ours, out of what the other sections measured."""
    figures = [
        Figure(
            title=f"{each.section.name}: {series.name}",
            peer="limit",
            peer_value=MEMORY_LIMIT,
            ours=series.rss,
            unit="MB",
            target=1.0,
            bound="interpreter and imports; packs and buffers in flight",
        )
        for each in found
        for series in each.section.series
        if series.rss and not series.name.startswith("peer")
    ]
    return Section("memory", "Peak resident memory of each operation of ours", figures, [])


def figure_rows(figures: Iterable[Figure]) -> list[tuple[str, ...]]:
    """Header and lines."""
    return [_HEADER, *(_row(figure) for figure in figures)]


def _row(figure: Figure) -> tuple[str, ...]:
    met = {True: "yes", False: "**no**", None: "–"}[figure.met]
    return (
        figure.title,
        figure.peer,
        f"{_number(figure.peer_value)} {figure.unit}",
        f"{_number(figure.ours)} {figure.unit}",
        f"{figure.ratio:.2f}",
        "–" if figure.target is None else f"≤ {figure.target:g}",
        met,
        figure.bound,
    )


def _number(value: float) -> str:
    return f"{value:.0f}" if value >= 100 or value == int(value) else f"{value:.3g}"


def page(found: Sequence[Measured], *, machine: Mapping[str, str], plot: str) -> str:
    """docs/benchmarks.md."""
    least = min(each.scale for each in found)
    parts = [
        "# Benchmarks",
        "Written by `make bench`. Do not edit; run it again.",
        *([_preliminary(least)] if least < 1 else []),
        f"![Ratios against their targets]({plot})",
        "## How it is measured",
        _METHOD.strip(),
        "## Machine",
        _markdown([("what", "value"), *machine.items()]),
    ]
    for each in found:
        when = (
            f"Measured on {each.date}, scale {each.scale:g}, repetitions: {each.repetitions}, load "
            f"of the machine before: {each.load:g}."
        )
        table = _markdown(figure_rows(each.section.figures))
        parts += [f"## {each.section.title}", when, table]
    memory = memory_section(found)
    parts += [f"## {memory.title}", _markdown(figure_rows(memory.figures))]
    parts += ["## Series", "Seconds; all repetitions in the order they were run."]
    parts += [
        f"**{each.section.name}**\n\n{_markdown(_series_rows(each.section.series))}"
        for each in found
        if each.section.series
    ]
    return "\n\n".join(parts) + "\n"


def _preliminary(scale: float) -> str:
    return (
        f"> **Preliminary:** at scale {scale:g} fixed costs weigh more than they do on 1 GiB. Run "
        "`make bench` on a quiet machine for figures that can be held against the targets."
    )


def _series_rows(series: Sequence[Series]) -> list[tuple[str, ...]]:
    header = ("series", "each run", "median", "spread", "processor", "sync", "whole process")
    return [header, *(_series_row(each) for each in series)]


def _series_row(series: Series) -> tuple[str, ...]:
    seconds = [sample.seconds for sample in series.samples]
    spread = (max(seconds) - min(seconds)) / statistics.median(seconds)
    return (
        series.name,
        " ".join(f"{value:.3g}" for value in seconds),
        f"{series.seconds:.3g}",
        f"{spread:.0%}",
        f"{series.processor:.3g}" if series.processor else "–",
        f"{series.sync:.3g}" if series.sync else "–",
        f"{series.total:.3g}",
    )


def _markdown(rows: Iterable[tuple[str, ...]]) -> str:
    lines = ["| " + " | ".join(row) + " |" for row in rows]
    columns = lines[0].count("|") - 1
    return "\n".join([lines[0], "|" + "---|" * columns, *lines[1:]])
