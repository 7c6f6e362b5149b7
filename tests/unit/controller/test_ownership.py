"""Names that are taken: what goes by itself is waited out, the rest is told to people."""

from datetime import timedelta
from typing import Any

import pytest

from sparkpoint.controller.cluster import (
    CONFIG_MAPS,
    EVENTS,
    PODS,
    REVISIONS,
    SECRETS,
    SERVICES,
    Kind,
    Object,
    metadata,
    owner_uid,
)
from tests.unit.controller.simulation import NAME, NAMESPACE, Simulation

NEW_CODE = {"args": ["--fast"]}

FORMER = {
    "apiVersion": "sparkpoint.dev/v1alpha1",
    "kind": "StatefulSparkJob",
    "name": NAME,
    "uid": "of-before",
    "controller": True,
}


def somebodys(kind: Kind, name: str, **about: Any) -> Object:
    return {
        "apiVersion": kind.api_version,
        "kind": kind.kind,
        "metadata": {"name": name, "namespace": NAMESPACE, **about},
    }


def refusals(simulation: Simulation) -> list[str]:
    events = simulation.cluster.all(EVENTS, NAMESPACE)
    return [event["message"] for event in events if event["reason"] == "ObjectRefused"]


@pytest.mark.parametrize("owners", [[], [FORMER]], ids=["nobody's", "of a job of before"])
def test_a_service_of_this_name_keeps_no_job_from_starting(owners: list[Object]) -> None:
    simulation = Simulation()
    simulation.cluster.add(somebodys(SERVICES, "visits-ui", ownerReferences=owners))

    simulation.settle(simulation.is_running)

    told = ["Service visits-ui belongs to no job, and job visits needs this name for its own."]
    assert [each.partition(" Delete")[0] for each in refusals(simulation)] == told * (not owners)
    service = simulation.cluster.find(SERVICES, NAMESPACE, "visits-ui")
    assert service is not None
    assert "spec" not in service
    assert simulation.condition("Degraded")["status"] == "False"


def test_a_service_that_became_somebody_elses_keeps_no_upgrade_down() -> None:
    simulation = Simulation()
    simulation.settle(simulation.is_running)
    simulation.cluster.erase(SERVICES, NAMESPACE, "visits-ui")
    simulation.cluster.add(somebodys(SERVICES, "visits-ui"))

    simulation.edit(application={"script": {"path": "/opt/job/better.py"}})
    simulation.settle(lambda: simulation.is_running() and simulation.status["epoch"] == 2)

    assert len(refusals(simulation)) == 1


def test_a_service_whose_name_is_free_again_is_made(caplog: pytest.LogCaptureFixture) -> None:
    simulation = Simulation()
    simulation.cluster.add(somebodys(SERVICES, "visits-ui"))
    simulation.settle(simulation.is_running)
    simulation.world.now += timedelta(minutes=11)
    simulation.run_pass()
    assert "Service visits-ui cannot be put right: Service visits-ui belongs to" in caplog.text

    simulation.cluster.erase(SERVICES, NAMESPACE, "visits-ui")
    simulation.world.now += timedelta(minutes=11)
    simulation.run_pass()

    service = simulation.cluster.find(SERVICES, NAMESPACE, "visits-ui")
    assert service is not None
    assert owner_uid(service) == metadata(simulation.job)["uid"]


def test_a_secret_that_nobody_owns_is_told_until_it_is_gone() -> None:
    simulation = Simulation()
    simulation.cluster.add({**somebodys(SECRETS, "visits-e1-agent"), "data": {"token": "dG9r"}})

    simulation.settle(lambda: simulation.condition("Degraded")["reason"] == "ObjectRefused")

    message = simulation.condition("Degraded")["message"]
    assert message.startswith("Secret visits-e1-agent belongs to no job, and job visits needs")
    assert message.endswith("Delete it if nobody needs it, or give the job another name.")
    assert message in refusals(simulation)
    looks, end = 0, simulation.world.now + timedelta(hours=1)
    while simulation.world.now < end:
        simulation.world.now += timedelta(seconds=simulation.run_pass().seconds)
        looks += 1
    assert looks < 200

    simulation.cluster.erase(SECRETS, NAMESPACE, "visits-e1-agent")
    simulation.settle(simulation.is_running)


