"""Jobs and runs to build objects from."""

from pathlib import Path
from typing import Any

import yaml

from sparkpoint.api.job import JobSpec
from sparkpoint.controller.objects import Manifest, Owner
from sparkpoint.lifecycle.record import Begin, Origin, Revision, Run

__all__ = [
    "GOLDEN",
    "OWNER",
    "container",
    "golden_spec",
    "make_run",
    "make_spec",
    "minimal",
    "only",
]

GOLDEN = Path(__file__).parent / "golden"
OWNER = Owner(namespace="shop", name="visits", uid="0b1c2d3e-4f50-6172-8394-a5b6c7d8e9fa")
_REVISION = Revision(name="a1b2c3d4e5", code="c0dec0dec0", size="512e512e51", state="57a7e57a7e")


def minimal() -> dict[str, Any]:
    """The fewest fields that a job needs."""
    return {
        "image": "sparkpoint.dev/runtime:spark-4.3.0",
        "application": {"script": {"path": "/opt/job/visits.py"}},
        "executor": {"instances": 2},
        "checkpoint": {"location": "s3://data/checkpoints"},
        "savepoints": {"repository": "s3://data/savepoints"},
    }


def make_spec(**changes: Any) -> JobSpec:
    """A minimal job with these fields, as the resource calls them."""
    return JobSpec.model_validate({**minimal(), **changes})


def golden_spec(name: str) -> JobSpec:
    """One of the jobs in the folder of golden files."""
    return JobSpec.model_validate(
        yaml.load((GOLDEN / f"{name}.spec.yaml").read_text(), yaml.CSafeLoader)
    )


def make_run(*, epoch: int = 3, attempt: int = 7, origin: Origin | None = None) -> Run:
    """An attempt; it begins from an empty directory unless said otherwise."""
    begun = origin or Origin(begin=Begin.EMPTY)
    return Run(epoch=epoch, attempt=attempt, revision=_REVISION, origin=begun, source=begun)


def only(objects: tuple[Manifest, ...], kind: str) -> Manifest:
    """The one object of this kind."""
    (found,) = [each for each in objects if each["kind"] == kind]
    return found


def container(pod: Manifest) -> dict[str, Any]:
    """The first container of a pod."""
    found: dict[str, Any] = pod["spec"]["containers"][0]
    return found
