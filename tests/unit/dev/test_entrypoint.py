"""What the runtime image starts for each kind of arguments."""

import os
import subprocess
from pathlib import Path

import pytest

_ENTRYPOINT = Path(__file__).parents[3] / "images" / "runtime" / "entrypoint.sh"
_SPARK = "/opt/python/pyspark"


@pytest.fixture
def started(tmp_path: Path) -> "Started":
    return Started(tmp_path)


class Started:
    """Runs the entrypoint with a `tini` that tells what it was to start."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        tini = folder / "tini"
        tini.write_text('#!/bin/sh\nprintf "%s\\n" "$@"\n')
        tini.chmod(0o755)

    def __call__(self, *arguments: str, **environment: str) -> list[str]:
        path = f"{self._folder}:{os.environ['PATH']}"
        known = {"PATH": path, "SPARK_HOME": _SPARK, **environment}
        command = ["/bin/sh", str(_ENTRYPOINT), *arguments]
        done = subprocess.run(command, env=known, capture_output=True, text=True, check=True)
        return done.stdout.splitlines()[2:]


def test_a_driver_of_ours_runs_under_the_runtime(started: Started) -> None:
    told = started("driver", "--epoch-dir", "/e", "--", "/job.py", "--properties-file", "mine")

    assert told[:3] == ["python3", "-m", "sparkpoint.runtime"]
    assert told[3:] == ["--epoch-dir", "/e", "--", "/job.py", "--properties-file", "mine"]


@pytest.mark.parametrize(
    "first", [["--properties-file"], ["--proxy-user", "u", "--properties-file"]]
)
def test_a_driver_of_spark_submit_runs_as_in_sparks_own_image(
    started: Started, first: list[str]
) -> None:
    given = [
        *first,
        "/opt/spark/conf/spark.properties",
        "--class",
        "Runner",
        "local:///a.py",
        "a b",
    ]

    told = started("driver", *given, SPARK_DRIVER_BIND_ADDRESS="10.0.0.7")

    assert told == [
        f"{_SPARK}/bin/spark-submit",
        *("--conf", "spark.driver.bindAddress=10.0.0.7"),
        *("--conf", "spark.executorEnv.SPARK_DRIVER_POD_IP=10.0.0.7"),
        *("--deploy-mode", "client", *given),
    ]


def test_anything_else_is_run_as_it_is(started: Started) -> None:
    assert started("python3", "-c", "print(1)") == ["python3", "-c", "print(1)"]


@pytest.mark.parametrize(
    ("cores", "option", "collectors"),
    [
        ("1", "-Dx=y", ["-XX:+UseSerialGC"]),
        ("1", "-XX:+UseG1GC", ["-XX:+UseG1GC"]),
        ("4", "-Dx=y", []),
    ],
)
def test_an_executor_has_one_collector_at_most(
    started: Started, cores: str, option: str, collectors: list[str]
) -> None:
    names = (
        "DRIVER_URL",
        "EXECUTOR_ID",
        "APPLICATION_ID",
        "EXECUTOR_POD_IP",
        "RESOURCE_PROFILE_ID",
    )
    given = {f"SPARK_{name}": "x" for name in (*names, "EXECUTOR_POD_NAME")}

    told = started(
        "executor",
        **given,
        SPARK_EXECUTOR_MEMORY="1g",
        SPARK_EXECUTOR_CORES=cores,
        SPARK_JAVA_OPT_0=option,
    )

    assert [word for word in told if word.endswith("GC")] == collectors
