"""What earlier attempts leave behind: what goes, and what must stay."""

from datetime import UTC, datetime
from typing import Any

from sparkpoint.controller.cluster import Object, metadata
from sparkpoint.controller.garbage import stale_objects, stale_pods, stale_revisions
from sparkpoint.controller.jobs import Job
from sparkpoint.controller.keys import Key
from sparkpoint.lifecycle.phases import Kind
from sparkpoint.lifecycle.record import (
    Begin,
    Held,
    Origin,
    Outcome,
    Record,
    Result,
    Revision,
    Run,
    Stable,
)

NOW = datetime(2026, 11, 16, 12, tzinfo=UTC)
EMPTY = Origin(begin=Begin.EMPTY)


def revision(name: str) -> Revision:
    return Revision(name=name, code=name)


RUN = Run(epoch=2, attempt=5, revision=revision("r5"), origin=EMPTY, source=EMPTY)
LAST = Outcome(
    id="upgrade-4",
    kind=Kind.UPGRADE,
    result=Result.SUCCEEDED,
    generation=4,
    started=NOW,
    finished=NOW,
)
RECORD = Record(run=RUN, last=LAST, stable=Stable(revision=revision("r1")))
JOB = Job(
    body={},
    key=Key("shop", "visits"),
    uid="u1",
    generation=1,
    deleting=None,
    guarded=True,
    record=RECORD,
)


def thing(
    name: str, *, owner: str = "u1", labels: dict[str, str] | None = None, **rest: Any
) -> Object:
    prefixed = {f"sparkpoint.dev/{key}": value for key, value in (labels or {}).items()}
    about = {
        "name": name,
        "uid": name,
        "labels": prefixed,
        "ownerReferences": [{"uid": owner, "controller": True}],
    }
    return {"metadata": about, **rest}


def pod(name: str, role: str, epoch: int, attempt: int, phase: str = "Succeeded") -> Object:
    labels = {"role": role, "epoch": str(epoch), "attempt": str(attempt)}
    return thing(name, labels=labels, status={"phase": phase})


def names(found: list[Object]) -> list[str]:
    return [metadata(body)["name"] for body in found]


def test_only_the_newest_ended_driver_stays() -> None:
    pods = [pod(f"a{n}", "driver", 2, n) for n in (2, 3, 4)]
    pods.append(pod("a5", "driver", 2, 5, "Running"))

    assert names(stale_pods(JOB, pods, RECORD)) == ["a2", "a3"]


def test_the_workers_of_the_last_operation_stay() -> None:
    pods = [
        pod("visits-upgrade-4-capture-0", "worker", 2, 5),
        pod("visits-upgrade-2-capture-0", "worker", 1, 1),
        pod("visits-upgrade-3-capture-0", "worker", 1, 1, "Running"),
    ]

    assert names(stale_pods(JOB, pods, RECORD)) == ["visits-upgrade-2-capture-0"]


def test_the_workers_of_savepoints_are_left_to_them() -> None:
    worker = pod("mine-verify-0", "worker", 1, 1)
    worker["metadata"]["labels"]["sparkpoint.dev/savepoint"] = "mine"

    assert stale_pods(JOB, [worker], RECORD) == []


def test_what_belongs_to_somebody_else_stays() -> None:
    foreign = pod("a1", "driver", 1, 1)
    foreign["metadata"]["ownerReferences"] = [{"uid": "u0", "controller": True}]

    assert stale_pods(JOB, [foreign, pod("a4", "driver", 2, 4)], RECORD) == []


def test_objects_of_attempts_that_are_over_go() -> None:
    found = [
        thing("old", labels={"epoch": "2", "attempt": "4"}),
        thing("present", labels={"epoch": "2", "attempt": "5"}),
        thing("alive", labels={"epoch": "1", "attempt": "3"}),
        thing("secret-1", labels={"epoch": "1"}),
        thing("secret-0", labels={"epoch": "0"}),
        thing("secret-2", labels={"epoch": "2"}),
        thing("ui"),
        thing("foreign", owner="u0", labels={"epoch": "1", "attempt": "1"}),
    ]
    alive = [pod("zombie", "executor", 1, 3, "Running")]

    assert names(stale_objects(JOB, found, alive, RECORD)) == ["old", "secret-0"]


def test_revisions_that_the_record_names_stay_whatever_their_age() -> None:
    found = [thing(f"visits-r{n}", revision=n) for n in range(30)]
    record = Record(
        run=RUN,
        stable=Stable(revision=revision("r1")),
        held=Held(revision="r2", reason="RolledBack", message=""),
    )

    gone = names(stale_revisions(JOB, found, record))

    assert len(gone) == 30 - 10 - 3
    assert not {"visits-r1", "visits-r2", "visits-r5", "visits-r29"} & set(gone)
