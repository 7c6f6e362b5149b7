"""A job's namespace cannot make the operator act elsewhere, or with more than the job's own rights.

The operator has rights in many namespaces, and whoever writes a spec has rights in one. Whatever a
spec may name is refused with its field, or cannot lead out by construction.
"""

import copy
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import pytest

from sparkpoint.api.crd import SAVEPOINTS as SAVEPOINT_RESOURCE
from sparkpoint.api.validation import validate
from sparkpoint.controller.cluster import EVENTS, JOBS, PODS, SAVEPOINTS, Kind, Object, metadata
from sparkpoint.controller.keys import ATTEMPT, EPOCH, FINALIZER, JOB, ROLE
from sparkpoint.controller.wishes import accept
from sparkpoint.storage import open_store
from sparkpoint.storage.errors import BadLocationError
from tests.unit.controller.fakecluster import FakeCluster
from tests.unit.controller.simulation import NAME, NAMESPACE, SPEC, Simulation, World

ELSEWHERE = "bank"
FOREIGN = {"repository": "s3://data/savepoints", "namespace": ELSEWHERE, "job": "ledger"}


def errors(**changes: Any) -> list[str]:
    return [error.path for error in accept({**SPEC, **changes}).errors]


@pytest.fixture
def namespaces(monkeypatch: pytest.MonkeyPatch) -> set[str | None]:
    """Every namespace in which anything was asked for, but for nodes, which have none."""
    seen: set[str | None] = set()
    call = FakeCluster._call

    def listen(
        cluster: FakeCluster, verb: str, kind: Kind, name: str, do: Any, body: Object | None = None
    ) -> Any:
        if body is not None:
            seen.add(metadata(body).get("namespace"))
            owners = metadata(body).get("ownerReferences") or []
            assert all("namespace" not in owner for owner in owners)
        return call(cluster, verb, kind, name, do, body)

    def note(method: str) -> None:
        real = getattr(FakeCluster, method)

        async def noted(cluster: FakeCluster, kind: Kind, namespace: str | None, *a: Any, **k: Any):  # type: ignore[no-untyped-def]
            seen.add(namespace if kind.kind != "Node" else NAMESPACE)
            return await real(cluster, kind, namespace, *a, **k)

        monkeypatch.setattr(FakeCluster, method, noted)

    monkeypatch.setattr(FakeCluster, "_call", listen)
    for method in ("get", "list", "delete"):
        note(method)
    return seen


@pytest.mark.parametrize(
    ("changes", "path"),
    [
        # A reference of Kubernetes has a name and no namespace.
        ({"restoreFrom": {"savepoint": "bank/ledger"}}, "spec.restoreFrom.savepoint"),
        ({"restoreFrom": {"savepoint": "../ledger"}}, "spec.restoreFrom.savepoint"),
        ({"serviceAccount": "bank/admin"}, "spec.serviceAccount"),
        ({"serviceAccount": "system:serviceaccount:bank:admin"}, "spec.serviceAccount"),
        ({"imagePullSecrets": [{"name": "bank/key"}]}, "spec.imagePullSecrets[0].name"),
        ({"storage": {"secretName": "../bank/key"}}, "spec.storage.secretName"),
        (
            {"application": {"script": {"configMap": {"name": "../../bank/x", "key": "k"}}}},
            "spec.application.script.configMap.name",
        ),
        (
            {"driver": {"envFrom": [{"secretRef": {"name": "key", "namespace": ELSEWHERE}}]}},
            "spec.driver.envFrom[0].secretRef.namespace",
        ),
        # Spark's own ways out.
        (
            {"sparkConf": {"spark.kubernetes.namespace": ELSEWHERE}},
            "spec.sparkConf[spark.kubernetes.namespace]",
        ),
        (
            {"sparkConf": {"spark.kubernetes.authenticate.driver.serviceAccountName": "admin"}},
            "spec.sparkConf[spark.kubernetes.authenticate.driver.serviceAccountName]",
        ),
        ({"sparkConf": {"spark.master": "k8s://https://evil"}}, "spec.sparkConf[spark.master]"),
        # Places.
        (
            {"checkpoint": {"location": "/data/../../etc"}},
            "spec.checkpoint.location",
        ),
        ({"savepoints": {"repository": "s3://data/../bank"}}, "spec.savepoints.repository"),
        ({"savepoints": {"repository": "file:///etc"}}, "spec.savepoints.repository"),
        ({"checkpoint": {"location": "/etc"}}, "spec.checkpoint.location"),
        # Templates that reach into the node.
        (
            {"driver": {"podTemplate": {"spec": {"volumes": [{"name": "a", "hostPath": {}}]}}}},
            "spec.driver.podTemplate.spec.volumes[0].hostPath",
        ),
        (
            {"executor": {"instances": 1, "podTemplate": {"spec": {"hostNetwork": True}}}},
            "spec.executor.podTemplate.spec.hostNetwork",
        ),
    ],
)
def test_what_would_lead_out_is_refused_with_its_field(changes: dict[str, Any], path: str) -> None:
    assert path in errors(**changes)


