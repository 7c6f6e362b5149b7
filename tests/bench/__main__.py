"""`python -m tests.bench [--scale 1.0] [--only NAME]… [--output docs/benchmarks.md]`."""

import argparse
import datetime
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol

from dev.cache import cache_root
from dev.console import Problem, run_command, step
from tests.bench.bucket import measure_bucket
from tests.bench.directory import measure_directory
from tests.bench.ground import real_state, work_folder
from tests.bench.history import measure_history
from tests.bench.jobs import measure_jobs
from tests.bench.machine import describe_machine, versions
from tests.bench.manyfiles import measure_many_files
from tests.bench.plot import draw
from tests.bench.runtime import measure_runtime
from tests.bench.runtime_gate import measure_gate
from tests.bench.table import Section, figure_rows, memory_section, page

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
    "jobs": (measure_jobs, "2 min, and 5 min per repetition"),
}


def main() -> None:
    """Measure, print the table, write the page and the picture."""
    options = _parser().parse_args()
    if not 0.001 <= options.scale <= 20:
        raise Problem(f"--scale {options.scale} makes no sense.", remedy="give 0.001 to 20.")
    # A part of the figures never takes the place of the whole page.
    output: Path | None = options.output or (None if options.only else _PAGE)
    machine = describe_machine(cache_root())
    sections = _measure(options.only or list(_MEASURES), options.scale, options.repetitions)
    sections.append(memory_section(sections))
    for section in sections:
        print(f"\n{section.title}")
        print(_aligned(figure_rows(section.figures)))
    if output is not None:
        _write(sections, output, options, machine)


def _measure(names: Sequence[str], scale: float, repetitions: int) -> list[Section]:
    sections = []
    with work_folder(scale) as folder:
        if {"directory", "s3"} & set(names):
            real_state(scale)
        for name in names:
            measure, usually = _MEASURES[name]
            with step(f"Measuring: {name}", usually=usually):
                below = folder / name
                below.mkdir()
                sections.append(measure(below, scale=scale, repetitions=repetitions))
    return sections


def _write(
    sections: Sequence[Section],
    output: Path,
    options: argparse.Namespace,
    machine: Mapping[str, str],
) -> None:
    output.parent.mkdir(parents=True, exist_ok=True)
    plot = output.with_suffix(".svg")
    draw(sections, plot)
    text = page(
        sections,
        machine=machine,
        versions=versions(),
        date=datetime.datetime.now(datetime.UTC).date().isoformat(),
        scale=options.scale,
        repetitions=options.repetitions,
        plot=plot.name,
    )
    output.write_text(text)
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
    parser.add_argument("--output", type=Path, help="docs/benchmarks.md, if all are measured")
    return parser


if __name__ == "__main__":
    run_command(main)
