"""The pages about metrics and options say what the code does."""

import re
import subprocess
import sys
from pathlib import Path

import yaml

from sparkpoint.controller.main import main
from tests.unit.promql import asked_for, of_a_driver, of_the_operator, series_of

DOCS = Path(__file__).parents[3] / "docs"
PAGE = (DOCS / "observability.md").read_text()


def listed(page: str) -> dict[str, str]:
    """Metric -> type, as the tables of a page have it."""
    row = re.compile(
        r"^\| `([a-z_]+)(?:\{[a-z_,]+\})?` \| (gauge|counter|histogram|summary) \|", re.M
    )
    return dict(row.findall(page))


def test_every_metric_of_the_operator_is_on_the_page_and_no_other() -> None:
    assert listed(PAGE) == of_the_operator()


def test_every_metric_of_a_driver_is_on_its_page() -> None:
    assert listed((DOCS / "agent.md").read_text()) == of_a_driver()


def test_alerts_are_about_metrics_that_there_are() -> None:
    [block] = [each for each in re.findall(r"```yaml\n(.*?)```", PAGE, re.S) if "groups:" in each]
    rules = yaml.safe_load(block)["groups"][0]["rules"]

    assert len({rule["alert"] for rule in rules}) == len(rules) >= 8
    known = series_of(of_the_operator() | of_a_driver())
    assert asked_for(rule["expr"] for rule in rules) <= known


def test_drivers_are_scraped_with_the_label_that_the_dashboard_finds_them_by() -> None:
    board = (DOCS.parent / "helm/sparkpoint/files/dashboard.json").read_text()
    blocks = re.findall(r"```yaml\n(.*?)```", PAGE, re.S)
    scraping = [block for block in blocks if "__meta_kubernetes_pod_label_" in block]

    assert len(scraping) == 2
    assert 'sparkpoint_dev_job=~\\"$job\\"' in board
    for block in scraping:
        assert re.search(r"(targetLabel|target_label): sparkpoint_dev_job\}", block)


def test_every_example_on_the_pages_is_yaml() -> None:
    for page in ("observability.md", "security.md"):
        for block in re.findall(r"```yaml\n(.*?)```", (DOCS / page).read_text(), re.S):
            assert list(yaml.safe_load_all(block))


def test_every_option_of_the_operator_is_on_its_page() -> None:
    page = (DOCS / "operator.md").read_text()

    options = {option for each in main.params for option in each.opts if option.startswith("--")}

    assert options
    assert all(f"`{option}" in page for option in options)


def test_the_operator_has_no_client_of_a_store_in_hand() -> None:
    code = "import sys, sparkpoint.controller.main; print(*sorted(sys.modules))"

    loaded = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )

    assert not {"boto3", "botocore", "pyspark"} & set(loaded.stdout.split())
