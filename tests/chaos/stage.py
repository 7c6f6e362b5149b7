"""Where cases play: a namespace with one small job, its own operator, and what is known of it."""

import contextlib
import itertools
import json
import os
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from dev.cluster.layout import PROVISIONED, Layout
from dev.cluster.lifecycle import Cluster
from dev.console import Problem
from sparkpoint.controller.keys import ATTEMPT, EPOCH, JOB, ROLE
from sparkpoint.controller.podfacts import is_over
from sparkpoint.savepoint import Repository
from sparkpoint.savepoint.errors import NotARepositoryError, SavepointError
from sparkpoint.savepoint.leases import ActiveLease, readable_leases
from sparkpoint.storage import open_store
from sparkpoint.storage.errors import StorageError
from tests.chaos.api import Api, ApiError
from tests.chaos.ledger import Ledger, script
from tests.chaos.operatorprocess import OperatorProcess
from tests.chaos.witness import Witness
from tests.cluster.namespace import Namespace
from tests.cluster.operated import Job, example, job_spec

__all__ = ["STAGE_ERRORS", "CaseError", "Stage", "remove"]

_S3 = Path(__file__).parent.parent.parent / "dev" / "s3" / "seaweedfs.yaml"
_S3_ACCOUNT = {
    "AWS_ACCESS_KEY_ID": "sparkpoint",
    "AWS_SECRET_ACCESS_KEY": "local-development-only",
    "AWS_REGION": "us-east-1",
}
_PATIENCE = 300.0
_IMPATIENCE = 2.0
_FIRST_FILES = 12
_BETWEEN_FIRST = 3.0
_BETWEEN_FILES = 15.0
"""Seconds, once there were some: every file costs a batch, and some operations take minutes."""


class CaseError(AssertionError):
    """What must not be, with all that is known about it."""


STAGE_ERRORS = (
    CaseError,
    ApiError,
    Problem,
    subprocess.TimeoutExpired,
    SavepointError,
    StorageError,
)
"""What ends a run: something is not as it must be, or cannot be found out."""


