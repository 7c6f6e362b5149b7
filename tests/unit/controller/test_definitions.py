"""Definitions that are missing, older or newer than the operator."""

import asyncio
import copy
from collections.abc import Callable
from typing import Any

import pytest

from sparkpoint.api.crd import RESOURCES, definition
from sparkpoint.controller.cluster import Object
from sparkpoint.controller.definitions import check_definitions, differences
from sparkpoint.controller.errors import ForbiddenError, UnfitError

Change = Callable[[dict[str, Any]], None]


def published(change: Change = lambda spec: None) -> Object:
    """As the API server tells it, with the spec of jobs changed."""
    schemas = {}
    for resource in RESOURCES:
        [version] = copy.deepcopy(definition(resource)["spec"]["versions"])
        schema = version["schema"]["openAPIV3Schema"]
        schema["x-kubernetes-group-version-kind"] = [{"kind": resource.kind}]
        schemas[f"dev.sparkpoint.v1alpha1.{resource.kind}"] = schema
        if resource.kind == "StatefulSparkJob":
            change(schema["properties"]["spec"]["properties"])
    # Beside them are kinds of all APIs.
    return {"components": {"schemas": {"io.k8s.ObjectMeta": {}, **schemas}}}


class Server:
    def __init__(self, *answers: Object | Exception) -> None:
        self._answers = list(answers)

    async def published(self, api_version: str) -> Object:
        assert api_version == "sparkpoint.dev/v1alpha1"
        answer = self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]
        if isinstance(answer, Exception):
            raise answer
        return answer


def check(*answers: Object | Exception, patience: float = 0.01) -> None:
    asyncio.run(check_definitions(Server(*answers), patience=patience))


def without(*path: str) -> Change:
    def change(spec: dict[str, Any]) -> None:
        for part in path[:-1]:
            spec = spec[part]["properties"]
        del spec[path[-1]]

    return change


def with_more(spec: dict[str, Any]) -> None:
    spec["executor"]["properties"]["colour"] = {"type": "string"}


def test_our_own_definitions_are_ours(caplog: pytest.LogCaptureFixture) -> None:
    check(published())

    assert all(not each.lacking and not each.unknown for each in differences(published()))
    assert not caplog.records


def test_an_older_definition_is_refused_with_its_fields_and_the_way_out() -> None:
    with pytest.raises(UnfitError) as caught:
        check(published(without("upgrade", "rollback")))

    told = str(caught.value)
    assert "StatefulSparkJob is older than this operator" in told
    assert "spec.upgrade.rollback, spec.upgrade.rollback.deadline" in told
    assert "kubectl apply --server-side -f crds/" in told
    assert "SparkSavepoint" not in told


def test_a_sentence_names_a_few_fields_and_counts_the_others() -> None:
    with pytest.raises(UnfitError, match=r"spec\.savepoints.* and \d+ more"):
        check(published(without("savepoints")))


def test_a_definition_that_is_published_in_a_moment_is_waited_for() -> None:
    check(published(without("upgrade")), published(), patience=1.0)


def test_a_newer_definition_is_told_and_the_operator_acts(
    caplog: pytest.LogCaptureFixture,
) -> None:
    check(published(with_more))

    [told] = [record.getMessage() for record in caplog.records]
    assert "newer than this operator, which does not act upon spec.executor.colour" in told


def test_definitions_that_cannot_be_read_do_not_keep_the_operator_from_acting(
    caplog: pytest.LogCaptureFixture,
) -> None:
    check(ForbiddenError("403: not for you"))

    assert "could not be compared" in caplog.records[0].getMessage()
