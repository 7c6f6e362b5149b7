"""`python -m tests.bench.scale [--jobs 100 300 1000 3000] [--output docs/scale.md]`.

Each number of jobs has a cluster of its own, so that one can be measured again by itself; the page
shows the newest figures of each.
"""

import argparse
from pathlib import Path

from dev.cache import cache_root
from dev.console import run_command, step
from tests.bench.machine import describe_machine, versions
from tests.bench.scale_page import Measured, draw, keep, page, today
from tests.bench.scale_run import measure_jobs_at_scale
from tests.scale.ground import scale_ground

_PAGE = Path(__file__).resolve().parents[2] / "docs" / "scale.md"
_CLUSTER = "bench-scale"
_USUALLY = {100: "4 min", 300: "8 min", 1000: "6 min", 3000: "11 min"}
_SAVEPOINTS = {300: 10_000}
"""Jobs -> savepoints that are kept beside them, in a second look."""


def main() -> None:
    """Measure, write the page and the picture."""
    options = _parser().parse_args()
    for jobs in options.jobs:
        with (
            step(f"Measuring {jobs} jobs", usually=_USUALLY.get(jobs, "")),
            scale_ground(_CLUSTER) as g,
        ):
            savepoints = options.savepoints.get(jobs, 0)
            cost, keeping = measure_jobs_at_scale(g, jobs, savepoints=savepoints)
        _write(Measured(date=today(), cost=cost, keeping=keeping), options.output)


def _write(found: Measured, output: Path) -> None:
    output.parent.mkdir(parents=True, exist_ok=True)
    everything = keep(output.with_suffix(".json"), found)
    machine = {**describe_machine(cache_root()), **versions()}
    plot = output.with_suffix(".svg")
    draw([each.cost for each in everything], plot)
    output.write_text(page(everything, machine=machine, plot=plot.name))
    print(f"Wrote {output}.")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, nargs="+", default=list(_USUALLY))
    parser.add_argument("--output", type=Path, default=_PAGE)
    parser.set_defaults(savepoints=_SAVEPOINTS)
    return parser


if __name__ == "__main__":
    run_command(main)
