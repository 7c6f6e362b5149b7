"""`job rollback`: the spec, and if asked the script and the state, of an earlier revision.

The operator keeps every accepted spec as a ControllerRevision, with the script if that came from a
ConfigMap. Fields that belong to no revision, such as the retention of savepoints, stay as they are.
"""

import sys
from dataclasses import dataclass, field
from typing import Any

from sparkpoint.api.errors import InvalidResourceError
from sparkpoint.api.validation import validate
from sparkpoint.cli.answer import Answer, Settings, printable
from sparkpoint.cli.jobs.awaiting import Patience
from sparkpoint.cli.jobs.changing import finish, restore_patch
from sparkpoint.cli.jobs.cluster import (
    CONFIG_MAPS,
    JOB,
    JOBS,
    REVISIONS,
    Cluster,
    Object,
    find,
)
from sparkpoint.cli.jobs.errors import NotFoundError, RefusedError
from sparkpoint.cli.jobs.facts import metadata, spec_of, status_of
from sparkpoint.cli.jobs.finding import find_savepoint, live_job
from sparkpoint.cli.jobs.session import Place, open_cluster
from sparkpoint.cli.jobs.specs import Difference, differences, merged, patch_between, revised
from sparkpoint.cli.jobs.verdicts import back_at, carried_out