def test_the_next_attempt_goes_past_a_name_that_is_taken() -> None:
    simulation = Simulation()
    other = {**FORMER, "kind": "Deployment", "apiVersion": "apps/v1", "name": "web"}
    taken = somebodys(CONFIG_MAPS, "visits-e1-a1", ownerReferences=[other])
    simulation.cluster.add(taken)

    simulation.settle(simulation.is_running)

    assert "ConfigMap visits-e1-a1 belongs to Deployment web" in refusals(simulation)[0]
    assert simulation.status["attempt"] > 1


def test_a_revision_that_nobody_owns_is_told_until_it_is_gone() -> None:
    """As `kubectl delete ssj --cascade=orphan` leaves it."""
    former = Simulation()
    former.settle(former.is_running)
    (left,) = former.cluster.all(REVISIONS, NAMESPACE)
    del left["metadata"]["ownerReferences"]
    simulation = Simulation()
    simulation.cluster.add(left)

    simulation.settle(lambda: bool(refusals(simulation)))

    assert refusals(simulation)[0].startswith("ControllerRevision visits-")
    simulation.cluster.erase(REVISIONS, NAMESPACE, left["metadata"]["name"])
    simulation.settle(simulation.is_running)


def test_what_was_deleted_just_now_is_waited_for_however_long_the_job_is_there() -> None:
    simulation = Simulation()
    simulation.settle(simulation.is_running)
    simulation.world.now += timedelta(hours=1)
    deleted = f"{simulation.world.now:%Y-%m-%dT%H:%M:%SZ}"
    going = {"deletionTimestamp": deleted, "finalizers": ["others/keep"]}
    simulation.cluster.add(somebodys(SECRETS, "visits-e2-agent", **going))
    simulation.edit(**NEW_CODE)

    simulation.settle(lambda: simulation.status.get("epoch") == 2)
    for _ in range(20):
        simulation.run_pass()
    assert refusals(simulation) == []
    simulation.cluster.erase(SECRETS, NAMESPACE, "visits-e2-agent")
    simulation.settle(simulation.is_running)

    assert simulation.status["epoch"] == 2
    assert refusals(simulation) == []


@pytest.mark.parametrize("kind", [SECRETS, CONFIG_MAPS])
def test_what_a_job_of_before_owned_is_waited_out(kind: Kind) -> None:
    name = {"Secret": "visits-e1-agent", "ConfigMap": "visits-e1-a1"}[kind.kind]
    simulation = Simulation()
    simulation.cluster.add(somebodys(kind, name, ownerReferences=[FORMER]))
    for _ in range(10):
        simulation.run_pass()
    assert simulation.cluster.all(PODS, NAMESPACE) == []
    assert simulation.requeue.seconds == 0.5

    simulation.cluster.erase(kind, NAMESPACE, name)
    simulation.settle(simulation.is_running)

    assert simulation.status["attempt"] == 1
    assert refusals(simulation) == []


def test_what_a_job_of_before_owned_is_told_if_it_does_not_go() -> None:
    simulation = Simulation()
    begun = simulation.world.now
    going = {"ownerReferences": [FORMER], "finalizers": ["others/keep"]}
    simulation.cluster.add(somebodys(SECRETS, "visits-e1-agent", **going))

    simulation.settle(lambda: bool(refusals(simulation)))

    assert simulation.world.now - begun >= timedelta(minutes=1)
    assert "is of an earlier job of this name" in refusals(simulation)[0]
    assert "look at its finalizers" in refusals(simulation)[0]
