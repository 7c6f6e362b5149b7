"""How each operation is brought about, from whatever the case before it has left."""

import time
from collections.abc import Callable, Sequence

from sparkpoint.lifecycle.phases import Kind, Phase
from tests.chaos.machine import kill_pod
from tests.chaos.stage import Stage

__all__ = ["Operations"]

_TRIED = (Phase.ADOPT, Phase.PREPARE)
"""Phases that there are only if code is tried."""
_CRASH = "--crash"


class Operations:
    """On one stage."""

    def __init__(self, stage: Stage) -> None:
        self._stage, self._job, self._spec = stage, stage.job, stage.job.spec
        self._round = 0
        self._adoptable: str | None = None

    def prepare(self, kind: Kind, phases: Sequence[Phase]) -> None:
        """Bring the job to where this operation can begin; nothing goes wrong meanwhile."""
        wanted = "Enforce" if any(phase in _TRIED for phase in phases) else "Skip"
        self._spec["upgrade"]["compatibility"] = wanted
        if kind is Kind.START:
            self._retire()
            return
        self._run()
        self._agree()
        if kind is Kind.RESUME:
            self._change(suspend=True)
            self._stage.settle()
        elif kind is Kind.RESTORE:
            self._take_savepoint()
        elif kind is Kind.ROLLBACK:
            latest = Phase.CAPTURE in phases
            self._spec["upgrade"]["rollback"]["to"] = "Latest" if latest else "Savepoint"
        self._apply()
        self._stage.wait("peace", self._stage.is_calm)

    def trigger(self, kind: Kind, phases: Sequence[Phase]) -> None:
        """Begin."""
        self._round += 1
        begin: dict[Kind, Callable[[], None]] = {
            Kind.START: self._start,
            Kind.UPGRADE: self._upgrade,
            Kind.RESCALE: self._rescale,
            Kind.RESTART: lambda: self._change(restartNonce=self._round),
            Kind.REPARTITION: self._repartition,
            Kind.SUSPEND: lambda: self._change(suspend=True),
            Kind.RESUME: lambda: self._change(suspend=False),
            Kind.RESTORE: self._restore,
            Kind.ROLLBACK: self._break,
            Kind.RECOVER: self.vanish if Phase.CAPTURE in phases else self.kill_driver,
            Kind.DELETE: self._delete,
        }
        begin[kind]()

    def tidy(self, kind: Kind) -> None:
        """What the operation has left that the next one does not expect."""
        if kind is Kind.ROLLBACK:
            self._spec["args"].remove(_CRASH)
            self._apply()
            self._stage.settle()
        elif kind in (Kind.DELETE, Kind.SUSPEND):
            # Whether all is there is seen when it is gone on from.
            self._run()

    def kill_driver(self) -> None:
        """All of its processes; its pod tells of it."""
        self._stage.struck = time.time()
        for pod in self._stage.pods_of_run("driver"):
            kill_pod(self._stage.layout, pod["metadata"]["uid"])

    def vanish(self) -> None:
        """The pod's object goes before its end was told."""
        self._stage.struck = time.time()
        for pod in self._stage.pods_of_run("driver"):
            force = ("--grace-period=0", "--force", "--wait=false")
            self._stage.namespace.kubectl("delete", "pod", pod["metadata"]["name"], *force)

    def _apply(self) -> None:
        self._job.apply()

    def _change(self, **fields: object) -> None:
        self._spec.update(fields)
        self._apply()

    def _run(self) -> None:
        """A job that runs, whatever there is."""
        if self._stage.api.job(self._job.name) is None:
            self._start()
        elif self._spec.get("suspend"):
            self._change(suspend=False)
        else:
            return
        self._stage.settle()

    def _agree(self) -> None:
        """A wish that the case before was rolled back from would be mistaken for the next one."""
        if self._stage.record().get("held"):
            self._round += 1
            self._upgrade()
            self._stage.settle()

    def _start(self) -> None:
        """From what the last one of this name has left, if there was one."""
        self._spec["checkpoint"].pop("adopt", None)
        self._spec.pop("restoreFrom", None)
        self._spec["suspend"] = False
        self._spec["checkpoint"]["onDelete"] = "Retain"
        if self._adoptable is not None:
            self._spec["checkpoint"]["adopt"] = self._adoptable
        elif (final := self._final()) is not None:
            self._spec["restoreFrom"] = {"savepoint": final, "sink": "Resume"}
        self._apply()

    def _final(self) -> str | None:
        """The savepoint that was taken as the last job was deleted."""
        found = [
            body
            for body in self._stage.api.savepoints()
            if body["spec"].get("trigger") == "Final"
            and (body.get("status") or {}).get("phase") == "Completed"
        ]
        newest = sorted(found, key=lambda body: body["metadata"]["creationTimestamp"])
        return newest[-1]["metadata"]["name"] if newest else None

    def _retire(self) -> None:
        """Delete the job in peace; its checkpoint stays."""
        self._run()
        self._agree()
        self._adoptable = self._directory()
        away = ("delete", "ssj", self._job.name, "--timeout=180s")
        self._stage.namespace.kubectl(*away, timeout=200)
        self._stage.wait("its pods to go", lambda: not self._stage.orphans())

    def _directory(self) -> str:
        run = self._stage.record()["run"]
        place = f"{self._stage.namespace.name}/{self._job.name}/{run['directory']}"
        return f"{self._spec['checkpoint']['location']}/{place}"

    def _upgrade(self) -> None:
        self._spec["sparkConf"]["spark.chaos.round"] = str(self._round)
        self._apply()

    def _rescale(self) -> None:
        executor = self._spec["executor"]
        executor["instances"] = 3 - executor["instances"]
        # Never what was before: that may be what runs, if the last one was rolled back.
        executor["coreRequest"] = f"{100 + self._round}m"
        self._apply()

    def _repartition(self) -> None:
        state = self._spec["state"]
        # Of three, as the last but one may be what runs, if the last one was rolled back.
        state["partitions"] = {2: 3, 3: 4, 4: 2}[state["partitions"]]
        self._apply()

    def _take_savepoint(self) -> None:
        name = f"chaos-{self._round}"
        self._job.ask_for_savepoint(name)
        self._stage.wait(f"savepoint {name}", lambda: self._is_taken(name))

    def _is_taken(self, name: str) -> bool:
        found = {body["metadata"]["name"]: body for body in self._stage.api.savepoints()}
        return bool((found[name].get("status") or {}).get("phase") == "Completed")

    def _restore(self) -> None:
        name = f"chaos-{self._round - 1}"
        # A job starts from one state.
        self._spec["checkpoint"].pop("adopt", None)
        self._change(restoreFrom={"savepoint": name, "sink": "Rewind", "nonce": self._round})

    def _break(self) -> None:
        self._spec["args"].append(_CRASH)
        self._apply()

    def _delete(self) -> None:
        self._spec["checkpoint"]["onDelete"] = "Delete"
        self._apply()
        self._adoptable = None
        self._stage.namespace.kubectl("delete", "ssj", self._job.name, "--wait=false")
