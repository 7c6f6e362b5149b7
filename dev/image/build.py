"""Our images as data: which layers, which configuration."""

import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from dev.image.archive import ImageConfig, Layer
from dev.image.containerfile import read_containerfile
from dev.image.layers import (
    classes_layer,
    code_layer,
    debian_layer,
    file_layer,
    jars_layer,
    python_layer,
)

__all__ = ["DEFAULT_SPARK_VERSION", "SECOND_SPARK_VERSION", "Image", "build_images", "image_names"]

_RUNTIME = "sparkpoint.dev/runtime"
_OPERATOR = "sparkpoint.dev/operator:dev"
_SEAWEEDFS = "sparkpoint.dev/seaweedfs:dev"
_LOCK = Path(__file__).parent.parent.parent / "uv.lock"


def _locked_spark_version() -> str:
    found = re.search(r'name = "pyspark"\nversion = "([^"]+)"', _LOCK.read_text())
    if found is None:
        raise ValueError("uv.lock does not name pyspark")
    return found.group(1)


DEFAULT_SPARK_VERSION = _locked_spark_version()
SECOND_SPARK_VERSION = "4.2.1"
"""What tests build besides, to see that it is one variable."""


@dataclass(frozen=True, slots=True)
class Image:
    """A named image, ready to be loaded."""

    name: str
    layers: Sequence[Layer]
    config: ImageConfig


def image_names(spark_version: str = DEFAULT_SPARK_VERSION) -> list[str]:
    """What the images are called."""
    return [f"{_RUNTIME}:spark-{spark_version}", _OPERATOR, _SEAWEEDFS]


def build_images(spark_version: str = DEFAULT_SPARK_VERSION) -> list[Image]:
    """All images; only what changed is built."""
    return [runtime_image(spark_version), operator_image(), seaweedfs_image()]


def runtime_image(spark_version: str = DEFAULT_SPARK_VERSION) -> Image:
    """What drivers, executors and workers run."""
    file = read_containerfile("runtime")
    spark = [
        debian_layer(file.packages),
        python_layer("runtime", replace={"pyspark": spark_version}),
        jars_layer(spark_version),
    ]
    return Image(
        f"{_RUNTIME}:spark-{spark_version}",
        [*spark, classes_layer(spark), code_layer()],
        file.config,
    )


def operator_image() -> Image:
    """What the controller runs."""
    file = read_containerfile("operator")
    debian = debian_layer(file.packages, programs=file.programs)
    return Image(
        _OPERATOR,
        [debian, python_layer("operator"), code_layer()],
        file.config,
    )


def seaweedfs_image() -> Image:
    """The S3 server of the tests and the demo."""
    return Image(
        _SEAWEEDFS,
        [file_layer("seaweedfs", {"weed": Path(sys.executable).parent / "weed"})],
        ImageConfig(entrypoint=["/weed"], user="185"),
    )
