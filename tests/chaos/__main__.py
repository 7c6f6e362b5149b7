"""`make chaos`: run cases of the crash matrix, or a random campaign, and keep what came of it.

python -m tests.chaos [--steps NAMES | --faults NAMES] [--seed N --minutes N] [--lanes N]
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
from tests.chaos.matrix import Case, Fault, Run, find_run, hindrance, runs_of
from tests.chaos.results import Results, write_page


def main() -> None:
    """Do what the command line says."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", default="", help="names of cases, with commas; else the missing")
    parser.add_argument("--faults", default="", help="of the missing ones those of these columns")
    parser.add_argument("--seed", type=int, help="of a random campaign")
    parser.add_argument("--minutes", type=float, default=600, help="nothing begins after so many")
    parser.add_argument("--lanes", type=int, default=1, help="jobs side by side")
    arguments = parser.parse_args()
    steps, faults = _chosen(arguments.steps), _columns(arguments.faults)
    with ground() as cluster:
        if arguments.seed is not None:
            open_stage = functools.partial(stage_on, cluster, on_s3=True)
            code = campaign(open_stage, arguments.seed, arguments.minutes, steps)
        else:
            results = Results()
            cases = [case for run in steps for case in run.cases] or [
                case for case in results.missing() if case.fault in faults
            ]
            deadline = time.monotonic() + arguments.minutes * 60
            code = _run(cluster, cases, results, lanes=arguments.lanes, deadline=deadline)
    sys.exit(code)


def _run(
    cluster: Cluster, cases: Sequence[Case], results: Results, *, lanes: int, deadline: float
) -> int:
    """Cases of the matrix; the page shows what came of them, however this ends."""
    try:
        failed = run_all(cluster, list(runs_of(cases)), results, lanes, deadline)
    finally:
        write_page(results)
    return 1 if failed else 0


def _columns(names: str) -> list[Fault]:
    """All of them, if none is named."""
    try:
        return [Fault(name) for name in names.split(",") if name] or list(Fault)
    except ValueError as error:
        raise Problem(str(error), remedy="see the table in docs/reliability.md.") from error


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
