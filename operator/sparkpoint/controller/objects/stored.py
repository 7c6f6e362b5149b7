"""Revisions as Kubernetes keeps them: the accepted spec, and the script that came with it."""

from typing import Any

from pydantic import ValidationError

from sparkpoint.api.job import JobSpec
from sparkpoint.controller.errors import RecordError
from sparkpoint.controller.objects.manifest import Manifest, Owner, job_labels, manifest

__all__ = ["controller_revision", "controller_revision_name", "script_of", "spec_of"]


def controller_revision_name(job: str, revision: str) -> str:
    """Of the object that keeps a revision."""
    return f"{job}-{revision}"


def controller_revision(
    owner: Owner, name: str, spec: JobSpec, generation: int, *, script: str | None = None
) -> Manifest:
    """Keep a spec under its revision's name, as a whole: defaults of a later operator may differ.

    `script` is the content of a script from a ConfigMap, which would otherwise be lost with the
    next change of that ConfigMap, and with it the way back.
    """
    kept = spec.model_dump(mode="json", by_alias=True, exclude_none=True)
    if spec.driver.disruption_budget:
        # One may go back to an operator from before this field, which refuses what it does not
        # know.
        del kept["driver"]["disruptionBudget"]
    data: dict[str, Any] = {"spec": kept}
    if script is not None:
        data["script"] = script
    return manifest(
        owner,
        "apps/v1",
        "ControllerRevision",
        name=controller_revision_name(owner.name, name),
        labels=job_labels(owner),
        data=data,
        revision=generation,
    )


def spec_of(controller_revision: Manifest) -> JobSpec:
    """The spec that was kept, without what only a later operator knows; RecordError if it cannot be
    read."""
    try:
        return JobSpec.model_validate(controller_revision["data"]["spec"], extra="ignore")
    except ValidationError as error:
        name = controller_revision["metadata"]["name"]
        raise RecordError(f"ControllerRevision {name} cannot be read: {_first(error)}") from error


def _first(error: ValidationError) -> str:
    mistake = error.errors(include_input=False)[0]
    return f"{'.'.join(map(str, mistake['loc']))}: {mistake['msg']}"


def script_of(controller_revision: Manifest) -> str | None:
    """The script that was kept with it, if it came from a ConfigMap."""
    script: str | None = controller_revision["data"].get("script")
    return script
