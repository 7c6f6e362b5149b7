"""The chart's roles are what the code asks for, and nothing else."""

import asyncio
from collections import defaultdict
from collections.abc import Iterable

import pytest

from dev.jobs import DRIVER_RIGHTS
from sparkpoint.controller.claims import CLAIM_NAME
from sparkpoint.controller.cluster import JOBS, SAVEPOINTS
from sparkpoint.controller.permissions import Question, check_permissions
from sparkpoint.controller.rights import ANYWHERE, OWN_NAMESPACE, SERVED_NAMESPACES, Rights
from tests.unit.helm.combinations import NAMESPACED
from tests.unit.helm.rendering import NAMESPACE, Object, render

_AGGREGATED: Object = {"rbac": {"aggregate": True}}


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


@pytest.mark.parametrize("values", [{}, NAMESPACED], ids=["cluster", "namespaces"])
def test_of_the_leases_where_jobs_are_only_that_of_the_claim_is_granted(values: Object) -> None:
    chart = render(values)

    rules = [
        rule
        for body in (*chart.of("ClusterRole"), *chart.of("Role"))
        if body["metadata"]["name"] == "sparkpoint-operator"
        for rule in body["rules"]
        if "leases" in rule["resources"]
    ]
    assert rules
    for rule in rules:
        named = rule.get("resourceNames")
        assert (named, rule["verbs"]) in (([CLAIM_NAME], ["get", "update"]), (None, ["create"]))


def test_every_check_before_the_start_passes_with_the_rights_of_the_chart() -> None:
    chart = render(NAMESPACED)

    class Judge:
        async def allows(self, question: Question) -> bool:
            roles = [
                r for r in chart.of("Role") if r["metadata"]["namespace"] == question.namespace
            ]
            return any(_allows(rule, question) for role in roles for rule in role["rules"])

    lease = (NAMESPACE, "sparkpoint-operator")
    asyncio.run(check_permissions(Judge(), namespaces=["shop", "lab"], lease=lease, patience=0.0))


def _allows(rule: Object, question: Question) -> bool:
    """As Kubernetes reckons it."""
    return (
        question.group in rule["apiGroups"]
        and question.resource in rule["resources"]
        and question.verb in rule["verbs"]
        and question.name in rule.get("resourceNames", [question.name])
    )


def test_drivers_may_do_what_those_of_the_demo_and_the_tests_may() -> None:
    chart = render({"jobs": {"namespaces": ["shop"]}})

    wanted = {("", what): frozenset(verbs.split()) for what, verbs in DRIVER_RIGHTS.items()}
    assert _granted(chart.one("Role", "sparkpoint-driver")["rules"]) == wanted


@pytest.mark.parametrize("account", [True, False])
def test_the_role_of_jobs_may_be_left_to_others(account: bool) -> None:
    jobs = {
        "namespaces": ["shop"],
        "rbac": {"create": False},
        "serviceAccount": {"create": account},
    }

    chart = render({"jobs": jobs})

    made = [b for b in chart.objects if b["metadata"].get("namespace") == "shop"]
    assert [body["kind"] for body in made] == ["ServiceAccount"] * account


def test_people_get_no_rights_unless_it_is_said() -> None:
    assert [body["metadata"]["name"] for body in render().of("ClusterRole")] == [
        "sparkpoint-operator"
    ]


def test_those_who_may_view_or_edit_a_namespace_may_do_so_with_its_jobs_if_it_is_said() -> None:
    chart = render(_AGGREGATED)

    view, edit = (chart.one("ClusterRole", f"sparkpoint-{name}") for name in ("view", "edit"))
    kinds = [("sparkpoint.dev", kind.plural) for kind in (JOBS, SAVEPOINTS)]
    reading = frozenset({"get", "list", "watch"})
    writing = frozenset({"create", "update", "patch", "delete", "deletecollection"})
    assert _granted(view["rules"]) == dict.fromkeys(kinds, reading)
    # The status is the operator's.
    assert _granted(edit["rules"]) == dict.fromkeys(kinds, writing)
    assert _aggregated_to(view) == {"view", "edit", "admin"}
    assert _aggregated_to(edit) == {"edit", "admin"}
    # By aggregation alone.
    assert len(chart.of("ClusterRoleBinding")) == 1


def _aggregated_to(role: Object) -> set[str]:
    prefix = "rbac.authorization.k8s.io/aggregate-to-"
    labels = role["metadata"]["labels"]
    return {
        name.removeprefix(prefix)
        for name, value in labels.items()
        if name.startswith(prefix) and value == "true"
    }


def test_nothing_is_granted_by_a_star() -> None:
    rules = [
        rule
        for values in ({}, NAMESPACED, _AGGREGATED)
        for kind in ("Role", "ClusterRole")
        for body in render(values).of(kind)
        for rule in body["rules"]
    ]

    assert not [rule for rule in rules if "*" in str(rule)]
