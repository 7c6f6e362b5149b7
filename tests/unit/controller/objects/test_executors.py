"""The template that Spark makes executors from."""

import json
import subprocess
from typing import Any

from sparkpoint.controller import objects
from sparkpoint.controller.objects.executors import DECOMMISSION, executor_pod_template
from tests.unit.controller.objects.samples import OWNER, container, make_run, make_spec, only


def _template(**executor: Any) -> dict[str, Any]:
    spec = make_spec(
        executor={"instances": 1, **executor},
        storage={"secretName": "s3", "volumes": [{"claimName": "data", "mountPath": "/data"}]},
    )
    return executor_pod_template(spec, "visits-e3-a7")


def test_the_config_map_holds_what_the_conf_points_to() -> None:
    spec = make_spec()
    built = objects.driver_objects(OWNER, spec, make_run(), expect="any", token_secret="s")

    data = only(built, "ConfigMap")["data"]
    mounts = {each["mountPath"]: each for each in container(only(built, "Pod"))["volumeMounts"]}
    conf = dict(line.split("=", 1) for line in data["spark-defaults.conf"].splitlines())
    mount = mounts[conf["spark.kubernetes.executor.podTemplateFile"]]
    template = json.loads(data[mount["subPath"]])
    assert template == executor_pod_template(spec, "visits-e3-a7")
    assert template["kind"] == "Pod"
    assert container(template)["name"] == conf["spark.kubernetes.executor.podTemplateContainerName"]
    (files,) = [each for each in template["spec"]["volumes"] if "configMap" in each]
    (item,) = files["configMap"]["items"]
    (mounted,) = [
        each for each in container(template)["volumeMounts"] if each["name"] == files["name"]
    ]
    script = f"{mounted['mountPath']}/{item['path']}"
    assert script == conf["spark.kubernetes.decommission.script"]
    assert data[item["key"]] == DECOMMISSION
    assert files["configMap"]["defaultMode"] == 0o555


def test_executors_have_the_storage_of_the_job_and_their_own_variables() -> None:
    spark = container(_template(env=[{"name": "MODEL", "value": "v2"}]))

    names = [variable["name"] for variable in spark["env"]]
    assert {"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "MODEL"} <= set(names)
    assert "/data" in [mount["mountPath"] for mount in spark["volumeMounts"]]
    assert "image" not in spark
    assert "args" not in spark


def test_the_account_is_the_jobs_unless_the_template_has_its_own() -> None:
    usual = _template()["spec"]
    own = _template(podTemplate={"spec": {"serviceAccountName": "mine"}})["spec"]

    assert (usual["serviceAccountName"], usual["serviceAccount"]) == ("spark", "spark")
    assert (own["serviceAccountName"], own["serviceAccount"]) == ("mine", "mine")
    assert usual["automountServiceAccountToken"] is False


def test_sparks_container_comes_first_and_others_are_kept() -> None:
    containers = [{"name": "proxy", "image": "p"}, {"name": "spark-kubernetes-executor"}]

    template = _template(podTemplate={"spec": {"containers": containers}})

    names = [each["name"] for each in template["spec"]["containers"]]
    assert names == ["spark-kubernetes-executor", "proxy"]


def test_the_script_that_is_run_before_an_executor_stops_is_sound() -> None:
    checked = subprocess.run(["sh", "-n"], input=DECOMMISSION, text=True, check=False)

    assert checked.returncode == 0
