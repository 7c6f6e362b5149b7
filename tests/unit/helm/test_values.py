"""Bad values are refused with one clear sentence each; good ones are described."""

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from dev.helm import CHART
from tests.unit.helm.rendering import NAMESPACE, Object, refusal, render

_TWO: Object = {"replicas": 2, "leaderElection": {"enabled": False}}
_SILENT: Object = {"metrics": {"enabled": False}}
_GUARDED: Object = {"networkPolicy": {"enabled": True}}
_LISTED: Object = {"scope": "Namespaces", "namespaces": ["shop"]}
_AIRFLOW: Object = {"enabled": True, "serviceAccounts": [{"namespace": "airflow", "name": "a"}]}

_EMPTY_AT_THE_TOP = (
    "nameOverride",
    "fullnameOverride",
    "imagePullSecrets",
    "extraArgs",
    "extraEnv",
    "resources",
    "podAnnotations",
    "podLabels",
    "nodeSelector",
    "tolerations",
    "affinity",
    "topologySpreadConstraints",
    "priorityClassName",
)

CONTRADICTIONS: dict[str, tuple[Object, str]] = {
    "no namespaces": (
        {"watch": {"scope": "Namespaces"}},
        "watch.scope is Namespaces, but watch.namespaces is empty: list the namespaces to serve, "
        "or set watch.scope=Cluster.",
    ),
    "namespaces of all": (
        {"watch": {"namespaces": ["shop", "lab"]}},
        "watch.namespaces lists shop, lab, but watch.scope is Cluster, which serves all of them: "
        "set watch.scope=Namespaces, or empty the list.",
    ),
    "jobs that nobody serves": (
        {"watch": _LISTED, "jobs": {"namespaces": ["shop", "lab"]}},
        "jobs.namespaces lists lab, which watch.namespaces does not: add it there, as jobs in it "
        "would not be served.",
    ),
    "two without a lease": (
        _TWO,
        "replicas is 2, but leaderElection.enabled is false, and two operators must not act at "
        "once: set leaderElection.enabled=true, or replicas=1.",
    ),
    "budget": (
        {"podDisruptionBudget": {"enabled": True, "minAvailable": 2}},
        "podDisruptionBudget.minAvailable is 2, but replicas is 1: it can never be met; lower it, "
        "or raise replicas.",
    ),
    "monitor": (
        {**_SILENT, "monitoring": {"serviceMonitor": {"enabled": True}}},
        "monitoring.serviceMonitor.enabled is true, but metrics.enabled is false, so there is "
        "nothing to scrape: set metrics.enabled=true.",
    ),
    "rules": (
        {**_SILENT, "monitoring": {"rules": {"enabled": True}}},
        "monitoring.rules.enabled is true, but metrics.enabled is false, so no alert could ever "
        "fire: set metrics.enabled=true.",
    ),
    "dashboard": (
        {**_SILENT, "monitoring": {"dashboard": {"enabled": True}}},
        "monitoring.dashboard.enabled is true, but metrics.enabled is false, so it would stay "
        "empty: set metrics.enabled=true.",
    ),
    "unreachable operator": (
        {**_GUARDED, "monitoring": {"serviceMonitor": {"enabled": True}}},
        "monitoring.serviceMonitor.enabled is true, but networkPolicy.monitoring is empty, so "
        "Prometheus could not reach the operator: list where it runs.",
    ),
    "unreachable drivers": (
        {**_GUARDED, "monitoring": {"podMonitor": {"enabled": True}}},
        "monitoring.podMonitor.enabled is true, but networkPolicy.monitoring is empty, so "
        "Prometheus could not reach drivers: list where it runs.",
    ),
    "account": (
        {"serviceAccount": {"create": False}},
        "serviceAccount.create is false, but serviceAccount.name is empty: name the account that "
        "the operator runs as.",
    ),
    "Airflow without an account": (
        {"airflow": {"enabled": True}},
        "airflow.enabled is true, but airflow.serviceAccounts is empty, so its role would be "
        "nobody's: name the accounts of Airflow's workers and triggerer.",
    ),
    "DAGs without an Airflow": (
        {"airflow": {"configMap": {"enabled": True}}},
        "airflow.configMap.enabled is true, but airflow.enabled is not, so that no DAGs would be "
        "there: set airflow.enabled, too.",
    ),
    "Airflow where nobody serves": (
        {
            "watch": _LISTED,
            "airflow": {**_AIRFLOW, "namespaces": ["shop", "lab"]},
        },
        "airflow.namespaces lists lab, which watch.namespaces does not: add it there, as nobody "
        "would take savepoints in it.",
    ),
    "options of the chart's own": (
        {"extraArgs": ["--verbose", "--lease-namespace=", "--concurrency=9"]},
        "extraArgs has --lease-namespace, which rights, probes and Services would not know of: set "
        "leaderElection.enabled instead.",
    ),
    "variables of the chart's own": (
        {"extraEnv": [{"name": "TZ", "value": "UTC"}, {"name": "SPARKPOINT_NAMESPACES"}]},
        "extraEnv has SPARKPOINT_NAMESPACES, which the chart's rights would not know of: set "
        "watch.namespaces instead.",
    ),
    "image": (
        {"image": {"tag": "1", "digest": f"sha256:{'a' * 64}"}},
        "image.tag and image.digest are both set, and may name different images: empty one of "
        "them.",
    ),
    "roles for all of a few namespaces": (
        {"watch": _LISTED, "rbac": {"aggregate": True}},
        "rbac.aggregate is true, but watch.scope is Namespaces, for which no ClusterRole is made: "
        "set watch.scope=Cluster, or rbac.aggregate=false.",
    ),
    "roles of a chart that makes none": (
        {"rbac": {"create": False, "aggregate": True}},
        "rbac.aggregate is true, but rbac.create is false, so that no role is made: set "
        "rbac.create=true, or rbac.aggregate=false.",
    ),
    "a tag in the repository": (
        {"image": {"repository": "host:5000/r/o:1"}},
        "image.repository is host:5000/r/o:1, which has a tag or a digest in it: set image.tag or "
        "image.digest instead.",
    ),
    "a digest in the repository": (
        {"image": {"repository": f"r/o@sha256:{'a' * 64}"}},
        f"image.repository is r/o@sha256:{'a' * 64}, which has a tag or a digest in it: set "
        "image.tag or image.digest instead.",
    ),
    "jobs as the operator": (
        {"jobs": {"namespaces": [NAMESPACE], "serviceAccount": {"name": "sparkpoint-operator"}}},
        f"jobs.serviceAccount.name is sparkpoint-operator, which is in {NAMESPACE} the operator's "
        "own account, so that jobs could do whatever it may: name another, or keep jobs out of "
        f"{NAMESPACE}.",
    ),
    "labels of the chart's own": (
        {"podLabels": {"team": "streams", "app.kubernetes.io/name": "mine"}},
        "podLabels has app.kubernetes.io/name, which the chart sets itself: leave it out.",
    ),
    "labels of the chart's own, on a monitor": (
        {"monitoring": {"serviceMonitor": {"labels": {"helm.sh/chart": "mine"}}}},
        "monitoring.serviceMonitor.labels has helm.sh/chart, which the chart sets itself: leave it "
        "out.",
    ),
    "annotations of the chart's own": (
        {"jobs": {"serviceAccount": {"annotations": {"helm.sh/resource-policy": "delete"}}}},
        "jobs.serviceAccount.annotations has helm.sh/resource-policy, which the chart sets itself: "
        "leave it out.",
    ),
}


