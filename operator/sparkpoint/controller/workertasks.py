"""What a worker is told to do: the command lines of `python -m sparkpoint.worker`.

Kubernetes replaces `$(NAME)` in them; in what is ours nothing is to be replaced.
"""

from typing import Final, assert_never

from sparkpoint.api.job import JobSpec
from sparkpoint.controller import objects
from sparkpoint.controller.objects import Owner, Repository
from sparkpoint.controller.objects.environment import literal
from sparkpoint.lifecycle.actions import (
    Adopt,
    Capture,
    Examine,
    Rehearse,
    RemoveData,
    Repartition,
    Task,
)
from sparkpoint.lifecycle.record import Run

__all__ = ["arguments", "capture_arguments", "repository_arguments"]

_SHARE: Final = 0.8
_LEAST: Final = 30


def arguments(
    owner: Owner, spec: JobSpec, task: Task, *, repository: Repository | None, trigger: str
) -> list[str]:
    """For a task of an operation; `repository` is where its savepoint is, or goes."""
    match task:
        case Adopt():
            return _adopt(owner, spec, task, repository)
        case Capture():
            return capture_arguments(owner, spec, task, repository=repository, trigger=trigger)
        case Rehearse():
            return _rehearse(owner, spec, task, repository)
        case Examine():
            return _examine(owner, spec, task, repository)
        case Repartition():
            return _repartition(owner, task, repository)
        case RemoveData():
            return _remove(owner, spec, task)
        case _:
            assert_never(task)


def capture_arguments(
    owner: Owner, spec: JobSpec, task: Capture, *, repository: Repository | None, trigger: str
) -> list[str]:
    """A savepoint of an epoch directory, the same whoever takes it: agent or worker."""
    return [
        "capture",
        *_captured_from(owner, spec, task.run),
        *_job(owner),
        *repository_arguments(repository),
        *("--name", task.savepoint),
        *("--revision", task.run.revision.name),
        *("--trigger", trigger),
    ]


def _adopt(owner: Owner, spec: JobSpec, task: Adopt, repository: Repository | None) -> list[str]:
    """Of no revision of the job: another one has written it."""
    source, query = spec.storage.endpoint_url, task.adoption.query
    return [
        "adopt",
        *("--checkpoint", literal(task.adoption.location)),
        *_job(owner),
        *repository_arguments(repository),
        *("--name", task.savepoint),
        *((f"--as={literal(query)}",) if query else ()),
        *(("--source-endpoint-url", literal(source)) if source else ()),
    ]


def _remove(owner: Owner, spec: JobSpec, task: RemoveData) -> list[str]:
    life = ("--life", task.life) if task.life else ()
    return ["remove", "--root", literal(spec.checkpoint.location), *_job(owner), *life]


def _rehearse(
    owner: Owner, spec: JobSpec, task: Rehearse, repository: Repository | None
) -> list[str]:
    return [
        "rehearse",
        *("--savepoint", task.savepoint),
        *_job(owner),
        *repository_arguments(repository),
        *_captured_from(owner, spec, task.captured_from),
        *("--deadline", str(_deadline(spec, strict=task.strict))),
        *(("--replay",) if task.strict else ()),
        "--",
        literal(objects.script_path(spec)),
        *spec.args,
    ]


def _examine(
    owner: Owner, spec: JobSpec, task: Examine, repository: Repository | None
) -> list[str]:
    return [
        "repartition",
        "--check",
        *("--name", task.savepoint),
        *_job(owner),
        *repository_arguments(repository),
        *_captured_from(owner, spec, task.captured_from),
        *("--partitions", str(task.partitions)),
    ]


def _repartition(owner: Owner, task: Repartition, repository: Repository | None) -> list[str]:
    return [
        "repartition",
        *("--name", task.savepoint),
        *_job(owner),
        *repository_arguments(repository),
        *("--partitions", str(task.partitions)),
        *("--as", task.made),
        *("--scratch", objects.LOCAL_DIRECTORY),
    ]


def _captured_from(owner: Owner, spec: JobSpec, run: Run | None) -> list[str]:
    if run is None:
        return []
    source = spec.storage.endpoint_url
    return [
        *("--epoch-dir", literal(objects.epoch_directory(owner, spec, run))),
        *("--epoch", str(run.epoch)),
        *(("--source-endpoint-url", literal(source)) if source else ()),
    ]


def repository_arguments(repository: Repository | None) -> list[str]:
    """Where savepoints are."""
    if repository is None:
        return []
    endpoint = repository.endpoint_url
    return [
        *("--repository", literal(repository.uri)),
        *(("--endpoint-url", literal(endpoint)) if endpoint else ()),
    ]


def _deadline(spec: JobSpec, *, strict: bool) -> int:
    """Seconds for a driver of a trial: less than its pod is given, so that it can say how far it
    came. A replay is a second one."""
    share = _SHARE / 2 if strict else _SHARE
    return max(_LEAST, int(share * spec.upgrade.rollback.deadline.seconds))


def _job(owner: Owner) -> tuple[str, str]:
    return "--job", f"{owner.namespace}/{owner.name}"
