"""The chart's roles are what the code asks for, and nothing else."""

from collections import defaultdict
from collections.abc import Iterable

import pytest

from dev.jobs import DRIVER_RIGHTS
from sparkpoint.controller.rights import ANYWHERE, OWN_NAMESPACE, SERVED_NAMESPACES, Rights
from tests.unit.helm.combinations import NAMESPACED
from tests.unit.helm.rendering import Object, render


def _granted(rules: Iterable[Object]) -> Rights:
    verbs: dict[tuple[str, str], set[str]] = defaultdict(set)
    for rule in rules:
        for group in rule["apiGroups"]:
            for resource in rule["resources"]:
                verbs[group, resource].update(rule["verbs"])
    return {what: frozenset(which) for what, which in verbs.items()}


def test_a_whole_cluster_is_served_with_the_rights_of_the_code() -> None:
    role = render().one("ClusterRole")

    assert _granted(role["rules"]) == {**SERVED_NAMESPACES, **ANYWHERE}


def test_nodes_need_not_be_read() -> None:
    role = render({"rbac": {"readNodes": False}}).one("ClusterRole")

    assert _granted(role["rules"]) == SERVED_NAMESPACES


@pytest.mark.parametrize("namespace", ["shop", "lab"])
def test_a_namespace_is_served_with_the_rights_of_the_code(namespace: str) -> None:
    [role] = [
        body
        for body in render(NAMESPACED).of("Role")
        if body["metadata"]["namespace"] == namespace
        and body["metadata"]["name"] == "sparkpoint-operator"
    ]

    assert _granted(role["rules"]) == SERVED_NAMESPACES


def test_the_lease_is_kept_with_the_rights_of_the_code() -> None:
    role = render().one("Role", "sparkpoint-operator-lease")

    assert _granted(role["rules"]) == OWN_NAMESPACE
    assert not render({"leaderElection": {"enabled": False}}).of("Role")


def test_drivers_may_do_what_those_of_the_demo_and_the_tests_may() -> None:
    chart = render({"jobs": {"namespaces": ["shop"]}})

    wanted = {("", what): frozenset(verbs.split()) for what, verbs in DRIVER_RIGHTS.items()}
    assert _granted(chart.one("Role", "sparkpoint-driver")["rules"]) == wanted


def test_nothing_is_granted_by_a_star() -> None:
    rules = [
        rule
        for values in ({}, NAMESPACED)
        for kind in ("Role", "ClusterRole")
        for body in render(values).of(kind)
        for rule in body["rules"]
    ]

    assert not [rule for rule in rules if "*" in str(rule)]
