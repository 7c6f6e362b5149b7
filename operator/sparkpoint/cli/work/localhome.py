"""The home of a local run: one directory per job that holds its state, savepoints and notes.

    home.json         whose it is
    lock              held by the process that runs (locallock.py)
    epochs/           the checkpoints (localepochs.py)
    repository/       the savepoints, unless --repository says otherwise
    agent.json, token how to reach the agent of the run
    termination.json  the last word of the last run

Whoever writes here holds the lock. Every note appears whole or not at all, and nothing but notes is
ever replaced: no checkpoint and no savepoint is deleted.
"""

import json
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from pydantic import BaseModel, ConfigDict, ValidationError

from sparkpoint.cli.work.localerrors import (
    DamagedHomeError,
    LocalError,
    NoHomeError,
    SeveralHomesError,
    WrongHomeError,
)
from sparkpoint.savepoint.errors import BadNameError

__all__ = [
    "HOMES",
    "AgentNote",
    "Home",
    "adopt",
    "find_home",
    "home_of",
    "homes_here",
    "job_of",
    "usable",
    "write_durably",
    "write_whole",
]

HOMES = Path(".sparkpoint")
_FORMAT = 1
_PART = re.compile(r"[a-z0-9]([-a-z0-9.]{0,61}[a-z0-9])?")
"""What the runtime, Kubernetes and a repository all accept."""
_LONGEST = 63


@dataclass(frozen=True, slots=True)
class Home:
    """A directory, and where things are in it."""

    root: Path

    @property
    def note(self) -> Path:
        """Whose it is."""
        return self.root / "home.json"

    @property
    def lock(self) -> Path:
        """Held while something runs."""
        return self.root / "lock"

    @property
    def epochs(self) -> Path:
        """The checkpoints."""
        return self.root / "epochs"

    @property
    def repository(self) -> Path:
        """Where savepoints go by default."""
        return self.root / "repository"

    @property
    def agent(self) -> Path:
        """How to reach the agent."""
        return self.root / "agent.json"

    @property
    def token(self) -> Path:
        """What the agent wants to hear."""
        return self.root / "token"

    @property
    def termination(self) -> Path:
        """The last word of the last run."""
        return self.root / "termination.json"


class _HomeNote(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")

    format: int
    job: str


class AgentNote(BaseModel):
    """agent.json: everything that `sparkpoint local` must know of a run."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    url: str
    token_file: str
    pid: int
    job: str
    epoch: int
    repository: str
    endpoint_url: str | None = None


def job_of(script: Path, given: tuple[str, str] | None) -> str:
    """`namespace/name`: as given, or made of the script's name."""
    if given is None:
        name = re.sub(r"[^a-z0-9.]+", "-", script.stem.lower()).strip("-.")
        given = "default", name[:_LONGEST].strip("-.")
    if not all(_PART.fullmatch(part) for part in given):
        shown = "/".join(given) if given[1] else script.name
        raise BadNameError(
            f"{shown!r} cannot be a job's name: give --job NS/NAME with lower-case letters, "
            f"digits, '-' and '.', up to {_LONGEST} each."
        )
    return "/".join(given)


def home_of(job: str, given: Path | None) -> Home:
    """Where a job lives; nothing is made yet."""
    return Home((given or HOMES / job.partition("/")[2]).absolute())


def adopt(home: Home, job: str) -> None:
    """Make this the home of the job, or find that it is; WrongHomeError if it is another's."""
    found = _read(home)
    if found is None:
        _refuse_foreign(home)
        write_durably(home.note, json.dumps({"format": _FORMAT, "job": job}) + "\n")
    elif found.format != _FORMAT:
        raise WrongHomeError(
            f"{home.root} was made by another version of Sparkpoint (format {found.format}, this "
            f"one knows {_FORMAT}). Use that version, or another --home."
        )
    elif found.job != job:
        raise WrongHomeError(
            f"{home.root} is the home of job {found.job}, and this is {job}. To go on with that "
            f"state, give --job {found.job}; otherwise give another --home."
        )


def _refuse_foreign(home: Home) -> None:
    """A directory with other things in it is somebody's, not a home."""
    ours = {home.lock.name, _beside(home.note).name}
    strange = sorted(path.name for path in home.root.iterdir() if path.name not in ours)
    if strange:
        raise WrongHomeError(
            f"{home.root} is not empty (it has {strange[0]}) and no home of a local run. Give a "
            "new directory as --home."
        )


def find_home(given: Path | None) -> Home:
    """The home that is meant: the one given, or the only one here."""
    if given is not None:
        home = Home(given.absolute())
        if not home.note.exists():
            raise NoHomeError(
                f"{home.root} is no home of a local run. Check the path; `sparkpoint run --local` "
                "says where its home is."
            )
        return home
    homes = homes_here()
    if not homes:
        raise NoHomeError(
            f"Nothing was run in {Path.cwd()} yet: there is no home below {HOMES}. Go where "
            "`sparkpoint run --local` was started, or give --home DIR."
        )
    if len(homes) > 1:
        names = tuple(str(HOMES / home.root.name) for home in homes)
        raise SeveralHomesError(
            f"There are several homes here: {', '.join(names)}. Give one as --home.", names
        )
    return homes[0]


def homes_here() -> list[Home]:
    """The homes below the current directory."""
    return [Home(note.parent) for note in sorted(HOMES.absolute().glob("*/home.json"))]


def _read(home: Home) -> _HomeNote | None:
    try:
        return _HomeNote.model_validate_json(home.note.read_bytes())
    except FileNotFoundError:
        return None
    except ValidationError as error:
        raise DamagedHomeError(
            f"{home.note} cannot be read: it should be like "
            f'{{"format": {_FORMAT}, "job": "default/visits"}}. Repair it, or use another --home.'
        ) from error


def write_whole(path: Path, text: str) -> None:
    """Write a note that only this user may read, so that it is there whole or not at all."""
    _written_beside(path, text).replace(path)


def write_durably(path: Path, text: str) -> None:
    """The same for a note that must be right even after the power was cut."""
    new = _written_beside(path, text)
    _sync(new)
    new.replace(path)
    _sync(path.parent)


def _beside(path: Path) -> Path:
    """Always the same name, as only the holder of the lock writes: no heap of them is left."""
    return path.with_name(f".{path.name}.new")


def _written_beside(path: Path, text: str) -> Path:
    new = _beside(path)
    descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(text)
    return new


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def usable(home: Home) -> Iterator[None]:
    """Say which home it is about, whatever the operating system complains of."""
    try:
        yield
    except OSError as error:
        raise LocalError(
            f"{error.filename or home.root} cannot be used: {error.strerror or error}. Check the "
            "disk and the permissions, or give another --home."
        ) from error
