"""The nodes of a cluster without nodes: every pod is bound, and runs as a driver that is played.

Why not KWOK: its pods change by rules and a clock. A driver's end follows from what its agent was
asked, and its last words from what the agent has done; and the agent needs the token of the pod's
Secret. So whoever plays the pods has to be whoever plays the agents.
"""

import asyncio
import base64
import ipaddress
import logging
from collections.abc import Callable, Coroutine
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any, Final

from aiohttp import web

from sparkpoint.controller.keys import JOB, ROLE
from sparkpoint.controller.objects.places import EXECUTOR_CONTAINER
from sparkpoint.runtime.model import EndReason, Termination
from sparkpoint.worker.model import Answer, Word
from tests.scale.api import Api, ApiError, Object
from tests.scale.drivers import STARTING, Driver, serve, summary

__all__ = ["NODE", "Pods"]

logger = logging.getLogger(__name__)

NODE: Final = "played"
_FIRST: Final = ipaddress.IPv4Address("127.77.0.1")
"""Every address of 127.0.0.0/8 is this machine's own: each driver has one, as pods have."""
_ADDRESS: Final = "127.77.255.254"
"""Of executors: nobody asks them."""
_PULLING: Final = 1.0
"""Seconds until a pod that has a node runs there."""
_WORDS: Final[dict[str, Word]] = {
    "capture": "Captured",
    "dispose": "Disposed",
    "remove": "Removed",
    "verify": "Verified",
}
"""What a worker answers to the command of its line."""


