"""Fetch the jars that Spark's Python package lacks, as jars.json names them.

usage: fetch_jars.py FOLDER SPARK_VERSION

Used by the Containerfile and by the local build alike; the standard library alone.
"""

import hashlib
import json
import sys
import urllib.request
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

from slim_aws_sdk import slim  # noqa: E402 - a neighbour, not a package

REPOSITORY = "https://repo1.maven.org/maven2"
CHUNK = 1 << 20


def wanted_jars(spark_version: str) -> list[dict[str, str]]:
    """Artifacts and digests for one Spark version."""
    lock = json.loads((HERE / "jars.json").read_text())
    return [*lock["every Spark"], *lock.get(spark_version, [])]


def fetch_jars(folder: Path, spark_version: str) -> None:
    """Fetch and check each jar, and cut the AWS SDK down to what S3A uses."""
    for jar in wanted_jars(spark_version):
        _fetch(jar["artifact"], jar["sha256"], folder)
    bundle = next(folder.glob("bundle-*.jar"))
    slim(str(bundle), str(bundle.with_name(bundle.name.replace("bundle-", "aws-sdk-slim-"))))
    bundle.unlink()


def _fetch(artifact: str, sha256: str, folder: Path) -> None:
    group, name, version = artifact.split(":")
    url = f"{REPOSITORY}/{group.replace('.', '/')}/{name}/{version}/{name}-{version}.jar"
    digest = hashlib.sha256()
    with (
        urllib.request.urlopen(url, timeout=60) as answer,  # noqa: S310 - always https
        (folder / f"{name}-{version}.jar").open("wb") as file,
    ):
        while chunk := answer.read(CHUNK):
            digest.update(chunk)
            file.write(chunk)
    if digest.hexdigest() != sha256:
        raise ValueError(f"{artifact} has the digest {digest.hexdigest()}, not that of jars.json")


if __name__ == "__main__":
    fetch_jars(Path(sys.argv[1]), sys.argv[2])
