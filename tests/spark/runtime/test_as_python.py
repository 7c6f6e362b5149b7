"""A script under the runtime is a script under Python: output, traceback, exit code. No Spark."""

import os
import re
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from sparkpoint.runtime.model import EndReason, Termination

OURS = re.compile(r"^(sparkpoint: \{.*|\d{4}-\d\d-\d\d .* sparkpoint: .*)\n", re.MULTILINE)


@dataclass(frozen=True)
class Run:
    """What a process did."""

    code: int
    out: str
    err: str
    termination: Termination | None = None

    @property
    def of_script(self) -> tuple[int, str, str]:
        return self.code, self.out, OURS.sub("", self.err)

    @property
    def last_word(self) -> Termination:
        assert self.termination is not None, self.err
        return self.termination


def under_python(folder: Path, script: str, *arguments: str) -> Run:
    return _run([sys.executable, script, *arguments], folder)


def under_us(folder: Path, script: str, *arguments: str, options: Sequence[str] = ()) -> Run:
    command = [sys.executable, "-m", "sparkpoint.runtime", "--epoch-dir", "epoch", "--epoch", "1"]
    command += ["--job", "tests/job", "--termination-log", "last", *options, "--", script]
    run = _run([*command, *arguments], folder)
    text = (folder / "last").read_text()
    assert f"sparkpoint: {text}" in run.err
    return Run(run.code, run.out, run.err, Termination.model_validate_json(text))


def _run(command: list[str], folder: Path) -> Run:
    done = subprocess.run(
        command,
        cwd=folder,
        env={**os.environ, "PYTHONPATH": ""},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    return Run(done.returncode, done.stdout, done.stderr)


SCRIPTS = {
    "surroundings": """
import sys, os, beside
print(__name__, __file__, __package__, __spec__, __doc__, beside.VALUE)
print(sys.argv, sys.path[0] == os.path.dirname(os.path.realpath(__file__)))
main = sys.modules["__main__"]
print(main.__dict__ is globals(), sorted(name for name in globals() if name != "__annotations__"))
if __name__ == "__main__":
    print("main", file=sys.stderr)
""",
    "exit code": "import sys; sys.exit(7)",
    "large exit code": "import sys; sys.exit(-1)",
    "exit text": "import sys; sys.exit('that is that')",
    "exit without code": "raise SystemExit",
    "traceback": """
def inner(x):
    return 1 / x

def outer():
    try:
        inner(0)
    except ZeroDivisionError as error:
        raise ValueError("outer") from error

outer()
""",
    "syntax error": "def f(:\n    pass\n",
    "own excepthook": """
import sys
sys.excepthook = lambda kind, error, trace: print("HOOK", kind.__name__, trace.tb_lineno)
raise KeyError("x")
""",
    "threads and pools go on": """
import threading, time, concurrent.futures
pool = concurrent.futures.ThreadPoolExecutor(2)
pool.submit(lambda: (time.sleep(0.3), print("pool")))
threading.Thread(target=lambda: (time.sleep(0.6), print("thread"))).start()
print("main")
""",
    "at exit": "import atexit; atexit.register(print, 'bye')",
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "beside.py").write_text("VALUE = 42\n")
    return tmp_path


@pytest.mark.parametrize("what", SCRIPTS)
def test_it_is_as_under_python(folder: Path, what: str) -> None:
    (folder / "script.py").write_text(SCRIPTS[what])

    ours = under_us(folder, "script.py", "--gated", "b c")

    assert ours.of_script == under_python(folder, "script.py", "--gated", "b c").of_script
    assert ours.last_word.exit_code == ours.code
    failed = ours.code != 0
    expected = EndReason.SCRIPT_FAILED if failed else EndReason.SCRIPT_ENDED
    assert ours.last_word.reason is expected
    assert "no Spark session was made" in ours.last_word.message
    assert ("WARNING sparkpoint: The script ended without a Spark session" in ours.err) != failed


def test_the_last_word_says_where_a_script_failed(folder: Path) -> None:
    (folder / "script.py").write_text(SCRIPTS["traceback"])

    error = under_us(folder, "script.py").last_word.error

    assert error is not None
    assert (error.type, error.message) == ("ValueError", "outer")
    assert error.where == f"{folder / 'script.py'}:9"


def test_a_script_that_is_not_there(folder: Path) -> None:
    ours = under_us(folder, "missing.py")

    assert ours.code == under_python(folder, "missing.py").code == 2
    assert f"can't open file '{folder / 'missing.py'}'" in ours.err
    assert ours.last_word.reason is EndReason.SCRIPT_FAILED
