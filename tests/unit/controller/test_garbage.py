"""What earlier attempts leave behind: what goes, and what must stay."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from sparkpoint.controller.cluster import Object, metadata
from sparkpoint.controller.garbage import (
    abandoned_workers,
    answered_workers,
    lingering_pods,
    orphaned_configurations,
    stale_objects,
    stale_pods,
    stale_revisions,
)
from sparkpoint.controller.jobs import Job
from sparkpoint.controller.keys import Key
from sparkpoint.lifecycle.phases import Kind, Phase
from sparkpoint.lifecycle.record import (
    Begin,
    Held,
    Operation,
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
RECORD = Record(run=RUN, last=LAST, stable=Stable(revision=revision("r1")), sequence=4)
JOB = Job(
    body={},
    key=Key("shop", "visits"),
    uid="u1",
    generation=1,
    deleting=None,
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


def under_way(phase: Phase, *, tries: int = 0) -> Record:
    operation = Operation(
        id="upgrade-5",
        kind=Kind.UPGRADE,
        phase=phase,
        generation=5,
        started=NOW,
        phase_started=NOW,
        tries=tries,
    )
    return replace(RECORD, operation=operation, sequence=5)


def test_workers_that_never_started_go_with_their_operation() -> None:
    pods = [
        pod("visits-upgrade-4-prepare-1-0", "worker", 3, 6, "Pending"),
        pod("visits-upgrade-3-prepare-1-0", "worker", 3, 6, "Running"),
        pod("visits-upgrade-4-capture-1-0", "worker", 2, 5),
    ]

    gone = names(abandoned_workers(JOB, pods, RECORD))

    assert gone == ["visits-upgrade-4-prepare-1-0", "visits-upgrade-3-prepare-1-0"]


def test_the_worker_that_an_operation_waits_for_stays() -> None:
    tries = [pod(f"visits-upgrade-5-capture-1-{n}", "worker", 2, 5, "Pending") for n in range(3)]

    gone = names(abandoned_workers(JOB, tries, under_way(Phase.CAPTURE, tries=2)))

    assert gone == ["visits-upgrade-5-capture-1-0", "visits-upgrade-5-capture-1-1"]


def test_a_worker_of_an_operation_that_is_not_known_here_yet_stays() -> None:
    newer = pod("visits-upgrade-5-prepare-1-0", "worker", 3, 6, "Pending")

    assert abandoned_workers(JOB, [newer], RECORD) == []


def lingering(name: str, epoch: int, attempt: int, role: str = "driver") -> Object:
    found = pod(name, role, epoch, attempt, "Running")
    found["spec"] = {"containers": [{"name": "main"}, {"name": "proxy"}]}
    found["status"]["containerStatuses"] = [
        {"name": "main", "state": {"terminated": {"exitCode": 0}}},
        {"name": "proxy", "state": {"running": {}}},
    ]
    return found


@pytest.mark.parametrize(
    ("record", "gone"),
    [
        (RECORD, ["a4"]),
        (replace(RECORD, finished=True), ["a4", "a5"]),
        (replace(RECORD, suspended=True), ["a4", "a5"]),
        (under_way(Phase.STOP), ["a4"]),
        (under_way(Phase.CAPTURE), ["a4", "a5"]),
        (under_way(Phase.OBSERVE), ["a4"]),
        (Record(), []),
    ],
)
def test_a_pod_that_a_sidecar_keeps_goes_once_the_drivers_end_is_written_down(
    record: Record, gone: list[str]
) -> None:
    pods = [lingering("a4", 2, 4), lingering("a5", 2, 5), pod("a3", "driver", 2, 3)]

    assert names(lingering_pods(JOB, pods, record)) == gone


def test_an_executor_that_a_sidecar_keeps_goes_with_its_attempt() -> None:
    pods = [lingering("x4", 2, 4, "executor"), lingering("x5", 2, 5, "executor")]

    assert names(lingering_pods(JOB, pods, RECORD)) == ["x4"]


@pytest.mark.parametrize(
    ("status", "goes"),
    [
        ({"phase": "Failed"}, True),
        ({"phase": "Completed", "id": "ab"}, True),
        ({"phase": "Completed"}, False),
        ({"phase": "InProgress"}, False),
    ],
)
def test_workers_of_a_savepoint_that_needs_none_go(status: dict[str, Any], goes: bool) -> None:
    worker = pod("mine-capture-0", "worker", 1, 1)
    worker["metadata"]["labels"]["sparkpoint.dev/savepoint"] = "mine"
    savepoint = {
        "metadata": {"name": "mine", "namespace": "shop"},
        "spec": {"jobRef": {"name": "visits"}},
        "status": status,
    }

    gone = answered_workers(JOB, [worker], [savepoint], None)

    assert names(gone) == (["mine-capture-0"] if goes else [])


def test_the_workers_of_savepoints_are_left_to_them() -> None:
    worker = pod("mine-verify-0", "worker", 1, 1)
    worker["metadata"]["labels"]["sparkpoint.dev/savepoint"] = "mine"

    assert stale_pods(JOB, [worker], RECORD) == []


def test_what_belongs_to_somebody_else_stays() -> None:
    foreign = pod("a1", "driver", 1, 1)
    foreign["metadata"]["ownerReferences"] = [{"uid": "u0", "controller": True}]

    assert stale_pods(JOB, [foreign, pod("a4", "driver", 2, 4)], RECORD) == []


@pytest.mark.parametrize("epoch", ["two", "", "-1", "2.0"])
def test_a_pod_with_labels_that_mean_nothing_neither_goes_nor_holds_others_up(epoch: str) -> None:
    odd = {"job": "visits", "epoch": epoch, "attempt": "5"}
    running = thing("a", labels={**odd, "role": "executor"}, status={"phase": "Running"})
    ended = thing("b", labels={**odd, "role": "driver"}, status={"phase": "Succeeded"})
    former = thing("c", labels={"epoch": "1", "attempt": "1"})
    kept = lingering("d", 1, 1)
    metadata(kept)["labels"]["sparkpoint.dev/epoch"] = epoch
    pods = [running, ended, kept]

    assert lingering_pods(JOB, pods, RECORD) == []
    assert stale_pods(JOB, pods, RECORD) == []
    assert stale_objects(JOB, [former, running], pods, RECORD) == [former]


def test_objects_of_attempts_that_are_over_go() -> None:
    found = [
        thing("old", labels={"epoch": "2", "attempt": "4"}),
        thing("present", labels={"epoch": "2", "attempt": "5"}),
        thing("alive", labels={"epoch": "1", "attempt": "3"}),
        thing("secret-1", labels={"epoch": "1"}),
        thing("secret-0", labels={"epoch": "0"}),
        thing("secret-2", labels={"epoch": "2"}),
        thing("ui"),
        thing(
            "visits-upgrade-4-prepare-1-0", labels={"role": "worker", "epoch": "3", "attempt": "6"}
        ),
        thing(
            "visits-upgrade-5-prepare-1-0", labels={"role": "worker", "epoch": "3", "attempt": "6"}
        ),
        thing("foreign", owner="u0", labels={"epoch": "1", "attempt": "1"}),
    ]
    alive = [
        pod("zombie", "executor", 1, 3, "Running"),
        pod("visits-upgrade-4-prepare-1-0", "worker", 3, 6, "Pending"),
    ]

    assert names(stale_objects(JOB, found, alive, RECORD)) == [
        "old",
        "secret-0",
        "visits-upgrade-4-prepare-1-0",
    ]


def test_what_was_made_for_a_worker_that_is_gone_goes_after_a_while() -> None:
    found = [thing(name, labels={"savepoint": "mine"}) for name in ("old", "young", "used")]
    found.append(thing("mine"))
    for body, hours in zip(found, (2, 0, 2, 2), strict=True):
        body["metadata"]["creationTimestamp"] = (NOW - timedelta(hours=hours)).isoformat()
    pods = [pod("used", "worker", 1, 1)]

    assert names(orphaned_configurations(JOB, found, pods, NOW)) == ["old"]


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
