"""The driver pod: what it is told, what it may use, and what keeps it."""

from itertools import pairwise
from typing import Any

import pytest

from sparkpoint.api.errors import InvalidResourceError
from sparkpoint.controller import objects
from sparkpoint.controller.objects import Manifest, Repository
from sparkpoint.lifecycle.record import Begin, Origin, Run
from sparkpoint.runtime.options import parse_options
from tests.unit.controller.objects.samples import OWNER, container, make_run, make_spec, only


def _built(run: Run | None = None, **changes: Any) -> tuple[Manifest, ...]:
    return objects.driver_objects(
        OWNER, make_spec(**changes), run or make_run(), expect="any", token_secret="the-secret"
    )


def _pod(run: Run | None = None, **changes: Any) -> Manifest:
    return only(_built(run, **changes), "Pod")


def _arguments(run: Run | None = None, **changes: Any) -> list[str]:
    arguments: list[str] = container(_pod(run, **changes))["args"]
    return arguments


def _option(arguments: list[str], name: str) -> str | None:
    return next((value for key, value in pairwise(arguments) if key == name), None)


def test_the_pod_comes_last_and_all_of_it_bears_the_attempts_name() -> None:
    built = _built()

    assert [each["kind"] for each in built] == ["ConfigMap", "PodDisruptionBudget", "Pod"]
    assert {each["metadata"]["name"] for each in built} == {"visits-e3-a7"}


def test_the_runtime_understands_its_command_line() -> None:
    entry, *arguments = _arguments(
        args=["--input", "/data"], checkpoint={"location": "/ck", "timeout": "1m30s"}
    )

    options = parse_options(arguments)

    assert entry == "driver"
    assert (options.epoch_dir, options.epoch) == ("/ck/shop/visits/epoch-3", 3)
    assert (options.job, options.revision) == ("shop/visits", "a1b2c3d4e5")
    assert (options.gated, options.gate_deadline) == (True, None)
    assert (options.stop_budget, options.on_query_failure) == (90.0, "fail")
    assert (options.trigger_interval, options.guarantee) == (None, "exactly-once")
    assert (options.script, options.arguments) == ("/opt/job/visits.py", ("--input", "/data"))
    assert options.agent is not None
    assert (options.agent.host, options.agent.port) == ("$(POD_IP)", objects.AGENT_PORT)
    assert str(options.termination_log) == "/dev/termination-log"


_COMMANDS: dict[str, tuple[dict[str, Any], str, str]] = {
    "Hadoop's name for S3": ({}, "--epoch-dir", "s3a://data/checkpoints/shop/visits/epoch-3"),
    "a query's death may be ignored": (
        {"checkpoint": {"location": "/ck", "onFailure": "Ignore"}},
        "--on-query-failure",
        "ignore",
    ),
    "milliseconds are kept": (
        {"checkpoint": {"location": "/ck", "timeout": "1s500ms"}},
        "--stop-budget",
        "1.5",
    ),
    "the trigger interval": (
        {"checkpoint": {"location": "/ck", "interval": "1m500ms"}},
        "--trigger-interval",
        "60.5",
    ),
    "output is exactly once unless less is promised": ({}, "--guarantee", "exactly-once"),
    "less is promised": (
        {"checkpoint": {"location": "/ck", "guarantee": "AtLeastOnce"}},
        "--guarantee",
        "at-least-once",
    ),
    "Kubernetes replaces nothing in a location": (
        {"checkpoint": {"location": "/data/$(HOME)"}},
        "--epoch-dir",
        "/data/$$(HOME)/shop/visits/epoch-3",
    ),
}


@pytest.mark.parametrize(("changes", "name", "value"), _COMMANDS.values(), ids=_COMMANDS)
def test_options_of_the_runtime(changes: dict[str, Any], name: str, value: str) -> None:
    assert _option(_arguments(**changes), name) == value


def test_arguments_of_the_script_may_refer_to_variables() -> None:
    assert _arguments(args=["--since=$(SINCE)"])[-1] == "--since=$(SINCE)"


@pytest.mark.parametrize("expect", ["empty", "restored", "any"])
def test_the_driver_is_told_what_it_must_find(expect: objects.Expectation) -> None:
    built = objects.driver_objects(
        OWNER, make_spec(), make_run(), expect=expect, token_secret="the-secret"
    )

    assert _option(container(only(built, "Pod"))["args"], "--expect") == expect


