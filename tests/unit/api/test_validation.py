"""What a person is told: everything at once, where, and what to do."""

from collections.abc import Mapping
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Any

import pytest

from sparkpoint.api import (
    FieldError,
    InvalidResourceError,
    parse_job,
    parse_savepoint,
    parse_spec,
    validate,
    validate_resource,
)
from sparkpoint.api.crd import SAVEPOINTS

SPEC: dict[str, Any] = {
    "image": "runtime",
    "application": {"script": {"path": "/job.py"}},
    "executor": {"instances": 1},
    "checkpoint": {"location": "s3://lake/checkpoints"},
    "savepoints": {"repository": "s3://lake/savepoints"},
}


def _job(**spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "sparkpoint.dev/v1alpha1",
        "kind": "StatefulSparkJob",
        "metadata": {"name": "visits", "namespace": "web", "generation": 3},
        "spec": {**SPEC, **spec},
    }


def _paths(errors: list[FieldError]) -> set[str]:
    return {error.path for error in errors}


def test_all_mistakes_are_told_at_once_whatever_sort_they_are_of() -> None:
    spec = {
        "imagePullPolcy": "Always",
        "application": {"script": {}},
        "executor": {
            "cores": "2",
            "memory": "1G",
            "env": [{"name": "A", "value": 1}, {"name": "B", "valueFrom": {}}, {"name": "B"}],
        },
        "checkpoint": {"location": "s3://lake/checkpoints", "timeout": "5 min"},
        "savepoints": {"repository": "s3://lake/checkpoints/sp", "retention": {}},
        "sparkConf": {"spark.master": "local", "spark.executor.memory": "1g", "fs.x": "1"},
        "upgrade": {"mode": "Stateless", "handover": "Hot", "rollback": {"to": "Savepoint"}},
    }

    assert _paths(validate(spec)) == {
        "spec.image",
        "spec.imagePullPolcy",
        "spec.application.script",
        "spec.executor",
        "spec.executor.cores",
        "spec.executor.memory",
        "spec.executor.env[0].value",
        "spec.executor.env[1].valueFrom",
        "spec.executor.env[2]",
        "spec.checkpoint.timeout",
        "spec.savepoints.repository",
        "spec.savepoints.retention",
        "spec.sparkConf[spark.master]",
        "spec.sparkConf[spark.executor.memory]",
        "spec.sparkConf[fs.x]",
        "spec.upgrade.handover",
        "spec.upgrade.rollback.to",
    }


def test_rule_says_nothing_about_a_field_that_cannot_be_read() -> None:
    """Whether a script is given is not known while its place is not a place."""
    spec = {**SPEC, "application": {"script": {"path": "job.py"}}}

    assert _paths(validate(spec)) == {"spec.application.script.path"}


@pytest.mark.parametrize("value", ["visits", 5, ["visits"], True])
def test_anything_in_the_place_of_an_object_is_an_error_and_not_a_crash(value: object) -> None:
    for field in SPEC:
        assert f"spec.{field}" in _paths(validate({**SPEC, field: value})) or field == "image"


def test_empty_spec_names_what_is_missing() -> None:
    assert _paths(validate({})) == {
        "spec.image",
        "spec.application",
        "spec.executor",
        "spec.checkpoint",
        "spec.savepoints",
    }


@pytest.mark.parametrize(
    ("spec", "error"),
    [
        (
            {**SPEC, "excutor": {}},
            FieldError("spec.excutor", "there is no such field", "did you mean executor?"),
        ),
        (
            {**SPEC, "spark_conf": {}},
            FieldError("spec.spark_conf", "there is no such field", "did you mean sparkConf?"),
        ),
        (
            {**SPEC, "state": {"zzz": 1}},
            FieldError(
                "spec.state.zzz",
                "there is no such field",
                "remove it; known are provider, partitions, changelog, formatVersion",
            ),
        ),
        (
            {**SPEC, "driver": {"env": [{"name": "A", "val": "1"}]}},
            FieldError("spec.driver.env[0].val", "there is no such field", "did you mean value?"),
        ),
        (
            {**SPEC, "state": {"provider": "Memory"}},
            FieldError(
                "spec.state.provider", "'Memory' is not known", "use 'HDFSBacked' or 'RocksDB'"
            ),
        ),
        (
            {**SPEC, "suspend": "yes"},
            FieldError("spec.suspend", "is the string 'yes'", "leave out the quotes"),
        ),
        (
            {**SPEC, "sparkConf": {"spark.x": True}},
            FieldError(
                "spec.sparkConf[spark.x]", "should be a string, but is true", "put it in quotes"
            ),
        ),
        (
            {**SPEC, "sparkConf": {"spark.executor.instances": "3"}},
            FieldError(
                "spec.sparkConf[spark.executor.instances]",
                "not a property that sparkConf may set",
                "use spec.executor.instances instead",
            ),
        ),
        (
            {**SPEC, "savepoints": {"repository": "s3://lake/sp", "schedule": "0 0 30 2 *"}},
            FieldError(
                "spec.savepoints.schedule",
                "'0 0 30 2 *' names a day that no year has",
                "correct it",
            ),
        ),
    ],
)
def test_error_says_what_is_wrong_and_what_to_do(
    spec: Mapping[str, Any], error: FieldError
) -> None:
    assert validate(spec) == [error]


