"""`job fork`: a second job that begins with the state of a savepoint and writes elsewhere."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from sparkpoint.api.common import API_VERSION
from sparkpoint.api.errors import InvalidResourceError
from sparkpoint.api.validation import validate_resource
from sparkpoint.cli.answer import Answer, Settings
from sparkpoint.cli.jobs.awaiting import Patience
from sparkpoint.cli.jobs.changing import finish
from sparkpoint.cli.jobs.cluster import JOBS, Cluster, Object
from sparkpoint.cli.jobs.errors import AlreadyExistsError, RefusedError
from sparkpoint.cli.jobs.facts import metadata, spec_of
from sparkpoint.cli.jobs.finding import find_job, find_savepoint
from sparkpoint.cli.jobs.session import Place, open_cluster
from sparkpoint.cli.jobs.specs import patch_between, put, without_secrets
from sparkpoint.cli.jobs.verdicts import running

__all__ = ["Fork", "fork_job"]

_NOT_INHERITED: Final = ("suspend", "restartNonce", "restoreFrom")
_OUTPUT: Final = (
    ("application",),
    ("args",),
    ("driver", "env"),
    ("driver", "envFrom"),
    ("sparkConf",),
    ("hadoopConf",),
)
"""Where a script learns where to write."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fork:
    """What was asked for."""

    name: str
    savepoint: str
    changes: tuple[str, ...] = ()
    same_output: bool = False


def fork_job(
    settings: Settings, place: Place, origin: str, wanted: Fork, patience: Patience, *,
    dry_run: bool,
) -> Answer:  # fmt: skip
    """Make the second job. The first one is only read."""
    cluster = open_cluster(place)
    body = find_job(cluster, origin)
    found = find_savepoint(cluster, origin, wanted.savepoint)
    manifest = _manifest(body, wanted, savepoint=metadata(found)["name"])
    _refuse_the_same_output(body, manifest, wanted)
    if dry_run:
        cluster.create(JOBS, manifest, dry_run=True)
        return Answer(document={"dryRun": True, "manifest": manifest}, text=_yaml(manifest))
    made = _make(cluster, manifest)
    return finish(
        settings, cluster, made, running, patience,
        done=f"running, from savepoint {metadata(found)['name']} of {origin}",
        also={"dryRun": False, "manifest": manifest},
    )  # fmt: skip


def _manifest(body: Object, wanted: Fork, *, savepoint: str) -> Object:
    spec = {name: value for name, value in spec_of(body).items() if name not in _NOT_INHERITED}
    checkpoint = {
        key: value for key, value in spec["checkpoint"].items() if not key.startswith("adopt")
    }
    spec = {**spec, "checkpoint": checkpoint}
    spec["restoreFrom"] = {"savepoint": savepoint, "sink": "Fork"}
    for change in wanted.changes:
        spec = put(spec, change)
    manifest = {
        "apiVersion": API_VERSION,
        "kind": "StatefulSparkJob",
        "metadata": {"name": wanted.name, "namespace": metadata(body)["namespace"]},
        "spec": spec,
    }
    if errors := validate_resource(manifest):
        raise InvalidResourceError(errors)
    return manifest


def _refuse_the_same_output(body: Object, manifest: Object, wanted: Fork) -> None:
    """The operator cannot know where a script writes; two that write to one place ruin it."""
    before, after = spec_of(body), manifest["spec"]
    changed = any(_at(before, path) != _at(after, path) for path in _OUTPUT)
    if changed or wanted.same_output:
        return
    shown = enumerate(without_secrets(before.get("args") or [], "args"))
    arguments = " ".join(f"[{place}] {text}" for place, text in shown)
    raise RefusedError(
        f"{wanted.name} would have the script, arguments, environment and configuration of "
        f"{metadata(body)['name']}, and so write to the same place. Say where it writes with --set,"
        " such as --set args[1]=--output=/elsewhere"
        + (f" (its arguments are: {arguments})" if arguments else "")
        + ", or give --same-output if that is meant."
    )


def _at(spec: Object, path: tuple[str, ...]) -> object:
    """What is there; None also for what is there, but empty."""
    found: Any = spec
    for key in path:
        found = found.get(key) if isinstance(found, Mapping) else None
    return found or None


def _make(cluster: Cluster, manifest: Object) -> Object:
    try:
        return cluster.create(JOBS, manifest)
    except AlreadyExistsError as error:
        there = cluster.get(JOBS, metadata(manifest)["name"])
        if patch_between(spec_of(there), spec_of(manifest)):
            raise AlreadyExistsError(
                f"There is another job {metadata(manifest)['name']} already, and it stays as it "
                "is. Choose another name."
            ) from error
        return there


def _yaml(manifest: Object) -> str:
    import yaml

    text: str = yaml.safe_dump(manifest, sort_keys=False, allow_unicode=True)
    return text
