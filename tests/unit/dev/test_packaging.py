"""What `pip install sparkpoint` gives without extras: savepoints, and advice about the rest."""

import json
import os
import subprocess
import tarfile
from pathlib import Path

import pytest

from dev.console import Problem
from dev.uv import run_uv

_GOLDEN = Path(__file__).parents[1] / "checkpoint/golden/checkpoints.tar.xz"
_CASE = "4.3.0/aggregation-hdfs"
_EXTRAS = ("airflow", "aiohttp", "kopf", "kubernetes", "pandas", "pyspark")


def _uv(*arguments: str | Path) -> str:
    """What is in uv's cache is enough where the environment was installed with it."""
    try:
        return run_uv(*map(str, arguments), "--offline")
    except Problem:
        return run_uv(*map(str, arguments))


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The programs of an environment with the wheel and what it requires, as the lock file says."""
    folder = tmp_path_factory.mktemp("bare")
    _uv("build", "--quiet", "--wheel", "--out-dir", folder / "wheels")
    locked = ("--frozen", "--no-dev", "--no-emit-project", "--no-hashes", "--no-header", "--quiet")
    _uv("export", *locked, "--output-file", folder / "requirements.txt")
    _uv("venv", "--quiet", folder / "venv")
    (wheel,) = (folder / "wheels").glob("sparkpoint-*.whl")
    python = folder / "venv/bin/python"
    listed = ("--requirements", folder / "requirements.txt")
    _uv("pip", "install", "--quiet", "--python", python, *listed, wheel)
    return folder / "venv/bin"


def _run(program: Path, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    # In a folder without sources: what is imported is what was installed.
    strip = ("PYTHONPATH", "SPARKPOINT_REPOSITORY", "VIRTUAL_ENV", "KUBECONFIG")
    environment = {key: value for key, value in os.environ.items() if key not in strip}
    return subprocess.run(
        [program, *arguments],
        cwd=program.parent,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


def test_nothing_of_the_extras_is_installed(bare: Path) -> None:
    code = (
        "import sparkpoint, importlib.util as u\n"
        f"print(sparkpoint.__file__, [name for name in {_EXTRAS!r} if u.find_spec(name)])"
    )

    done = _run(bare / "python", "-c", code)

    assert done.stdout.startswith(str(bare.parent)), done.stderr
    assert done.stdout.endswith(" []\n"), done.stdout


def test_savepoints_are_made_listed_and_restored_without_extras(bare: Path, tmp_path: Path) -> None:
    with tarfile.open(_GOLDEN) as archive:
        members = [each for each in archive.getmembers() if each.name.startswith(f"{_CASE}/")]
        archive.extractall(tmp_path, members, filter="data")
    repository = ("--repository", tmp_path / "savepoints")

    for arguments in (
        ("savepoint", "create", "--checkpoint", tmp_path / _CASE, "--name", "a", *repository),
        ("savepoint", "restore", "a", "--to", tmp_path / "restored", *repository),
    ):
        done = _run(bare / "sparkpoint", *arguments)
        assert done.returncode == 0, done.stderr
    listed = _run(bare / "sparkpoint", "savepoint", "list", "--json", *repository)

    assert [each["name"] for each in json.loads(listed.stdout)["savepoints"]] == ["a"]
    for log in ("offsets", "commits"):
        newest = max((tmp_path / _CASE / log).glob("[0-9]*"), key=lambda path: int(path.name))
        assert (tmp_path / "restored" / log / newest.name).read_bytes() == newest.read_bytes()


@pytest.mark.parametrize(
    ("command", "extra"),
    [(("run", "--local", "job.py"), "runtime"), (("job", "list"), "kubernetes")],
)
def test_what_needs_an_extra_says_which_one_to_install(
    bare: Path, command: tuple[str, ...], extra: str
) -> None:
    (bare / "job.py").touch()

    done = _run(bare / "sparkpoint", *command)

    assert done.returncode != 0
    assert f"pip install 'sparkpoint[{extra}]'" in done.stderr
    assert "Traceback" not in done.stderr