@pytest.mark.parametrize(
    ("existing", "path"),
    [
        ({**FOREIGN, "name": "../x"}, "spec.existing.name"),
        ({**FOREIGN, "name": "x", "job": "a/../b"}, "spec.existing.job"),
        ({**FOREIGN, "name": "x", "namespace": ".."}, "spec.existing.namespace"),
        ({**FOREIGN, "name": "x", "repository": "/a/../b"}, "spec.existing.repository"),
        ({**FOREIGN, "id": "../" * 20}, "spec.existing.id"),
    ],
)
def test_a_savepoint_that_is_made_known_cannot_leave_its_repository(
    existing: Mapping[str, Any], path: str
) -> None:
    spec = {"jobRef": {"name": NAME}, "existing": dict(existing)}

    assert path in [error.path for error in validate(spec, resource=SAVEPOINT_RESOURCE)]


@pytest.mark.parametrize("uri", ["s3://data/../bank", "s3://data/a/../../b", "s3://data/./a"])
def test_a_place_in_a_bucket_has_no_way_up(uri: str) -> None:
    """Where no spec was judged before: the stores of drivers and workers refuse it, too."""
    with pytest.raises(BadLocationError):
        open_store(uri)


def test_a_savepoint_belongs_to_a_job_of_its_own_namespace_alone() -> None:
    spec = {"jobRef": {"name": "ledger", "namespace": ELSEWHERE}}

    found = [error.path for error in validate(spec, resource=SAVEPOINT_RESOURCE)]

    assert found == ["spec.jobRef.namespace"]


def test_a_template_says_nothing_about_who_and_where_a_pod_is() -> None:
    template = {
        "metadata": {
            "name": "evil",
            "namespace": ELSEWHERE,
            "labels": {JOB: "ledger", ROLE: "worker"},
            "ownerReferences": [{"uid": "u", "kind": "Job", "name": "x", "apiVersion": "v1"}],
            "finalizers": ["evil/stays"],
        },
        "spec": {
            "serviceAccountName": "admin",
            "serviceAccount": "admin",
            "restartPolicy": "Always",
        },
    }
    simulation = Simulation({**SPEC, "driver": {"podTemplate": template}})

    simulation.settle(simulation.is_running)

    [pod] = simulation.pods("driver")
    about = metadata(pod)
    assert (about["namespace"], about["name"]) == (NAMESPACE, f"{NAME}-e1-a1")
    assert about["labels"][JOB] == NAME
    assert [owner["uid"] for owner in about["ownerReferences"]] == [metadata(simulation.job)["uid"]]
    assert "finalizers" not in about
    # The newer name of the field wins, in the API server too.
    assert pod["spec"]["serviceAccountName"] == "spark"
    assert pod["spec"]["restartPolicy"] == "Never"


