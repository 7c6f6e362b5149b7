"""What a change of each field of a spec means. A new field needs a line in the table below."""

import copy
import functools
import json
import re
from collections.abc import Iterator
from dataclasses import replace
from types import UnionType
from typing import Any, Union, get_args, get_origin

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel

from sparkpoint.api.job import JobSpec
from sparkpoint.controller.revisions import Part, effective, revision_of
from sparkpoint.lifecycle.record import Revision
from tests.unit.controller.objects.samples import golden_spec, minimal

_CODE, _SIZE, _STATE, _NAME, _LIVE = Part.CODE, Part.SIZE, Part.STATE, Part.NAME, Part.LIVE
_TEMPLATE = {"spec": {"nodeSelector": {"disk": "hdd"}}}
_RULE = {"last": 3}

_FIELDS: dict[str, tuple[Part, Any]] = {
    "image": (_CODE, "other"),
    "imagePullPolicy": (_CODE, "Never"),
    "imagePullSecrets": (_CODE, [{"name": "other"}]),
    "sparkVersion": (_CODE, "4.2.1"),
    "serviceAccount": (_CODE, "other"),
    "application.script.path": (_CODE, "/other.py"),
    "application.script.configMap.name": (_CODE, "other"),
    "application.script.configMap.key": (_CODE, "other.py"),
    "application.script.uri": (_CODE, "s3://code/other.py"),
    "args": (_CODE, ["--other"]),
    "sparkConf": (_CODE, {"spark.sql.session.timeZone": "CET"}),
    "hadoopConf": (_CODE, {"fs.s3a.connection.maximum": "65"}),
    "dependencies.pyFiles": (_CODE, ["other"]),
    "dependencies.files": (_CODE, ["other"]),
    "dependencies.archives": (_CODE, ["other"]),
    "dependencies.jars": (_CODE, ["other"]),
    "dependencies.packages": (_CODE, ["other"]),
    "dependencies.excludePackages": (_CODE, ["other"]),
    "dependencies.repositories": (_CODE, ["other"]),
    "driver.cores": (_CODE, 3),
    "driver.coreRequest": (_CODE, "300m"),
    "driver.coreLimit": (_CODE, "3"),
    "driver.memory": (_CODE, "3g"),
    "driver.memoryOverhead": (_CODE, "3g"),
    "driver.env": (_CODE, [{"name": "OTHER", "value": "x"}]),
    "driver.envFrom": (_CODE, [{"secretRef": {"name": "other"}}]),
    "driver.podTemplate": (_CODE, _TEMPLATE),
    "driver.disruptionBudget": (_CODE, False),
    "executor.instances": (_SIZE, 3),
    "executor.dynamicAllocation.min": (_SIZE, 2),
    "executor.dynamicAllocation.max": (_SIZE, 3),
    "executor.dynamicAllocation.initial": (_SIZE, 3),
    "executor.cores": (_SIZE, 3),
    "executor.coreRequest": (_SIZE, "300m"),
    "executor.coreLimit": (_SIZE, "3"),
    "executor.memory": (_SIZE, "3g"),
    "executor.memoryOverhead": (_SIZE, "3g"),
    "executor.env": (_CODE, [{"name": "OTHER", "value": "x"}]),
    "executor.envFrom": (_CODE, [{"secretRef": {"name": "other"}}]),
    "executor.podTemplate": (_SIZE, _TEMPLATE),
    "storage.secretName": (_CODE, "other"),
    "storage.endpointUrl": (_CODE, "http://other"),
    "storage.region": (_CODE, "us-west-2"),
    "storage.pathStyle": (_CODE, False),
    "storage.volumes": (_CODE, [{"claimName": "other", "mountPath": "/other"}]),
    "state.provider": (_STATE, "HDFSBacked"),
    "state.partitions": (_STATE, 65),
    "state.changelog": (_CODE, False),
    "state.formatVersion": (_STATE, 1),
    "checkpoint.location": (_CODE, "s3://data/other"),
    "checkpoint.interval": (_CODE, "11s"),
    "checkpoint.timeout": (_LIVE, "61s"),
    "checkpoint.guarantee": (_CODE, "ExactlyOnce"),
    "checkpoint.onFailure": (_CODE, "Fail"),
    "checkpoint.onDelete": (_LIVE, "Retain"),
    "checkpoint.adopt": (_LIVE, "s3://data/adopted"),
    "checkpoint.adoptAs": (_LIVE, "other"),
    "savepoints.repository": (_LIVE, "s3://data/other"),
    "savepoints.endpointUrl": (_LIVE, "http://other"),
    "savepoints.schedule": (_LIVE, "1 * * * *"),
    "savepoints.retention.last": (_LIVE, 6),
    "savepoints.retention.hourly": (_LIVE, 6),
    "savepoints.retention.daily": (_LIVE, 6),
    "savepoints.retention.weekly": (_LIVE, 6),
    "savepoints.retention.monthly": (_LIVE, 6),
    "savepoints.retention.maxAge": (_LIVE, "6d"),
    "savepoints.retention.overrides": (_LIVE, {"manual": _RULE}),
    "savepoints.verify": (_LIVE, "Deep"),
    "savepoints.onDelete": (_LIVE, "Delete"),
    "savepoints.finalOnDelete": (_LIVE, True),
    "upgrade.mode": (_LIVE, "LastCommit"),
    "upgrade.handover": (_LIVE, "Cold"),
    "upgrade.compatibility": (_LIVE, "Skip"),
    "upgrade.rollback.enabled": (_LIVE, False),
    "upgrade.rollback.deadline": (_LIVE, "11m"),
    "upgrade.rollback.stableAfterCommits": (_LIVE, 4),
    "upgrade.rollback.to": (_LIVE, "Latest"),
    "restart.policy": (_LIVE, "Never"),
    "restart.backoff.initial": (_LIVE, "11s"),
    "restart.backoff.factor": (_LIVE, 3),
    "restart.backoff.max": (_LIVE, "11m"),
    "restart.resetAfter": (_LIVE, "11m"),
    "restart.maxAttempts": (_LIVE, 4),
    "suspend": (_LIVE, True),
    "restoreFrom.savepoint": (_LIVE, "nightly"),
    "restoreFrom.manifest": (
        _LIVE,
        {"repository": "s3://old/savepoints", "job": "visits", "name": "nightly"},
    ),
    "restoreFrom.sink": (_LIVE, "Fork"),
    "restoreFrom.nonce": (_LIVE, 9),
    "restartNonce": (_NAME, 9),
}


