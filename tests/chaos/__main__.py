"""`make chaos`: run cases of the crash matrix, or a random campaign, and keep what came of it.

python -m tests.chaos [--steps NAMES] [--seed N --minutes N] [--lanes N]
"""

import argparse
import functools
import sys
import time

from dev.console import Problem, run_command
from tests.chaos.campaign import campaign
from tests.chaos.ground import ground, stage_on
from tests.chaos.lanes import run_all
from tests.chaos.matrix import Case, find_case, hindrance, runs_of
from tests.chaos.results import Results, write_page


def main() -> None:
    """Do what the command line says."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", default="", help="names of cases, with commas; else the missing")
    parser.add_argument("--seed", type=int, help="of a random campaign")
    parser.add_argument("--minutes", type=float, default=600, help="nothing begins after so many")
    parser.add_argument("--lanes", type=int, default=1, help="jobs side by side")
    arguments = parser.parse_args()
    results = Results()
    if arguments.seed is not None:
        open_stage = functools.partial(stage_on, ground(), on_s3=True)
        sys.exit(campaign(open_stage, arguments.seed, arguments.minutes, arguments.steps))
    cases = _chosen(arguments.steps) if arguments.steps else results.missing()
    deadline = time.monotonic() + arguments.minutes * 60
    failed = run_all(ground(), list(runs_of(cases)), results, arguments.lanes, deadline)
    write_page(results)
    sys.exit(1 if failed else 0)


def _chosen(names: str) -> list[Case]:
    try:
        cases = [find_case(name) for name in names.split(",")]
    except ValueError as error:
        raise Problem(str(error), remedy="see the table in docs/reliability.md.") from error
    for case in cases:
        if reason := hindrance(case):
            raise Problem(f"{case.name}: {reason}", remedy="choose another phase.")
    return cases


if __name__ == "__main__":
    run_command(main)
