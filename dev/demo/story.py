"""The scenes of the demo: what a person does with a job in its first days, and what comes of it.

Each scene may be cut off and played again; what it claims, it has looked at.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from dev.console import Problem, say
from dev.demo import scripts
from dev.demo.ledger import Counts, explained_by, read_counts
from dev.demo.stage import JOB, Stage, tell
from dev.jobs import LOG_LINES

__all__ = ["FORK", "SCENES", "Scene", "await_exact_counts", "await_exact_fork"]

FORK: Final = "what-if"
_SAVEPOINT: Final = "before-the-sale"
_MANIFESTS: Final = "examples"
_FORK_OUTPUT: Final = "/data/what-if"


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """One step of the story."""

    name: str
    title: str
    usually: str
    play: Callable[[Stage], None]


def _start(stage: Stage) -> None:
    tell(
        """The job is an unmodified PySpark script. The operator gives it a driver, executors and a
        checkpoint directory of its own, and lets its query begin only when everything is there."""
    )
    stage.put_script(scripts.first(), shown_as="examples/url-visits/url_visits.py")
    stage.type_kubectl("apply", "-f", f"{_MANIFESTS}/url-visits.yaml")
    _await_operation(stage, "Start", seconds=240)
    _tell_counts(await_exact_counts(stage))


def _take_savepoint(stage: Stage) -> None:
    tell(
        """While the job runs: the state of one batch for all queries, with offsets and metadata,
        copied to the repository file by file. What is there already is not copied again."""
    )
    stage.type_kubectl("apply", "-f", f"{_MANIFESTS}/url-visits-savepoint.yaml")
    name = f"ssp/{_SAVEPOINT}"
    stage.await_true(
        "the savepoint", lambda: stage.status(name).get("phase") == "Completed", seconds=180
    )
    taken = stage.status(name)
    tell(f"Taken of batch {taken['batch']}: {taken['files']} files, {taken['bytes']} bytes.")


def _upgrade(stage: Stage) -> None:
    tell("New code: each row of the output also gets its section of the site.")
    new = scripts.with_sections()
    _show_change(scripts.first(), new)
    tell(
        """The operator finds the changed ConfigMap, tries the new code on a copy of a savepoint
        while the old one runs on, stops the query between two batches, captures its state, and
        starts the new code from it in a new epoch. If it commits three batches, it stays."""
    )
    stage.put_script(new, shown_as="url_visits.py")
    _await_operation(stage, "Upgrade", seconds=400)
    stage.await_true(
        "rows of the new code",
        lambda: "section" in _counts(stage).columns,
        seconds=120,
    )
    _tell_counts(await_exact_counts(stage))


def _rescale(stage: Stage) -> None:
    tell(
        """Executors hold the state that they compute with. So the job stops between two batches and
        goes on with another number of them, in the same checkpoint: nothing is copied."""
    )
    stage.type_kubectl("scale", "ssj", JOB, "--replicas=3")
    _await_operation(stage, "Rescale", seconds=240)
    stage.await_true("three executors", lambda: stage.status().get("executors") == 3, seconds=120)
    _tell_counts(await_exact_counts(stage))


def _upgrade_badly(stage: Stage) -> None:
    tell("Another change, with a typing mistake that shows only when a batch is written:")
    good, bad = scripts.with_sections(), scripts.mistaken()
    _show_change(good, bad)
    tell(
        """The trial before the stop finds what does not fit the state, or a script that does not
        start; this it cannot find. The new driver fails, once more in a second pod, and the
        operator puts the last stable revision back, with the state it had before the upgrade."""
    )
    stage.put_script(bad, shown_as="url_visits.py")
    stage.await_true(
        "the rollback",
        lambda: _condition(stage, "Degraded").get("reason") == "RolledBack",
        seconds=480,
    )
    tell(f"Degraded, RolledBack: {_condition(stage, 'Degraded')['message']}")
    _await_rest(stage, seconds=240)
    _tell_counts(await_exact_counts(stage))
    tell("The code that runs is put back into the ConfigMap, and nothing is left to tell.")
    stage.put_script(good, shown_as="url_visits.py")
    stage.await_true(
        "a job that nobody need look at",
        lambda: _condition(stage, "Degraded").get("status") == "False",
        seconds=120,
    )


def _restore(stage: Stage) -> None:
    tell(
        f"""Back to {_SAVEPOINT}, as if what came after it had not happened. First the present is
        captured, so that there is a way back to it, too. The visits since then are read from the
        log again; `--sink rewind` says that what was written since then is written over."""
    )
    before = _counts(stage)
    where = ("--savepoint", _SAVEPOINT, "--sink", "rewind")
    stage.type_sparkpoint("restore", JOB, *where)
    savepoint, began = stage.status(f"ssp/{_SAVEPOINT}"), stage.status()["restoredFrom"]
    _expect(began.get("id") == savepoint["id"], f"the job began from {began}")
    then = read_counts(stage, savepoint["batch"])
    tell(f"It had counted {before.total} visits, and began again with the {then.total} of then.")
    _tell_counts(await_exact_counts(stage))


def _fork(stage: Stage) -> None:
    tell(
        """A second job from the same savepoint, beside the first, with an output of its own: to try
        other code or another configuration on real state, and to delete it afterwards."""
    )
    stage.type_sparkpoint(
        *("fork", JOB, FORK, "--savepoint", _SAVEPOINT),
        *("--set", f"args[1]=--output={_FORK_OUTPUT}", "--set", "executor.instances=1"),
    )
    files = await_exact_fork(stage)
    tell(f"The fork went on from there up to file {files}, exactly; the first job did not notice.")
    _tell_counts(await_exact_counts(stage))


SCENES: Final = (
    Scene(name="start", title="kubectl apply: the job starts", usually="40 s", play=_start),
    Scene(name="savepoint", title="A savepoint", usually="5 s", play=_take_savepoint),
    Scene(name="upgrade", title="New code, with its state", usually="80 s", play=_upgrade),
    Scene(name="rescale", title="More executors", usually="40 s", play=_rescale),
    Scene(name="mistake", title="An upgrade that fails", usually="150 s", play=_upgrade_badly),
    Scene(name="restore", title="Back to the past", usually="70 s", play=_restore),
    Scene(name="fork", title="A fork", usually="50 s", play=_fork),
)


def await_exact_counts(stage: Stage) -> Counts:
    """The job's counts, once they are the truth of the files that it has read."""
    seen: list[Counts] = []

    def look() -> bool:
        counts = _counts(stage)
        if counts.total == 0:
            return False
        seen.append(counts)
        return explained_by(counts.visits, since=0, most=counts.files) is not None

    stage.await_true("counts that equal what is in the log", look, seconds=120)
    return seen[-1]


