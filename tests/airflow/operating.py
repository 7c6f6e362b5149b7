"""An operator that is played: it takes savepoints, checks them, and carries out changes.

Against a real cluster, the same tests need a `Ground` whose kubeconfig leads there, with an
operator in it; what is played here is then played by nobody.
"""

import threading
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from tests.unit.cli.jobs.apiserver import ApiServer

__all__ = ["PlayedOperator"]

Object = dict[str, Any]
_DONE: Object = {
    "phase": "Completed",
    "id": "f" * 64,
    "batch": 41,
    "bytes": 2048,
    "newBytes": 1024,
    "repository": "s3://data/savepoints",
}


class PlayedOperator:
    """What becomes of resources that are made."""

    def __init__(self, api: ApiServer) -> None:
        self._api = api
        self.delay = 0.0
        """Seconds that a savepoint takes."""
        self.failing: dict[str, int] = {}
        """Job -> how many of its savepoints fail."""
        self.rolled_back: set[str] = set()
        """Jobs that do not survive a change."""
        self.damaged: set[str] = set()
        """Savepoints that a check finds damaged."""
        self.down = False
        """Whether nobody does anything."""
        self.neglected: set[str] = set()
        """Jobs whose savepoints nobody looks at."""
        self.freed = 700
        """Bytes that the data of each savepoint had for itself."""
        self.most_at_once = 0
        self._busy: set[str] = set()
        api.reacts = self._react

    def wake(self) -> None:
        """Come back, and do what was left undone."""
        self.down = False
        for (plural, _, _), body in list(self._api.objects.items()):
            going = body["metadata"].get("deletionTimestamp")
            if plural == "sparksavepoints" and (going or not body.get("status")):
                self._react(body)

    def _react(self, body: Object) -> list[Object]:
        if self.down or self._is_neglected(body):
            return []
        if body["metadata"].get("deletionTimestamp"):
            self._later(self._let_go, body)
            return []
        if body["kind"] == "StatefulSparkJob":
            return [self._carried_out(body)]
        if not body.get("status"):
            self._begin(body)
        return []

    def _is_neglected(self, body: Object) -> bool:
        return (body["spec"].get("jobRef") or {}).get("name") in self.neglected

    def _carried_out(self, body: Object) -> Object:
        about = body["metadata"]
        found: Object = {"observedGeneration": about["generation"], "phase": "Running"}
        rolled_back = about["name"] in self.rolled_back and about["generation"] > 1
        found["conditions"] = [
            {"type": "Accepted", "status": "True", "reason": "Valid"},
            {"type": "Ready", "status": "True", "reason": "Committing"},
            {
                "type": "Degraded",
                "status": str(rolled_back),
                "reason": "RolledBack" if rolled_back else "AsExpected",
                "message": "It did not commit." if rolled_back else "",
            },
        ]
        found["queries"] = [{"name": "visits", "active": True, "batch": 42, "stateRows": 10}]
        return found

    def _begin(self, body: Object) -> None:
        name = body["metadata"]["name"]
        self._busy.add(name)
        self.most_at_once = max(self.most_at_once, len(self._busy))
        self._later(self._end, body)

    def _later(self, do: Callable[[Object], None], body: Object) -> None:
        timer = threading.Timer(self.delay, do, (body,))
        timer.daemon = True
        timer.start()

    def _let_go(self, body: Object) -> None:
        """Of what is held when it is deleted: its data goes first."""
        about, kind = body["metadata"], body["kind"]
        freed = {"freedBytes": self.freed}
        self._api.put_status(kind, about["name"], freed, about["namespace"])
        self._api.delete(kind, about["name"], about["namespace"])

    def _end(self, body: Object) -> None:
        about, job = body["metadata"], body["spec"]["jobRef"]["name"]
        self._busy.discard(about["name"])
        if ("sparksavepoints", about["namespace"], about["name"]) not in self._api.objects:
            return
        if self.failing.get(job, 0) > 0:
            self.failing[job] -= 1
            told: Object = {"phase": "Failed", "message": "The bucket is full."}
        else:
            now = datetime.now(UTC).isoformat()
            told = {**_DONE, "name": about["name"], "startedAt": now, "completedAt": now}
            told["queries"] = [{"name": "visits", "batch": 41, "rows": 10}]
        wanted = body["spec"].get("existing")
        if wanted:
            good = wanted.get("name") not in self.damaged
            told["verified"] = {"at": about["creationTimestamp"], "good": good, "level": "Deep"}
            told["verified"]["verdict"] = "Deep" if good else "Damaged"
            told["verified"]["problems"] = [] if good else ["An object is missing."]
        self._api.put_status("SparkSavepoint", about["name"], told, about["namespace"])
