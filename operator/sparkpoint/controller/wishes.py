"""From a job's spec to what is wished of its life.

A spec that cannot be used wishes for nothing new: what was written down before goes on, so that a
typing mistake never keeps a job from being healed.
"""

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from sparkpoint.api.errors import FieldError
from sparkpoint.api.job import JobSpec
from sparkpoint.api.pods import Driver, Executor
from sparkpoint.api.policies import RestoreFrom
from sparkpoint.api.scalars import OnDelete
from sparkpoint.api.validation import validate
from sparkpoint.controller.objects import template_errors, unfit_templates, unsafe_templates
from sparkpoint.controller.restores import Restorable
from sparkpoint.lifecycle.phases import Kind
from sparkpoint.lifecycle.record import Adoption, Record, SinkPolicy
from sparkpoint.lifecycle.world import Policy, RestoreWish, Wish

__all__ = [
    "Acceptance",
    "accept",
    "adoption",
    "kept_wish",
    "restore_key",
    "restore_wish",
    "sparing",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Acceptance:
    """A spec that can be used, or everything that is wrong with it."""

    spec: JobSpec | None
    errors: tuple[FieldError, ...] = ()

    @property
    def sentence(self) -> str:
        """All mistakes, one per line."""
        return "\n".join(str(error) for error in self.errors)


def accept(
    spec: Mapping[str, Any], *, former: JobSpec | None = None, unsafe_pods: bool = False
) -> Acceptance:
    """Judge a spec; with the former one also the change. `unsafe_pods`: they are allowed."""
    old = former.model_dump(mode="json", by_alias=True, exclude_none=True) if former else None
    templates = _templates_of(spec)
    errors = [*validate(spec, old=old), *unfit_templates(templates)]
    if errors and old is not None:
        errors = _not_kept(errors, spec, old)
    # Of these no pod can be made, or none may be, whoever had them before.
    unsafe = [] if unsafe_pods else unsafe_templates(templates)
    errors = [*errors, *template_errors(templates), *unsafe]
    if errors:
        return Acceptance(spec=None, errors=tuple(errors))
    return Acceptance(spec=JobSpec.model_validate(spec))


def _not_kept(
    errors: Sequence[FieldError], spec: Mapping[str, Any], old: Mapping[str, Any]
) -> list[FieldError]:
    """Without those that an earlier operator has accepted, and nobody has changed since.

    So does the API server: a rule that is new would else take every other wish from the job.
    """
    before = {*validate(old), *unfit_templates(_templates_of(old))}
    return [
        error
        for error in errors
        if error not in before or _at(error.path, spec) != _at(error.path, old)
    ]


def _at(path: str, spec: Mapping[str, Any]) -> Any:
    """What a mistake is about; None if it is not there."""
    value: Any = {"spec": spec}
    for name, inner in re.findall(r"([^.\[\]]+)|\[([^\]]*)\]", path):
        if isinstance(value, Mapping):
            value = value.get(name or inner)
        elif isinstance(value, list | tuple) and inner.isdecimal() and int(inner) < len(value):
            value = value[int(inner)]
        else:
            return None
    return value


def _templates_of(spec: Mapping[str, Any]) -> JobSpec:
    """Pod templates, as far as they are objects at all: a mistake elsewhere does not hide theirs.

    What is found in them here need not be found when a driver is to be made, after the one before
    it was stopped.
    """
    driver, executor = _template(spec, "driver"), _template(spec, "executor")
    return JobSpec.model_construct(
        driver=Driver.model_construct(pod_template=driver),
        executor=Executor.model_construct(pod_template=executor),
    )


def _template(spec: Mapping[str, Any], role: str) -> dict[str, Any]:
    part = spec.get(role)
    found = part.get("podTemplate") if isinstance(part, Mapping) else None
    return dict(found) if isinstance(found, Mapping) else {}


def restore_key(wanted: RestoreFrom) -> str:
    """The same wish has the same key; a nonce makes it another one."""
    text = json.dumps(wanted.model_dump(mode="json", exclude_none=True), sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def restore_wish(wanted: RestoreFrom, found: Restorable) -> RestoreWish:
    """To go to that savepoint."""
    sink: SinkPolicy = wanted.sink.value
    return RestoreWish(
        key=restore_key(wanted),
        savepoint=found.savepoint,
        sink=sink,
        ready=not found.problem,
        problem=found.problem,
        lack=found.lack,
    )


def adoption(spec: JobSpec) -> Adoption | None:
    """The checkpoint that a new job is to take on."""
    checkpoint = spec.checkpoint
    if checkpoint.adopt is None:
        return None
    return Adoption(location=checkpoint.adopt, query=checkpoint.adopt_as)


def sparing(former: JobSpec, present: Mapping[str, Any]) -> JobSpec:
    """The former spec, which deletes with the job only what the present one says to delete, too.

    The former one may be older than the last change of that, and the present one cannot be used:
    what it does not say, or not so that it can be read, stays.
    """
    checkpoint, saved = former.checkpoint, former.savepoints
    if not _deletes(present, "checkpoint"):
        checkpoint = checkpoint.model_copy(update={"on_delete": OnDelete.RETAIN})
    if saved is not None and not _deletes(present, "savepoints"):
        saved = saved.model_copy(update={"on_delete": OnDelete.RETAIN})
    return former.model_copy(update={"checkpoint": checkpoint, "savepoints": saved})


def _deletes(spec: Mapping[str, Any], part: str) -> bool:
    said = spec.get(part)
    return isinstance(said, Mapping) and said.get("onDelete") == OnDelete.DELETE.value


def kept_wish(
    record: Record, *, policy: Policy, generation: int, deleting: datetime | None
) -> Wish | None:
    """What was written down goes on and nothing else begins; None if nothing was ever begun."""
    operation, run = record.operation, record.run
    target = operation.target if operation is not None else None
    going = target if target is not None else run
    if going is None:
        return None
    suspending = operation is not None and operation.kind is Kind.SUSPEND
    return Wish(
        generation=operation.generation if operation is not None else generation,
        revision=going.revision,
        suspend=record.suspended or suspending,
        restore=_kept_restore(record),
        adopt=operation.adopt if operation is not None else None,
        deleting=deleting,
        policy=_kept_policy(record, policy),
    )


def _kept_policy(record: Record, policy: Policy) -> Policy:
    """The stored one may be older than what the operation under way is tried by."""
    operation = record.operation
    if operation is None or bool(operation.strict) is policy.strict:
        return policy
    return replace(policy, compatibility="Strict" if operation.strict else "Enforce")


def _kept_restore(record: Record) -> RestoreWish | None:
    """The one that is being carried out."""
    operation = record.operation
    target = operation.target if operation is not None else None
    if operation is None or operation.restore is None or operation.adopt is not None:
        return None
    if target is None:
        return None
    origin = target.origin
    return RestoreWish(key=operation.restore, savepoint=origin.savepoint or "", sink=origin.sink)
