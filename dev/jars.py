"""The jars that Spark's Python package lacks, for the images and for Spark on this machine."""

import runpy
import urllib.error
from pathlib import Path

from dev.cache import cached, digest_of
from dev.console import Problem, step

__all__ = ["extra_jars"]

_IMAGES = Path(__file__).parent.parent / "images"
_FETCH = runpy.run_path(str(_IMAGES / "fetch_jars.py"))


def extra_jars(spark_version: str) -> list[Path]:
    """The jars for one Spark version, fetched once and checked against their digests."""
    wanted = str(_FETCH["wanted_jars"](spark_version))
    key = digest_of([wanted, _IMAGES / "slim_aws_sdk.py"])
    folder = cached("jars", key, lambda partial: _fetch(partial, spark_version), keep=3)
    return sorted(folder.glob("*.jar"))


def _fetch(folder: Path, spark_version: str) -> None:
    with step("Fetching Spark's S3 jars from Maven Central", usually="15 s, once"):
        try:
            _FETCH["fetch_jars"](folder, spark_version)
        except (urllib.error.URLError, ValueError) as error:
            raise Problem(
                f"A jar of images/jars.json could not be fetched: {error}",
                remedy="check that Maven Central is reachable, then run the same command again.",
            ) from error
