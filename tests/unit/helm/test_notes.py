"""What a person reads after the installation."""

import re

from tests.unit.helm.combinations import NAMESPACED
from tests.unit.helm.rendering import NAMESPACE, render


def test_the_next_command_is_told() -> None:
    plain, ready = render().notes, render({"jobs": {"namespaces": ["shop"]}}).notes

    assert f"helm -n {NAMESPACE} test sparkpoint" in plain
    assert f"kubectl -n {NAMESPACE} rollout status deployment/sparkpoint-operator" in plain
    assert "--set 'jobs.namespaces={my-namespace}'" in plain
    assert "kubectl -n shop apply -f my-job.yaml" in ready
    assert "my-namespace" not in ready


def test_it_says_what_is_served() -> None:
    assert "serves all namespaces." in render().notes
    assert "serves shop, lab." in render(NAMESPACED).notes


def test_it_says_how_to_finish() -> None:
    notes = render().notes

    commands = re.findall(r"^  (kubectl delete \S+|helm -n \S+ uninstall)", notes, re.MULTILINE)
    # Jobs first, while the operator can stop them; the definitions last.
    assert commands == [
        "kubectl delete ssj",
        f"helm -n {NAMESPACE} uninstall",
        "kubectl delete crd",
    ]
    assert "Jobs run on" in notes


def test_it_warns_of_what_will_surprise() -> None:
    budget = render({"podDisruptionBudget": {"enabled": True}}).notes
    policy = render({"networkPolicy": {"enabled": True}}).notes
    own = render({"crds": {"install": False}}).notes

    shared = render({"jobs": {"namespaces": ["shop", NAMESPACE]}}).notes
    served = render({"watch": {"scope": "Namespaces", "namespaces": [NAMESPACE]}}).notes

    assert "cannot be drained" in budget
    assert all(f"jobs of {NAMESPACE} can run as the operator's own" in n for n in (shared, served))
    assert "no driver is protected" in policy
    assert "kubectl apply --server-side -f crds/" in own
    assert "NOTE" not in render().notes