_ONE_FIELD = ("savepoints.retention.overrides", "restoreFrom.manifest")
"""Models whose fields all mean the same."""


def _alternatives(annotation: Any) -> tuple[Any, ...]:
    """What a field can be: itself, or one of a union; a list of models is a value."""
    return get_args(annotation) if get_origin(annotation) in (UnionType, Union) else (annotation,)


def _paths(model: type[BaseModel], above: str = "") -> Iterator[str]:
    """Every field of the model and of those in it, but not of those in lists."""
    for name, field in model.model_fields.items():
        path = f"{above}{field.alias or name}"
        inner = [
            each
            for each in _alternatives(field.annotation)
            if isinstance(each, type) and issubclass(each, BaseModel)
        ]
        if inner and path not in _ONE_FIELD:
            yield from _paths(inner[0], f"{path}.")
        else:
            yield path


@functools.cache
def _spec() -> dict[str, Any]:
    plain = golden_spec("full").model_dump(mode="json", by_alias=True, exclude_none=True)
    return {**plain, "restoreFrom": {"savepoint": "first"}}


def _changed(spec: dict[str, Any], path: str, value: Any) -> JobSpec:
    changed = copy.deepcopy(spec)
    *above, key = path.split(".")
    inner = changed
    for step in above:
        inner = inner.setdefault(step, {})
    inner[key] = value
    return JobSpec.model_validate(changed)


def _revision(spec: JobSpec, script: str | None = "5c61") -> Revision:
    return revision_of(spec, script_digest=script)


def test_every_field_has_its_line() -> None:
    assert sorted(_FIELDS) == sorted(_paths(JobSpec))


@pytest.mark.parametrize("path", _FIELDS)
def test_a_change_of_a_field_concerns_exactly_its_part(path: str) -> None:
    part, value = _FIELDS[path]
    # Both are complete: that a mapping appears with its first field is another change.
    whole = {"path": "/visits.py", "uri": "s3://code/visits.py"}
    spec = {**_spec(), "application": {"script": _spec()["application"]["script"] | whole}}
    before, after = (
        _revision(_changed(spec, "suspend", False)),
        _revision(_changed(spec, path, value)),
    )

    changed = {
        part for part in (_CODE, _SIZE, _STATE) if _digest(before, part) != _digest(after, part)
    }

    assert changed == {part} - {_NAME, _LIVE}
    assert (before.name != after.name) == (part is not _LIVE)


def _digest(revision: Revision, part: Part) -> str:
    return {_CODE: revision.code, _SIZE: revision.size, _STATE: revision.state}[part]


def test_the_script_is_code() -> None:
    spec = golden_spec("full")
    one, other, none = (_revision(spec, script) for script in ("5c61", "5c62", None))

    assert len({one.code, other.code, none.code}) == 3
    assert len({one.name, other.name, none.name}) == 3
    assert (one.size, one.state) == (other.size, other.state)


