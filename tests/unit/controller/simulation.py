"""The operator in a small world: a cluster in memory, a kubelet, drivers, a clock of its own."""

import asyncio
import base64
import copy
import json
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

from sparkpoint.controller.agents import Agent
from sparkpoint.controller.cluster import (
    EVENTS,
    JOBS,
    PODS,
    SAVEPOINTS,
    SECRETS,
    Object,
    metadata,
    owner_uid,
)
from sparkpoint.controller.keys import ATTEMPT, EPOCH, FINALIZER, JOB, ROLE, Key
from sparkpoint.controller.passes import Requeue
from sparkpoint.controller.podfacts import is_over, label
from sparkpoint.controller.wiring import Operator, put_together
from tests.unit.controller.fakecluster import CrashError, FakeCluster
from tests.unit.controller.fakedrivers import QUERY, FakeAgent, FakeDriver

NAMESPACE = "shop"
NAME = "visits"
KEY = Key(NAMESPACE, NAME)

SPEC: dict[str, Any] = {
    "image": "sparkpoint.dev/runtime:spark-4.3.0",
    "application": {"script": {"path": "/opt/job/visits.py"}},
    "executor": {"instances": 2},
    "checkpoint": {"location": "s3://data/checkpoints"},
    "savepoints": {"repository": "s3://data/savepoints"},
    "upgrade": {"compatibility": "Skip"},
}

Answer = dict[str, Any]
_LOOP = asyncio.Runner()
"""One for all passes: a new event loop costs more than a pass."""


