"""Build our images and load them into a cluster: `python -m dev.image --cluster demo`."""

import argparse
import os

from dev.cluster.lifecycle import find_cluster
from dev.console import run_command
from dev.image.build import DEFAULT_SPARK_VERSION
from dev.image.load import load_images


def main() -> None:
    """Parse the command line, build, load."""
    parser = argparse.ArgumentParser(prog="python -m dev.image", description=__doc__)
    parser.add_argument("--cluster", default=os.environ.get("CLUSTER", "demo"))
    parser.add_argument("--context", default=os.environ.get("CONTEXT") or None)
    parser.add_argument("--spark-version", default=DEFAULT_SPARK_VERSION)
    arguments = parser.parse_args()
    cluster = find_cluster(arguments.cluster, context=arguments.context)
    load_images(cluster, spark_version=arguments.spark_version)


if __name__ == "__main__":
    run_command(main)