def await_exact_fork(stage: Stage) -> int:
    """How many files the fork has read, once it has told of some and its counts are the truth."""
    savepoint = stage.status(f"ssp/{_SAVEPOINT}")
    since = read_counts(stage, savepoint["batch"]).total // LOG_LINES
    seen: list[int] = []

    def look() -> bool:
        counts = _counts(stage, job=FORK, folder=_FORK_OUTPUT)
        files = explained_by(counts.visits, since=since, most=counts.files)
        if files is None or files == since:
            return False
        seen.append(files)
        return True

    stage.await_true("counts of the fork that equal what is in the log", look, seconds=240)
    return seen[-1]


def _counts(stage: Stage, *, job: str = JOB, folder: str = "/data/output") -> Counts:
    return read_counts(stage, stage.status(f"ssj/{job}").get("batch", -1), folder=folder)


def _tell_counts(counts: Counts) -> None:
    tell(
        f"Batch {counts.batch}: {counts.total} visits of {len(counts.visits)} URLs, as the "
        f"first {counts.total // LOG_LINES} files of the log have them. Nothing is lost, or "
        "counted twice."
    )


def _show_change(old: str, new: str) -> None:
    for line in scripts.change(old, new).splitlines():
        say(f"      {line}")


def _condition(stage: Stage, kind: str) -> dict[str, Any]:
    listed = stage.status().get("conditions") or []
    return next((each for each in listed if each["type"] == kind), {})


def _await_operation(stage: Stage, kind: str, *, seconds: float) -> None:
    """Until the last operation is of this kind and has succeeded."""

    def look() -> bool:
        status = stage.status()
        last = status.get("lastOperation") or {}
        ended = (last.get("kind"), last.get("result")) == (kind, "Succeeded")
        return ended and status.get("operation") is None

    stage.await_true(f"the {kind} to succeed", look, seconds=seconds)


def _await_rest(stage: Stage, *, seconds: float) -> None:
    """Until nothing is under way and the job runs."""

    def look() -> bool:
        status = stage.status()
        return status.get("phase") == "Running" and status.get("operation") is None

    stage.await_true("the job to run", look, seconds=seconds)


def _expect(is_so: bool, otherwise: str) -> None:
    if not is_so:
        raise Problem(
            f"The demo did not see what it tells: {otherwise}.",
            remedy="`make demo-down demo` begins afresh; if it happens again, tell us.",
        )
