"""Our images as data: which layers, which configuration."""

import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from dev.image.archive import ImageConfig, Layer
from dev.image.layers import code_layer, debian_layer, file_layer, jars_layer, python_layer

__all__ = ["DEFAULT_SPARK_VERSION", "Image", "build_images"]

_LOCK = Path(__file__).parent.parent.parent / "uv.lock"


def _locked_spark_version() -> str:
    found = re.search(r'name = "pyspark"\nversion = "([^"]+)"', _LOCK.read_text())
    if found is None:
        raise ValueError("uv.lock does not name pyspark")
    return found.group(1)


DEFAULT_SPARK_VERSION = _locked_spark_version()


@dataclass(frozen=True, slots=True)
class Image:
    """A named image, ready to be loaded."""

    name: str
    layers: Sequence[Layer]
    config: ImageConfig


def build_images(spark_version: str = DEFAULT_SPARK_VERSION) -> list[Image]:
    """All images; only what changed is built."""
    return [runtime_image(spark_version), operator_image(), seaweedfs_image()]


def runtime_image(spark_version: str = DEFAULT_SPARK_VERSION) -> Image:
    """What drivers, executors and workers run."""
    overrides = () if spark_version == DEFAULT_SPARK_VERSION else (f"pyspark=={spark_version}",)
    return Image(
        f"sparkpoint.dev/runtime:spark-{spark_version}",
        [
            debian_layer(
                ["ca-certificates", "openjdk-17-jre-headless", "procps", "python3", "tini"]
            ),
            python_layer("spark", overrides=overrides),
            jars_layer(spark_version),
            code_layer(),
        ],
        ImageConfig(
            entrypoint=["/opt/entrypoint.sh"],
            user="185",
            working_directory="/opt/spark/work",
            environment={
                "PATH": "/usr/local/bin:/usr/bin:/bin:/opt/python/bin",
                "PYTHONPATH": "/opt/python",
                "PYTHONUNBUFFERED": "1",
                "SPARK_HOME": "/opt/python/pyspark",
                "SPARK_CONF_DIR": "/opt/spark/conf",
            },
        ),
    )


def operator_image() -> Image:
    """What the controller runs."""
    return Image(
        "sparkpoint.dev/operator:dev",
        [
            debian_layer(["ca-certificates", "python3", "tini"]),
            python_layer("operator"),
            code_layer(),
        ],
        ImageConfig(
            entrypoint=["/usr/bin/tini", "-s", "--"],
            user="185",
            environment={"PYTHONPATH": "/opt/python", "PYTHONUNBUFFERED": "1"},
        ),
    )


def seaweedfs_image() -> Image:
    """The S3 server of the tests and the demo."""
    return Image(
        "sparkpoint.dev/seaweedfs:dev",
        [file_layer("seaweedfs", {"weed": Path(sys.executable).parent / "weed"})],
        ImageConfig(entrypoint=["/weed"], user="185"),
    )
