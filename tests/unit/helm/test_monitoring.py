"""Dashboard and alerts: they parse, and ask only for metrics that there are."""

import json
import re
from typing import Any

import pytest
import yaml

from dev.helm import CHART
from sparkpoint.controller.keys import Key
from sparkpoint.controller.metrics import JobFigures, Metrics
from tests.unit.helm.combinations import EVERYTHING
from tests.unit.helm.rendering import NAMESPACE, render
from tests.unit.promql import asked_for, of_a_driver, of_the_operator, selectors, series_of

_PAGE = (CHART.parents[1] / "docs" / "observability.md").read_text()
_HERE = f'namespace="{NAMESPACE}"'

_ALERTS = {
    "SparkpointSavepointTooOld",
    "SparkpointJobDegraded",
    "SparkpointJobNotReady",
    "SparkpointRolledBack",
    "SparkpointNotListed",
    "SparkpointNotReconciling",
    "SparkpointNoLeader",
    "SparkpointPassesFail",
    "SparkpointMostPassesFail",
}


def _known() -> set[str]:
    return series_of(of_the_operator() | of_a_driver())


def _selector(variable: str) -> str:
    """Of `label_values(SELECTOR, LABEL)`, which is Grafana's and not Prometheus'."""
    found = re.fullmatch(r"label_values\((.+), \w+\)", variable)
    assert found
    return found[1]


def _dashboard() -> dict[str, Any]:
    found: dict[str, Any] = json.loads((CHART / "files" / "dashboard.json").read_text())
    return found


def _rules() -> list[dict[str, Any]]:
    [group] = render(EVERYTHING).one("PrometheusRule")["spec"]["groups"]
    rules: list[dict[str, Any]] = group["rules"]
    return rules


def _rule(alert: str) -> dict[str, Any]:
    [found] = [rule for rule in _rules() if rule["alert"] == alert]
    return found


def test_the_dashboard_asks_for_metrics_that_there_are() -> None:
    board = _dashboard()
    asked = [target["expr"] for panel in board["panels"] for target in panel.get("targets", [])]
    asked += [_selector(each["query"]["query"]) for each in board["templating"]["list"][1:]]

    assert asked_for(asked) <= _known()
    assert len(asked) > 15


@pytest.mark.parametrize(
    "figures",
    [
        JobFigures(expected=True, missing_since=1.0),
        JobFigures(savepoint_at=1.0),
        JobFigures(degraded="Failed"),
    ],
    ids=["runs without a savepoint", "stands with one", "degraded without one"],
)
def test_jobs_can_be_chosen_whether_they_have_a_savepoint_or_not(figures: JobFigures) -> None:
    metrics = Metrics()
    metrics.figures(Key("shop", "visits"), figures)

    shown = set(re.findall(r"^(\w+)\{.*job=\"visits\"", metrics.render(), re.MULTILINE))
    for variable in _dashboard()["templating"]["list"][1:]:
        asked = asked_for([_selector(variable["query"]["query"])])
        assert asked & shown
        # A driver's own series are scraped with a `job` that is Prometheus'.
        assert not asked & series_of(of_a_driver())


def test_the_dashboard_has_panels_with_a_title_and_a_place_of_their_own() -> None:
    panels = _dashboard()["panels"]
    cells = [
        (panel["gridPos"]["x"] + x, panel["gridPos"]["y"] + y)
        for panel in panels
        for x in range(panel["gridPos"]["w"])
        for y in range(panel["gridPos"]["h"])
    ]

    assert len(cells) == len(set(cells))
    assert max(x for x, _ in cells) < 24
    assert len({panel["id"] for panel in panels}) == len(panels)
    assert all(panel["title"] for panel in panels)


def test_the_dashboard_comes_whole_where_grafana_looks() -> None:
    body = render(EVERYTHING).one("ConfigMap", "sparkpoint-dashboard")

    assert json.loads(body["data"]["sparkpoint.json"]) == _dashboard()
    assert body["metadata"]["labels"]["grafana_dashboard"] == "1"


def test_the_alerts_ask_for_metrics_that_there_are() -> None:
    rules = _rules()

    assert {rule["alert"] for rule in rules} == _ALERTS
    assert asked_for(rule["expr"] for rule in rules) <= _known()


