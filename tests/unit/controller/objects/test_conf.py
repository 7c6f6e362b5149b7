"""Spark's configuration: whose word counts, field by field."""

from typing import Any

import pytest

from sparkpoint.api.conf import OWNED_CONF
from sparkpoint.controller.objects.conf import driver_conf, local_conf
from tests.unit.controller.objects.samples import OWNER, golden_spec, make_run, make_spec

_S3A = "spark.hadoop.fs.s3a"
_STORE = "spark.sql.streaming.stateStore"
_PROVIDERS = "org.apache.spark.sql.execution.streaming.state"


def _conf(**changes: Any) -> dict[str, str]:
    return driver_conf(OWNER, make_spec(**changes), make_run())


_CASES: dict[str, tuple[dict[str, Any], dict[str, str | None]]] = {
    "a stream gets what Spark does not give it": (
        {},
        {
            "spark.executor.failuresValidityInterval": "1h",
            "spark.sql.streaming.metricsEnabled": "true",
            "spark.sql.streaming.stopTimeout": "60000ms",
            "spark.decommission.enabled": "true",
            "spark.app.name": "visits",
        },
    ),
    "the user's word counts more than a default": (
        {"sparkConf": {"spark.app.name": "mine", "spark.decommission.enabled": "false"}},
        {"spark.app.name": "mine", "spark.decommission.enabled": "false"},
    ),
    "our word counts more than the user's, should an older CRD have let it through": (
        {
            "sparkConf": {
                "spark.master": "local",
                "spark.executor.instances": "9",
                "spark.kubernetes.executor.label.sparkpoint.dev/epoch": "1",
                "spark.sql.streaming.checkpointLocation": "/tmp",
            }
        },
        {
            "spark.master": "k8s://https://kubernetes.default.svc",
            "spark.executor.instances": "2",
            "spark.kubernetes.executor.label.sparkpoint.dev/epoch": "3",
            "spark.sql.streaming.checkpointLocation": None,
        },
    ),
    "sparkConf counts more than hadoopConf, and that more than storage": (
        {
            "sparkConf": {f"{_S3A}.threads.max": "7"},
            "hadoopConf": {"fs.s3a.threads.max": "5", "fs.s3a.path.style.access": "false"},
            "storage": {"endpointUrl": "http://s3:8333"},
        },
        {f"{_S3A}.threads.max": "7", f"{_S3A}.path.style.access": "false"},
    ),
    "an attempt is found by its own names": (
        {},
        {
            "spark.app.id": "visits-e3-a7-0b1c2d3e",
            "spark.kubernetes.driver.pod.name": "visits-e3-a7",
            "spark.kubernetes.executor.podNamePrefix": "visits-e3-a7",
            "spark.kubernetes.namespace": "shop",
            "spark.kubernetes.executor.label.sparkpoint.dev/job": "visits",
            "spark.kubernetes.executor.label.sparkpoint.dev/attempt": "7",
            "spark.kubernetes.executor.label.sparkpoint.dev/role": "executor",
        },
    ),
    "memory in mebibytes, and the overhead that Python needs": (
        {"executor": {"instances": 1, "memory": "2g"}, "driver": {"memory": "1g"}},
        {
            "spark.executor.memory": "2048m",
            "spark.executor.memoryOverhead": "819m",
            "spark.driver.memory": "1024m",
        },
    ),
    "the least overhead": (
        {"executor": {"instances": 1, "memory": "512m"}},
        {"spark.executor.memoryOverhead": "384m"},
    ),
    "an overhead that is said": (
        {"executor": {"instances": 1, "memoryOverhead": "3g"}},
        {"spark.executor.memoryOverhead": "3072m"},
    ),
    "a fixed number of executors": (
        {"executor": {"instances": 5}},
        {"spark.executor.instances": "5", "spark.dynamicAllocation.enabled": "false"},
    ),
    "as many as Spark wants": (
        {"executor": {"dynamicAllocation": {"min": 2, "max": 9}}},
        {
            "spark.executor.instances": None,
            "spark.dynamicAllocation.enabled": "true",
            "spark.dynamicAllocation.shuffleTracking.enabled": "true",
            "spark.dynamicAllocation.minExecutors": "2",
            "spark.dynamicAllocation.initialExecutors": "2",
            "spark.dynamicAllocation.maxExecutors": "9",
        },
    ),
    "CPU of executors is left to Spark unless it is said": (
        {},
        {
            "spark.kubernetes.executor.request.cores": None,
            "spark.kubernetes.executor.limit.cores": None,
        },
    ),
    "a new job gets RocksDB with a changelog": (
        {},
        {
            f"{_STORE}.providerClass": f"{_PROVIDERS}.RocksDBStateStoreProvider",
            f"{_STORE}.rocksdb.changelogCheckpointing.enabled": "true",
            f"{_STORE}.checkpointFormatVersion": None,
            "spark.sql.shuffle.partitions": None,
        },
    ),
    "state that is said": (
        {"state": {"changelog": False, "formatVersion": 2, "partitions": 8}},
        {
            f"{_STORE}.rocksdb.changelogCheckpointing.enabled": "false",
            f"{_STORE}.checkpointFormatVersion": "2",
            "spark.sql.shuffle.partitions": "8",
        },
    ),
    "the heap has no changelog": (
        {"state": {"provider": "HDFSBacked"}},
        {
            f"{_STORE}.providerClass": f"{_PROVIDERS}.HDFSBackedStateStoreProvider",
            f"{_STORE}.rocksdb.changelogCheckpointing.enabled": None,
        },
    ),
    "Amazon's S3 with a role": (
        {"storage": {"region": "eu-central-1"}},
        {
            f"{_S3A}.aws.credentials.provider": (
                "software.amazon.awssdk.auth.credentials.DefaultCredentialsProvider"
            ),
            f"{_S3A}.endpoint": None,
            f"{_S3A}.endpoint.region": "eu-central-1",
            f"{_S3A}.path.style.access": "false",
        },
    ),
    "another S3 with a Secret": (
        {"storage": {"secretName": "s3", "endpointUrl": "http://s3:8333"}},
        {
            f"{_S3A}.aws.credentials.provider": (
                "software.amazon.awssdk.auth.credentials.EnvironmentVariableCredentialsProvider"
            ),
            f"{_S3A}.endpoint": "http://s3:8333",
            f"{_S3A}.endpoint.region": "us-east-1",
            f"{_S3A}.path.style.access": "true",
        },
    ),
    "a bucket in the host name, if it is wanted": (
        {"storage": {"endpointUrl": "http://s3:8333", "pathStyle": False}},
        {f"{_S3A}.path.style.access": "false"},
    ),
    "nothing needed, nothing said": (
        {},
        {"spark.jars": None, "spark.files": None, "spark.jars.packages": None},
    ),
    "lists are joined": (
        {"dependencies": {"jars": ["local:///a.jar", "s3a://b/c.jar"], "packages": ["g:a:1"]}},
        {
            "spark.jars": "local:///a.jar,s3a://b/c.jar",
            "spark.jars.packages": "g:a:1",
        },
    ),
}


