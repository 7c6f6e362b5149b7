"""`run --local`: prepare the home and the epoch, then become the runtime.

The process is replaced (exec), so that signals, the terminal and the exit code are the runtime's.
Everything that can be wrong is looked at before the home is touched, and every step before the last
one may be killed: the next run finds either the old epoch or the new one, whole.
"""

import importlib.util
import os
import secrets
import shlex
import shutil
import socket
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from sparkpoint.cli.answer import Settings, printable
from sparkpoint.cli.exits import Exit
from sparkpoint.cli.render.text import fields
from sparkpoint.cli.work import localepochs
from sparkpoint.cli.work.localepochs import Epoch
from sparkpoint.cli.work.localerrors import LackingError
from sparkpoint.cli.work.localhome import (
    HOMES,
    AgentNote,
    Home,
    adopt,
    home_of,
    homes_here,
    job_of,
    usable,
    write_whole,
)
from sparkpoint.cli.work.locallock import locked
from sparkpoint.cli.work.places import open_place
from sparkpoint.cli.work.restore import Restoring, restore_savepoint

__all__ = ["Restore", "RunRequest", "run_local"]

_HOST = "127.0.0.1"
_PACKAGES = ("pyspark", "aiohttp")
_SUBMIT = "PYSPARK_SUBMIT_ARGS"


@dataclass(frozen=True, slots=True, kw_only=True)
class Restore:
    """What to begin from."""

    reference: str
    mode: str
    sinks: tuple[str, ...]
    sink_policy: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRequest:
    """What the command line says."""

    script: Path
    arguments: tuple[str, ...] = ()
    job: tuple[str, str] | None = None
    home: Path | None = None
    repository: str | None = None
    restore: Restore | None = None
    fresh: bool = False
    port: int | None = None
    master: str | None = None


@dataclass(frozen=True, slots=True)
class _Start:
    """The epoch to run, how it came about, and what the runtime is to expect in it."""

    epoch: Epoch
    how: str
    expect: str


def run_local(settings: Settings, wanted: RunRequest) -> NoReturn:
    """Run a script with everything that a job in a cluster has."""
    _check_surroundings(wanted.script)
    job = job_of(wanted.script, wanted.job)
    home = home_of(job, wanted.home)
    repository = _repository(settings, home, wanted.repository)
    port = _port(wanted.port)
    with usable(home):
        _make(home)
        with locked(home):
            adopt(home, job)
            start = _start(settings, home, repository, wanted)
            note = AgentNote(
                url=f"http://{_HOST}:{port}",
                token_file=str(home.token),
                pid=os.getpid(),
                job=job,
                epoch=start.epoch.number,
                repository=repository,
                endpoint_url=settings.endpoint_url,
            )
            _leave_notes(home, note)
            if not settings.quiet:
                _say(_notice(home, note, start))
            # The runtime inherits the lock.
            _become(_command(home, note, start, wanted), _environment(os.environ, wanted.master))


def _leave_notes(home: Home, note: AgentNote) -> None:
    """What `sparkpoint local` reads; agent.json last, as it says that the rest is this run's."""
    home.termination.unlink(missing_ok=True)
    write_whole(home.token, f"{secrets.token_hex(16)}\n")
    write_whole(home.agent, f"{note.model_dump_json(indent=2)}\n")


def _check_surroundings(script: Path) -> None:
    missing = [name for name in _PACKAGES if importlib.util.find_spec(name) is None]
    if missing:
        raise LackingError(
            f"A local run needs {' and '.join(missing)}, which this Python ({sys.executable}) does "
            "not have. Install: pip install 'sparkpoint[runtime]'"
        )
    java = os.environ.get("JAVA_HOME")
    if shutil.which(f"{java}/bin/java" if java else "java") is None:
        where = f"JAVA_HOME is {java}, which has no bin/java" if java else "there is none on PATH"
        raise LackingError(f"Spark needs Java 17 or newer: {where}. Install it, or set JAVA_HOME.")
    if not script.is_file():
        raise LackingError(f"There is no script {script}. Check the path.", Exit.NOT_FOUND)


def _repository(settings: Settings, home: Home, given: str | None) -> str:
    """Where savepoints go, so that it means the same from everywhere."""
    # What is wrong with the home is told of the home.
    return open_place(settings, given).uri if given else str(home.repository.resolve())


