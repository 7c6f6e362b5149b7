"""The models as values that decisions are made from."""

import pytest
from pydantic import ValidationError

from sparkpoint.api import JobStatus, SparkSavepoint, StatefulSparkJob
from sparkpoint.api.common import Metadata, Record, StatusRecord
from sparkpoint.api.job import JobSpec
from sparkpoint.api.policies import Rollback, RollbackTarget, Upgrade, UpgradeMode
from sparkpoint.api.savepoint import JobReference, SavepointSpec


def test_a_spec_cannot_be_changed() -> None:
    upgrade = Upgrade()

    with pytest.raises(ValidationError, match="frozen"):
        upgrade.mode = UpgradeMode.STATELESS


def test_models_are_made_with_python_names_and_written_with_those_of_the_resource() -> None:
    savepoint = SparkSavepoint(
        metadata=Metadata(name="a", namespace="web"),
        spec=SavepointSpec(job_ref=JobReference(name="visits")),
    )

    assert savepoint.model_dump(mode="json", exclude_defaults=True) == {
        "metadata": {"name": "a", "namespace": "web"},
        "spec": {"jobRef": {"name": "visits"}},
    }


def test_status_that_says_nothing_is_written_as_nothing() -> None:
    assert JobStatus().model_dump(mode="json", exclude_defaults=True) == {}


@pytest.mark.parametrize(
    ("upgrade", "target"),
    [
        (Upgrade(), RollbackTarget.SAVEPOINT),
        (Upgrade(mode=UpgradeMode.LAST_COMMIT), RollbackTarget.LATEST),
        (Upgrade(mode=UpgradeMode.STATELESS), RollbackTarget.LATEST),
        (Upgrade(rollback=Rollback(to=RollbackTarget.LATEST)), RollbackTarget.LATEST),
    ],
)
def test_rollback_goes_to_the_savepoint_where_there_is_one(
    upgrade: Upgrade, target: RollbackTarget
) -> None:
    assert upgrade.rollback_target is target


def _models(model: type[Record]) -> list[type[Record]]:
    return [model, *(below for child in model.__subclasses__() for below in _models(child))]


def test_no_two_models_share_a_name() -> None:
    """Rules find their place in a schema by it."""
    names = [model.__name__ for model in _models(Record) if "sparkpoint" in model.__module__]

    assert len(names) == len(set(names))


def test_what_a_person_writes_is_strict_and_what_the_operator_writes_is_not() -> None:
    assert JobSpec.model_config["extra"] == "forbid"
    assert StatefulSparkJob.model_config["extra"] == "forbid"
    assert {model.model_config["extra"] for model in _models(StatusRecord)} == {"ignore"}
