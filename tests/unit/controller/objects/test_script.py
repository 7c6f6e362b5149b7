"""How the user's script comes into the pods."""

from typing import Any

import pytest

from sparkpoint.controller import objects
from sparkpoint.controller.objects import Manifest
from sparkpoint.worker.tasks import parse
from tests.unit.controller.objects.samples import OWNER, container, make_run, make_spec, only

_CONFIG_MAP = {"configMap": {"name": "code", "key": "visits.py"}}


def _built(script: dict[str, Any], text: str | None = None) -> tuple[Manifest, ...]:
    return objects.driver_objects(
        OWNER,
        make_spec(application={"script": script}),
        make_run(),
        expect="any",
        token_secret="the-secret",
        script=text,
    )


def _script_volume(pod: Manifest) -> dict[str, Any] | None:
    volumes = {volume["name"]: volume for volume in pod["spec"]["volumes"]}
    return volumes.get("sparkpoint-script")


@pytest.mark.parametrize(
    ("script", "path"),
    [
        ({"path": "/opt/job/visits.py"}, "/opt/job/visits.py"),
        (_CONFIG_MAP, "/opt/sparkpoint/script/visits.py"),
        ({"uri": "s3://code/jobs/visits.py"}, "/opt/sparkpoint/script/visits.py"),
        ({"uri": "s3a://code/visits"}, "/opt/sparkpoint/script/visits"),
    ],
)
def test_the_script_is_run_from_where_it_is_put(script: dict[str, Any], path: str) -> None:
    arguments = container(only(_built(script), "Pod"))["args"]

    assert arguments[arguments.index("--") + 1] == path
    assert objects.script_path(make_spec(application={"script": script})) == path


def test_a_script_in_the_image_needs_nothing() -> None:
    pod = only(_built({"path": "/opt/job/visits.py"}), "Pod")

    assert _script_volume(pod) is None
    assert "initContainers" not in pod["spec"]


def test_a_script_that_was_kept_is_what_runs_whatever_became_of_its_config_map() -> None:
    built = _built(_CONFIG_MAP, "print(1)\n")

    config_map = only(built, "ConfigMap")
    volume = _script_volume(only(built, "Pod"))
    assert volume is not None
    assert volume["configMap"]["name"] == config_map["metadata"]["name"]
    (item,) = volume["configMap"]["items"]
    assert (config_map["data"][item["key"]], item["path"]) == ("print(1)\n", "visits.py")


def test_without_it_the_users_own_config_map_is_mounted() -> None:
    built = _built(_CONFIG_MAP)

    assert "script" not in only(built, "ConfigMap")["data"]
    assert _script_volume(only(built, "Pod")) == {
        "name": "sparkpoint-script",
        "configMap": {"name": "code", "items": [{"key": "visits.py", "path": "visits.py"}]},
    }


def test_a_script_in_a_bucket_is_fetched_before_the_driver_starts() -> None:
    pod = only(_built({"uri": "s3://code/jobs/visits.py"}), "Pod")

    (fetcher,) = pod["spec"]["initContainers"]
    program, task = fetcher["args"][:3], fetcher["args"][3:]
    assert program == ["python3", "-m", "sparkpoint.worker"]
    assert parse(task, {})[0] == "fetch"
    assert task[1:] == ["--uri", "s3://code/jobs/visits.py", "--to", objects.script_path(
        make_spec(application={"script": {"uri": "s3://code/jobs/visits.py"}})
    )]  # fmt: skip
    shared = {"name": "sparkpoint-script", "mountPath": "/opt/sparkpoint/script"}
    assert shared in fetcher["volumeMounts"]
    assert {**shared, "readOnly": True} in container(pod)["volumeMounts"]


def test_init_containers_of_the_template_run_before_the_fetch() -> None:
    template = {"spec": {"initContainers": [{"name": "credentials", "image": "vault:1"}]}}
    spec = make_spec(
        application={"script": {"uri": "s3://code/visits.py"}}, driver={"podTemplate": template}
    )
    built = objects.driver_objects(OWNER, spec, make_run(), expect="any", token_secret="the-secret")

    names = [each["name"] for each in only(built, "Pod")["spec"]["initContainers"]]
    assert names == ["credentials", "sparkpoint-fetch"]
