"""Worker pods: the job's way to its data, and nothing that would keep them from ending."""

from typing import Any

from sparkpoint.controller import objects
from tests.unit.controller.objects.samples import (
    OWNER,
    container,
    golden_spec,
    make_run,
    make_spec,
    only,
)

_ARGUMENTS = ("capture", "--job", "shop/visits")


def _worker(**changes: Any) -> dict[str, Any]:
    return objects.worker_pod(OWNER, make_spec(**changes), name="work", arguments=_ARGUMENTS)


def test_it_runs_the_worker_in_the_jobs_image() -> None:
    pod = _worker()

    assert pod["metadata"]["name"] == "work"
    assert container(pod)["image"] == "sparkpoint.dev/runtime:spark-4.3.0"
    assert container(pod)["args"] == ["python3", "-m", "sparkpoint.worker", *_ARGUMENTS]
    assert container(pod)["terminationMessagePath"] == "/dev/termination-log"


def test_its_arguments_are_taken_as_they_are() -> None:
    arguments = ["rehearse", "--repository", "/data/$$(X)", "--", "/x.py", "--since=$(SINCE)"]

    pod = objects.worker_pod(OWNER, make_spec(), name="work", arguments=arguments)

    assert container(pod)["args"][3:] == arguments


def test_it_is_labelled_with_the_run_that_it_works_for() -> None:
    spec = make_spec()
    alone = objects.worker_pod(OWNER, spec, name="work", arguments=_ARGUMENTS)
    of_run = objects.worker_pod(OWNER, spec, name="work", arguments=_ARGUMENTS, run=make_run())

    assert alone["metadata"]["labels"]["sparkpoint.dev/role"] == "worker"
    assert "sparkpoint.dev/epoch" not in alone["metadata"]["labels"]
    assert of_run["metadata"]["labels"]["sparkpoint.dev/epoch"] == "3"
    assert of_run["metadata"]["labels"]["sparkpoint.dev/attempt"] == "7"


def test_it_runs_where_the_driver_runs_and_reaches_what_it_reaches() -> None:
    spec = golden_spec("full")
    driver = only(
        objects.driver_objects(
            OWNER,
            spec,
            make_run(),
            expect="any",
            token_secret="s",
        ),
        "Pod",
    )
    worker = objects.worker_pod(OWNER, spec, name="work", arguments=_ARGUMENTS)

    for field in (
        "nodeSelector",
        "tolerations",
        "priorityClassName",
        "securityContext",
        "serviceAccountName",
        "imagePullSecrets",
        "initContainers",
    ):
        assert worker["spec"][field] == driver["spec"][field], field
    own = {"POD_IP", "PYSPARK_SUBMIT_ARGS", "SPARK_CONF_DIR", "SPARK_LOCAL_DIRS"}
    assert container(worker)["env"] == [
        variable for variable in container(driver)["env"] if variable["name"] not in own
    ]
    assert container(worker)["envFrom"] == container(driver)["envFrom"]
    mounts = {mount["mountPath"] for mount in container(worker)["volumeMounts"]}
    assert {"/data", "/reference", "/etc/certificates"} <= mounts


def test_nothing_of_the_driver_comes_along_that_it_does_not_need() -> None:
    template = {
        "spec": {
            "containers": [
                {
                    "resources": {"requests": {"nvidia.com/gpu": "1"}},
                    "lifecycle": {"preStop": {"exec": {"command": ["x"]}}},
                    "ports": [{"containerPort": 1}],
                },
                {"name": "sidecar", "image": "for-ever"},
            ]
        }
    }

    pod = _worker(driver={"podTemplate": template, "memory": "64g"})

    assert [each["name"] for each in pod["spec"]["containers"]] == ["worker"]
    assert container(pod)["resources"]["requests"] == {"cpu": "100m", "memory": "256Mi"}
    assert not {"lifecycle", "ports", "livenessProbe", "readinessProbe"} & container(pod).keys()
    assert pod["spec"]["automountServiceAccountToken"] is False


def test_a_plain_worker_does_not_depend_on_the_script() -> None:
    """A capture must be possible when the ConfigMap of the script is gone."""
    config_map = {"script": {"configMap": {"name": "gone", "key": "x.py"}}}
    bucket = {"script": {"uri": "s3://gone/x.py"}}

    for application in (config_map, bucket):
        assert _worker(application=application) == _worker()


def test_a_worker_with_spark_has_the_script_and_the_memory_of_the_driver() -> None:
    spec = golden_spec("full")

    built = objects.spark_worker_objects(
        OWNER, spec, name="trial", arguments=("rehearse",), script="print(1)\n"
    )

    config_map, pod = built
    mounts = {each["mountPath"]: each for each in container(pod)["volumeMounts"]}
    assert {each["metadata"]["name"] for each in built} == {"trial"}
    assert config_map["data"]["script"] == "print(1)\n"
    assert mounts["/opt/spark/conf/spark-defaults.conf"]["subPath"] in config_map["data"]
    assert "/opt/sparkpoint/script" in mounts
    assert container(pod)["resources"]["limits"]["memory"] == "2748Mi"
