"""`job savepoint`: ask for a SparkSavepoint, and see it taken."""

import secrets
from dataclasses import dataclass
from datetime import UTC, datetime

from pydantic import TypeAdapter, ValidationError

from sparkpoint.api.common import API_VERSION
from sparkpoint.api.errors import FieldError, InvalidResourceError
from sparkpoint.api.scalars import ObjectName
from sparkpoint.api.validation import validate_resource
from sparkpoint.cli.answer import Answer, Settings
from sparkpoint.cli.jobs.awaiting import Patience, Waited, await_goal
from sparkpoint.cli.jobs.cluster import SAVEPOINTS, Cluster, Object
from sparkpoint.cli.jobs.documents import savepoint_document
from sparkpoint.cli.jobs.errors import AlreadyExistsError, RefusedError
from sparkpoint.cli.jobs.facts import metadata, spec_of, status_of
from sparkpoint.cli.jobs.finding import live_job
from sparkpoint.cli.jobs.session import Place, open_cluster
from sparkpoint.cli.jobs.verdicts import savepoint_taken
from sparkpoint.cli.render.text import fields, new_share, seconds, size

__all__ = ["NewSavepoint", "take_savepoint"]


@dataclass(frozen=True, slots=True, kw_only=True)
class NewSavepoint:
    """What was asked for."""

    name: str | None
    tags: tuple[str, ...] = ()
    verify: str | None = None


def take_savepoint(
    settings: Settings, place: Place, job: str, wanted: NewSavepoint, patience: Patience
) -> Answer:
    """Make the resource, and wait for it. The same name with the same wishes is the same one."""
    cluster = open_cluster(place)
    body = live_job(cluster, job)
    if not spec_of(body).get("savepoints"):
        raise RefusedError(
            f"Job {job} has no place for savepoints: set spec.savepoints.repository first."
        )
    made = _make(cluster, _resource(cluster.namespace, job, wanted))
    name = metadata(made)["name"]
    if not patience.wait:
        return _answer(Waited(result="Asked", body=made), name)
    goal = savepoint_taken(checked=_is_checked(wanted, body))
    return _answer(await_goal(settings, cluster, SAVEPOINTS, name, goal, patience.timeout), name)


def _is_checked(wanted: NewSavepoint, job: Object) -> bool:
    by_default = (spec_of(job).get("savepoints") or {}).get("verify", "Skip")
    return (wanted.verify or by_default) != "Skip"


def _resource(namespace: str, job: str, wanted: NewSavepoint) -> Object:
    spec: Object = {"jobRef": {"name": job}, "trigger": "Manual"}
    if wanted.tags:
        spec["tags"] = sorted(set(wanted.tags))
    if wanted.verify is not None:
        spec["verify"] = wanted.verify
    resource = {
        "apiVersion": API_VERSION,
        "kind": "SparkSavepoint",
        "metadata": {"name": wanted.name or _fresh_name(job), "namespace": namespace},
        "spec": spec,
    }
    errors = [*_name_errors(metadata(resource)["name"]), *validate_resource(resource)]
    if errors:
        raise InvalidResourceError(errors)
    return resource


def _name_errors(name: str) -> list[FieldError]:
    """What the API server would refuse of any object; our rules know only what is special."""
    try:
        TypeAdapter(ObjectName).validate_python(name)
    except ValidationError:
        words = "lower-case letters, digits, '-' and '.'"
        return [FieldError("metadata.name", f"{name!r} is no name", f"use {words}")]
    return []


def _fresh_name(job: str) -> str:
    return f"{job}-{datetime.now(UTC):%Y%m%d%H%M%S}-{secrets.token_hex(2)}"


def _make(cluster: Cluster, resource: Object) -> Object:
    name = metadata(resource)["name"]
    try:
        return cluster.create(SAVEPOINTS, resource)
    except AlreadyExistsError as error:
        there = cluster.get(SAVEPOINTS, name)
        different = _differences(spec_of(resource), spec_of(there))
        if different:
            raise AlreadyExistsError(
                f"There is another savepoint {name}, with {different}. Choose another name."
            ) from error
        return there


def _differences(wanted: Object, there: Object) -> str:
    """What somebody who asked for `wanted` would not expect."""
    told = ("jobRef", "trigger", "existing", "verify")
    pairs = [(name, there.get(name)) for name in told if wanted.get(name) != there.get(name)]
    if sorted(wanted.get("tags") or []) != sorted(there.get("tags") or []):
        pairs.append(("tags", there.get("tags") or []))
    return ", ".join(f"spec.{name}: {value}" for name, value in pairs)


def _answer(waited: Waited, name: str) -> Answer:
    body, status = waited.body, status_of(waited.body)
    done = status.get("phase") == "Completed"
    about = fields(
        [
            ("id", str(status.get("id") or "")),
            ("batch", str(status.get("batch", ""))),
            ("size", size(status["bytes"]) if "bytes" in status else ""),
            ("new", new_share(status["newBytes"], status["bytes"]) if "newBytes" in status else ""),
            ("checked", str((status.get("verified") or {}).get("verdict") or "")),
            ("repository", str(status.get("repository") or "")),
            ("waited", seconds(waited.seconds) if waited.result != "Asked" else ""),
        ]
    )
    head = f"Savepoint {name} is complete" if done else f"Asked for savepoint {name}"
    return Answer(
        document={
            "result": waited.result,
            "message": waited.message,
            "seconds": round(waited.seconds, 3),
            "savepoint": savepoint_document(body) if body else {"name": name},
        },
        text="\n".join([head, *about]) if done or not waited.exit else "",
        alarm=f"Savepoint {name}: {waited.message}" if waited.exit else "",
        exit=waited.exit,
    )