@pytest.mark.parametrize(("changes", "expected"), _CASES.values(), ids=_CASES)
def test_conf_of_a_driver(changes: dict[str, Any], expected: dict[str, str | None]) -> None:
    conf = _conf(**changes)

    assert {key: conf.get(key) for key in expected} == expected


def test_no_secret_is_in_it() -> None:
    conf = driver_conf(OWNER, golden_spec("full"), make_run())

    assert not [key for key in conf if "secret.key" in key or "access.key" in key]


def test_every_property_with_a_field_is_refused_in_the_users_conf() -> None:
    """Else two places would say one thing, and the field would win without a word."""
    with_fields = driver_conf(OWNER, golden_spec("full"), make_run())
    overridable = driver_conf(
        OWNER,
        golden_spec("full").model_copy(update={"spark_conf": dict.fromkeys(with_fields, "mine")}),
        make_run(),
    )

    won = {key for key, value in overridable.items() if value != "mine"}

    unlisted = won - OWNED_CONF.keys()
    labels = {key for key in unlisted if key.startswith("spark.kubernetes.executor.label.")}
    assert unlisted - labels == {
        "spark.kubernetes.executor.podTemplateContainerName",
        "spark.kubernetes.resource.type",
    }


def test_a_worker_has_the_jobs_conf_without_the_cluster() -> None:
    spec = golden_spec("full")
    distributed, local = driver_conf(OWNER, spec, make_run()), local_conf(OWNER, spec)

    assert local["spark.master"] == "local[2]"
    assert {key for key in local if distributed.get(key) != local[key]} == {"spark.master"}
    assert "spark.kubernetes.driver.pod.name" not in local