class Pods:
    """Plays all pods that have the label of a job."""

    def __init__(self, api: Api, *, taking: float = 0.0) -> None:
        self._api, self._taking = api, taking
        self._running: dict[str, web.AppRunner] = {}
        """By uid."""
        self._drivers: dict[str, Driver] = {}
        self._free: list[str] = []
        self._next = 0
        self._addresses: dict[str, str] = {}
        self._batches: dict[str, int] = {}
        """Job -> batches that its earlier drivers have committed."""
        self._seen: set[str] = set()
        self._tasks: set[asyncio.Task[None]] = set()

    async def play(self) -> None:
        """Until it is cancelled."""
        async for kind, pod in self._api.follow("/api/v1/pods", "labelSelector=sparkpoint.dev/job"):
            if kind == "DELETED":
                self._forget(pod)
            else:
                self._notice(pod)

    def _notice(self, pod: Object) -> None:
        about = pod["metadata"]
        uid, phase = about["uid"], (pod.get("status") or {}).get("phase")
        if about.get("deletionTimestamp"):
            if f"end {uid}" not in self._seen:
                self._seen.add(f"end {uid}")
                self._run(lambda: self._end(pod))
        elif phase == "Pending" and uid not in self._seen:
            self._seen.add(uid)
            self._run(lambda: self._begin(pod))
        elif phase == "Running" and uid not in self._seen:
            # Of a player before this one; its gate may be open.
            self._seen.add(uid)
            self._run(lambda: self._listen(pod))

    def _run(self, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        task = asyncio.create_task(self._tried(work))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _tried(self, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        for _ in range(5):
            try:
                return await work()
            except ApiError as error:
                if error.status == 404:
                    return None
                logger.warning("%s", error)
            except OSError as error:
                logger.warning("%s", error)
            await asyncio.sleep(1)
        return None

    async def _begin(self, pod: Object) -> None:
        about = pod["metadata"]
        if not (pod["spec"].get("nodeName")):
            target = {"apiVersion": "v1", "kind": "Node", "name": NODE}
            binding = {"metadata": {"name": about["name"]}, "target": target}
            try:
                await self._api.create(f"{_path(pod)}/binding", binding)
            except ApiError as error:
                if error.status != 409:
                    raise
        if about["labels"].get(ROLE) == "driver":
            await asyncio.sleep(_PULLING)
            address = self._take_address()
            running = {**pod, "status": _status(pod, "Running", address=address)}
            await self._write(pod, running["status"])
            await asyncio.sleep(STARTING)
            await self._api.create(_collection(pod), _executor(pod))
            await self._listen(running, opened=False)
        elif about["labels"].get(ROLE) == "executor":
            await self._write(pod, _status(pod, "Running", address=_ADDRESS))
        else:
            message = self._work(pod).model_dump_json(exclude_none=True)
            await self._write(pod, _status(pod, "Succeeded", message=message))

    def _work(self, pod: Object) -> Answer:
        """What a worker says, who is always done at once."""
        arguments = pod["spec"]["containers"][0]["args"]
        task = next((name for name in _WORDS if name in arguments), None)
        if task is None:
            return Answer(answer="Failed", message=f"nobody plays {arguments}")
        if task != "capture":
            return Answer(answer=_WORDS[task], freed_bytes=2048)
        options, about = dict(pairwise(arguments)), pod["metadata"]
        job = f"{about['namespace']}/{about['labels'][JOB]}"
        taken = summary(job, options["--name"], self._batches.get(job, 1) - 1)
        return Answer(answer=_WORDS[task], savepoint=taken)

    async def _listen(self, pod: Object, *, opened: bool = True) -> None:
        """Let the driver's agent answer, with the token that its kubelet would mount."""
        about, arguments = pod["metadata"], pod["spec"]["containers"][0]["args"]
        uid, options = about["uid"], dict(pairwise(arguments))
        if uid in self._running or f"end {uid}" in self._seen:
            return
        secrets = [v["secret"]["secretName"] for v in pod["spec"]["volumes"] if "secret" in v]
        namespace = about["namespace"]
        secret = await self._api.get(f"/api/v1/namespaces/{namespace}/secrets/{secrets[-1]}")

        async def ended(words: Termination) -> None:
            await self._over(pod, words)

        job = options["--job"]
        driver = Driver(
            job=job,
            epoch=int(options["--epoch"]),
            token=base64.b64decode(secret["data"]["token"]).decode(),
            base=self._batches.get(job, 0),
            ended=ended,
            taking=self._taking,
        )
        if opened:
            driver.open_gate(driver.epoch)
        address = pod["status"]["podIP"]
        self._drivers[uid], self._addresses[uid] = driver, address
        self._running[uid] = await serve(driver, address)

    async def _over(self, pod: Object, words: Termination) -> None:
        uid = pod["metadata"]["uid"]
        runner, driver = self._running.pop(uid, None), self._drivers.pop(uid, None)
        if driver is not None and driver.batch is not None:
            self._batches[driver.job] = driver.batch + 1
        if runner is not None:
            await runner.cleanup()
        # Spark dismisses its executors before it ends.
        await self._api.delete(f"{_path(pod)}-exec-1", gracePeriodSeconds=0)
        message = words.model_dump_json(exclude_none=True)
        await self._write(pod, _status(pod, "Succeeded", message=message))

    async def _end(self, pod: Object) -> None:
        """What a kubelet does with a pod that is being deleted: end it, tell, let it go."""
        driver = self._drivers.get(pod["metadata"]["uid"])
        if driver is not None:
            driver.stopped = datetime.now(UTC)
            await self._over(pod, driver.last_words(EndReason.TERMINATED))
        await self._api.delete(_path(pod), gracePeriodSeconds=0)

    def _forget(self, pod: Object) -> None:
        """Its object is gone; if that was by force, so is its process."""
        uid = pod["metadata"]["uid"]
        self._seen -= {uid, f"end {uid}"}
        self._drivers.pop(uid, None)
        runner = self._running.pop(uid, None)
        if runner is not None:
            self._run(runner.cleanup)
        address = self._addresses.pop(uid, None)
        if address is not None:
            self._free.append(address)

    def _take_address(self) -> str:
        if self._free:
            return self._free.pop(0)
        self._next += 1
        return str(_FIRST + self._next)

    async def _write(self, pod: Object, status: Object) -> None:
        await self._api.merge(f"{_path(pod)}/status", {"status": status})


def _collection(pod: Object) -> str:
    return f"/api/v1/namespaces/{pod['metadata']['namespace']}/pods"


def _executor(driver: Object) -> Object:
    """As Spark makes it: owned by the driver's pod, with the labels of the job's template."""
    about = driver["metadata"]
    owner = {"apiVersion": "v1", "kind": "Pod", "name": about["name"], "uid": about["uid"]}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": f"{about['name']}-exec-1",
            "labels": {**about["labels"], ROLE: "executor"},
            "ownerReferences": [owner],
        },
        "spec": {
            "restartPolicy": "Never",
            "containers": [{"name": EXECUTOR_CONTAINER, "image": "visits", "args": []}],
        },
    }


def _path(pod: Object) -> str:
    about = pod["metadata"]
    return f"/api/v1/namespaces/{about['namespace']}/pods/{about['name']}"


def _status(pod: Object, phase: str, *, address: str | None = None, message: str = "") -> Object:
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    over = phase != "Running"
    ended = {"exitCode": 0, "reason": "Completed", "message": message, "finishedAt": now}
    state = {"terminated": ended} if over else {"running": {"startedAt": now}}
    conditions = ("PodScheduled", "Initialized", "ContainersReady", "Ready")
    ready = {kind: "False" if over and kind.endswith("Ready") else "True" for kind in conditions}
    container = pod["spec"]["containers"][0]
    found: Object = {
        "phase": phase,
        "conditions": [
            {"type": kind, "status": each, "lastTransitionTime": now}
            for kind, each in ready.items()
        ],
        "containerStatuses": [
            {
                "name": container["name"],
                "image": container["image"],
                "imageID": "",
                "ready": not over,
                "restartCount": 0,
                "state": {**state, **({"running": None} if over else {})},
            }
        ],
    }
    if address is not None:
        found |= {"podIP": address, "podIPs": [{"ip": address}], "startTime": now}
    return found