@pytest.mark.parametrize(
    ("sink", "word"), [("Resume", "resume"), ("Rewind", "rewind"), ("Fork", "fork")]
)
def test_a_run_from_a_savepoint_restores_it(sink: Any, word: str) -> None:
    run = make_run(origin=Origin(begin=Begin.SAVEPOINT, savepoint="nightly", sink=sink))

    arguments = _arguments(run, storage={"endpointUrl": "http://s3:8333"})

    options = parse_options(arguments[1:])
    assert options.restore is not None
    assert (options.restore.savepoint, options.restore.sink) == ("nightly", word)
    assert options.restore.repository == "s3://data/savepoints"
    assert options.endpoint_url == "http://s3:8333"


@pytest.mark.parametrize("begin", [Begin.EMPTY, Begin.CONTINUE])
def test_any_other_run_restores_nothing(begin: Begin) -> None:
    arguments = _arguments(make_run(origin=Origin(begin=begin)))

    assert not {"--restore", "--repository", "--sink"} & set(arguments)


def test_a_savepoint_of_another_repository_is_looked_for_there() -> None:
    run = make_run(origin=Origin(begin=Begin.SAVEPOINT, savepoint="nightly"))

    built = objects.driver_objects(
        OWNER,
        make_spec(),
        run,
        expect="restored",
        token_secret="the-secret",
        repository=Repository("s3://elsewhere/savepoints", "https://s3.example.com"),
    )

    arguments = container(only(built, "Pod"))["args"]
    assert _option(arguments, "--repository") == "s3://elsewhere/savepoints"
    assert _option(arguments, "--repository-endpoint-url") == "https://s3.example.com"
    assert "--endpoint-url" not in arguments


def test_a_savepoint_without_a_repository_is_told_with_what_to_do() -> None:
    run = make_run(origin=Origin(begin=Begin.SAVEPOINT, savepoint="nightly"))

    with pytest.raises(InvalidResourceError, match=r"spec\.savepoints.*nightly.*repository"):
        _built(run, savepoints=None)


def test_the_grace_period_outlasts_the_stop() -> None:
    pod = _pod(checkpoint={"location": "/ck", "timeout": "59s1ms"})

    assert pod["spec"]["terminationGracePeriodSeconds"] == 60 + 30


def test_the_address_is_known_before_it_is_used() -> None:
    names = [
        variable["name"]
        for variable in container(
            _pod(
                driver={
                    "podTemplate": {
                        "spec": {"containers": [{"env": [{"name": "PYSPARK_SUBMIT_ARGS"}]}]}
                    }
                }
            )
        )["env"]
    ]

    assert names.count("PYSPARK_SUBMIT_ARGS") == 1
    assert names.index("POD_IP") < names.index("PYSPARK_SUBMIT_ARGS")


_RESOURCES: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "heap and overhead, one core": (
        {},
        {"requests": {"cpu": "1", "memory": "1433Mi"}, "limits": {"memory": "1433Mi"}},
    ),
    "all said": (
        {
            "cores": 4,
            "coreRequest": "500m",
            "coreLimit": "2",
            "memory": "1g",
            "memoryOverhead": "1g",
        },
        {
            "requests": {"cpu": "500m", "memory": "2048Mi"},
            "limits": {"cpu": "2", "memory": "2048Mi"},
        },
    ),
}


@pytest.mark.parametrize(("driver", "expected"), _RESOURCES.values(), ids=_RESOURCES)
def test_resources(driver: dict[str, Any], expected: dict[str, Any]) -> None:
    assert container(_pod(driver=driver))["resources"] == expected


def test_what_the_role_says_of_a_variable_wins_over_storage() -> None:
    storage = {"secretName": "s3", "endpointUrl": "http://s3:8333"}
    driver = {"env": [{"name": "AWS_REGION", "value": "eu-west-1"}]}

    variables = container(_pod(storage=storage, driver=driver))["env"]

    values = {variable["name"]: variable.get("value") for variable in variables}
    assert (values["AWS_REGION"], values["AWS_DEFAULT_REGION"]) == ("eu-west-1", "us-east-1")
    assert values["AWS_ENDPOINT_URL"] == "http://s3:8333"


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, "/var/data/spark-local"),
        ({"driver": {"env": [{"name": "SPARK_LOCAL_DIRS", "value": "/fast"}]}}, "/fast"),
        ({"sparkConf": {"spark.local.dir": "/fast"}}, None),
    ],
)
def test_spark_works_on_a_volume_unless_the_job_says_where(
    changes: dict[str, Any], expected: str | None
) -> None:
    variables = {each["name"]: each.get("value") for each in container(_pod(**changes))["env"]}

    assert variables.get("SPARK_LOCAL_DIRS") == expected