def test_a_whole_life_with_foreign_names_stays_in_its_namespace(
    namespaces: set[str | None],
) -> None:
    manifest = {**FOREIGN, "name": "nightly"}
    spec = {**SPEC, "restoreFrom": {"manifest": manifest, "sink": "Fork"}}
    simulation = Simulation(spec)
    simulation.world.answers = lambda pod: {"answer": "Failed", "message": "no such savepoint"}
    about = {"name": "foreign", "namespace": NAMESPACE, "finalizers": [FINALIZER]}
    simulation.cluster.add(
        {
            "apiVersion": "sparkpoint.dev/v1alpha1",
            "kind": "SparkSavepoint",
            "metadata": about,
            "spec": {"jobRef": {"name": NAME}, "existing": manifest, "onDelete": "Delete"},
        }
    )

    simulation.settle(simulation.is_running)
    simulation.edit(args=["--better"])
    simulation.settle(lambda: simulation.is_running() and simulation.status["epoch"] == 2)
    simulation.cluster.remove(SAVEPOINTS, NAMESPACE, "foreign")
    simulation.cluster.remove(JOBS, NAMESPACE, NAME)
    simulation.settle(lambda: simulation.requeue.released)

    assert namespaces == {NAMESPACE}


def test_an_id_of_another_namespace_is_not_looked_up_there() -> None:
    manifest = {**FOREIGN, "id": "0" * 64}
    simulation = Simulation({**SPEC, "restoreFrom": {"manifest": manifest, "sink": "Fork"}})

    for _ in range(3):
        simulation.run_pass()

    message = simulation.condition("Progressing")["message"]
    assert "spec.restoreFrom.manifest.id" in message
    assert f"its namespace {ELSEWHERE} is not looked into" in message


def test_an_unsafe_pod_is_not_made_of_a_revision_that_was_accepted_before() -> None:
    template = {"spec": {"volumes": [{"name": "node", "hostPath": {"path": "/"}}]}}
    simulation = Simulation({**SPEC, "driver": {"podTemplate": template}}, unsafe_pods=True)
    simulation.settle(simulation.is_running)
    before = len(simulation.world.opened)

    simulation.unsafe_pods = False
    simulation.restart()
    [driver] = simulation.pods("driver")
    simulation.world.end_driver(driver)
    for _ in range(10):
        simulation.run_pass()
        simulation.world.step()
        simulation.world.now += timedelta(seconds=10)

    assert before
    assert [metadata(pod)["name"] for pod in simulation.pods("driver")] == [f"{NAME}-e1-a1"]
    assert simulation.condition("Accepted")["reason"] == "InvalidSpec"
    refused, *_ = [
        event
        for event in simulation.cluster.all(EVENTS, NAMESPACE)
        if event["reason"] == "ObjectRefused"
    ]
    assert f"Pod {NAME}-e1-a2.spec.volumes" in refused["message"]


def test_the_token_goes_to_the_driver_of_the_job_and_to_no_pod_that_looks_like_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    simulation = Simulation()
    simulation.settle(simulation.is_running)
    labels = {JOB: NAME, ROLE: "driver", EPOCH: "1", ATTEMPT: "1"}
    about = {"name": "a-imitation", "namespace": NAMESPACE, "labels": labels}
    imitation = simulation.cluster.add(
        {"apiVersion": "v1", "kind": "Pod", "metadata": about, "spec": {"containers": [{}]}}
    )
    simulation.world.set_status(imitation, {"phase": "Running", "podIP": "10.66.66.66"})
    dialled: list[str] = []
    dial = World.dial

    def listen(world: World, url: str, token: str) -> Any:
        dialled.append(url)
        return dial(world, url, token)

    monkeypatch.setattr(World, "dial", listen)
    simulation.restart()
    savepoint = {"name": "asked", "namespace": NAMESPACE, "finalizers": [FINALIZER]}
    simulation.cluster.add(
        {
            "apiVersion": "sparkpoint.dev/v1alpha1",
            "kind": "SparkSavepoint",
            "metadata": savepoint,
            "spec": {"jobRef": {"name": NAME}},
        }
    )
    for _ in range(3):
        simulation.run_pass()
        simulation.run_savepoints()

    assert dialled
    assert not [url for url in dialled if "10.66.66.66" in url]


def test_specs_are_never_changed() -> None:
    simulation = Simulation()
    before = copy.deepcopy(simulation.job["spec"])

    simulation.settle(simulation.is_running)

    assert simulation.job["spec"] == before
    assert not [call for call in simulation.cluster.calls if call[:2] == ("replace", JOBS.kind)]
    assert PODS.kind in {kind for _, kind, _ in simulation.cluster.calls}
