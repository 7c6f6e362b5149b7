"""`python -m tests.bench [--scale 1.0] [--only NAME…] [--output docs/benchmarks.md]`.

Each part can be measured by itself, whenever the machine is quiet; the page says when that was.
"""

import argparse
import datetime
import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Protocol

from dev.cache import cache_root
from dev.console import Problem, run_command, step
from tests.bench.bucket import measure_bucket
from tests.bench.directory import measure_directory
from tests.bench.ground import real_state, work_folder
from tests.bench.history import measure_history
from tests.bench.jobs import measure_jobs
from tests.bench.kept import keep
from tests.bench.machine import describe_machine, versions
from tests.bench.manyfiles import measure_many_files
from tests.bench.plot import draw
from tests.bench.runtime import measure_runtime
from tests.bench.runtime_gate import measure_gate
from tests.bench.state import measure_state
from tests.bench.table import Measured, Section, figure_rows, memory_section, page

_PAGE = Path(__file__).resolve().parents[2] / "docs" / "benchmarks.md"


class _Measure(Protocol):
    def __call__(self, folder: Path, *, scale: float, repetitions: int) -> Section: ...


_MEASURES: Mapping[str, tuple[_Measure, str]] = {
    "directory": (measure_directory, "1 min per repetition at full scale"),
    "s3": (measure_bucket, "1 min per repetition at full scale"),
    "many": (measure_many_files, "20 s per repetition at full scale"),
    "history": (measure_history, "2 min"),
    "runtime": (measure_runtime, "1 min, and 45 s per repetition"),
    "gate": (measure_gate, "1 min, and 1 min per repetition"),
    "state": (measure_state, "3 min, and 2 min per repetition at full scale"),
    "jobs": (measure_jobs, "2 min, and 5 min per repetition"),
}


def main() -> None:
    """Measure, print the table, write the page and the picture."""
    options = _parser().parse_args()
    if not 0.001 <= options.scale <= 20:
        raise Problem(f"--scale {options.scale} makes no sense.", remedy="give 0.001 to 20.")
    # What was measured at another scale never takes the place of what the page shows.
    output: Path | None = options.output or (_PAGE if options.scale == 1 else None)
    found = _measure(options.only or list(_MEASURES), options.scale, options.repetitions)
    for section in (*(each.section for each in found), memory_section(found)):
        print(f"\n{section.title}")
        print(_aligned(figure_rows(section.figures)))
    if output is not None:
        _write(found, output)


def _measure(names: Sequence[str], scale: float, repetitions: int) -> list[Measured]:
    found = []
    with work_folder(scale) as folder:
        if {"directory", "s3"} & set(names):
            real_state(scale)
        for name in names:
            measure, usually = _MEASURES[name]
            load = os.getloadavg()[0]
            with step(f"Measuring: {name}", usually=usually):
                below = folder / name
                below.mkdir()
                section = measure(below, scale=scale, repetitions=repetitions)
            found.append(
                Measured(
                    section=replace(section, name=name),
                    date=datetime.datetime.now(datetime.UTC).date().isoformat(),
                    scale=scale,
                    repetitions=repetitions,
                    load=round(load, 1),
                )
            )
    return found


def _write(found: Sequence[Measured], output: Path) -> None:
    """With what was measured before and not now."""
    output.parent.mkdir(parents=True, exist_ok=True)
    everything = keep(output.with_suffix(".json"), found, _MEASURES)
    missing = _MEASURES.keys() - {each.section.name for each in everything}
    if missing and output == _PAGE:
        # A part of the figures never takes the place of the whole page.
        print(f"\nThe page is written once these are measured, too: {', '.join(sorted(missing))}.")
        return
    plot = output.with_suffix(".svg")
    draw([each.section for each in everything], plot)
    machine = {**describe_machine(cache_root()), **versions()}
    output.write_text(page(everything, machine=machine, plot=plot.name))
    print(f"\nWrote {output} and {plot.name}.")


def _aligned(rows: Sequence[tuple[str, ...]]) -> str:
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = ("  ".join(map(str.ljust, row, widths)).rstrip() for row in rows)
    return "\n".join(line.replace("**no**", "NO") for line in lines)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scale", type=float, default=1.0, help="1.0 is 1 GiB, 20,000 files")
    parser.add_argument("--only", nargs="+", choices=list(_MEASURES), metavar="NAME")
    parser.add_argument("--repetitions", type=int, default=5)
    parser.add_argument("--output", type=Path, help="docs/benchmarks.md, at full scale")
    return parser


if __name__ == "__main__":
    run_command(main)