def test_credentials_are_references_and_only_the_session_token_may_be_missing() -> None:
    variables = container(_pod(storage={"secretName": "s3"}))["env"]

    references = {
        each["name"]: each["valueFrom"]["secretKeyRef"]
        for each in variables
        if "secretKeyRef" in each.get("valueFrom", {})
    }
    assert references == {
        "AWS_ACCESS_KEY_ID": {"name": "s3", "key": "AWS_ACCESS_KEY_ID"},
        "AWS_SECRET_ACCESS_KEY": {"name": "s3", "key": "AWS_SECRET_ACCESS_KEY"},
        "AWS_SESSION_TOKEN": {"name": "s3", "key": "AWS_SESSION_TOKEN", "optional": True},
    }


def test_the_token_is_mounted_from_the_secret_that_was_named() -> None:
    volumes = {volume["name"]: volume for volume in _pod()["spec"]["volumes"]}

    assert volumes["sparkpoint-agent"]["secret"]["secretName"] == "the-secret"


def test_the_budget_protects_exactly_this_driver() -> None:
    built = _built()
    budget, pod = only(built, "PodDisruptionBudget"), only(built, "Pod")

    assert budget["spec"]["minAvailable"] == 1
    assert budget["spec"]["selector"]["matchLabels"] == pod["metadata"]["labels"]
    assert pod["metadata"]["labels"]["sparkpoint.dev/attempt"] == "7"


def test_a_driver_without_a_budget_may_be_evicted() -> None:
    built = _built(driver={"disruptionBudget": False})

    assert [each["kind"] for each in built] == ["ConfigMap", "Pod"]


_TEMPLATE = {
    "metadata": {"labels": {"team": "shop", "sparkpoint.dev/job": "another"}},
    "spec": {
        "restartPolicy": "Always",
        "serviceAccountName": "another",
        "securityContext": {"runAsUser": 1000},
        "nodeSelector": {"disk": "ssd"},
        "containers": [
            {"name": "mine", "image": "another", "livenessProbe": {"exec": {"command": ["true"]}}},
            {"name": "proxy", "image": "proxy:1"},
        ],
    },
}


def test_the_resources_fields_win_over_the_template_and_that_over_defaults() -> None:
    pod = _pod(driver={"podTemplate": _TEMPLATE})

    spec, spark = pod["spec"], container(pod)
    assert (spec["restartPolicy"], spec["serviceAccountName"]) == ("Never", "spark")
    assert pod["metadata"]["labels"]["sparkpoint.dev/job"] == "visits"
    assert pod["metadata"]["labels"]["team"] == "shop"
    assert spec["nodeSelector"] == {"disk": "ssd"}
    assert (spec["securityContext"]["runAsUser"], spec["securityContext"]["fsGroup"]) == (1000, 185)
    assert (spark["name"], spark["image"]) == (
        "spark-kubernetes-driver",
        "sparkpoint.dev/runtime:spark-4.3.0",
    )
    assert spark["livenessProbe"] == {"exec": {"command": ["true"]}}
    assert spec["containers"][1] == {"name": "proxy", "image": "proxy:1"}


_CLAIMS: list[dict[str, Any]] = [
    {"claimName": "data", "mountPath": "/data"},
    {"claimName": "other", "mountPath": "/other", "readOnly": True},
    {"claimName": "data", "mountPath": "/again", "subPath": "part"},
]


def test_a_claim_is_one_volume_however_often_it_is_mounted() -> None:
    pod = _pod(storage={"volumes": _CLAIMS})

    claims = [each for each in pod["spec"]["volumes"] if "persistentVolumeClaim" in each]
    mounts = {each["mountPath"]: each for each in container(pod)["volumeMounts"]}
    assert [each["persistentVolumeClaim"]["claimName"] for each in claims] == ["data", "other"]
    assert mounts["/data"]["name"] == mounts["/again"]["name"] == claims[0]["name"]
    assert mounts["/again"]["subPath"] == "part"
    assert mounts["/other"]["readOnly"] is True


@pytest.mark.parametrize(
    ("conf", "port"),
    [({}, 4040), ({"spark.ui.port": "4050"}, 4050), ({"spark.ui.port": "0"}, 4040)],
)
def test_the_service_leads_to_sparks_pages(conf: dict[str, str], port: int) -> None:
    service = objects.ui_service(OWNER, make_spec(sparkConf=conf))
    pod = _pod(sparkConf=conf)

    assert service["spec"]["ports"][0]["targetPort"] == port
    assert {"name": "spark-ui", "containerPort": port} in container(pod)["ports"]
    assert service["spec"]["selector"].items() <= pod["metadata"]["labels"].items()
