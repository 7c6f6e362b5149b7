"""A machine that lacks Java or Python is told so before anything begins."""

import shutil
import subprocess
from pathlib import Path

_SCRIPT = Path(__file__).parents[3] / "dev" / "require.sh"


def _run(folder: Path, *, programs: dict[str, str]) -> subprocess.CompletedProcess[str]:
    """Run the script on a machine that has only these programs."""
    for name in ("bash", "grep"):
        (folder / name).symlink_to(shutil.which(name) or name)
    for name, script in programs.items():
        (folder / name).write_text(f"#!/bin/bash\n{script}\n")
        (folder / name).chmod(0o755)
    return subprocess.run(
        ["bash", str(_SCRIPT)],
        env={"PATH": str(folder)},
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_machine_with_nothing_hears_of_everything_at_once(tmp_path: Path) -> None:
    done = _run(tmp_path, programs={})

    assert done.returncode == 1
    assert "Python 3.11 or newer is not on PATH" in done.stderr
    assert "Java 17 or newer is not on PATH" in done.stderr
    assert "apt-get install openjdk-17-jre-headless" in done.stderr


def test_an_old_java_is_not_enough(tmp_path: Path) -> None:
    old = "echo 'openjdk version \"11.0.20\"' >&2"

    done = _run(tmp_path, programs={"python3": "exit 0", "java": old})

    assert done.returncode == 1
    assert done.stderr.count("error:") == 1


def test_a_machine_that_has_both_hears_nothing(tmp_path: Path) -> None:
    new = "echo 'openjdk version \"17.0.15\"' >&2"

    done = _run(tmp_path, programs={"python3": "exit 0", "java": new})

    assert (done.returncode, done.stderr) == (0, "")
