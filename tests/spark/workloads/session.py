"""Sessions for tests: small, quiet, on two cores; and what S3 needs on top of them."""

import fcntl
import hashlib
import importlib.util
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from pyspark.sql import SparkSession

__all__ = ["BASE_CONF", "build_session", "s3_conf", "s3_jars"]

_ROOT = Path(__file__).resolve().parents[3]
_MAVEN = "https://repo1.maven.org/maven2"
_BUNDLE = "software.amazon.awssdk:bundle"

BASE_CONF: Mapping[str, str] = {
    "spark.ui.enabled": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.shuffle.partitions": "2",
    "spark.default.parallelism": "2",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    # Snapshots soon and often, so that a few small batches show every kind of file.
    "spark.sql.streaming.stateStore.maintenanceInterval": "500ms",
    "spark.sql.streaming.stateStore.minDeltasForSnapshot": "3",
    "spark.sql.streaming.metricsEnabled": "false",
    "spark.sql.ui.retainedExecutions": "1",
    "spark.log.level": "ERROR",
}


def build_session(name: str, confs: Mapping[str, str] | None = None) -> SparkSession:
    """A session on two cores; `confs` win over ours."""
    # Workers must be this Python: another one on the path may lack pandas.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.Builder().master("local[2]").appName(name)
    for key, value in {**BASE_CONF, **(confs or {})}.items():
        builder = builder.config(key, value)
    return builder.getOrCreate()


def s3_conf(endpoint: str, key: str, secret: str) -> dict[str, str]:
    """What a session needs to keep checkpoints under `s3a://` at this endpoint."""
    return {
        "spark.jars": ",".join(str(path) for path in s3_jars()),
        "spark.hadoop.fs.s3a.endpoint": endpoint,
        "spark.hadoop.fs.s3a.endpoint.region": "us-east-1",
        "spark.hadoop.fs.s3a.access.key": key,
        "spark.hadoop.fs.s3a.secret.key": secret,
        "spark.hadoop.fs.s3a.path.style.access": "true",
        "spark.hadoop.fs.s3a.connection.ssl.enabled": str(endpoint.startswith("https")).lower(),
        "spark.hadoop.fs.s3a.attempts.maximum": "3",
        "spark.hadoop.fs.s3a.connection.timeout": "30s",
        "spark.hadoop.fs.s3a.connection.establish.timeout": "5s",
        "spark.hadoop.fs.s3a.change.detection.mode": "none",
        "spark.hadoop.fs.s3a.create.conditional.enabled": "false",
    }


def s3_jars() -> list[Path]:
    """The jars of S3A, fetched once per machine from the pins in `images/jars.json`."""
    pins = json.loads((_ROOT / "images" / "jars.json").read_text())["every Spark"]
    cache = _cache()
    cache.mkdir(parents=True, exist_ok=True)
    with (cache / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        return [_jar(cache, pin["artifact"], pin["sha256"]) for pin in pins]


def _cache() -> Path:
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "sparkpoint" / "jars"


def _jar(cache: Path, artifact: str, sha256: str) -> Path:
    group, name, version = artifact.split(":")
    slim = artifact.startswith(_BUNDLE)
    wanted = f"aws-sdk-slim-{version}.jar" if slim else f"{name}-{version}.jar"
    known = next(iter(sorted(cache.glob(f"*/{wanted}"))), None)
    if known is not None:
        return known
    target = cache / f"s3a-{version}" / wanted
    target.parent.mkdir(exist_ok=True)
    path = f"{group.replace('.', '/')}/{name}/{version}/{name}-{version}.jar"
    fetched = _fetch(f"{_MAVEN}/{path}", target.with_suffix(".part"), sha256)
    if slim:
        small = target.with_suffix(".slim")
        _slim(fetched, small)
        fetched.unlink()
        fetched = small
    return fetched.rename(target)


def _fetch(url: str, target: Path, sha256: str) -> Path:
    subprocess.run(
        ["curl", "-fsSL", "--retry", "3", "--max-time", "900", "-o", str(target), url], check=True
    )
    with target.open("rb") as stream:
        found = hashlib.file_digest(stream, "sha256").hexdigest()
    if found != sha256:
        target.unlink()
        raise RuntimeError(f"{url} has digest {found}, not the pinned {sha256}")
    return target


def _slim(bundle: Path, target: Path) -> None:
    """Cut the SDK's bundle down with the images' own tool: 690 MB would slow every session."""
    tool = _ROOT / "images" / "slim_aws_sdk.py"
    spec = importlib.util.spec_from_file_location("slim_aws_sdk", tool)
    if spec is None or spec.loader is None:
        shutil.copyfile(bundle, target)
        return
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.slim(str(bundle), str(target))