_SAME: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "a default that is said": ({}, {"imagePullPolicy": "IfNotPresent", "driver": {"cores": 1}}),
    "RocksDB, which a new job gets": ({}, {"state": {"provider": "RocksDB"}}),
    "Spark's own number of partitions": ({}, {"state": {"partitions": 200}}),
    "the changelog, which a new job has": ({}, {"state": {"changelog": True}}),
    "properties in another order": (
        {"sparkConf": {"spark.a": "1", "spark.b": "2"}},
        {"sparkConf": {"spark.b": "2", "spark.a": "1"}},
    ),
    "a template in another order": (
        {"driver": {"podTemplate": {"spec": {"a": 1, "b": 2}, "metadata": {}}}},
        {"driver": {"podTemplate": {"metadata": {}, "spec": {"b": 2, "a": 1}}}},
    ),
}


@pytest.mark.parametrize(("one", "other"), _SAME.values(), ids=_SAME)
def test_what_means_the_same_is_the_same_revision(
    one: dict[str, Any], other: dict[str, Any]
) -> None:
    first = JobSpec.model_validate({**minimal(), **one})
    second = JobSpec.model_validate({**minimal(), **other})

    # Whether a number was said is known, and makes no other revision.
    said, meant = (replace(_revision(each), partitions=None) for each in (first, second))
    assert said == meant


def test_the_number_of_partitions_alone_leaves_the_rest_of_state_as_it_is() -> None:
    usual, other, heap = (
        _revision(JobSpec.model_validate({**minimal(), "state": state}))
        for state in ({"partitions": 5}, {"partitions": 7}, {"provider": "HDFSBacked"})
    )

    assert (usual.partitions, other.partitions, heap.partitions) == (5, 7, None)
    assert usual.state != other.state
    assert usual.fixed == other.fixed
    assert usual.fixed != heap.fixed


def test_no_other_state_passes_for_the_usual_one() -> None:
    heap = JobSpec.model_validate({**minimal(), "state": {"provider": "HDFSBacked"}})
    fewer = JobSpec.model_validate({**minimal(), "state": {"partitions": 199}})
    usual = JobSpec.model_validate(minimal())

    assert len({_revision(each).state for each in (heap, fewer, usual)}) == 3


def test_digests_stay_what_they_were() -> None:
    """Else an upgrade of the operator restarts every job. Change this only with a way around."""
    assert revision_of(golden_spec("minimal"), script_digest=None) == Revision(
        name="e50c86a708",
        code="bc4ee61926",
        size="95bba4f56d",
        state="cf1cbb66a6",
        fixed="cf1cbb66a6",
    )
    assert revision_of(golden_spec("full"), script_digest="5c61") == Revision(
        name="0603bab3bf",
        code="1e0e8f3c96",
        size="97b32df52c",
        state="fc10c19eb0",
        fixed="875351ac10",
        partitions=64,
    )


_PATHS = st.lists(st.sampled_from(sorted(_FIELDS)), max_size=6, unique=True)


def _patched(paths: list[str]) -> JobSpec:
    """The full spec with these fields changed."""
    plain = _spec()
    for path in paths:
        changed = _changed(plain, path, _FIELDS[path][1])
        plain = changed.model_dump(mode="json", by_alias=True, exclude_none=True)
    return JobSpec.model_validate(plain)


@settings(max_examples=25, deadline=None)
@given(paths=_PATHS)
def test_digests_are_functions_of_the_spec_alone(paths: list[str]) -> None:
    spec = _patched(paths)
    shuffled = json.dumps(spec.model_dump(mode="json", by_alias=True), sort_keys=True)

    again = _revision(JobSpec.model_validate_json(shuffled))

    revision = _revision(spec)
    assert revision == again
    for digest in (revision.name, revision.code, revision.size, revision.state):
        assert re.fullmatch("[0-9a-f]{10}", digest)


@settings(max_examples=25, deadline=None)
@given(then=_PATHS, now=_PATHS)
def test_an_old_revision_takes_todays_live_fields_and_stays_the_same_revision(
    then: list[str], now: list[str]
) -> None:
    kept, wished = _patched(then), _patched(now)

    spec = effective(kept, wished)

    assert _revision(spec) == _revision(kept)
    for name in ("savepoints", "upgrade", "restart", "restore_from", "suspend"):
        assert getattr(spec, name) == getattr(wished, name)
    assert spec.checkpoint.timeout == wished.checkpoint.timeout
    assert spec.checkpoint.on_failure == kept.checkpoint.on_failure
    assert effective(kept, kept) == kept