def test_long_values_are_not_repeated() -> None:
    [error] = validate({**SPEC, "restoreFrom": {"savepoint": "A" * 200}})

    assert "a string of 200 characters" in error.message
    assert "AAA" not in str(error)


def test_null_is_absent_as_it_is_for_the_api_server() -> None:
    assert validate({**SPEC, "driver": None, "state": {"partitions": None}}) == []
    assert _paths(validate({**SPEC, "image": None})) == {"spec.image"}


def test_any_mapping_is_taken_and_left_as_it_is() -> None:
    spec = MappingProxyType({**SPEC, "driver": MappingProxyType({"cores": 2})})

    assert validate(spec) == []
    assert parse_job({**_job(), "spec": spec}).spec.driver.cores == 2


def test_times_that_yaml_has_made_are_strings_to_us() -> None:
    moment = datetime(2027, 1, 1, tzinfo=UTC)
    spec = {"jobRef": {"name": "visits"}, "retention": {"keepUntil": moment}}

    assert validate(spec, resource=SAVEPOINTS) == []


def test_change_is_judged_against_the_old_spec() -> None:
    moved = {**SPEC, "checkpoint": {"location": "s3://lake/elsewhere"}}

    assert validate(moved) == []
    assert _paths(validate(moved, old=SPEC)) == {"spec.checkpoint.location"}
    assert validate({**SPEC, "executor": {"instances": 9}}, old=SPEC) == []


def test_old_spec_that_cannot_be_read_does_not_forbid_a_good_one() -> None:
    assert validate(SPEC, old={"checkpoint": 5, "image": 7}) == []


def test_provider_may_change_if_the_state_is_given_up() -> None:
    old = {**SPEC, "state": {"provider": "HDFSBacked"}}
    new = {**SPEC, "state": {"provider": "RocksDB"}, "upgrade": {"mode": "Stateless"}}

    assert validate(new, old=old) == []


def test_unknown_kind_is_told() -> None:
    [error] = validate_resource({"kind": "SparkApplication"})

    assert error.path == "kind"
    assert error.remedy == "use StatefulSparkJob or SparkSavepoint"


def test_other_version_is_told() -> None:
    errors = validate_resource({**_job(), "apiVersion": "sparkpoint.dev/v2"})

    assert _paths(errors) == {"apiVersion"}


def test_parsing_lists_every_error() -> None:
    with pytest.raises(InvalidResourceError) as caught:
        parse_job(_job(executor={}, driver={"cores": 0}))

    assert _paths(list(caught.value.errors)) == {"spec.executor", "spec.driver.cores"}
    assert str(caught.value).count("\n") == 1


def test_job_is_read_as_the_api_server_tells_it() -> None:
    resource = _job()
    resource["metadata"]["managedFields"] = [{"manager": "kubectl"}]
    resource["status"] = {
        "phase": "Running",
        "epoch": 2,
        "ofANewerOperator": {"x": 1},
        "record": {"sequence": 4},
        "conditions": [
            {
                "type": "Ready",
                "status": "True",
                "reason": "Committing",
                "lastTransitionTime": "2026-11-16T13:00:00Z",
            }
        ],
    }

    job = parse_job(resource)

    assert (job.metadata.namespace, job.metadata.generation) == ("web", 3)
    assert (job.status.epoch, job.status.record) == (2, {"sequence": 4})
    assert job.status.conditions[0].last_transition_time.tzinfo is not None


def test_spec_alone_is_read_or_refused_as_a_whole() -> None:
    assert parse_spec({**SPEC, "driver": None}).driver.cores == 1

    with pytest.raises(InvalidResourceError, match=r"spec\.image: is missing"):
        parse_spec({**SPEC, "image": None})


def test_status_that_cannot_be_read_counts_as_not_said() -> None:
    status = {"phase": "Hibernating", "epoch": 2, "conditions": [{"type": "Ready"}], "batch": "x"}

    job = parse_job({**_job(), "status": status})

    assert (job.status.phase, job.status.conditions, job.status.batch) == (None, (), None)
    assert job.status.epoch == 2


def test_savepoint_is_read_as_the_api_server_tells_it() -> None:
    savepoint = parse_savepoint(
        {
            "kind": "SparkSavepoint",
            "metadata": {"name": "a"},
            "spec": {"jobRef": {"name": "visits"}},
            "status": {"phase": "Completed", "bytes": 5, "size": "5 B"},
        }
    )

    assert savepoint.status.bytes == 5
    assert not savepoint.spec.retention.keep_forever