@dataclass
class World:
    """Everything outside of the operator."""

    now: datetime = datetime(2026, 11, 16, 12, tzinfo=UTC)
    drivers: dict[str, FakeDriver] = field(default_factory=dict)
    """By uid of the pod."""
    broken: Callable[[Object], bool] = lambda pod: False
    """Drivers that fail as soon as they may begin."""
    answers: Callable[[Object], Answer | None] = lambda pod: {"answer": "Removed"}
    """What a worker pod says; None: nothing yet."""
    skew: timedelta = timedelta(0)
    """By which the clocks of the drivers' nodes are ahead of the operator's."""
    unschedulable: bool = False
    complaint: str = "the state cannot be read"
    """What a broken driver says."""
    directories: dict[int, int | None] = field(default_factory=dict)
    """Epoch -> the last batch in its directory."""
    opened: list[str] = field(default_factory=list)
    """Drivers whose queries ran, in order."""

    def __post_init__(self) -> None:
        self.cluster = FakeCluster(lambda: self.now)

    def dial(self, url: str, token: str) -> Agent:
        """The agent at this address."""
        for pod in self.cluster.present(PODS, NAMESPACE):
            if (pod.get("status") or {}).get("podIP") == url.split("//")[1].split(":")[0]:
                driver = self.drivers.get(metadata(pod)["uid"])
                return FakeAgent(driver, token, self.now + self.skew, self.cluster.count)
        return FakeAgent(None, token, self.now, self.cluster.count)

    def step(self) -> None:
        """The kubelet, Spark and the garbage collector do their part."""
        for known in self.cluster.present(PODS, NAMESPACE):
            pod = self.cluster.find(PODS, NAMESPACE, metadata(known)["name"])
            if pod is None:
                continue
            if is_over(pod) or metadata(pod).get("deletionTimestamp"):
                self._end(pod)
            elif label(pod, ROLE) == "driver":
                self._run_driver(pod)
            elif label(pod, ROLE) == "worker":
                self._run_worker(pod)
        self._check_single_writer()

    def _end(self, pod: Object) -> None:
        """A pod that is being deleted goes; executors go with their driver."""
        uid = metadata(pod)["uid"]
        if metadata(pod).get("deletionTimestamp") and uid in self.drivers and not is_over(pod):
            # Its end is told before its object goes.
            self.end_driver(pod)
        elif metadata(pod).get("deletionTimestamp"):
            self.drivers.pop(uid, None)
            self.cluster.erase(PODS, NAMESPACE, metadata(pod)["name"])
        for other in self.cluster.all(PODS, NAMESPACE):
            if owner_uid(other) == uid:
                self.cluster.erase(PODS, NAMESPACE, metadata(other)["name"])

    def end_driver(self, pod: Object) -> None:
        """Its process ends, without a word of its own."""
        self._keep_batches(pod)
        self.drivers.pop(metadata(pod)["uid"], None)
        self._terminate(pod, 143, "")

    def _keep_batches(self, pod: Object) -> None:
        driver = self.drivers.get(metadata(pod)["uid"])
        if driver is not None:
            self.directories[driver.epoch] = driver.batch

    def _run_driver(self, pod: Object) -> None:
        if self.unschedulable:
            return
        uid = metadata(pod)["uid"]
        if uid not in self.drivers:
            self._start_driver(pod)
            return
        driver = self.drivers[uid]
        before = driver.phase
        driver.advance(self.now + self.skew)
        if before == "running":
            self.opened.append(metadata(pod)["name"])
        self._keep_batches(pod)
        if driver.phase == "ended" and driver.termination is not None:
            self._terminate(pod, driver.termination.exit_code, driver.termination.model_dump_json())

    def _start_driver(self, pod: Object) -> None:
        uid, epoch = metadata(pod)["uid"], int(label(pod, EPOCH))
        restored = "--restore" in pod["spec"]["containers"][0]["args"]
        begun = self.directories.get(epoch, 41 if restored else None)
        secret = self.cluster.find(SECRETS, NAMESPACE, f"{NAME}-e{epoch}-agent")
        assert secret is not None, "the driver's Secret must be there before its pod"
        self.drivers[uid] = FakeDriver(
            job=str(KEY),
            epoch=epoch,
            token=base64.b64decode(secret["data"]["token"]).decode(),
            batch=begun,
            broken=self.broken(pod),
            complaint=self.complaint,
        )
        self.set_status(pod, {"phase": "Running", "podIP": f"10.0.0.{len(self.drivers)}"})
        for number in (1, 2):
            self.add_executor(pod, number)

    def add_executor(self, driver: Object, number: int) -> None:
        """As Spark does: owned by the driver's pod, with the job's labels."""
        labels = {JOB: NAME, ROLE: "executor"}
        labels |= {name: label(driver, name) for name in (EPOCH, ATTEMPT)}
        name, uid = metadata(driver)["name"], metadata(driver)["uid"]
        owner = {"apiVersion": "v1", "kind": "Pod", "name": name, "uid": uid}
        executor = self.cluster.add(
            {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {
                    "name": f"{name}-exec-{number}",
                    "namespace": NAMESPACE,
                    "labels": labels,
                    "ownerReferences": [owner],
                },
                "spec": {"containers": [{"name": "executor"}]},
            }
        )
        self.set_status(executor, {"phase": "Running"})

    def _run_worker(self, pod: Object) -> None:
        answer = self.answers(pod)
        if answer is not None:
            failed = answer["answer"] in ("Failed", "Refused")
            self._terminate(pod, 85 if failed else 0, json.dumps(answer))

    def _terminate(self, pod: Object, code: int, message: str) -> None:
        name = pod["spec"]["containers"][0]["name"]
        ended = {"exitCode": code, "reason": "Error" if code else "Completed", "message": message}
        containers = [{"name": name, "state": {"terminated": ended}}]
        phase = "Failed" if code else "Succeeded"
        self.set_status(pod, {"phase": phase, "containerStatuses": containers})

    def set_status(self, pod: Object, status: dict[str, Any]) -> None:
        """As the kubelet writes it."""

        def change(body: Object) -> None:
            body["status"] = {**(body.get("status") or {}), **status}

        self.cluster.edit(PODS, NAMESPACE, metadata(pod)["name"], change)

    def _check_single_writer(self) -> None:
        """Never do two drivers live that may write into one directory."""
        alive = [driver.epoch for driver in self.drivers.values() if driver.phase != "ended"]
        assert len(alive) == len(set(alive)), f"two drivers in one epoch: {alive}"
        running = [driver for driver in self.drivers.values() if driver.phase == "running"]
        assert len(running) <= 1, "two drivers whose queries run"


