"""Secrets in every place that a job has for them, and nowhere in what is told of it."""

import json
import logging
from collections.abc import Iterator, Mapping
from datetime import timedelta
from itertools import count
from typing import Any

import pytest

from sparkpoint.api.job import JobSpec
from sparkpoint.controller.cluster import (
    CONFIG_MAPS,
    EVENTS,
    JOBS,
    PODS,
    SAVEPOINTS,
    SECRETS,
    Kind,
    Object,
    metadata,
)
from sparkpoint.controller.errors import (
    ClusterError,
    ForbiddenError,
    UnavailableError,
    UnprocessableError,
)
from sparkpoint.controller.keys import EPOCH, JOB
from sparkpoint.controller.podfacts import label
from sparkpoint.controller.secrets import discreet, redaction_of
from sparkpoint.runtime.model import SavepointRequest, StopRequest
from tests.unit.controller.fakecluster import FakeCluster
from tests.unit.controller.fakedrivers import FakeAgent
from tests.unit.controller.simulation import NAME, NAMESPACE, SPEC, Simulation
from tests.unit.controller.test_correlation import logged

MARK = "CANARY"
IN_SPEC = [f"{MARK}-{number}-in-the-spec" for number in range(10)]
NAMED = [each for each in IN_SPEC if each != IN_SPEC[7]]
"""But for the one in the text of the script, where nothing says that it is one."""
TOKENS = (f"{MARK}-token-{number}" for number in count())
STORED = f"{MARK}-in-a-secret"

SPEC_WITH_SECRETS: dict[str, Any] = {
    **SPEC,
    "application": {"script": {"configMap": {"name": "script", "key": "visits.py"}}},
    "sparkConf": {
        "spark.hadoop.fs.s3a.secret.key": IN_SPEC[0],
        "spark.kafka.sasl.password": IN_SPEC[1],
        "spark.hadoop.fs.s3a.encryption.key": IN_SPEC[8],
    },
    "hadoopConf": {"fs.s3a.access.key": IN_SPEC[2]},
    "storage": {"secretName": "s3"},
    "driver": {
        "env": [
            {"name": "DB_PASSWORD", "value": IN_SPEC[3]},
            {"name": "STORAGE_KEY", "value": IN_SPEC[9]},
            {"name": "STORED", "valueFrom": {"secretKeyRef": {"name": "s3", "key": "other"}}},
        ],
        "envFrom": [{"secretRef": {"name": "s3"}}],
        "podTemplate": {
            "spec": {
                "containers": [
                    {"name": "spark-kubernetes-driver"},
                    {"name": "side", "env": [{"name": "API_KEY", "value": IN_SPEC[4]}]},
                ],
                "initContainers": [
                    {"name": "early", "env": [{"name": "CREDENTIALS", "value": IN_SPEC[5]}]}
                ],
            }
        },
    },
    "executor": {"instances": 2, "env": [{"name": "GITHUB_TOKEN", "value": IN_SPEC[6]}]},
    "savepoints": {**SPEC["savepoints"], "schedule": "*/10 * * * *", "verify": "Content"},
}


class _Asked:
    """What agents were asked, so that nothing secret goes to a manifest by way of them."""

    def __init__(self) -> None:
        self.texts: list[str] = []

    def listen(self, patch: pytest.MonkeyPatch) -> None:
        stop, savepoint = FakeAgent.stop, FakeAgent.savepoint

        async def hear_stop(agent: FakeAgent, name: str, request: StopRequest | None = None) -> Any:
            self.texts.append(f"{name} {request}")
            return await stop(agent, name, request)

        async def hear_savepoint(agent: FakeAgent, name: str, request: SavepointRequest) -> Any:
            self.texts.append(f"{name} {request}")
            return await savepoint(agent, name, request)

        patch.setattr(FakeAgent, "stop", hear_stop)
        patch.setattr(FakeAgent, "savepoint", hear_savepoint)


def simulated() -> Simulation:
    simulation = Simulation(SPEC_WITH_SECRETS, make_token=lambda: next(TOKENS))
    script = {"visits.py": f"password = '{IN_SPEC[7]}'"}
    for kind, name, data in ((SECRETS, "s3", {"other": STORED}), (CONFIG_MAPS, "script", script)):
        about = {"name": name, "namespace": NAMESPACE}
        simulation.cluster.add(
            {"apiVersion": "v1", "kind": kind.kind, "metadata": about, "data": data}
        )
    return simulation


