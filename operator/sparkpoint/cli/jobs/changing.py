"""`job suspend`, `job resume` and `job restore`: one field of the spec, and the wait for it."""

from sparkpoint.api.errors import InvalidResourceError
from sparkpoint.api.validation import validate
from sparkpoint.cli.answer import Answer, Settings
from sparkpoint.cli.jobs.awaiting import Patience, Waited, await_goal
from sparkpoint.cli.jobs.cluster import JOBS, Cluster, Object
from sparkpoint.cli.jobs.documents import operation_document
from sparkpoint.cli.jobs.facts import completed_at, job_of, metadata, spec_of, status_of
from sparkpoint.cli.jobs.finding import find_savepoint, live_job
from sparkpoint.cli.jobs.session import Place, open_cluster
from sparkpoint.cli.jobs.specs import merged
from sparkpoint.cli.jobs.verdicts import Goal, carried_out, running, suspended, unless_overtaken
from sparkpoint.cli.render.text import seconds

__all__ = ["finish", "restore", "restore_patch", "resume", "suspend"]


def suspend(settings: Settings, place: Place, name: str, patience: Patience) -> Answer:
    """Stop at a boundary, with a savepoint. One that is suspended stays so."""
    cluster = open_cluster(place)
    live_job(cluster, name)
    asked = cluster.patch(JOBS, name, {"spec": {"suspend": True}})
    goal = unless_overtaken(suspended, suspend=True)
    return finish(settings, cluster, asked, goal, patience, done="suspended")


def resume(settings: Settings, place: Place, name: str, patience: Patience) -> Answer:
    """Go on from where it stands. One that runs goes on running."""
    cluster = open_cluster(place)
    body = live_job(cluster, name)
    asked = body
    if spec_of(body).get("suspend"):
        asked = cluster.patch(JOBS, name, {"spec": {"suspend": False}})
    goal = unless_overtaken(running, suspend=None)
    return finish(settings, cluster, asked, goal, patience, done="running")


def restore(
    settings: Settings,
    place: Place,
    name: str,
    *,
    savepoint: str,
    sink: str,
    again: bool,
    patience: Patience,
) -> Answer:
    """Bring the job to the state of a savepoint, by `spec.restoreFrom`."""
    cluster = open_cluster(place)
    body = live_job(cluster, name)
    found = find_savepoint(cluster, name, savepoint)
    patch = restore_patch(spec_of(body), metadata(found)["name"], sink, again=again)
    notes = list(_notes(body, found, asked_before=not patch))
    asked = body
    if patch:
        after = merged(spec_of(body), patch)
        if errors := validate(after, old=spec_of(body)):
            raise InvalidResourceError(errors)
        asked = cluster.patch_spec(JOBS, body, patch)
    goal = unless_overtaken(carried_out, restoreFrom=spec_of(asked).get("restoreFrom"))
    done = f"restored from {metadata(found)['name']}"
    return finish(settings, cluster, asked, goal, patience, done=done, notes=notes)


def restore_patch(spec: Object, savepoint: str, sink: str, *, again: bool) -> Object:
    """What has to change for this restore; empty if it was asked for already.

    The operator acts on a change of `restoreFrom`: to do the same once more takes another nonce.
    """
    now = spec.get("restoreFrom") or {}
    same = now.get("savepoint") == savepoint and now.get("sink", "Resume") == sink
    if same and not again:
        return {}
    nonce = (now.get("nonce") or 0) + 1 if same else None
    # null: the name takes the place of whatever was there before.
    return {"restoreFrom": {"savepoint": savepoint, "manifest": None, "sink": sink, "nonce": nonce}}


def _notes(body: Object, savepoint: Object, *, asked_before: bool) -> list[str]:
    notes, name = [], metadata(savepoint)["name"]
    if asked_before:
        notes.append(
            f"spec.restoreFrom named {name} already, so nothing was asked for anew; --again "
            "restores it once more."
        )
    if completed_at(savepoint) is None:
        notes.append(f"Savepoint {name} is not complete yet; the operator waits for it.")
    if job_of(savepoint) != metadata(body)["name"]:
        notes.append(f"Savepoint {name} was taken of job {job_of(savepoint)}.")
    if spec_of(body).get("suspend"):
        notes.append("The job is suspended: it is restored when it is resumed.")
    return notes


def finish(
    settings: Settings,
    cluster: Cluster,
    asked: Object,
    goal: Goal,
    patience: Patience,
    *,
    done: str,
    notes: list[str] | None = None,
    also: Object | None = None,
) -> Answer:
    """Wait for what was asked of a job, if that is wanted, and tell how it went."""
    name = metadata(asked)["name"]
    if patience.wait:
        waited = await_goal(settings, cluster, JOBS, name, goal, patience.timeout)
    else:
        waited = Waited(result="Asked", body=asked)
    return Answer(
        document={**operation_document(name, waited), **(also or {}), "notes": notes or []},
        text="" if waited.exit else _text(name, waited, done),
        notes=tuple(notes or ()),
        alarm=f"{name}: {waited.message}" if waited.exit else "",
        exit=waited.exit,
    )


def _text(name: str, waited: Waited, done: str) -> str:
    if waited.result == "Asked":
        return f"{name}: asked to be {done}; see: sparkpoint job status {name}"
    status = status_of(waited.body)
    down = (status.get("lastOperation") or {}).get("downtimeSeconds")
    last = status.get("lastSavepoint") or {}
    more = [f"{name}: {done} after {seconds(waited.seconds)}"]
    if down is not None and status.get("phase") == "Running":
        more.append(f"{seconds(down)} without a commit")
    if status.get("phase") == "Suspended" and last:
        more.append(f"savepoint {last.get('name')} at batch {last.get('batch')}")
    return ", ".join(more)
