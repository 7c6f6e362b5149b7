"""Build our images and load them into a cluster: `python -m dev.image --cluster demo`."""

import argparse
import os

from dev.cluster.images import load_image
from dev.cluster.lifecycle import Cluster, find_cluster
from dev.console import Problem, run_command, say, step
from dev.image.build import DEFAULT_SPARK_VERSION, build_images


def main() -> None:
    """Parse the command line, build, load."""
    parser = argparse.ArgumentParser(prog="python -m dev.image", description=__doc__)
    parser.add_argument("--cluster", default=os.environ.get("CLUSTER", "demo"))
    parser.add_argument("--context", default=os.environ.get("CONTEXT") or None)
    parser.add_argument("--spark-version", default=DEFAULT_SPARK_VERSION)
    arguments = parser.parse_args()
    cluster = find_cluster(arguments.cluster, context=arguments.context)
    load_images(cluster, spark_version=arguments.spark_version)


def load_images(cluster: Cluster, *, spark_version: str = DEFAULT_SPARK_VERSION) -> None:
    """Build what changed and make the cluster know the images."""
    if cluster.layout is None:
        raise Problem(
            f"Images cannot be loaded into the cluster of context {cluster.context}.",
            remedy="build images/*/Containerfile, push them to a registry that it can reach.",
        )
    for image in build_images(spark_version):
        with step(f"Loading {image.name}", usually="20 s at first, 2 s after a code change"):
            load_image(cluster.layout, image.name, image.layers, image.config)
            say(f"    {image.name}")


if __name__ == "__main__":
    run_command(main)
