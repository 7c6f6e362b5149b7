"""What a worker is told to do: the command lines of `python -m sparkpoint.worker`."""

from typing import assert_never

from sparkpoint.api.job import JobSpec
from sparkpoint.controller import objects
from sparkpoint.controller.objects import Owner, Repository
from sparkpoint.lifecycle.actions import Capture, Rehearse, RemoveData, Task

__all__ = ["arguments", "capture_arguments", "repository_arguments"]


def arguments(
    owner: Owner, spec: JobSpec, task: Task, *, repository: Repository | None, trigger: str
) -> list[str]:
    """For a task of an operation; `repository` is where its savepoint is, or goes."""
    match task:
        case Capture():
            return capture_arguments(owner, spec, task, repository=repository, trigger=trigger)
        case Rehearse():
            return _rehearse(owner, spec, task, repository)
        case RemoveData():
            return ["remove", "--root", spec.checkpoint.location, *_job(owner)]
        case _:
            assert_never(task)


def capture_arguments(
    owner: Owner, spec: JobSpec, task: Capture, *, repository: Repository | None, trigger: str
) -> list[str]:
    """A savepoint of an epoch directory, the same whoever takes it: agent or worker."""
    source = spec.storage.endpoint_url
    return [
        "capture",
        *("--epoch-dir", objects.epoch_directory(owner, spec, task.run.epoch)),
        *("--epoch", str(task.run.epoch)),
        *_job(owner),
        *repository_arguments(repository),
        *("--name", task.savepoint),
        *("--revision", task.run.revision.name),
        *("--trigger", trigger),
        *(("--source-endpoint-url", source) if source else ()),
    ]


def _rehearse(
    owner: Owner, spec: JobSpec, task: Rehearse, repository: Repository | None
) -> list[str]:
    return [
        "rehearse",
        *("--savepoint", task.savepoint),
        *_job(owner),
        *repository_arguments(repository),
        "--",
        objects.script_path(spec),
        *spec.args,
    ]


def repository_arguments(repository: Repository | None) -> list[str]:
    """Where savepoints are."""
    if repository is None:
        return []
    endpoint = ["--endpoint-url", repository.endpoint_url] if repository.endpoint_url else []
    return ["--repository", repository.uri, *endpoint]


def _job(owner: Owner) -> tuple[str, str]:
    return "--job", f"{owner.namespace}/{owner.name}"
