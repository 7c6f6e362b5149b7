"""Watches that a job never has two writers: by what really may write, not by what is reported.

A pod may write while its processes live and its gate was opened. The first is asked of the kernel
and the second of the agent: the phase of a pod, and the state of its containers, are what a kubelet
has told the API server some time ago, and a pod that is said to run may have ended. All three are
kept in what is reported.
"""

import base64
import concurrent.futures
import contextlib
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from dev.cluster.layout import Layout
from dev.jobs import AGENT_PORT
from sparkpoint.controller.keys import ATTEMPT, EPOCH, JOB, ROLE
from sparkpoint.controller.objects import agent_secret_name
from sparkpoint.runtime.client import AgentClientError, SyncAgentClient
from tests.chaos.api import Api, ApiError
from tests.chaos.machine import processes_of_pod

__all__ = ["Attempt", "Witness", "conflicts"]

_BETWEEN_LOOKS = 0.5
_MOST_SIGHTINGS = 200


@dataclass(frozen=True, slots=True)
class Attempt:
    """Pods of one attempt that live."""

    life: str
    epoch: int
    number: int
    open: bool
    """Its gate was seen open."""
    left: bool
    """The object of its driver is gone: it is left behind, with the directory that it has."""
    pods: tuple[str, ...]

    @property
    def directory(self) -> tuple[str, int]:
        """Of the epoch; two lives never share one."""
        return (self.life, self.epoch)


def conflicts(living: Sequence[Attempt]) -> list[tuple[Attempt, Attempt]]:
    """Pairs that may write into one directory, or to the same sinks without anybody having given
    the former one up."""
    writers = sorted((each for each in living if each.open), key=lambda each: each.number)
    pairs = [(a, b) for i, a in enumerate(writers) for b in writers[i + 1 :]]
    return [(a, b) for a, b in pairs if a.directory == b.directory or not a.left]


@dataclass(slots=True)
class _Pod:
    uid: str
    name: str
    role: str
    life: str
    epoch: int
    attempt: int
    address: str
    reported: str
    """What the API server says of it."""
    gate: str = "unknown"
    """What its agent said last."""
    opened: bool = False
    present: bool = True


class Witness:
    """Of one job."""

    def __init__(self, layout: Layout, api: Api, job: str) -> None:
        self._layout, self._api, self._job = layout, api, job
        self._pods: dict[str, _Pod] = {}
        self._tokens: dict[tuple[str, int], str] = {}
        self.writers: set[tuple[str, int, int]] = set()
        """Attempts that were seen to live behind an open gate."""
        self.sightings: list[str] = []
        """Attempts that lived beside each other, whether or not both could write."""
        self.violations: list[str] = []

    @contextlib.contextmanager
    def watching(self) -> Iterator[None]:
        """Look all the time, until the block ends."""
        ended = threading.Event()

        def watch() -> None:
            while not ended.wait(_BETWEEN_LOOKS):
                self.look()

        # Who writes now may be killed before the next look.
        self.look()
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            watcher = pool.submit(watch)
            try:
                yield
            finally:
                ended.set()
            # A witness that could not look has seen nothing.
            watcher.result()

    def look(self) -> None:
        """Once."""
        with contextlib.suppress(ApiError):
            self._learn(self._api.pods(f"{JOB}={self._job},{ROLE} in (driver,executor)"))
        living = self._living()
        for pod in living:
            if pod.role == "driver":
                self._ask(pod)
        attempts = self._attempts(living)
        self.writers |= {(*each.directory, each.number) for each in attempts if each.open}
        if len(attempts) < 2:
            return
        self._note(self.sightings, attempts)
        if conflicts(attempts):
            # One may have ended before the gate of the other was opened: the kernel is asked last.
            still = self._attempts(self._living())
            if conflicts(still):
                self._note(self.violations, still)

    def _learn(self, found: Sequence[dict[str, Any]]) -> None:
        present = {body["metadata"]["uid"] for body in found}
        for pod in self._pods.values():
            pod.present = pod.uid in present
        for body in sorted(found, key=lambda each: each["metadata"]["labels"][ROLE]):
            self._know(body)

    def _know(self, body: dict[str, Any]) -> None:
        about, labels = body["metadata"], body["metadata"]["labels"]
        owner = next((each["uid"] for each in about.get("ownerReferences") or []), "")
        driver = self._pods.get(owner)
        known = self._pods.get(about["uid"])
        status = body.get("status") or {}
        self._pods[about["uid"]] = _Pod(
            uid=about["uid"],
            name=about["name"],
            role=labels[ROLE],
            # An executor is its driver's, and a driver the job's.
            life=driver.life if driver is not None else owner,
            epoch=int(labels[EPOCH]),
            attempt=int(labels[ATTEMPT]),
            address=status.get("podIP") or "",
            reported=_reported(status),
            gate=known.gate if known is not None else "unknown",
            opened=known.opened if known is not None else False,
        )

    def _living(self) -> list[_Pod]:
        return [pod for pod in self._pods.values() if processes_of_pod(self._layout, pod.uid)]

    def _ask(self, pod: _Pod) -> None:
        if pod.opened or not pod.address or (token := self._token(pod)) is None:
            return
        url = f"http://{pod.address}:{AGENT_PORT}"
        try:
            with SyncAgentClient(url, token, timeout=1) as agent:
                pod.gate = agent.progress().gate.state
        except AgentClientError:
            return
        pod.opened = pod.gate in ("open", "none")

    def _token(self, pod: _Pod) -> str | None:
        key = (pod.life, pod.epoch)
        if key not in self._tokens:
            with contextlib.suppress(ApiError):
                found = self._api.secret(agent_secret_name(self._job, pod.epoch))
                if found is not None:
                    self._tokens[key] = base64.b64decode(found["data"]["token"]).decode()
        return self._tokens.get(key)

    def _attempts(self, living: Sequence[_Pod]) -> list[Attempt]:
        keys = sorted({(pod.life, pod.epoch, pod.attempt) for pod in living})
        return [self._attempt(key, living) for key in keys]

    def _attempt(self, key: tuple[str, int, int], living: Sequence[_Pod]) -> Attempt:
        def is_of(pod: _Pod) -> bool:
            return (pod.life, pod.epoch, pod.attempt) == key

        drivers = [each for each in self._pods.values() if each.role == "driver" and is_of(each)]
        return Attempt(
            *key,
            open=any(pod.opened for pod in drivers),
            left=not any(pod.present for pod in drivers),
            pods=tuple(f"{pod.name} [{pod.reported}]" for pod in living if is_of(pod)),
        )

    def _note(self, notes: list[str], attempts: Sequence[Attempt]) -> None:
        told = "; ".join(
            f"epoch {each.epoch} attempt {each.number} gate {'open' if each.open else 'shut'}"
            f"{' left behind' if each.left else ''}: {', '.join(each.pods)}"
            for each in attempts
        )
        if len(notes) < _MOST_SIGHTINGS and not (notes and notes[-1].endswith(told)):
            notes.append(f"{time.strftime('%H:%M:%S')} {told}")


def _reported(status: dict[str, Any]) -> str:
    states = [
        f"{each['name']} {'/'.join(each.get('state') or {})}"
        for each in status.get("containerStatuses") or []
    ]
    return ", ".join([str(status.get("phase")), *states])