def quoting(verb: str, what: Object | str) -> ClusterError | None:
    """A webhook that refuses drivers, and shows what it refuses."""
    if verb == "create" and isinstance(what, dict) and what["kind"] == "Pod":
        return UnprocessableError(f"admission webhook denied the request: {json.dumps(what)}")
    return None


@pytest.mark.parametrize("error", [ForbiddenError, UnprocessableError, UnavailableError])
@pytest.mark.parametrize("kind", ["ConfigMap", "ControllerRevision", "Pod"])
def test_no_secret_is_logged_of_an_object_that_somebody_refuses_and_quotes(
    kind: str, error: type[ClusterError]
) -> None:
    simulation = simulated()

    def refuse(verb: str, what: Object | str) -> ClusterError | None:
        if verb == "create" and isinstance(what, dict) and what["kind"] == kind:
            return error(f"denied: {json.dumps(what)}")
        return None

    with logged("json", verbose=True) as log:
        simulation.settle(simulation.is_running)
        simulation.cluster.refuse = refuse
        for body in simulation.cluster.all(CONFIG_MAPS, NAMESPACE):
            if metadata(body)["name"] != "script":
                simulation.cluster.remove(CONFIG_MAPS, NAMESPACE, metadata(body)["name"])
        go_on(simulation, passes=30, seconds=30)
        simulation.edit(args=["--refused"])
        go_on(simulation, passes=15, seconds=5)

    assert "denied" in log.getvalue()
    assert [each for each in NAMED if each in log.getvalue()] == []


def test_what_a_refusal_came_of_is_not_logged_beside_it() -> None:
    with logged("json") as log:
        try:
            with discreet(redaction_of(SPEC_WITH_SECRETS)):
                try:
                    raise ValueError(f"bad answer: {IN_SPEC[0]}")
                except ValueError as error:
                    raise UnavailableError(f"denied: {IN_SPEC[0]}") from error
        except UnavailableError:
            logging.getLogger(__name__).exception("It was refused")

    assert "denied: [redacted]" in log.getvalue()
    assert "Traceback" in log.getvalue()
    assert IN_SPEC[0] not in log.getvalue()


def told(simulation: Simulation, asked: _Asked) -> Iterator[tuple[str, str]]:
    """Everything that is written about the job for others to read."""
    for kind in (JOBS, SAVEPOINTS):
        for body in simulation.cluster.all(kind, NAMESPACE):
            yield f"status of {metadata(body)['name']}", json.dumps(body.get("status"))
            yield f"metadata of {metadata(body)['name']}", json.dumps(metadata(body))
    for event in simulation.cluster.all(EVENTS, NAMESPACE):
        yield f"Event {event['reason']}", json.dumps(event)
    for pod in simulation.cluster.all(PODS, NAMESPACE):
        yield f"metadata of pod {metadata(pod)['name']}", json.dumps(metadata(pod))
        for container in pod["spec"]["containers"]:
            shown = {key: value for key, value in container.items() if key != "env"}
            yield f"container of {metadata(pod)['name']}", json.dumps(shown)
    yield "metrics", simulation.operator.metrics.render()
    yield "requests to agents", " ".join(asked.texts)


def go_on(simulation: Simulation, *, passes: int, seconds: float) -> None:
    """Let time go by."""
    for _ in range(passes):
        simulation.run_pass()
        simulation.run_savepoints()
        simulation.world.step()
        simulation.world.now += timedelta(seconds=seconds)


def leaks(found: Iterator[tuple[str, str]]) -> list[str]:
    return [f"{where}: {text[:2000]}" for where, text in found if MARK in text]


