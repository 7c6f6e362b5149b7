"""`state check`: whether code can go on from a savepoint, before anything is stopped for it.

What files tell is looked at here; whether the code fits is tried out by a worker's rehearsal, in a
process of its own, on a throw-away copy and with sinks that write nothing.
"""

import importlib.metadata
import re
import tempfile
from dataclasses import dataclass
from pathlib import Path

from sparkpoint.cli.answer import Answer, Settings
from sparkpoint.cli.exits import Exit
from sparkpoint.cli.progress import shown_progress
from sparkpoint.cli.render.documents import savepoint_document
from sparkpoint.cli.work.places import open_repository
from sparkpoint.cli.work.workers import ask_worker, require
from sparkpoint.savepoint import Repository, Savepoint
from sparkpoint.savepoint.progress import Amount
from sparkpoint.state.compatibility import Finding
from sparkpoint.state.errors import BadQueryError
from sparkpoint.state.preflight import preflight
from sparkpoint.storage.errors import NotFoundError
from sparkpoint.worker.model import Answer as Verdict

__all__ = ["Checking", "check_state"]

_VERSION = re.compile(r"[0-9]+\.[0-9]+")
_EXITS = {"compatible": Exit.OK, "incompatible": Exit.REFUSED, "unknown": Exit.FAILED}


@dataclass(frozen=True, slots=True, kw_only=True)
class Checking:
    """What the command line says about it."""

    script: tuple[str, ...]
    """And its arguments; empty: only what files tell is looked at."""
    conf: tuple[str, ...]
    spark_version: str | None
    master: str
    deadline: int
    functions: bool
    replay: bool
    """Whether the last batch is done again by the code, and what comes of it compared."""
    work_dir: Path | None


def check_state(settings: Settings, location: str, reference: str, wanted: Checking) -> Answer:
    """The verdict, with everything that led to it."""
    conf = _conf(wanted.conf)
    if wanted.script and not Path(wanted.script[0]).is_file():
        raise NotFoundError(f"There is no script {wanted.script[0]}. Check the path.")
    if wanted.spark_version is not None and not _VERSION.match(wanted.spark_version):
        raise BadQueryError(f"--spark-version {wanted.spark_version}: give one such as 4.3.0.")
    if not wanted.master.startswith("local"):
        raise BadQueryError(f"--master {wanted.master}: code is tried here, give local[N].")
    repository = open_repository(settings, location)
    savepoint = repository.find(reference)
    installed = _installed()
    version = wanted.spark_version or installed
    if wanted.script:
        require(
            *("pyspark", "aiohttp"),
            purpose="trying out code needs Spark and the runtime",
            extra="runtime",
            instead="leave the script away to look at what files tell",
        )
    found = preflight(repository, savepoint, spark_version=version, conf=conf)
    obstacles = [each for each in found if each.is_obstacle]
    tried: Verdict | None = None
    if wanted.script and not obstacles:
        with shown_progress(settings) as progress:
            progress.start("rehearsing", Amount())
            tried = _rehearsed(settings, repository, savepoint, wanted)
    elsewhere = tried is not None and not _is_of_line(installed, wanted.spark_version)
    verdict = "unknown" if elsewhere else _verdict(obstacles, tried)
    problems = [*(f"{each.message} {each.remedy}" for each in obstacles)]
    if tried is not None and tried.answer != "Compatible":
        problems += tried.problems or (tried.message,)
    if elsewhere:
        problems.append(
            f"It was tried with Spark {installed or 'of a version that is not known'}, which says "
            f"nothing about {version}: check it where that one is installed."
        )
    notes = [f"{each.message} {each.remedy}" for each in found if not each.is_obstacle]
    notes += tried.notes if tried is not None else ()
    text = _text(savepoint.key, verdict, tried, elsewhere=elsewhere)
    document = {
        "repository": repository.store.uri,
        "savepoint": savepoint_document(savepoint),
        "verdict": verdict,
        "sparkVersion": version,
        "problems": problems,
        "notes": notes,
        "rehearsed": tried is not None,
        "message": tried.message if tried is not None else text,
    }
    return Answer(
        document=document,
        text=text,
        notes=tuple(notes),
        alarm=" ".join(problems),
        exit=_EXITS[verdict],
    )


def _verdict(obstacles: list[Finding], tried: Verdict | None) -> str:
    """Files alone can say no, but never yes."""
    if obstacles:
        return "incompatible"
    if tried is None or tried.answer not in ("Compatible", "Incompatible"):
        return "unknown"
    return tried.answer.lower()


def _is_of_line(installed: str | None, wanted: str | None) -> bool:
    """Whether what this Spark does is what the one that was asked for does."""
    if wanted is None:
        return True
    return installed is not None and installed.split(".")[:2] == wanted.split(".")[:2]


def _text(key: str, verdict: str, tried: Verdict | None, *, elsewhere: bool) -> str:
    if verdict == "compatible":
        return f"Compatible: the code has made a batch from a copy of {key}."
    if verdict == "incompatible":
        return f"Incompatible with {key}."
    if tried is None:
        return (
            f"Unknown whether code fits {key}: nothing in its files is against it, but none was "
            "tried. Give a script behind `--`."
        )
    why = "it was tried with another Spark" if elsewhere else "the trial gave no plain yes or no"
    return f"Unknown whether it fits {key}: {why}."


def _conf(given: tuple[str, ...]) -> dict[str, str]:
    for each in given:
        if not each.startswith("spark.") or "=" not in each:
            raise BadQueryError(f"--conf {each}: give spark.key=value.")
    return dict(each.split("=", 1) for each in given)


def _installed() -> str | None:
    try:
        return importlib.metadata.version("pyspark")
    except importlib.metadata.PackageNotFoundError:
        return None


def _rehearsed(
    settings: Settings, repository: Repository, savepoint: Savepoint, wanted: Checking
) -> Verdict:
    """What a worker says, whose log is kept out of the answer."""
    manifest = savepoint.manifest
    with tempfile.TemporaryDirectory(
        prefix="sparkpoint-check-", dir=wanted.work_dir, ignore_cleanup_errors=True
    ) as folder:
        given = {
            "--savepoint": savepoint.id,
            "--repository": repository.store.uri,
            "--job": f"{manifest.namespace}/{manifest.job}",
            "--deadline": str(wanted.deadline),
            "--master": wanted.master,
            "--scratch": str(Path(folder).absolute()),
        }
        if settings.endpoint_url is not None:
            given["--endpoint-url"] = settings.endpoint_url
        options = [word for option in given.items() for word in option]
        options += [word for each in wanted.conf for word in ("--conf", each)]
        options += ["--functions"] if wanted.functions else []
        # Nothing begins from it here.
        options.append("--single")
        options += ["--replay"] if wanted.replay else []
        command = ["rehearse", *options, "--", *wanted.script]
        return ask_worker(command, Path(folder), silence="Unknown")
