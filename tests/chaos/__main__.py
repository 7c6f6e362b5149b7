"""`make chaos`: run cases of the crash matrix, or a random campaign, and keep what came of it.

python -m tests.chaos [--steps NAMES] [--seed N --minutes N] [--lanes N]
"""

import argparse
import functools
import sys
import time
from collections.abc import Sequence

from dev.cluster.lifecycle import Cluster
from dev.console import Problem, run_command
from tests.chaos.campaign import campaign
from tests.chaos.ground import ground, stage_on
from tests.chaos.lanes import run_all
from tests.chaos.matrix import Run, find_run, hindrance, runs_of
from tests.chaos.results import Results, write_page


def main() -> None:
    """Do what the command line says."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", default="", help="names of cases, with commas; else the missing")
    parser.add_argument("--seed", type=int, help="of a random campaign")
    parser.add_argument("--minutes", type=float, default=600, help="nothing begins after so many")
    parser.add_argument("--lanes", type=int, default=1, help="jobs side by side")
    arguments = parser.parse_args()
    steps = _chosen(arguments.steps)
    with ground() as cluster:
        if arguments.seed is not None:
            open_stage = functools.partial(stage_on, cluster, on_s3=True)
            code = campaign(open_stage, arguments.seed, arguments.minutes, steps)
        else:
            code = _run(cluster, steps, minutes=arguments.minutes, lanes=arguments.lanes)
    sys.exit(code)


def _run(cluster: Cluster, steps: Sequence[Run], *, minutes: float, lanes: int) -> int:
    """Cases of the matrix: those that are named, else those that have no result yet."""
    results = Results()
    runs = list(runs_of([case for run in steps for case in run.cases] or results.missing()))
    failed = run_all(cluster, runs, results, lanes, time.monotonic() + minutes * 60)
    write_page(results)
    return 1 if failed else 0


def _chosen(names: str) -> list[Run]:
    try:
        runs = [find_run(name) for name in names.split(",") if name]
    except ValueError as error:
        raise Problem(str(error), remedy="see the table in docs/reliability.md.") from error
    for case in [case for run in runs for case in run.cases]:
        if reason := hindrance(case):
            raise Problem(f"{case.name}: {reason}", remedy="choose another phase.")
    return runs


if __name__ == "__main__":
    run_command(main)