def _port(given: int | None) -> int:
    """A port that is free now: one that is taken is told before anything is begun."""
    try:
        with socket.create_server((_HOST, given or 0)) as server:
            port: int = server.getsockname()[1]
            return port
    except OSError as error:
        raise LackingError(
            f"Port {given} of {_HOST} cannot be had: {error.strerror or error}. Give another "
            "--port, or none to get a free one.",
            Exit.REFUSED,
        ) from error


def _make(home: Home) -> None:
    home.root.mkdir(parents=True, exist_ok=True)
    if home.root.parent == HOMES.absolute():
        ignore = home.root.parent / ".gitignore"
        if not ignore.exists():
            # State and tokens are nothing for a repository of code.
            ignore.write_text("*\n")


def _start(settings: Settings, home: Home, repository: str, wanted: RunRequest) -> _Start:
    if wanted.restore is not None:
        return _restored(settings, home, repository, wanted.restore)
    found = None if wanted.fresh else localepochs.go_on(home)
    if found is not None:
        return _Start(found, "goes on", "any")
    return _Start(localepochs.begin_fresh(home), "begins without state", "empty")


def _restored(settings: Settings, home: Home, repository: str, wanted: Restore) -> _Start:
    def fill(target: Path) -> None:
        how = Restoring(
            target=str(target),
            mode=wanted.mode,
            sinks=wanted.sinks,
            sink_policy=wanted.sink_policy,
        )
        answer = restore_savepoint(settings, repository, wanted.reference, how)
        if not settings.quiet:
            _say(answer.text, *(f"Note: {note}" for note in answer.notes))

    epoch = localepochs.begin_restored(home, fill)
    return _Start(epoch, f"begins from {wanted.reference} ({wanted.mode})", "restored")


def _notice(home: Home, note: AgentNote, start: _Start) -> str:
    only = [each.root for each in homes_here()] == [home.root]
    which = "" if only else f" --home {shlex.quote(_short(home.root))}"
    lines = fields(
        [
            ("state", _short(start.epoch.path)),
            ("savepoints", _short(Path(note.repository)) if "://" not in note.repository
             else note.repository),
            ("agent", f"{note.url}, token in {_short(home.token)}"),
        ]
    )  # fmt: skip
    return "\n".join(
        [
            f"{note.job}, epoch {note.epoch}: {start.how}",
            *lines,
            "Ctrl-C stops after the running batch, and the next run goes on from there. Meanwhile:",
            f"  sparkpoint local status{which}",
            f"  sparkpoint local savepoint{which} --name NAME",
            f"  sparkpoint local stop{which}",
        ]
    )


def _short(path: Path) -> str:
    """As one would type it here."""
    here = Path.cwd()
    return str(path.relative_to(here) if path.is_relative_to(here) else path)


def _command(home: Home, note: AgentNote, start: _Start, wanted: RunRequest) -> list[str]:
    return [
        *(sys.executable, "-m", "sparkpoint.runtime"),
        *("--epoch-dir", str(start.epoch.path), "--epoch", str(note.epoch)),
        *("--expect", start.expect, "--job", note.job),
        *("--agent-host", _HOST, "--agent-port", note.url.rpartition(":")[2]),
        *("--token-file", note.token_file, "--termination-log", str(home.termination)),
        *("--", str(wanted.script), *wanted.arguments),
    ]


def _environment(given: Mapping[str, str], master: str | None) -> dict[str, str]:
    """What PySpark reads. Without a master it takes local[*], unless script or conf name one."""
    environment = {**given}
    # Else PySpark takes whatever `python3` is on PATH for its workers.
    environment.setdefault("PYSPARK_PYTHON", sys.executable)
    if master is not None:
        submit = given.get(_SUBMIT, "pyspark-shell")
        environment[_SUBMIT] = f"--master {shlex.quote(master)} {submit}"
    return environment


def _say(*texts: str) -> None:
    for text in texts:
        print(printable(text), file=sys.stderr)


def _become(command: list[str], environment: Mapping[str, str]) -> NoReturn:
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    os.execve(command[0], command, environment)  # noqa: S606 - no shell is what we want
