"""The definitions in the chart are those of crds/, and Helm upgrades but never deletes them."""

import copy
from pathlib import Path

import yaml

from tests.unit.helm.rendering import Object, render

_CRDS = Path(__file__).parents[3] / "crds"


def _committed() -> dict[str, Object]:
    bodies = [yaml.load(file.read_text(), yaml.CSafeLoader) for file in _CRDS.glob("*.yaml")]
    return {body["metadata"]["name"]: body for body in bodies}


def test_they_are_the_committed_ones_but_for_the_word_to_helm() -> None:
    bodies = copy.deepcopy(render().of("CustomResourceDefinition"))

    policies = [body["metadata"].pop("annotations") for body in bodies]
    made = {body["metadata"]["name"]: body for body in bodies}
    assert made == _committed()
    assert policies == [{"helm.sh/resource-policy": "keep"}] * 2


def test_they_can_be_left_to_somebody_else() -> None:
    chart = render({"crds": {"install": False}})

    assert not chart.of("CustomResourceDefinition")
    assert chart.one("Deployment")