class Simulation:
    """A world with a job in it, and an operator that can die."""

    def __init__(
        self,
        spec: dict[str, Any] | None = None,
        *,
        make_token: Callable[[], str] = lambda: "token",
        unsafe_pods: bool = False,
    ) -> None:
        self.world = World()
        self.cluster = self.world.cluster
        self._make_token, self.unsafe_pods = make_token, unsafe_pods
        self.operator = self._new_operator()
        self.requeue = Requeue(seconds=0)
        self.crashes = 0
        self.add_job(SPEC if spec is None else spec)

    def _new_operator(self) -> Operator:
        return put_together(
            self.cluster,
            self.world.dial,
            clock=lambda: self.world.now,
            make_token=self._make_token,
            unsafe_pods=self.unsafe_pods,
        )

    def restart(self) -> None:
        """Another operator takes over; it knows nothing but what the cluster says."""
        self.operator = self._new_operator()

    def add_job(self, spec: dict[str, Any]) -> None:
        """As `kubectl apply`, and a pass that has put the finalizer on."""
        self.cluster.add(
            {
                "apiVersion": "sparkpoint.dev/v1alpha1",
                "kind": "StatefulSparkJob",
                "metadata": {"name": NAME, "namespace": NAMESPACE, "finalizers": [FINALIZER]},
                "spec": copy.deepcopy(spec),
            }
        )

    def edit(self, **changes: Any) -> None:
        """Change the spec."""
        self.cluster.edit(JOBS, NAMESPACE, NAME, lambda body: body["spec"].update(changes))

    def feed(self) -> None:
        """What the watches show."""
        operator = self.operator
        for job in self.cluster.present(JOBS, NAMESPACE):
            if metadata(job)["name"] == NAME:
                operator.job_cache.put(KEY, job)
        # A cache makes copies of what it keeps.
        self._refresh(operator.pod_cache, self.cluster.present(PODS, NAMESPACE))
        self._refresh(operator.savepoint_cache, self.cluster.present(SAVEPOINTS, NAMESPACE))

    @staticmethod
    def _refresh(cache: Any, present: Sequence[Object]) -> None:
        names = {metadata(body)["name"] for body in present}
        for known in cache.of(KEY):
            if metadata(known)["name"] not in names:
                cache.drop(KEY, metadata(known)["name"])
        for body in present:
            cache.put(KEY, body)

    def run_pass(self) -> Requeue:
        """One pass; an operator that dies in it is followed by another."""
        self.feed()
        return self.run_pass_behind()

    def run_pass_behind(self) -> Requeue:
        """The same, with watches that have shown nothing new."""
        self.requeue = self._survive(lambda: self.operator.jobs.run_once(KEY))
        return self.requeue

    def _survive(self, run: Callable[[], Coroutine[Any, Any, Requeue]]) -> Requeue:
        try:
            # Not its `run`, which sets up the handling of Ctrl-C anew each time.
            return _LOOP.get_loop().run_until_complete(run())
        except CrashError:
            self.crashes += 1
            self.cluster.crash = None
            self.restart()
            return Requeue(seconds=0)

    async def _run_savepoint(self, key: Key) -> Requeue:
        return await self.operator.savepoints.run_once(key)

    def run_savepoints(self) -> None:
        """A pass over each."""
        for body in self.cluster.present(SAVEPOINTS, NAMESPACE):
            name = metadata(body)["name"]
            self.feed()
            self._survive(partial(self._run_savepoint, Key(NAMESPACE, name)))

    def settle(self, until: Callable[[], bool], *, passes: int = 200, longest: float = 5) -> None:
        """Let time go by until this holds, in steps of at most so many seconds."""
        for _ in range(passes):
            self.run_pass()
            self.run_savepoints()
            self.world.step()
            if until():
                return
            self.world.now += timedelta(seconds=min(max(self.requeue.seconds, 0.5), longest))
        raise AssertionError(f"it never came to that: {self.status}")

    @property
    def job(self) -> Object:
        """As the API server has it, or had it last, if it was let go."""
        found = self.cluster.find(JOBS, NAMESPACE, NAME) or self._let_go
        assert found is not None
        return found

    @property
    def _let_go(self) -> Object | None:
        return self.cluster.gone.get((JOBS.kind, NAME))

    @property
    def status(self) -> dict[str, Any]:
        """Of the job, or the last one if it was let go; empty if it is gone in another way."""
        found = self.cluster.find(JOBS, NAMESPACE, NAME) or self._let_go
        return (found or {}).get("status") or {}

    def is_running(self) -> bool:
        """All is done, and the queries commit."""
        return self.status.get("phase") == "Running"

    def condition(self, name: str) -> dict[str, Any]:
        """One of the job's conditions."""
        return next(each for each in self.status["conditions"] if each["type"] == name)

    def events(self) -> list[str]:
        """Reasons of all Events, sorted."""
        return sorted(event["reason"] for event in self.cluster.all(EVENTS, NAMESPACE))

    def pods(self, role: str) -> Sequence[Object]:
        """The pods of this role."""
        return self.cluster.all(PODS, NAMESPACE, {ROLE: role})

    def savepoint(self, name: str) -> Object:
        """A SparkSavepoint."""
        found = self.cluster.find(SAVEPOINTS, NAMESPACE, name)
        assert found is not None, name
        return found


def is_released(simulation: Simulation) -> bool:
    """Whether the operator lets the job go."""
    return simulation.requeue.released


__all__ = ["KEY", "NAME", "NAMESPACE", "QUERY", "SPEC", "Simulation", "World", "is_released"]
