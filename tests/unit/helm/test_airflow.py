"""What the chart makes for an Airflow: a role of what its DAGs ask for, and the DAGs."""

import tarfile
from collections import defaultdict
from pathlib import Path

import pytest

from dev.helm import CHART, helm
from sparkpoint.airflow.rights import RIGHTS
from tests.unit.helm.combinations import NAMESPACED
from tests.unit.helm.rendering import NAMESPACE, Object, render

_DAGS = Path(__file__).parents[3] / "dags"
_ACCOUNTS = [
    {"namespace": "airflow", "name": "worker"},
    {"namespace": "airflow", "name": "trigger"},
]


def _airflow(**values: object) -> Object:
    return {"airflow": {"enabled": True, "serviceAccounts": _ACCOUNTS, **values}}


def _granted(role: Object) -> dict[str, frozenset[str]]:
    verbs: dict[str, set[str]] = defaultdict(set)
    for rule in role["rules"]:
        assert rule["apiGroups"] == ["sparkpoint.dev"]
        for resource in rule["resources"]:
            verbs[resource].update(rule["verbs"])
    return {resource: frozenset(which) for resource, which in verbs.items()}


@pytest.mark.parametrize("dag", RIGHTS)
def test_a_dag_has_the_rights_of_the_code_and_no_others(dag: str) -> None:
    role = render(_airflow(dags=[dag])).one("ClusterRole", "sparkpoint-airflow")

    assert _granted(role) == RIGHTS[dag]


def test_all_dags_have_the_rights_of_each() -> None:
    role = render(_airflow()).one("ClusterRole", "sparkpoint-airflow")

    wanted: dict[str, frozenset[str]] = defaultdict(frozenset)
    for rights in RIGHTS.values():
        for resource, verbs in rights.items():
            wanted[resource] |= verbs
    assert _granted(role) == wanted


def test_the_rights_are_of_the_accounts_that_are_named() -> None:
    binding = render(_airflow()).one("ClusterRoleBinding", "sparkpoint-airflow")

    assert binding["subjects"] == [{"kind": "ServiceAccount", **each} for each in _ACCOUNTS]
    assert binding["roleRef"]["name"] == "sparkpoint-airflow"


@pytest.mark.parametrize(
    ("values", "namespaces"),
    [
        (_airflow(namespaces=["shop"]), ["shop"]),
        ({**NAMESPACED, **_airflow()}, ["shop", "lab"]),
        ({**NAMESPACED, **_airflow(namespaces=["lab"])}, ["lab"]),
    ],
)
def test_namespaces_that_are_named_are_the_only_ones(values: Object, namespaces: list[str]) -> None:
    chart = render(values)

    for kind in ("Role", "RoleBinding"):
        named = [b["metadata"] for b in chart.of(kind) if b["metadata"]["name"].endswith("airflow")]
        assert [about["namespace"] for about in named] == namespaces
    assert "sparkpoint-airflow" not in {b["metadata"]["name"] for b in chart.of("ClusterRole")}


def test_the_dags_are_those_of_the_repository_with_the_file_that_airflow_needs() -> None:
    chart = render(_airflow(configMap={"enabled": True}))

    made = chart.one("ConfigMap", "sparkpoint-airflow-dags")
    committed = {path.name: path.read_text() for path in _DAGS.iterdir() if path.is_file()}
    assert made["data"] == committed
    assert made["metadata"]["namespace"] == NAMESPACE
    there = render(_airflow(configMap={"enabled": True, "namespace": "airflow"}))
    assert there.one("ConfigMap", made["metadata"]["name"])["metadata"]["namespace"] == "airflow"


def test_a_packed_chart_has_the_dags_and_not_a_link_to_them(tmp_path: Path) -> None:
    helm("package", str(CHART), "--destination", str(tmp_path))

    [packed] = tmp_path.iterdir()
    with tarfile.open(packed) as archive:
        inside = [each for each in archive.getmembers() if "/files/dags/" in each.name]
        assert all(each.isfile() for each in inside)
    names = {path.name for path in _DAGS.iterdir() if path.is_file()}
    assert {Path(each.name).name for each in inside} == names


def test_nothing_is_made_unless_it_is_wanted() -> None:
    names = [body["metadata"]["name"] for body in render().objects]
    assert not [name for name in names if "airflow" in name]
    roles = render({**_airflow(), "rbac": {"create": False}})
    assert not roles.of("ClusterRole")
