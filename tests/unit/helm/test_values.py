"""Bad values are refused with one clear sentence each; good ones are described."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from dev.helm import CHART
from tests.unit.helm.rendering import Object, refusal

_TWO: Object = {"replicas": 2, "leaderElection": {"enabled": False}}
_SILENT: Object = {"metrics": {"enabled": False}}
_GUARDED: Object = {"networkPolicy": {"enabled": True}}
_LISTED: Object = {"scope": "Namespaces", "namespaces": ["shop"]}
_AIRFLOW: Object = {"enabled": True, "serviceAccounts": [{"namespace": "airflow", "name": "a"}]}

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
    ],
)
def test_the_schema_refuses_what_is_no_value(values: Object, complaint: str) -> None:
    assert complaint in refusal(values)


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
