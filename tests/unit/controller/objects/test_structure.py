"""Every object against Kubernetes' own models, and the rules that hold for all of them."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from kubernetes.client import ApiClient

from sparkpoint.api.job import JobSpec
from sparkpoint.controller import objects
from sparkpoint.controller.objects import LABELS, Manifest
from tests.unit.controller.objects.samples import OWNER, golden_spec, make_run, make_spec
from tests.unit.controller.objects.test_golden import built

_FETCHED = make_spec(application={"script": {"uri": "s3://code/jobs/visits.py"}})


def _objects(spec: JobSpec) -> tuple[Manifest, ...]:
    return objects.driver_objects(
        OWNER, spec, make_run(), expect="any", token_secret="visits-e3-agent"
    )


def _all() -> list[Manifest]:
    return [*built("minimal"), *built("full"), *_objects(_FETCHED)]


def _identity(manifest: Manifest) -> str:
    return f"{manifest['kind']}-{manifest['metadata']['name']}"


def _pods() -> list[Manifest]:
    return [each for each in _all() if each["kind"] == "Pod"]


def _model(manifest: Manifest) -> str:
    version = manifest["apiVersion"].rpartition("/")[2].capitalize()
    return f"{version}{manifest['kind']}"


@pytest.mark.parametrize("manifest", _all(), ids=_identity)
def test_kubernetes_models_take_every_field_of_it(manifest: Manifest) -> None:
    client: Any = ApiClient()

    read = client.deserialize(json.dumps(manifest), _model(manifest), "application/json")

    # What a model does not know is lost on the way.
    assert client.sanitize_for_serialization(read) == manifest


def _texts(value: Any) -> Iterator[str]:
    match value:
        case dict():
            for key, inner in value.items():
                yield str(key)
                yield from _texts(inner)
        case list():
            for inner in value:
                yield from _texts(inner)
        case _:
            yield str(value)


@pytest.mark.parametrize("manifest", _all(), ids=_identity)
def test_it_is_labelled_and_owned_by_the_job_and_never_selected_by_spark(
    manifest: Manifest,
) -> None:
    metadata = manifest["metadata"]

    (owner,) = metadata["ownerReferences"]
    assert (owner["kind"], owner["uid"], owner["controller"]) == (
        "StatefulSparkJob",
        OWNER.uid,
        True,
    )
    assert metadata["namespace"] == OWNER.namespace
    assert metadata["labels"]["sparkpoint.dev/job"] == OWNER.name
    assert metadata["labels"]["app.kubernetes.io/managed-by"] == "sparkpoint"
    ours = {key for key in metadata["labels"] if "sparkpoint" in key or "managed" in key}
    assert ours <= set(LABELS)
    assert not any("spark-app-selector" in text for text in _texts(manifest))


@pytest.mark.parametrize("pod", _pods(), ids=_identity)
def test_every_mount_has_its_volume_and_every_path_one_mount(pod: Manifest) -> None:
    volumes = [volume["name"] for volume in pod["spec"]["volumes"]]

    assert len(volumes) == len(set(volumes))
    for container in [*pod["spec"]["containers"], *pod["spec"].get("initContainers", [])]:
        mounts = container.get("volumeMounts", [])
        assert {mount["name"] for mount in mounts} <= set(volumes)
        paths = [mount["mountPath"] for mount in mounts]
        assert len(paths) == len(set(paths))


@pytest.mark.parametrize("pod", _pods(), ids=_identity)
def test_a_pod_is_restricted_and_ends_for_good(pod: Manifest) -> None:
    spec = pod["spec"]

    assert spec["restartPolicy"] == "Never"
    assert spec["enableServiceLinks"] is False
    assert spec["securityContext"]["runAsNonRoot"] is True
    assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    context = spec["containers"][0]["securityContext"]
    assert context == {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}


@pytest.mark.parametrize("name", ["minimal", "full"])
def test_the_same_input_makes_the_same_objects_which_nobody_shares(name: str) -> None:
    spec_before = golden_spec(name).model_dump()
    first = built(name)

    for manifest in first:
        _spoil(manifest)

    assert built(name) == built(name)
    assert first != built(name)
    assert golden_spec(name).model_dump() == spec_before


def _spoil(value: Any) -> None:
    """Change everything that can be changed."""
    if isinstance(value, dict):
        for inner in value.values():
            _spoil(inner)
        value["spoilt"] = "spoilt"
    elif isinstance(value, list):
        for inner in value:
            _spoil(inner)
        value.append("spoilt")


def test_building_twice_from_one_spec_shares_nothing_with_it() -> None:
    spec = golden_spec("full")
    expected = _objects(golden_spec("full"))

    for manifest in _objects(spec):
        _spoil(manifest)

    assert _objects(spec) == expected
