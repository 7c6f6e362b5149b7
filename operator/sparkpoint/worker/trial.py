"""The driver of a rehearsal: started, watched through its agent, ended when it has its verdict.

It stands behind a gate that nobody opens, in an epoch directory of its own that goes with it: its
queries run on the throw-away copy and nowhere else.
"""

import os
import secrets
import shlex
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

from pydantic import ValidationError

from sparkpoint.runtime.client import AgentClientError, SyncAgentClient
from sparkpoint.runtime.model import Progress, RehearsalInfo, Termination
from sparkpoint.savepoint.progress import Amount
from sparkpoint.state.spark.process import stop
from sparkpoint.worker.tasks.rehearse import Trial
from sparkpoint.worker.telling import Telling

__all__ = ["perform", "submit_arguments"]

_LOOK = 0.2
"""Seconds between two looks: after its verdict the driver runs the script up to the gate."""
_MARGIN = 120.0
"""Seconds beyond the rehearsal's own deadline, for a driver that does not keep to it."""
_EPOCH = 0
_SUBMIT = "PYSPARK_SUBMIT_ARGS"
_SHELL = "pyspark-shell"
_CONF = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
}


class _Files:
    """What the driver is told, and what it tells, in a folder of its own."""

    def __init__(self, folder: Path) -> None:
        self.epoch_dir = folder / f"epoch-{_EPOCH}"
        self.token, self.url = folder / "token", folder / "url"
        self.termination = folder / "termination"


def perform(trial: Trial, telling: Telling) -> RehearsalInfo | Termination | None:
    """The verdict; or the driver's last word, if it ended before; or nothing at all."""
    with tempfile.TemporaryDirectory(
        prefix="sparkpoint-rehearsal-", dir=trial.scratch, ignore_cleanup_errors=True
    ) as folder:
        files = _Files(Path(folder))
        files.token.write_text(secrets.token_hex(16))
        telling.start("starting", Amount())
        process = subprocess.Popen(
            _command(trial, files),
            env=_environment(os.environ, trial),
            stdin=subprocess.DEVNULL,
            stdout=2,
        )
        try:
            return _await_verdict(process, files, trial, telling) or _last_word(files)
        finally:
            stop(process)


def _command(trial: Trial, files: _Files) -> list[str]:
    given = {
        "--epoch-dir": str(files.epoch_dir),
        "--epoch": str(_EPOCH),
        "--job": trial.job,
        "--rehearse": trial.savepoint,
        "--repository": trial.repository,
        "--rehearsal-deadline": str(trial.deadline),
        "--agent-host": "127.0.0.1",
        "--agent-port": "0",
        "--agent-url-file": str(files.url),
        "--token-file": str(files.token),
        "--termination-log": str(files.termination),
        "--stop-budget": "0",
    }
    if trial.endpoint_url is not None:
        given["--endpoint-url"] = trial.endpoint_url
    if trial.keep is not None:
        given["--rehearsal-keep"] = trial.keep
    flags = ["--gated", *(["--rehearse-functions"] if trial.functions else [])]
    options = [word for option in given.items() for word in option]
    return [
        *(sys.executable, "-m", "sparkpoint.runtime", *options, *flags, "--"),
        *trial.command,
    ]


def _environment(given: Mapping[str, str], trial: Trial) -> dict[str, str]:
    return {
        **given,
        "PYSPARK_PYTHON": given.get("PYSPARK_PYTHON", sys.executable),
        _SUBMIT: submit_arguments(given.get(_SUBMIT, ""), trial),
    }


def submit_arguments(given: str, trial: Trial) -> str:
    """What Spark is started with; ours come last, and so they win over what is there, and over the
    file of defaults, which speaks of a cluster."""
    before = [word for word in shlex.split(given) if word != _SHELL]
    conf = [*(f"{key}={value}" for key, value in _CONF.items()), *trial.conf]
    ours = ["--master", trial.master, "--deploy-mode", "client"]
    ours += [word for each in conf for word in ("--conf", each)]
    return shlex.join([*before, *ours, _SHELL])


def _await_verdict(
    process: "subprocess.Popen[bytes]", files: _Files, trial: Trial, telling: Telling
) -> RehearsalInfo | None:
    """Look until there is one; None if the driver ends before, or takes far too long."""
    until, phase = time.monotonic() + trial.deadline + _MARGIN, ""
    while process.poll() is None and time.monotonic() < until:
        progress = _progress(files)
        if progress is not None and progress.phase != phase:
            phase = progress.phase
            telling.start(phase, Amount())
        if progress is not None and progress.rehearsal and progress.rehearsal.state == "done":
            return progress.rehearsal
        time.sleep(_LOOK)
    return None


def _progress(files: _Files) -> Progress | None:
    """What the agent says, if it is there."""
    if not files.url.exists():
        return None
    try:
        with SyncAgentClient(files.url.read_text().strip(), files.token.read_text()) as agent:
            return agent.progress()
    except AgentClientError:
        return None


def _last_word(files: _Files) -> Termination | None:
    try:
        return Termination.model_validate_json(files.termination.read_text())
    except (OSError, ValidationError):
        return None
