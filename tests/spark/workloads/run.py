"""Run a workload in a process of its own, so that a test can look at its checkpoint meanwhile.

python -m tests.spark.workloads.run --workload aggregation --provider hdfs --input DIR \\
    --checkpoint PATH_OR_URI --sink DIR [--available-now] [--conf KEY=VALUE]…

Without --available-now it runs until a line, or the end, comes on its standard input; then it stops
the query the abrupt way, as a killed driver would. It prints `ready` once the query is running.
"""

import argparse
import sys
from pathlib import Path

from tests.spark.workloads import WORKLOADS
from tests.spark.workloads.session import build_session

__all__ = ["main"]


def main(arguments: list[str]) -> int:
    """Run as the arguments say; 0 when the query ended or was told to stop."""
    options = _parser().parse_args(arguments)
    workload = WORKLOADS[options.workload]
    confs = dict(conf.split("=", 1) for conf in options.conf)
    spark = build_session(f"workload-{workload.name}", confs)
    query = workload.start(
        spark,
        provider=options.provider,
        inputs=options.input,
        checkpoint=options.checkpoint,
        sink=options.sink,
        available_now=options.available_now,
        confs={key: value for key, value in confs.items() if key.startswith("spark.sql.")},
        trigger=options.trigger,
    )
    print("ready", flush=True)
    if options.available_now:
        query.awaitTermination()
    else:
        sys.stdin.readline()
        failure = query.exception()
        if failure is not None:
            raise failure
        query.stop()
    spark.stop()
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--workload", choices=sorted(WORKLOADS), required=True)
    parser.add_argument("--provider", required=True)
    parser.add_argument("--input", type=Path, required=True)
    parser.add_argument("--checkpoint", required=True)
    parser.add_argument("--sink", type=Path, required=True)
    parser.add_argument("--available-now", action="store_true")
    parser.add_argument("--trigger", help="a processing-time interval, such as '200 milliseconds'")
    parser.add_argument("--conf", action="append", default=[], metavar="KEY=VALUE")
    return parser


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
