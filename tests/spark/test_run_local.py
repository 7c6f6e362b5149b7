"""`sparkpoint run --local` with real Spark, from beginning to end: docs/local.md is what is run.

Every `$` line of the page is a command and must succeed. A run goes on in the background until `^C`
or `local stop`. What the page shows below `cat` must be what the file holds, soon and exactly; of
other commands' output only the words count, as ids, sizes and times differ.
"""

import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import pytest

from tests.spark.runtime.driver import Setting
from tests.spark.runtime.truth import is_clean

PAGE = Path(__file__).parents[2] / "docs/local.md"
PROGRAM = Path(sys.executable).parent / "sparkpoint"
SECONDS = 120.0


@dataclass(frozen=True)
class Step:
    """A command of the page, and what it shows below."""

    command: str
    shown: tuple[str, ...]


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", PAGE.read_text(), re.DOTALL | re.MULTILINE)


def steps() -> Iterator[Step]:
    lines = "".join(blocks("console")).splitlines()
    starts = [i for i, line in enumerate(lines) if line.startswith("$ ") or line == "^C"]
    for start, end in zip(starts, [*starts[1:], len(lines)], strict=True):
        yield Step(lines[start].removeprefix("$ "), tuple(lines[start + 1 : end]))


@dataclass
class Terminals:
    """Whoever follows the page, with a terminal for each run."""

    root: Path
    environment: dict[str, str]
    runs: list["subprocess.Popen[bytes]"] = field(default_factory=list)
    said: dict[str, str] = field(default_factory=dict)

    def perform(self, step: Step) -> None:
        if step.command == "^C":
            self._interrupt()
        elif step.command.startswith("sparkpoint run"):
            self._run(step)
        elif step.command.startswith("cat "):
            path = self.root / step.command.split()[1]
            expected = "\n".join(step.shown) + "\n"
            self.await_true(lambda: path.exists() and path.read_text() == expected, str(step))
        else:
            self._settle()
            self.said[step.command] = self._output(step.command)

    def log(self, number: int = -1) -> str:
        """What a run has said so far."""
        at = number % len(self.runs)
        return (self.root / f"{at}.log").read_text(errors="replace")

    def await_true(self, what: Callable[[], object], why: str) -> None:
        deadline = time.monotonic() + SECONDS
        while not what():
            assert time.monotonic() < deadline, f"{why}\n{self.log()[-4000:]}"
            assert not self.runs or self.runs[-1].poll() is None, f"{why}\n{self.log()[-4000:]}"
            time.sleep(0.05)

    def _run(self, step: Step) -> None:
        with (self.root / f"{len(self.runs)}.log").open("wb") as log:
            process = subprocess.Popen(
                [PROGRAM, *shlex.split(step.command)[1:]],
                cwd=self.root,
                env=self.environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        self.runs.append(process)
        self.await_true(lambda: step.shown[0] in self.log(), step.command)

    def _interrupt(self) -> None:
        """To the whole group, as a terminal does."""
        os.killpg(self.runs[-1].pid, signal.SIGINT)
        assert self.runs[-1].wait(SECONDS) == 0, self.log()[-4000:]

    def _settle(self) -> None:
        """A person takes longer to type than Spark to commit."""
        for home in self.root.glob(".sparkpoint/*"):
            if (home / "epochs/current").exists():
                checkpoint = home / "epochs" / (home / "epochs/current").read_text().strip()
                self.await_true(partial(is_clean, checkpoint / "visits"), str(home))

    def _output(self, command: str) -> str:
        done = subprocess.run(
            ["bash", "-c", command],
            cwd=self.root,
            env=self.environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=SECONDS,
        )
        assert done.returncode == 0, (command, done.stdout, done.stderr, self.log()[-2000:])
        return done.stdout


@pytest.fixture
def terminals(tmp_path: Path) -> Iterator[Terminals]:
    environment = Setting(tmp_path).environment()
    environment["PATH"] = f"{PROGRAM.parent}:{environment['PATH']}"
    for name in ("PYSPARK_PYTHON", "PYSPARK_SUBMIT_ARGS", "SPARKPOINT_REPOSITORY"):
        environment.pop(name, None)
    found = Terminals(tmp_path, environment)
    yield found
    for process in found.runs:
        process.kill()
        process.wait(30)


def words(text: str) -> list[str]:
    """What does not differ from run to run: no ids, sizes, times and their words."""
    return [word for word in text.split() if not re.search(r"\d|^(s|min|ago|just|now)$", word)]


@pytest.mark.soak
def test_the_page_about_local_runs_is_true(terminals: Terminals) -> None:
    (terminals.root / "visits.py").write_text(blocks("python")[0])

    for step in steps():
        terminals.perform(step)

    codes = [process.wait(60) for process in terminals.runs]
    assert codes == [0, 0, 0, 0]
    assert not (terminals.root / "checkpoint").exists()
    assert "checkpointLocation checkpoint is not used" in terminals.log(0)
    assert "epoch 1: goes on" in terminals.log(1)
    # It went back to the state of the savepoint, and did not count anew: those files are gone.
    assert "Restored default/visits/before" in terminals.log(2)
    _assert_history(terminals)


def _assert_history(terminals: Terminals) -> None:
    repository = ".sparkpoint/visits/repository"
    listed = json.loads(terminals._output(f"sparkpoint log --repository {repository} --json"))
    found = {each["name"]: each for each in listed["savepoints"]}
    assert [found["before"]["queries"][0]["batch"], found["evening"]["pending"]] == [1, False]
    assert found["evening"]["parent"]["name"] == "before"
    assert found["first"]["parent"]["name"] == "before"
    assert found["first"]["job"] == "trial"
    ids = {name: each["queries"][0]["id"] for name, each in found.items()}
    assert ids["before"] == ids["evening"] != ids["first"]
    rewound = terminals._output("sparkpoint checkpoint show .sparkpoint/visits/epochs/2 --json")
    (query,) = json.loads(rewound)["queries"]
    assert (query["id"], query["batch"], query["clean"]) == (ids["before"], 2, True)
    for command, output in terminals.said.items():
        shown = next(step.shown for step in steps() if step.command == command)
        assert [word for word in words("\n".join(shown)) if word not in output.split()] == [], (
            output
        )
