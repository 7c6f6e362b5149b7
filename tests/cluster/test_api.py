"""The resources before a real API server: definitions, rules, and what kubectl shows of them."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from dev.cluster.lifecycle import Cluster
from dev.console import Problem
from sparkpoint.api.crd import JOBS, RESOURCES, SAVEPOINTS, ResourceKind
from sparkpoint.api.schema import Schema, spec_schema, status_schema
from sparkpoint.controller.keys import PAUSED
from tests.cluster.namespace import Namespace
from tests.unit.api.loading import ACCEPTED, EXAMPLES, REFUSED, Refused

pytestmark = pytest.mark.cluster

_CRDS = Path(__file__).parents[2] / "crds"
_SERVER_SIDE = ("apply", "--server-side", "--field-manager=test", "-f", "-")


@pytest.fixture(scope="module")
def definitions(cluster: Cluster) -> None:
    """Our two kinds, known to the API server."""
    cluster.kubectl("apply", "--server-side", "-f", str(_CRDS))
    names = [f"crd/{resource.plural}.sparkpoint.dev" for resource in RESOURCES]
    cluster.kubectl("wait", "--for=condition=Established", *names, "--timeout=60s")


@pytest.fixture
def kinds(definitions: None, namespace: Namespace) -> Namespace:
    """A namespace in which our resources can be made."""
    return namespace


def _apply(namespace: Namespace, resource: dict[str, Any], *options: str) -> dict[str, Any]:
    # Other tests of this run have an operator in the cluster; it leaves these alone.
    about = {**resource["metadata"], "annotations": {PAUSED: "true"}}
    text = json.dumps({**resource, "metadata": about})
    said = namespace.kubectl(*_SERVER_SIDE, *options, "-o", "json", text=text)
    applied: dict[str, Any] = json.loads(said)
    return applied


def _explained(schema: Schema) -> set[str]:
    """The names of all fields, as `kubectl explain --recursive` lists them."""
    found = set()
    for name, child in schema.get("properties", {}).items():
        found |= {name} | _explained(child.get("items", child))
    return found


def test_definitions_are_structural(definitions: None, cluster: Cluster) -> None:
    for resource in RESOURCES:
        name = f"crd/{resource.plural}.sparkpoint.dev"
        crd = json.loads(cluster.kubectl("get", name, "-o", "json"))
        conditions = {each["type"]: each["status"] for each in crd["status"]["conditions"]}

        assert conditions.get("NonStructuralSchema", "False") == "False"
        assert conditions["NamesAccepted"] == "True"


def test_good_samples_are_accepted_and_kept_whole(kinds: Namespace) -> None:
    for sample in [*ACCEPTED, *EXAMPLES]:
        applied = _apply(kinds, sample.resource, "--dry-run=server")

        assert _is_within(sample.resource["spec"], applied["spec"]), sample.name


def _is_within(wanted: Any, given: Any) -> bool:
    """Whether nothing of it was pruned; defaults may have come."""
    if isinstance(wanted, dict):
        return all(key in given and _is_within(wanted[key], given[key]) for key in wanted)
    if isinstance(wanted, list):
        return len(wanted) == len(given) and all(map(_is_within, wanted, given))
    return bool(wanted == given)


def test_refused_samples_are_refused_with_what_to_do(kinds: Namespace) -> None:
    wrong = [f"{sample.name}: {said}" for sample in REFUSED if (said := _complaint(kinds, sample))]

    assert wrong == []


def _complaint(namespace: Namespace, sample: Refused) -> str:
    """What is wrong with how the API server took the sample; empty if all is well."""
    if sample.old is not None:
        _apply(namespace, sample.old)
    try:
        _apply(namespace, sample.resource, "--dry-run=server")
    except Problem as problem:
        said = str(problem)
    else:
        said = "it was accepted"
    finally:
        if sample.old is not None:
            namespace.kubectl("delete", "ssj,ssp", "--all", "--timeout=30s")
    return "" if sample.server in said else said


def test_everything_can_be_explained(definitions: None, cluster: Cluster) -> None:
    for resource in RESOURCES:
        for part, schema in _parts(resource).items():
            topic = f"{resource.short_name}.{part}"
            said = cluster.kubectl("explain", topic, "--recursive")

            listed = set(re.findall(r"^ +(\w+)\t<", said, re.MULTILINE))
            assert _explained(schema) <= listed


def test_an_explanation_holds_description_words_and_default(
    definitions: None, cluster: Cluster
) -> None:
    said = cluster.kubectl("explain", "ssj.spec.upgrade.handover")

    assert "Warm: the new driver starts beside the old one" in said
    assert re.search(r"ENUM:\s+Warm\s+Cold\s", said)


def _parts(resource: ResourceKind) -> dict[str, Schema]:
    return {"spec": spec_schema(resource.spec), "status": status_schema(resource.status)}


def test_kubectl_get_shows_what_people_work_from(kinds: Namespace) -> None:
    _apply(kinds, _named("job-minimal"))
    _apply(kinds, _named("savepoint-minimal"))
    _write_status(
        kinds,
        JOBS,
        {
            "phase": "Running",
            "batch": 41,
            "rate": "12.3k/s",
            "executors": 2,
            "partitions": 64,
            "lastSavepoint": {"name": "nightly"},
            "restoredFrom": {"name": "before-the-sale"},
        },
    )
    seen = {"at": "2026-11-16T13:00:00Z", "level": "Content", "good": True, "verdict": "Content"}
    _write_status(
        kinds,
        SAVEPOINTS,
        {
            "phase": "Completed",
            "batch": 40,
            "size": "1.2 GiB",
            "newSize": "31 MiB",
            "verified": seen,
            "parent": "nightly",
        },
    )

    jobs, savepoints = kinds.kubectl("get", "ssj"), kinds.kubectl("get", "ssp")

    assert _cells(jobs) == [
        [
            *("NAME", "PHASE", "BATCH", "RATE", "EXECUTORS", "PARTITIONS"),
            *("LAST-SAVEPOINT", "RESTORED-FROM", "AGE"),
        ],
        ["visits", "Running", "41", "12.3k/s", "2", "64", "nightly", "before-the-sale"],
    ]
    assert _cells(savepoints) == [
        ["NAME", "JOB", "PHASE", "BATCH", "SIZE", "NEW", "VERIFIED", "PARENT", "AGE"],
        [
            *("before-the-change", "visits", "Completed", "40"),
            *("1.2 GiB", "31 MiB", "Content", "nightly"),
        ],
    ]


def _cells(table: str) -> list[list[str]]:
    """Heading and first row; its age, which depends on the clock, is left out."""
    heading, row = (re.split(r" {2,}", line.strip()) for line in table.strip().splitlines())
    assert len(row) == len(heading)
    return [heading, row[:-1]]


def _named(name: str) -> dict[str, Any]:
    [sample] = [sample for sample in ACCEPTED if sample.name == name]
    return sample.resource


def _write_status(namespace: Namespace, resource: ResourceKind, status: dict[str, Any]) -> None:
    [name] = namespace.kubectl("get", resource.plural, "-o", "name").split()
    patch = json.dumps({"status": status})
    namespace.kubectl("patch", name, "--subresource=status", "--type=merge", "-p", patch)


def test_both_kinds_are_in_the_category_spark(kinds: Namespace) -> None:
    _apply(kinds, _named("job-minimal"))
    _apply(kinds, _named("savepoint-minimal"))

    listed = kinds.kubectl("get", "spark", "-o", "name").split()

    assert set(listed) == {
        "statefulsparkjob.sparkpoint.dev/visits",
        "sparksavepoint.sparkpoint.dev/before-the-change",
    }


def test_kubectl_scale_changes_the_executors(kinds: Namespace) -> None:
    _apply(kinds, _named("job-minimal"))

    kinds.kubectl("scale", "ssj/visits", "--replicas=5")

    said = kinds.kubectl("get", "ssj", "visits", "-o", "jsonpath={.spec.executor.instances}")
    assert said == "5"


def test_kubectl_scale_is_refused_where_spark_chooses_the_number(kinds: Namespace) -> None:
    _apply(kinds, _named("job-forked"))

    with pytest.raises(Problem, match="exactly one of instances and dynamicAllocation"):
        kinds.kubectl("scale", "ssj/visits", "--replicas=5")


def test_status_keeps_the_record_and_takes_words_of_newer_operators(kinds: Namespace) -> None:
    _apply(kinds, _named("job-minimal"))
    record = {"sequence": 4, "run": {"epoch": 2, "ofANewerOperator": [1, {"x": "y"}]}}

    _write_status(kinds, JOBS, {"phase": "Hibernating", "record": record})

    status = json.loads(kinds.kubectl("get", "ssj", "visits", "-o", "json"))["status"]
    assert status["phase"] == "Hibernating"
    assert status["record"] == record


def test_what_may_change_in_a_savepoint_can_be_changed(kinds: Namespace) -> None:
    resource = _named("savepoint-minimal")
    _apply(kinds, resource)
    changes = {"tags": ["kept"], "onDelete": "Delete", "retention": {"keepForever": True}}

    applied = _apply(kinds, {**resource, "spec": {**resource["spec"], **changes}})

    assert _is_within(changes, applied["spec"])
