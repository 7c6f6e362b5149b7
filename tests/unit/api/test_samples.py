"""Samples of what is accepted and what is refused: one for every rule."""

import pytest

from sparkpoint.api import parse_job, parse_savepoint, validate_resource
from sparkpoint.api.crd import RESOURCES
from sparkpoint.api.job import StatefulSparkJob
from sparkpoint.api.savepoint import SparkSavepoint
from tests.unit.api.loading import ACCEPTED, EXAMPLES, REFUSED, Accepted, Refused

GOOD = [*ACCEPTED, *EXAMPLES]


def _parse(sample: Accepted) -> StatefulSparkJob | SparkSavepoint:
    if sample.resource["kind"] == "StatefulSparkJob":
        return parse_job(sample.resource)
    return parse_savepoint(sample.resource)


def test_there_are_samples_of_each_sort() -> None:
    assert len(ACCEPTED) >= 2
    assert len(EXAMPLES) >= 2
    assert len(REFUSED) >= sum(len(resource.rules) for resource in RESOURCES)


@pytest.mark.parametrize("sample", GOOD, ids=lambda sample: sample.name)
def test_good_sample_has_no_errors(sample: Accepted) -> None:
    assert validate_resource(sample.resource) == []


@pytest.mark.parametrize("sample", GOOD, ids=lambda sample: sample.name)
def test_good_sample_survives_the_way_through_the_model(sample: Accepted) -> None:
    model = _parse(sample)

    written = model.model_dump(mode="json", exclude_unset=True)

    assert written == sample.resource


@pytest.mark.parametrize("sample", REFUSED, ids=lambda sample: sample.name)
def test_refused_sample_has_exactly_the_error_that_it_is_about(sample: Refused) -> None:
    [error] = validate_resource(sample.resource, old=sample.old)

    assert error.path == sample.field
    assert sample.says in error.message
    assert error.remedy


@pytest.mark.parametrize(
    "sample", [sample for sample in REFUSED if sample.old], ids=lambda sample: sample.name
)
def test_what_cannot_be_changed_into_can_be_created(sample: Refused) -> None:
    assert validate_resource(sample.resource) == []
    assert sample.old is not None
    assert validate_resource(sample.old) == []


def test_every_rule_has_a_sample_that_breaks_it() -> None:
    broken = {
        error.message
        for sample in REFUSED
        for error in validate_resource(sample.resource, old=sample.old)
    }
    known = {rule.message for resource in RESOURCES for rule in resource.rules}

    assert known - broken == set()