__all__ = ["Rollback", "roll_back"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rollback:
    """What was asked for."""

    to: str | None = None
    """A revision; None: the stable one, or the one before it if that is what the spec says."""
    savepoint: str | None = None
    """Where the state goes back to; None: it goes on from where it is."""
    sink: str | None = None
    script: bool | None = None
    """Whether the script in the ConfigMap goes back, too; None: nobody has said."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Plan:
    """Everything that a rollback changes."""

    revision: str
    patch: Object
    changes: list[Difference]
    config_map: Object | None = None
    """The ConfigMap as it is, if the script in it is to be put back."""
    key: str = ""
    script: str = ""
    notes: list[str] = field(default_factory=list)

    def lines(self) -> list[str]:
        """For a person, before anything is done."""
        found = [str(each) for each in self.changes]
        if self.config_map is not None:
            name = metadata(self.config_map)["name"]
            found.append(
                f"ConfigMap {name}, key {self.key}: the script of the revision is put back"
            )
        return found


def roll_back(
    settings: Settings, place: Place, name: str, wanted: Rollback, patience: Patience, *,
    dry_run: bool,
) -> Answer:  # fmt: skip
    """Say what changes, and change it, unless it is only to be said."""
    cluster = open_cluster(place)
    body = live_job(cluster, name)
    plan = _plan(cluster, body, wanted)
    document = _document(plan, dry_run=dry_run)
    if not plan.lines():
        return _nothing_to_do(name, plan, document)
    # Whatever the API server refuses is known before the first write.
    checked = cluster.patch_spec(JOBS, body, plan.patch, dry_run=True) if plan.patch else body
    text = "\n".join([f"{name}: back to revision {plan.revision}", *_indented(plan)])
    if dry_run:
        document |= {"namespace": metadata(body)["namespace"], "job": name}
        return Answer(document=document, text=text, notes=tuple(plan.notes))
    if not settings.quiet:
        print(printable(text), file=sys.stderr)
    asked = _carry_out(cluster, body, plan) or checked
    goal = carried_out if plan.config_map is None else back_at(plan.revision, asked_at=body)
    done = f"at revision {plan.revision}"
    return finish(
        settings, cluster, asked, goal, patience, done=done, notes=plan.notes, also=document
    )


def _indented(plan: _Plan) -> list[str]:
    return [f"  {line}" for line in plan.lines()]


def _carry_out(cluster: Cluster, body: Object, plan: _Plan) -> Object | None:
    """The script first: run again after a death in between, the command does the rest."""
    if plan.config_map is not None:
        about = metadata(plan.config_map)
        change = {
            "metadata": {"resourceVersion": about["resourceVersion"]},
            "data": {plan.key: plan.script},
        }
        cluster.patch(CONFIG_MAPS, about["name"], change)
    return cluster.patch_spec(JOBS, body, plan.patch) if plan.patch else None


def _nothing_to_do(name: str, plan: _Plan, document: Object) -> Answer:
    return Answer(
        document={**document, "job": name, "result": "Succeeded"},
        text=f"{name}: the spec is that of revision {plan.revision} already; nothing to do",
        notes=tuple(plan.notes),
    )


def _document(plan: _Plan, *, dry_run: bool) -> Object:
    put_back = metadata(plan.config_map)["name"] if plan.config_map is not None else None
    return {
        "dryRun": dry_run,
        "revision": plan.revision,
        "changes": [each.document() for each in plan.changes],
        "scriptPutBack": put_back,
        "notes": plan.notes,
    }


def _plan(cluster: Cluster, body: Object, wanted: Rollback) -> _Plan:
    current = spec_of(body)
    revision, stored = _choose(cluster, body, wanted)
    patch = patch_between(current, revised(stored["spec"], current))
    differs = None
    if wanted.script is not False:
        differs = _script_to_put_back(cluster, merged(current, patch), stored)
    if differs is not None and wanted.script is None:
        raise RefusedError(_about_script(differs[0], revision))
    notes: list[str] = []
    if wanted.savepoint is not None:
        found = find_savepoint(cluster, metadata(body)["name"], wanted.savepoint, revision=revision)
        # The same restore as before is another one for another revision.
        again = bool(patch) or differs is not None
        name = metadata(found)["name"]
        restore = restore_patch(current, name, wanted.sink or "Resume", again=again)
        notes += [] if restore else [_asked_before(metadata(body)["name"], name, wanted)]
        patch |= restore
    if errors := validate(merged(current, patch), old=current):
        raise InvalidResourceError(errors)
    return _Plan(
        revision=revision,
        patch=patch,
        changes=differences(current, patch),
        config_map=differs[0] if differs is not None else None,
        key=differs[1] if differs is not None else "",
        script=str(stored.get("script") or ""),
        notes=notes,
    )


def _asked_before(job: str, savepoint: str, wanted: Rollback) -> str:
    sink = (wanted.sink or "Resume").lower()
    return (
        f"spec.restoreFrom named {savepoint} already, so nothing was asked for anew; sparkpoint "
        f"job restore {job} --savepoint {savepoint} --sink {sink} --again restores it once more."
    )


def _about_script(config_map: Object, revision: str) -> str:
    name = metadata(config_map)["name"]
    return (
        f"The script in ConfigMap {name} is another one than that of revision {revision}, and the "
        "spec alone does not bring it back. Give --script to put it back, too (whatever else uses "
        f"ConfigMap {name} gets it as well), or --no-script to roll back the spec alone."
    )


def _script_to_put_back(
    cluster: Cluster, spec: Object, stored: Object
) -> tuple[Object, str] | None:
    """The ConfigMap, and the key in it that holds another script than the revision had."""
    source = ((spec.get("application") or {}).get("script") or {}).get("configMap")
    if not source or stored.get("script") is None:
        return None
    body = find(cluster, CONFIG_MAPS, source["name"])
    if body is None:
        raise NotFoundError(
            f"ConfigMap {source['name']}, which revision {stored['name']} has its script from, is "
            "gone. Make it again first."
        )
    same = (body.get("data") or {}).get(source["key"]) == stored["script"]
    return None if same else (body, str(source["key"]))


def _choose(cluster: Cluster, body: Object, wanted: Rollback) -> tuple[str, dict[str, Any]]:
    """The revision to go back to, and what was stored under it."""
    stored = _stored(cluster, body)
    if not stored:
        raise NotFoundError(f"Job {metadata(body)['name']} has no stored revision yet.")
    if wanted.to is not None:
        matching = [name for name in stored if name.startswith(wanted.to)]
        if len(matching) == 1:
            return matching[0], stored[matching[0]]
        problem = "is not the name of one" if not matching else "could mean several"
        raise NotFoundError(f"Revision {wanted.to} {problem}. {_listed(body, stored)}")
    stable = (status_of(body).get("revisions") or {}).get("stable")
    if stable in stored and _differs(cluster, body, stored[stable]):
        return stable, stored[stable]
    return _before(body, stored, stable)


def _differs(cluster: Cluster, body: Object, stored: dict[str, Any]) -> bool:
    current = spec_of(body)
    wanted = revised(stored["spec"], current)
    return bool(patch_between(current, wanted)) or (
        _script_to_put_back(cluster, wanted, stored) is not None
    )


def _before(
    body: Object, stored: dict[str, dict[str, Any]], stable: str | None
) -> tuple[str, dict[str, Any]]:
    """The newest that is older than the stable one, which is what the spec says already."""
    limit = stored[stable]["generation"] if stable in stored else None
    older = [name for name in stored if limit is not None and stored[name]["generation"] < limit]
    if not older:
        raise NotFoundError(
            "No revision is known to have been stable before this one; say which one is meant with "
            f"--to. {_listed(body, stored)}"
        )
    newest = max(older, key=lambda name: int(stored[name]["generation"]))
    return newest, stored[newest]


def _listed(body: Object, stored: dict[str, dict[str, Any]]) -> str:
    known = status_of(body).get("revisions") or {}
    words = []
    for name in sorted(stored, key=lambda each: -int(stored[each]["generation"])):
        roles = [role for role in ("current", "stable", "failed") if known.get(role) == name]
        extra = f", {', '.join(roles)}" if roles else ""
        words.append(f"{name} (generation {stored[name]['generation']}{extra})")
    return f"There are: {'; '.join(words)}."


def _stored(cluster: Cluster, body: Object) -> dict[str, dict[str, Any]]:
    """By name. What an earlier job of the same name has left is not ours."""
    about = metadata(body)
    found: dict[str, dict[str, Any]] = {}
    for each in cluster.list(REVISIONS, labels={JOB: about["name"]}):
        owners = [owner.get("uid") for owner in metadata(each).get("ownerReferences") or []]
        if about["uid"] in owners:
            name = metadata(each)["name"].removeprefix(f"{about['name']}-")
            data = each.get("data") or {}
            found[name] = {**data, "generation": each.get("revision", 0), "name": name}
    return found
