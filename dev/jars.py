"""The jars that Spark's Python package lacks, as `images/jars.json` names them.

The same files serve the images and the tests that run Spark on this machine.
"""

import hashlib
import json
import runpy
import urllib.error
import urllib.request
from pathlib import Path

from dev.cache import cached, digest_of
from dev.console import Problem, step

__all__ = ["extra_jars"]

_IMAGES = Path(__file__).parent.parent / "images"
_LOCK = _IMAGES / "jars.json"
_SLIM = _IMAGES / "slim_aws_sdk.py"
_REPOSITORY = "https://repo1.maven.org/maven2"
_CHUNK = 1 << 20


def extra_jars(spark_version: str) -> list[Path]:
    """The jars for one Spark version, fetched once and checked against their digests."""
    lock = json.loads(_LOCK.read_text())
    wanted = [*lock["every Spark"], *lock.get(spark_version, [])]
    key = digest_of([json.dumps(wanted), _SLIM])
    folder = cached("jars", key, lambda partial: _fetch_all(wanted, partial), keep=3)
    return sorted(folder.glob("*.jar"))


def _fetch_all(wanted: list[dict[str, str]], folder: Path) -> None:
    with step("Fetching Spark's S3 jars from Maven Central", usually="30 s, once"):
        for jar in wanted:
            _fetch(jar["artifact"], jar["sha256"], folder)
        # See slim_aws_sdk.py: 690 MB of which 20 are used.
        bundle = next(folder.glob("bundle-*.jar"))
        slim = bundle.with_name(bundle.name.replace("bundle-", "aws-sdk-slim-"))
        runpy.run_path(str(_SLIM))["slim"](str(bundle), str(slim))
        bundle.unlink()


def _fetch(artifact: str, sha256: str, folder: Path) -> None:
    group, name, version = artifact.split(":")
    url = f"{_REPOSITORY}/{group.replace('.', '/')}/{name}/{version}/{name}-{version}.jar"
    digest = hashlib.sha256()
    try:
        with (
            urllib.request.urlopen(url, timeout=60) as answer,
            (folder / f"{name}-{version}.jar").open("wb") as file,
        ):
            while chunk := answer.read(_CHUNK):
                digest.update(chunk)
                file.write(chunk)
    except urllib.error.URLError as error:
        raise Problem(
            f"{artifact} could not be fetched from Maven Central: {error}",
            remedy="check the network, then run the same command again.",
        ) from error
    if digest.hexdigest() != sha256:
        raise Problem(
            f"{artifact} has the digest {digest.hexdigest()}, not the one in images/jars.json.",
            remedy="run the same command again; if it stays so, do not trust the download.",
        )