class Stage:
    """One job in one namespace; everything on it is gone with `close`."""

    def __init__(
        self, cluster: Cluster, name: str, folder: Path, *, on_s3: bool, in_turn: bool
    ) -> None:
        assert cluster.layout is not None
        self.layout: Layout = cluster.layout
        self.namespace = Namespace(cluster, name)
        self.on_s3 = on_s3
        self.job = Job(self.namespace, _spec(on_s3=on_s3))
        self.api = Api(self.layout, name)
        self.operator = OperatorProcess(cluster, name, folder, in_turn=in_turn)
        # Processes are to be looked at all the while, whether or not the API server answers.
        self._impatient = Api(self.layout, name, tries=1, timeout=_IMPATIENCE)
        self.witness = Witness(self.layout, self._impatient, self.job.name)
        self._watched = self._has_repository = False
        self.struck = 0.0
        """When something was last done to a process that may have held a lease: it runs out."""

    def open(self) -> None:
        """The ground, the operator, and some input; no job yet."""
        self.namespace.cluster.kubectl("create", "namespace", self.namespace.name)
        if self.on_s3:
            self.namespace.kubectl("apply", "-f", str(_S3))
            status = ("rollout", "status", "deployment/s3", "--timeout=120s")
            self.namespace.kubectl(*status, timeout=150)
            # One that stands still is not ready, and would be refused instead of waited for.
            reachable = '{"spec": {"publishNotReadyAddresses": true}}'
            self.namespace.kubectl("patch", "service", "s3", "-p", reachable)
        self.job.lay_ground()
        self.job.put_script(script(example()))
        self.volume = self._volume()
        self.ledger = Ledger(self.volume)
        self.ledger.feed()
        self.operator.start()

    def close(self) -> None:
        """End what was started; the namespace goes in its own time."""
        self.operator.kill()
        self.api.close()
        self._impatient.close()
        remove(self.namespace)

    def _volume(self) -> Path:
        """The folder of the claim, on this machine."""
        claim = json.loads(self.namespace.kubectl("get", "pvc", "data", "-o", "json"))
        volume = json.loads(
            self.namespace.kubectl("get", "pv", claim["spec"]["volumeName"], "-o", "json")
        )
        within = Path(volume["spec"]["hostPath"]["path"]).relative_to(PROVISIONED)
        return self.layout.volatile / "private" / PROVISIONED.name / within

    def status(self) -> dict[str, Any]:
        """Of the job; empty if there is none."""
        found = self.api.job(self.job.name) or {}
        status: dict[str, Any] = found.get("status") or {}
        return status

    def record(self) -> dict[str, Any]:
        """What the operator has written down."""
        record: dict[str, Any] = self.status().get("record") or {}
        return record

    def pods_of_run(self, role: str) -> list[dict[str, Any]]:
        """Of the run that is written down."""
        run = self.record().get("run") or {}
        labels = {ROLE: role, EPOCH: run.get("epoch"), ATTEMPT: run.get("attempt")}
        chosen = ",".join(f"{name}={value}" for name, value in labels.items())
        return self.api.pods(f"{JOB}={self.job.name},{chosen}")

    def is_calm(self) -> bool:
        """Nothing is under way or about to be tried again, and what is wished was looked at."""
        body = self.api.job(self.job.name)
        status = (body or {}).get("status") or {}
        if body is None or status.get("observedGeneration") != body["metadata"]["generation"]:
            return False
        record = status.get("record") or {}
        waits = record.get("operation") or (record.get("held") or {}).get("until")
        return not waits and status.get("phase") in ("Running", "Suspended")

    def wait(self, what: str, condition: Callable[[], object], seconds: float = _PATIENCE) -> None:
        """Bounded; an API server that does not answer is waited for, too."""
        deadline = time.monotonic() + seconds
        while not self._holds(condition):
            if time.monotonic() > deadline:
                raise self.failure(f"waited {seconds:.0f} s for {what}")
            time.sleep(0.5)

    def _holds(self, condition: Callable[[], object]) -> bool:
        if not self.operator.is_running():
            raise self.failure("the operator has ended by itself")
        try:
            return bool(condition())
        except ApiError:
            return False

    @contextlib.contextmanager
    def watching(self) -> Iterator[None]:
        """The witness looks all the while; that it sees is checked, too."""
        self.witness.writers.clear()
        self._watched = True
        with self.witness.watching():
            yield

    @contextlib.contextmanager
    def feeding(self) -> Iterator[None]:
        """Input comes in all the while, so that batches are under way when things go wrong."""
        ended = threading.Event()

        def feed() -> None:
            pauses = itertools.chain(
                itertools.repeat(_BETWEEN_FIRST, _FIRST_FILES), itertools.repeat(_BETWEEN_FILES)
            )
            for pause in pauses:
                self.ledger.feed()
                if ended.wait(pause):
                    return

        feeder = threading.Thread(target=feed, daemon=True)
        feeder.start()
        try:
            yield
        finally:
            ended.set()
            feeder.join()

    def settle(self) -> None:
        """Peace, and everything as it has to be; a CaseError if not."""
        self.wait("the operation to end", self.is_calm)
        if self._is_processed():
            self.ledger.feed()
            self.wait("exact counts", self.ledger.is_exact)
            # A driver that came up late has to be proven, or the job is not at peace.
            self.wait("peace", self.is_calm)
        self.wait("orphans to go", lambda: not self.orphans(), 60)
        self.check()

    def check(self) -> None:
        """What must hold in peace, whether or not there is a job."""
        problems = [*self.ledger.mistakes()] if self._is_processed() else []
        problems += self._repository_problems()
        problems += [f"two writers: {each}" for each in self.witness.violations]
        if self._watched and not self.witness.writers:
            problems.append("the witness has seen no driver that was let in: it sees nothing")
        if problems:
            raise self.failure("; ".join(problems))

    def _is_processed(self) -> bool:
        return self.status().get("phase") == "Running"

    def orphans(self) -> list[str]:
        """Pods of the job that have not ended, and do not belong to its present run."""
        record = self.record()
        run, stands = record.get("run") or {}, record.get("suspended")
        present = None if stands else (str(run.get("epoch")), str(run.get("attempt")))
        return [
            body["metadata"]["name"]
            for body in self.api.pods(f"{JOB}={self.job.name}")
            if not is_over(body)
            and (
                body["metadata"]["labels"].get(EPOCH),
                body["metadata"]["labels"].get(ATTEMPT),
            )
            != present
        ]

    def _repository_problems(self) -> list[str]:
        try:
            repository = Repository.open(open_store(*self._repository()))
        except NotARepositoryError as error:
            # There is one from the first savepoint on.
            return [str(error)] if self._has_repository else []
        self._has_repository = True
        found = repository.list()
        half = [f"{each.path} cannot be read" for each in found.unreadable]
        bad = [each for each in repository.verify(found.savepoints) if not each.good]
        half += [f"savepoint {each.savepoint.key} is damaged" for each in bad]
        held = [each for each in readable_leases(repository.store) if self._is_orphaned(each)]
        return half + [f"lease {each.path} of {each.document.purpose} is held" for each in held]

    def _is_orphaned(self, lease: ActiveLease) -> bool:
        """Whether it has neither run out nor is of one that was killed: that one will run out."""
        pods = self.api.pods("")
        living = {body["metadata"]["name"] for body in pods if not is_over(body)}
        killed = lease.modified <= self.struck and lease.document.host not in living
        return lease.is_active(time.time()) and not killed

    def _repository(self) -> tuple[str, str | None]:
        if not self.on_s3:
            return str(self.volume / "savepoints"), None
        os.environ.update(_S3_ACCOUNT)
        service = json.loads(self.namespace.kubectl("get", "service", "s3", "-o", "json"))
        return "s3://data/savepoints", f"http://{service['spec']['clusterIP']}:8333"

    def failure(self, what: str) -> CaseError:
        """With all that is known at this moment."""
        known = [what, f"namespace {self.namespace.name}"]
        known += [f"{self.ledger.fed} files were fed", *self.ledger.mistakes()]
        with contextlib.suppress(ApiError):
            known.append(json.dumps(self.status(), indent=1)[:8000])
            pods = self.api.pods(f"{JOB}={self.job.name}")
            known += [f"{p['metadata']['name']}: {json.dumps(p['status'])[:1500]}" for p in pods]
        known += ["Attempts beside each other:", *self.witness.sightings]
        known += ["Two writers:", *self.witness.violations]
        known += ["The operator said last:", self.operator.last_words()]
        return CaseError("\n".join(known))


def remove(namespace: Namespace) -> None:
    """It goes in its own time, its pods at once."""
    namespace.cluster.kubectl(
        "delete", "namespace", namespace.name, "--wait=false", "--ignore-not-found"
    )
    # Nobody is there to take the finalizers off.
    for kind in ("ssj", "ssp"):
        for name in namespace.kubectl("get", kind, "-o", "name").split():
            patch = '{"metadata": {"finalizers": null}}'
            namespace.kubectl("patch", name, "--type=merge", "-p", patch)
    force = ("--grace-period=0", "--force", "--wait=false")
    namespace.kubectl("delete", "pods", "--all", *force)


def _spec(*, on_s3: bool) -> dict[str, Any]:
    spec = job_spec(on_s3=on_s3)
    spec["checkpoint"] |= {"timeout": "20s"}
    spec["savepoints"] |= {"finalOnDelete": True}
    # One commit proves it: what is tried here is what goes wrong, not how long it goes well.
    spec["upgrade"] |= {"rollback": {"stableAfterCommits": 1, "deadline": "180s"}}
    return spec