@pytest.mark.parametrize("wrong", ["sum by (kind) (", "rate(sparkpoint_leader)", "up[5m] > 0"])
def test_what_prometheus_would_refuse_is_refused(wrong: str) -> None:
    with pytest.raises(ValueError, match=r"\S"):
        asked_for([wrong])


def test_every_alert_says_what_is_wrong_and_what_to_do() -> None:
    for rule in _rules():
        assert rule["labels"]["severity"] in ("warning", "critical")
        assert rule["annotations"]["summary"].endswith(".")
        told = rule["annotations"]["description"]
        assert "kubectl" in told
        # Nothing of Helm's own is left in what Prometheus fills in.
        assert "Release" not in told


def test_a_savepoint_is_too_old_by_its_schedule_and_by_a_limit_if_there_is_one() -> None:
    only = {"monitoring": {"rules": {"enabled": True}}}
    [group] = render(only).one("PrometheusRule")["spec"]["groups"]

    old = [rule["expr"] for rule in _rules() if rule["alert"] == "SparkpointSavepointTooOld"]
    assert len(old) == 2
    assert "> 86400 and " in old[1]
    # A job that stands gets no newer ones.
    assert "sparkpoint_savepoint_expected" in asked_for([old[1]])
    assert len([r for r in group["rules"] if r["alert"] == "SparkpointSavepointTooOld"]) == 1


def test_a_job_that_never_had_a_savepoint_is_told_of_too() -> None:
    old = [rule["expr"] for rule in _rules() if rule["alert"] == "SparkpointSavepointTooOld"]

    assert all("sparkpoint_savepoint_missing_seconds" in asked_for([expr]) for expr in old)
    # `or` binds less than a comparison: without brackets each job without one would be told of.
    assert all(expr.startswith("(max by") and ") > " in expr.replace("\n", " ") for expr in old)


def test_rules_of_one_name_differ_in_their_labels() -> None:
    seen = [(rule["alert"], tuple(sorted(rule["labels"].items()))) for rule in _rules()]

    assert len(set(seen)) == len(seen)
    old = [rule for rule in _rules() if rule["alert"] == "SparkpointSavepointTooOld"]
    assert [rule["labels"]["limit"] for rule in old] == ["schedule", "installation"]


def test_savepoints_at_rest_need_no_pass() -> None:
    """They are looked at every hour: without jobs, five minutes of silence mean nothing."""
    [counted] = selectors(
        _rule("SparkpointNotReconciling")["expr"], "sparkpoint_operator_resources"
    )

    assert counted == {'kind="job"', _HERE}


def test_an_operator_that_could_list_nothing_is_told_of_before_it_knows_of_a_job() -> None:
    rule = _rule("SparkpointNotListed")

    assert selectors(rule["expr"], "sparkpoint_operator_lists_pending") == [{_HERE}]
    assert "resources" not in rule["expr"]


def test_an_operator_whose_passes_all_fail_is_told_of_whatever_the_error() -> None:
    rule = _rule("SparkpointMostPassesFail")

    failed, all_of_them = selectors(rule["expr"], "sparkpoint_operator_passes_total")
    assert failed == {'result=~"error|unexpected"', _HERE}
    # Where another release serves, nothing was tried.
    assert all_of_them == {'result!="elsewhere"', _HERE}
    assert rule["expr"].endswith("> 0.5")
    assert rule["for"] == "10m"
    account = f"system:serviceaccount:{NAMESPACE}:sparkpoint-operator"
    assert f"kubectl auth can-i --list --as={account}" in rule["annotations"]["description"]


def test_the_documented_scrape_has_the_label_that_the_rules_select_by() -> None:
    blocks = re.findall(r"```yaml\n(scrape_configs:.*?)```", _PAGE, re.DOTALL)
    [configs] = [yaml.safe_load(block)["scrape_configs"] for block in blocks]

    for config in configs:
        labels = {each.get("target_label"): each for each in config["relabel_configs"]}
        assert labels["namespace"]["source_labels"] == ["__meta_kubernetes_namespace"]


def test_the_documented_alerts_know_jobs_from_savepoints_too() -> None:
    [block] = re.findall(r"```yaml\n(groups:.*?)```", _PAGE, re.DOTALL)
    rules = {rule["alert"]: rule for rule in yaml.safe_load(block)["groups"][0]["rules"]}

    stalled = rules["SparkpointStalled"]["expr"]
    assert selectors(stalled, "sparkpoint_operator_resources") == [{'kind="job"'}]
    assert "SparkpointMostPassesFail" in rules