@pytest.mark.parametrize(("values", "sentence"), CONTRADICTIONS.values(), ids=CONTRADICTIONS)
def test_a_contradiction_is_refused_with_its_sentence(values: Object, sentence: str) -> None:
    [said] = _sentences(refusal(values))

    assert said == sentence


def test_all_contradictions_are_told_at_once() -> None:
    chosen = ("no namespaces", "two without a lease", "monitor", "rules", "account", "image")
    values: Object = {}
    for name in chosen:
        for key, value in CONTRADICTIONS[name][0].items():
            values[key] = {**values.get(key, {}), **value} if isinstance(value, dict) else value

    said = _sentences(refusal(values))

    assert sorted(said) == sorted(CONTRADICTIONS[name][1] for name in chosen)


def _sentences(text: str) -> list[str]:
    return [line[2:] for line in text.splitlines() if line.startswith("- ")]


@pytest.mark.parametrize(
    ("values", "complaint"),
    [
        ({"replica": 2}, "additional properties 'replica' not allowed"),
        ({"watch": {"scopes": "x"}}, "at '/watch': additional properties 'scopes' not allowed"),
        ({"watch": {"scope": "Everything"}}, "at '/watch/scope': value must be one of"),
        ({"watch": {"namespaces": ["Shop"]}}, "at '/watch/namespaces/0'"),
        ({"watch": {"namespaces": ["shop", "shop"]}}, "at '/watch/namespaces': items at 0 and 1"),
        ({"replicas": "two"}, "at '/replicas': got string, want integer"),
        ({"replicas": -1}, "at '/replicas'"),
        ({"image": {"digest": "latest"}}, "at '/image/digest'"),
        ({"metrics": {"port": 80}}, "at '/metrics/port': minimum"),
        ({"networkPolicy": {"apiServer": {"ports": []}}}, "/apiServer/ports': minItems"),
        ({"monitoring": {"serviceMonitor": {"interval": "often"}}}, "serviceMonitor/interval"),
        ({"airflow": {"serviceAccounts": [{"name": "a"}]}}, "missing property 'namespace'"),
        ({"airflow": {"dags": ["everything"]}}, "at '/airflow/dags/0': value must be one of"),
        ({"fullnameOverride": "Foo_Bar"}, "at '/fullnameOverride': 'Foo_Bar' does not match"),
        # No Service may be called so.
        ({"fullnameOverride": "1st"}, "at '/fullnameOverride': '1st' does not match"),
        ({"nameOverride": "My App"}, "at '/nameOverride': 'My App' does not match"),
        ({"imagePullSecrets": [{}]}, "at '/imagePullSecrets/0': missing property 'name'"),
        ({"imagePullSecrets": [{"name": ""}]}, "at '/imagePullSecrets/0/name'"),
        (
            {"networkPolicy": {"monitoring": [{}]}},
            "at '/networkPolicy/monitoring/0': minProperties",
        ),
        ({"networkPolicy": {"monitoring": [{"pods": {}}]}}, "additional properties 'pods' not"),
        ({"networkPolicy": None}, "at '': missing property 'networkPolicy'"),
        ({"monitoring": None}, "at '': missing property 'monitoring'"),
        ({"monitoring": {"podMonitor": None}}, "at '/monitoring': missing property 'podMonitor'"),
        ({"jobs": None}, "at '': missing property 'jobs'"),
        ({"watch": {"scope": None}}, "at '/watch': missing property 'scope'"),
    ],
)
def test_the_schema_refuses_what_is_no_value(values: Object, complaint: str) -> None:
    assert complaint in refusal(values)