def test_no_secret_is_told_through_an_upgrade_and_failures(monkeypatch: pytest.MonkeyPatch) -> None:
    asked, simulation = _Asked(), simulated()
    asked.listen(monkeypatch)
    simulation.world.complaint = "cannot log in with " + ", ".join(NAMED)
    simulation.world.answers = lambda pod: {
        "answer": "Failed",
        "message": f"refused {IN_SPEC[0]}",
        "problems": [f"refused {IN_SPEC[3]}"],
    }
    found: list[tuple[str, str]] = []

    with logged("json", verbose=True) as log:
        simulation.settle(simulation.is_running)
        # An upgrade that succeeds, and one whose driver fails with all that it was given.
        simulation.edit(args=["--better"])
        simulation.settle(lambda: simulation.is_running() and simulation.status["epoch"] == 2)
        simulation.world.broken = lambda pod: label(pod, EPOCH) == "3"
        simulation.edit(args=["--broken"])
        simulation.settle(lambda: simulation.is_running() and simulation.status["epoch"] > 3)
        assert simulation.condition("Degraded")["reason"] == "RolledBack"
        assert "[redacted]" in simulation.condition("Degraded")["message"]
        found += told(simulation, asked)
        # Time for scheduled savepoints, and for workers that fail to check them.
        go_on(simulation, passes=25, seconds=30)
        found += told(simulation, asked)
        # A pod that is refused by somebody who quotes it.
        simulation.cluster.refuse = quoting
        simulation.edit(args=["--refused"])
        go_on(simulation, passes=15, seconds=5)
        assert "ObjectRefused" in simulation.events()
        found += told(simulation, asked)
        # A spec that cannot be used, with a secret of the wrong kind.
        simulation.edit(sparkConf={"spark.ssl.keyPassword": 4711_0815})
        simulation.run_pass()
        assert simulation.condition("Accepted")["reason"] == "InvalidSpec"
        found += told(simulation, asked)
        simulation.edit(sparkConf={}, storage={"endpointUrl": f"http://user:{IN_SPEC[0]}@s3"})
        simulation.run_pass()
        assert "spec.storage.endpointUrl" in simulation.condition("Accepted")["message"]
        found += told(simulation, asked)
        # A mistake of ours, with a secret in the exception.
        raised = _failing_validation()
        monkeypatch.setattr(simulation.operator.jobs._observer, "observe", raised)
        simulation.run_pass()

    assert "unexpected" in log.getvalue()
    assert leaks(iter([*found, ("log", log.getvalue())])) == []
    assert not any("47110815" in text for _, text in found)
    assert STORED not in log.getvalue()


def _failing_validation() -> Any:
    async def observe(*_: object) -> None:
        JobSpec.model_validate({**SPEC_WITH_SECRETS, "sparkConf": {"spark.x": [IN_SPEC[0]]}})

    return observe


def test_the_operator_reads_no_secret_but_its_own_tokens(monkeypatch: pytest.MonkeyPatch) -> None:
    simulation, selected = simulated(), list[Mapping[str, str]]()
    listed = FakeCluster.list

    async def listen(cluster: FakeCluster, kind: Kind, namespace: str, **rest: Any) -> Any:
        selected.extend([rest["labels"]] if kind == SECRETS else [])
        return await listed(cluster, kind, namespace, **rest)

    monkeypatch.setattr(FakeCluster, "list", listen)
    simulation.settle(simulation.is_running)
    simulation.edit(args=["--better"])
    simulation.settle(lambda: simulation.is_running() and simulation.status["epoch"] == 2)
    simulation.restart()
    simulation.run_pass()

    touched = {
        name for verb, kind, name in simulation.cluster.calls if kind == "Secret" and verb != "list"
    }
    assert touched == {f"{NAME}-e1-agent", f"{NAME}-e2-agent"}
    assert all(labels == {JOB: NAME} for labels in selected)


def test_every_epoch_has_a_token_of_its_own_and_the_old_one_goes() -> None:
    simulation = simulated()
    simulation.settle(simulation.is_running)
    first = simulation.cluster.find(SECRETS, NAMESPACE, f"{NAME}-e1-agent")
    simulation.edit(args=["--better"])
    simulation.settle(lambda: simulation.is_running() and simulation.status["epoch"] == 2)
    for _ in range(5):
        simulation.run_pass()
        simulation.world.step()

    second = simulation.cluster.find(SECRETS, NAMESPACE, f"{NAME}-e2-agent")
    assert first is not None
    assert second is not None
    assert first["data"] != second["data"]
    assert simulation.cluster.find(SECRETS, NAMESPACE, f"{NAME}-e1-agent") is None


@pytest.mark.parametrize(
    "spec",
    [{}, {"sparkConf": 5, "driver": {"env": "x", "podTemplate": [1]}}, {"driver": {"env": [None]}}],
)
def test_secrets_are_looked_for_in_specs_of_any_shape(spec: dict[str, Any]) -> None:
    assert redaction_of(spec).text("nothing to hide") == "nothing to hide"
