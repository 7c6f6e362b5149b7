"""Savepoints made from savepoints: their names, and what they inherit."""

from sparkpoint.savepoint import CaptureRequest, Manifest, Repository, Savepoint
from sparkpoint.savepoint.errors import NameTakenError, NoSuchSavepointError
from sparkpoint.savepoint.names import check_name

__all__ = ["capture_of", "check_free", "child_name"]

_LONGEST_NAME = 128


def child_name(name: str, ending: str) -> str:
    """The same for the same request, so that asking twice makes one."""
    return name[: _LONGEST_NAME - len(ending)].rstrip("-._") + ending


def check_free(repository: Repository, manifest: Manifest, name: str) -> None:
    """Fail before the work; the create-only write of the manifest decides in the end."""
    check_name(name, "savepoint")
    try:
        found = repository.find(f"{manifest.namespace}/{manifest.job}/{name}")
    except NoSuchSavepointError:
        return
    raise NameTakenError(f"{found.key} exists already. Choose another name with --name.", found)


def capture_of(parent: Savepoint, name: str, *, trigger: str) -> CaptureRequest:
    """How a changed copy of a savepoint is captured as its child."""
    manifest = parent.manifest
    return CaptureRequest(
        namespace=manifest.namespace,
        job=manifest.job,
        name=name,
        parent=parent,
        revision=manifest.revision,
        spark_version=manifest.spark_version,
        epoch=manifest.source.epoch,
        trigger=trigger,
    )