def test_a_registry_may_have_a_port() -> None:
    chart = render({"image": {"repository": "host:5000/r/o", "tag": "1"}})

    [container] = chart.one("Deployment")["spec"]["template"]["spec"]["containers"]
    assert container["image"] == "host:5000/r/o:1"


def test_jobs_of_other_namespaces_may_have_an_account_of_the_operators_name() -> None:
    jobs = {"namespaces": ["shop"], "serviceAccount": {"name": "sparkpoint-operator"}}

    assert len(render({"jobs": jobs}).of("ServiceAccount")) == 2


def test_names_may_be_chosen() -> None:
    chart = render({"nameOverride": "2-spark", "fullnameOverride": "my-spark2"})

    assert chart.one("Deployment")["metadata"]["name"] == "my-spark2-operator"


def test_what_may_be_empty_may_be_null() -> None:
    """Null takes the default away, which is how Helm empties a map."""
    board = {"monitoring": {"dashboard": {"enabled": True, "labels": {"grafana_dashboard": None}}}}
    bare: Object = dict.fromkeys(_EMPTY_AT_THE_TOP)

    labels = render(board).one("ConfigMap", "sparkpoint-dashboard")["metadata"]["labels"]
    assert "grafana_dashboard" not in labels
    assert render(bare).one("Deployment")


def test_what_may_not_be_empty_is_required() -> None:
    """Else null in its place would meet the templates, which tell of nil pointers."""
    schema = json.loads((CHART / "values.schema.json").read_text())
    schema["properties"].pop("global")

    assert list(_wrongly_required(schema, "")) == []


def _wrongly_required(schema: dict[str, Any], path: str) -> Iterator[str]:
    for name, part in schema["properties"].items():
        if "properties" in part:
            yield from _wrongly_required(part, f"{path}{name}.")
        if (name in schema.get("required", [])) is _may_be_empty(part):
            yield f"{path}{name}"


def _may_be_empty(part: dict[str, Any]) -> bool:
    if part["type"] == "string":
        return "enum" not in part and "minLength" not in part and _takes_nothing(part)
    return part["type"] in ("object", "array") and not {"properties", "minItems"} & set(part)


def _takes_nothing(part: dict[str, Any]) -> bool:
    return re.fullmatch(part.get("pattern", ""), "") is not None


def test_every_value_has_a_default_and_a_meaning_and_nothing_else_is_taken() -> None:
    schema = json.loads((CHART / "values.schema.json").read_text())
    defaults = yaml.safe_load((CHART / "values.yaml").read_text())
    # A parent chart hands it down; it has no default.
    schema["properties"].pop("global")

    assert list(_differences(schema, defaults, "")) == []


def _differences(schema: dict[str, Any], defaults: dict[str, Any], path: str) -> Iterator[str]:
    """What the schema and the defaults do not agree about."""
    assert schema["additionalProperties"] is False, path
    for name in sorted(set(schema["properties"]) ^ set(defaults)):
        yield f"{path}{name} is in one of them alone"
    for name, part in schema["properties"].items():
        if "properties" in part:
            yield from _differences(part, defaults[name], f"{path}{name}.")
        elif not part.get("description"):
            yield f"{path}{name} has no description"
