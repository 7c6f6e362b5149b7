"""Pod templates as people write them: every mistake at once, with its place and a remedy."""

from typing import Any

import pytest

from sparkpoint.api.errors import InvalidResourceError
from sparkpoint.controller import objects
from tests.unit.controller.objects.samples import OWNER, golden_spec, make_run, make_spec

_MISTAKES: dict[str, tuple[dict[str, Any], str]] = {
    "a pod instead of a template": ({"containers": []}, "podTemplate.containers"),
    "metadata that is no mapping": ({"metadata": "x"}, "podTemplate.metadata"),
    "a number as a label": ({"metadata": {"labels": {"a": 1}}}, "podTemplate.metadata.labels"),
    "Spark's own label": (
        {"metadata": {"labels": {"spark-app-selector": "x"}}},
        "podTemplate.metadata.labels[spark-app-selector]",
    ),
    "a spec that is no mapping": ({"spec": ["x"]}, "podTemplate.spec"),
    "containers that are no list": (
        {"spec": {"containers": {"name": "x"}}},
        "podTemplate.spec.containers",
    ),
    "a container that is no mapping": (
        {"spec": {"containers": ["x"]}},
        "podTemplate.spec.containers[0]",
    ),
    "a second container without a name": (
        {"spec": {"containers": [{}, {"image": "x"}]}},
        "podTemplate.spec.containers[1].name",
    ),
    "a volume without a name": (
        {"spec": {"volumes": [{"emptyDir": {}}]}},
        "podTemplate.spec.volumes[0].name",
    ),
    "a variable without a name": (
        {"spec": {"containers": [{"env": [{"value": "x"}]}]}},
        "podTemplate.spec.containers[0].env[0].name",
    ),
    "a command of Spark's container": (
        {
            "spec": {
                "containers": [{"name": "proxy"}, {"name": "spark-kubernetes-@", "args": ["x"]}]
            }
        },
        "podTemplate.spec.containers[1].args",
    ),
    "a container that starts again": (
        {"spec": {"containers": [{"restartPolicy": "Always"}]}},
        "podTemplate.spec.containers[0].restartPolicy",
    ),
    "a container for debugging": (
        {"spec": {"ephemeralContainers": [{"name": "look"}]}},
        "podTemplate.spec.ephemeralContainers",
    ),
    "a time after which it is killed": (
        {"spec": {"activeDeadlineSeconds": 3600}},
        "podTemplate.spec.activeDeadlineSeconds",
    ),
    "another command of it": (
        {"spec": {"containers": [{"command": ["sh"]}]}},
        "podTemplate.spec.containers[0].command",
    ),
}


def _for(role: str, value: Any) -> Any:
    """The template with the name that Spark's container has in this role."""
    if isinstance(value, dict):
        return {key: _for(role, inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_for(role, inner) for inner in value]
    return value.replace("@", role) if isinstance(value, str) else value


@pytest.mark.parametrize("role", ["driver", "executor"])
@pytest.mark.parametrize(("template", "path"), _MISTAKES.values(), ids=_MISTAKES)
def test_a_mistake_is_told_with_its_path(role: str, template: dict[str, Any], path: str) -> None:
    fields: dict[str, Any] = {"driver": {}, "executor": {"instances": 1}}
    fields[role]["podTemplate"] = _for(role, template)

    spec = make_spec(**fields)

    (error,) = [*objects.template_errors(spec), *objects.unfit_templates(spec)]

    assert error.path == f"spec.{role}.{path}"
    assert error.remedy


def test_all_mistakes_of_both_templates_are_told_at_once() -> None:
    bad = {"metadata": "x", "spec": {"volumes": [{}, "x"]}}
    spec = make_spec(
        driver={"podTemplate": bad}, executor={"instances": 1, "podTemplate": {"spec": 5}}
    )

    with pytest.raises(InvalidResourceError) as raised:
        objects.driver_objects(OWNER, spec, make_run(), expect="any", token_secret="s")

    assert [error.path for error in raised.value.errors] == [
        "spec.driver.podTemplate.metadata",
        "spec.driver.podTemplate.spec.volumes[0].name",
        "spec.driver.podTemplate.spec.volumes[1]",
        "spec.executor.podTemplate.spec",
    ]


@pytest.mark.parametrize(
    "unfit", [{"activeDeadlineSeconds": 3600}, {"ephemeralContainers": [{"name": "look"}]}]
)
def test_what_an_earlier_operator_took_is_left_out_so_that_its_jobs_are_still_healed(
    unfit: dict[str, Any],
) -> None:
    template = {"spec": {"priority": 7, **unfit}}
    spec = make_spec(
        driver={"podTemplate": template}, executor={"instances": 1, "podTemplate": template}
    )

    built = objects.driver_objects(OWNER, spec, make_run(), expect="any", token_secret="s")
    worker = objects.worker_pod(OWNER, spec, name="w", arguments=["remove"])

    for pod in (*(each for each in built if each["kind"] == "Pod"), worker):
        assert pod["spec"]["priority"] == 7
        assert not unfit.keys() & pod["spec"].keys()
    assert not any(field in str(built) for field in unfit)
    assert objects.template_errors(spec) == []
    assert len(objects.unfit_templates(spec)) == 2


_FINE: list[dict[str, Any]] = [
    {},
    {"metadata": None, "spec": None},
    {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "ignored"}, "spec": {}},
    {"spec": {"containers": None, "volumes": None, "nodeSelector": None}},
    {"spec": {"containers": []}},
]


@pytest.mark.parametrize("template", _FINE)
def test_what_says_nothing_is_fine(template: dict[str, Any]) -> None:
    spec = make_spec(driver={"podTemplate": template})

    built = objects.driver_objects(OWNER, spec, make_run(), expect="any", token_secret="s")

    plain = objects.driver_objects(OWNER, make_spec(), make_run(), expect="any", token_secret="s")
    assert built == plain


def test_the_templates_of_the_golden_jobs_are_fine() -> None:
    assert objects.template_errors(golden_spec("full")) == []
    assert objects.unfit_templates(golden_spec("full")) == []
