"""The operator of the demo and the tests is the chart's, with this checkout's image."""

from collections import Counter
from typing import Any

import pytest

from dev.operator import NAMESPACE, operator_objects


@pytest.fixture(scope="module")
def made() -> list[dict[str, Any]]:
    return operator_objects(["--verbose"])


def test_it_is_made_of_what_the_chart_makes_and_of_nothing_that_helm_would_run(
    made: list[dict[str, Any]],
) -> None:
    assert Counter(body["kind"] for body in made) == {
        "Namespace": 1,
        "ServiceAccount": 1,
        "ClusterRole": 1,
        "ClusterRoleBinding": 1,
        "Role": 1,
        "RoleBinding": 1,
        "Service": 1,
        "Deployment": 1,
    }


def test_its_pod_changes_with_the_code_although_the_image_keeps_its_name(
    made: list[dict[str, Any]],
) -> None:
    [deployment] = [body for body in made if body["kind"] == "Deployment"]
    assert deployment["metadata"]["namespace"] == NAMESPACE
    template = deployment["spec"]["template"]
    [container] = template["spec"]["containers"]

    assert container["image"] == "sparkpoint.dev/operator:dev"
    assert container["args"][-1] == "--verbose"
    assert template["metadata"]["annotations"]["sparkpoint.dev/code"]
