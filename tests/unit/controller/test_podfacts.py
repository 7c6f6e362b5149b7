"""What Kubernetes reports of pods, in the words that decisions are made in."""

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from sparkpoint.controller.cluster import Object
from sparkpoint.controller.nodes import is_suspicious, lost_since
from sparkpoint.controller.podfacts import is_over, lingers, pod_fact, stuck_because
from sparkpoint.controller.workerfacts import worker_fact
from sparkpoint.lifecycle.world import WorkerState

NOW = datetime(2026, 11, 16, 12, tzinfo=UTC)


def pod(role: str = "driver", **status: Any) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": "visits-e2-a3",
            "namespace": "shop",
            "uid": "u1",
            "creationTimestamp": "2026-11-16T11:00:00Z",
            "labels": {
                "sparkpoint.dev/role": role,
                "sparkpoint.dev/epoch": "2",
                "sparkpoint.dev/attempt": "3",
            },
        },
        "spec": {"containers": [{"name": "main"}, {"name": "sidecar"}]},
        "status": status,
    }


def ended(code: int = 0, message: str = "", reason: str = "Completed") -> dict[str, Any]:
    state = {"terminated": {"exitCode": code, "message": message, "reason": reason}}
    return {
        "phase": "Failed" if code else "Succeeded",
        "containerStatuses": [{"name": "sidecar", "state": {}}, {"name": "main", "state": state}],
    }


def termination(**fields: Any) -> str:
    whole = {
        "reason": "Stopped",
        "message": "stopped",
        "exit_code": 0,
        "clean": True,
        "epoch": 2,
        "queries": {"q": {"batch": 7, "clean": True}, "idle": {"batch": None, "clean": True}},
    }
    return json.dumps(whole | fields)


def test_a_driver_that_was_stopped_tells_its_operation_and_savepoint() -> None:
    message = termination(operation="upgrade-2", savepoint="visits-upgrade-2")

    fact = pod_fact(pod(**ended(0, message)))

    assert fact is not None
    assert fact.exit is not None
    assert (fact.over, fact.epoch, fact.attempt) == (True, 2, 3)
    assert (fact.exit.reason, fact.exit.clean) == ("Stopped", True)
    assert (fact.exit.operation, fact.exit.savepoint) == ("upgrade-2", "visits-upgrade-2")
    assert fact.exit.batches == {"q": 7}


def test_a_driver_whose_sinks_refuse_its_savepoint_says_so() -> None:
    def refused(kind: str) -> bool:
        error = {"type": kind, "message": "no"}
        fact = pod_fact(pod(**ended(83, termination(reason="Refused", error=error), "Error")))
        assert fact is not None
        assert fact.exit is not None
        return fact.exit.sinks_refuse

    assert [refused(kind) for kind in ("SinkConflict", "CannotRewind", "Unavailable")] == [
        True,
        True,
        False,
    ]


def test_an_exception_is_part_of_the_message() -> None:
    error = {"type": "ValueError", "message": "no such column", "remedy": "Name it."}
    message = termination(reason="ScriptFailed", message="The script failed.", error=error)

    fact = pod_fact(pod(**ended(1, message, "Error")))

    assert fact is not None
    assert fact.exit is not None
    assert fact.exit.message == "The script failed. no such column Name it."


@pytest.mark.parametrize(
    ("status", "reason", "words"),
    [
        (ended(137, "", "OOMKilled"), "OOMKilled", "memoryOverhead"),
        (ended(137, termination(), "OOMKilled"), "OOMKilled", "memoryOverhead"),
        (ended(1, termination(out_of_memory=True), "Error"), "OOMKilled", "memoryOverhead"),
        (ended(1, "Traceback:\nboom\n", "Error"), "Error", "code 1. Its log ends with: boom"),
        (ended(137, "", "Error"), "Error", "It was killed."),
        (
            {"phase": "Failed", "reason": "Evicted", "message": "low on disk"},
            "Evicted",
            "low on disk",
        ),
        ({"phase": "Failed"}, "Unknown", ""),
    ],
)
def test_an_end_that_came_from_outside_is_told_in_kubernetes_words(
    status: dict[str, Any], reason: str, words: str
) -> None:
    fact = pod_fact(pod(**status))

    assert fact is not None
    assert fact.exit is not None
    assert fact.exit.reason == reason
    assert words in fact.exit.message


def test_a_failed_pod_whose_container_runs_on_is_not_over() -> None:
    status: dict[str, Any] = {
        "phase": "Failed",
        "containerStatuses": [{"name": "main", "state": {"running": {}}}],
    }

    assert not is_over(pod(**status))


def beside(state: dict[str, Any], *, phase: str = "Running", **rest: Any) -> dict[str, Any]:
    """A pod whose sidecar runs on."""
    sidecar = {"name": "sidecar", "state": {"running": {}}}
    return {
        "phase": phase,
        "containerStatuses": [sidecar, {"name": "main", "state": state}],
        **rest,
    }


def with_exit(code: int, message: str = "", reason: str = "Completed") -> dict[str, Any]:
    return {"terminated": {"exitCode": code, "message": message, "reason": reason}}


def test_a_driver_is_over_when_its_own_container_is_whatever_runs_beside_it() -> None:
    driver = pod(**beside(with_exit(0, termination(operation="suspend-2"))))

    fact = pod_fact(driver)

    assert is_over(driver)
    assert lingers(driver)
    assert fact is not None
    assert fact.exit is not None
    assert (fact.over, fact.exit.operation, fact.exit.code) == (True, "suspend-2", 0)


def test_a_pod_whose_phase_has_not_followed_its_only_container_yet_does_not_linger() -> None:
    statuses = [{"name": "main", "state": with_exit(0)}]

    assert not lingers(pod(phase="Running", containerStatuses=statuses))


def test_memory_that_a_sidecar_lacked_is_not_told_of_the_driver() -> None:
    statuses = [
        {"name": "sidecar", "state": with_exit(137, "", "OOMKilled")},
        {"name": "main", "state": with_exit(1, "boom", "Error")},
    ]

    fact = pod_fact(pod(phase="Failed", containerStatuses=statuses))

    assert fact is not None
    assert fact.exit is not None
    assert (fact.exit.reason, fact.exit.code) == ("Error", 1)


def test_a_sidecar_that_ended_does_not_end_the_driver() -> None:
    statuses = [
        {"name": "sidecar", "state": with_exit(1)},
        {"name": "main", "state": {"running": {}}},
    ]

    assert not is_over(pod(phase="Running", containerStatuses=statuses))


def test_a_sidecar_that_does_not_start_does_not_make_a_driver_stuck_that_runs() -> None:
    waiting = {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off"}}
    running = [{"name": "main", "state": {"running": {}}}]
    native = [{"name": "proxy", "state": waiting}]

    runs = pod_fact(pod(phase="Running", initContainerStatuses=native, containerStatuses=running))
    waits = pod_fact(pod(phase="Pending", initContainerStatuses=native))

    assert runs is not None
    assert waits is not None
    assert (runs.stuck, waits.stuck) == ("", "CrashLoopBackOff")


def test_an_executor_is_judged_by_sparks_container_which_is_not_the_first() -> None:
    executor = pod("executor")
    names = ["sidecar", "spark-kubernetes-executor"]
    executor["spec"]["containers"] = [{"name": name} for name in names]
    states = [{"running": {}}, with_exit(0)]
    executor["status"] = {
        "phase": "Running",
        "containerStatuses": [
            {"name": name, "state": state} for name, state in zip(names, states, strict=True)
        ],
    }

    assert is_over(executor)


def test_an_evicted_driver_without_a_last_word_was_evicted() -> None:
    status = ended(137, "", "Error") | {"reason": "Evicted", "message": "low on disk"}

    fact = pod_fact(pod(**status))

    assert fact is not None
    assert fact.exit is not None
    assert (fact.exit.reason, fact.exit.message) == ("Evicted", "low on disk")


@pytest.mark.parametrize("phase", ["Pending", "Running", "Unknown"])
def test_a_pod_that_has_not_ended_is_not_over(phase: str) -> None:
    assert not is_over(pod(phase=phase))


def test_why_a_pod_does_not_start_is_told() -> None:
    waiting = {"waiting": {"reason": "ImagePullBackOff", "message": "no such image"}}
    status: dict[str, Any] = {
        "phase": "Pending",
        "containerStatuses": [{"name": "main", "state": waiting}],
    }

    fact = pod_fact(pod(**status))

    assert fact is not None
    assert fact.stuck == "ImagePullBackOff"
    words = stuck_because(pod(**status))
    assert words.startswith("ImagePullBackOff: no such image. Check spec.image")


def test_a_pod_that_finds_no_node_is_told() -> None:
    condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}

    fact = pod_fact(pod(phase="Pending", conditions=[condition]))

    assert fact is not None
    assert fact.stuck == "Unschedulable"


def test_a_pod_that_is_being_made_is_not_stuck() -> None:
    waiting = {"waiting": {"reason": "ContainerCreating"}}

    fact = pod_fact(pod(phase="Pending", containerStatuses=[{"name": "main", "state": waiting}]))

    assert fact is not None
    assert fact.stuck == ""


@pytest.mark.parametrize("role", ["worker", "", "somebody"])
def test_other_pods_are_no_drivers(role: str) -> None:
    assert pod_fact(pod(role)) is None


def test_a_pod_without_our_numbers_is_none_of_ours() -> None:
    strange = pod()
    strange["metadata"]["labels"]["sparkpoint.dev/epoch"] = "two"

    assert pod_fact(strange) is None


def worker(**status: Any) -> Object:
    return pod("worker", **status)


def test_a_worker_answers_in_its_termination_message() -> None:
    summary = {
        "id": "a" * 64,
        "name": "s",
        "batches": {"q": 4},
        "files": 1,
        "bytes": 2,
        "new_bytes": 3,
        "seconds": 0.1,
    }
    fact = worker_fact(worker(**ended(0, json.dumps({"answer": "Captured", "savepoint": summary}))))

    assert (fact.state, fact.answer) == (WorkerState.SUCCEEDED, "Captured")
    assert fact.batches == {"q": 4}


def test_a_worker_that_failed_says_why() -> None:
    answer = {"answer": "Failed", "message": "access denied", "news": 1}

    fact = worker_fact(worker(**ended(86, json.dumps(answer), "Error")))

    assert (fact.state, fact.message) == (WorkerState.FAILED, "access denied")


def test_what_a_trial_is_certain_of_without_a_verdict_is_known() -> None:
    answer = {"answer": "Unknown", "kind": "ScriptRaises", "message": "NameError: x"}

    fact = worker_fact(worker(**ended(0, json.dumps(answer))))

    assert (fact.state, fact.kind) == (WorkerState.SUCCEEDED, "ScriptRaises")
    assert not fact.retry_helps


@pytest.mark.parametrize("answer", ["Unknown", "Failed"])
def test_what_a_worker_may_answer_otherwise_the_next_time_is_known(answer: str) -> None:
    said = {"answer": answer, "retry_helps": True}

    assert worker_fact(worker(**ended(0, json.dumps(said)))).retry_helps


def test_a_worker_that_ended_well_without_an_answer_has_failed() -> None:
    fact = worker_fact(worker(**ended(0, "hello")))

    assert fact.state is WorkerState.FAILED
    assert "without an answer" in fact.message


def test_a_worker_has_answered_while_a_container_beside_it_is_still_ending() -> None:
    fact = worker_fact(worker(**beside(with_exit(0, json.dumps({"answer": "Removed"})))))

    assert (fact.state, fact.answer) == (WorkerState.SUCCEEDED, "Removed")


def test_a_worker_on_a_lost_node_is_stuck() -> None:
    fact = worker_fact(worker(phase="Running"), lost_since=NOW)

    assert (fact.state, fact.stuck) == (WorkerState.RUNNING, "NodeLost")


def ready(status: str, since: str = "2026-11-16T11:50:00Z") -> list[dict[str, str]]:
    return [{"type": "Ready", "status": status, "lastTransitionTime": since}]


def test_a_pod_on_a_node_that_does_not_answer_is_lost_since_then() -> None:
    node = {"status": {"conditions": ready("Unknown")}}
    driver = pod(phase="Running", conditions=ready("False"))

    assert is_suspicious(driver, NOW)
    assert lost_since(driver, node, NOW) == NOW - timedelta(minutes=10)


def test_a_pod_that_is_not_ready_on_a_healthy_node_is_not_lost() -> None:
    node = {"status": {"conditions": ready("True")}}

    assert lost_since(pod(phase="Running", conditions=ready("False")), node, NOW) is None


def test_a_pod_whose_node_is_gone_is_lost() -> None:
    assert lost_since(pod(phase="Running"), None, NOW) == NOW


def test_a_pod_whose_node_must_not_be_read_is_not_lost_before_its_grace_is_over() -> None:
    assert lost_since(pod(phase="Running"), {}, NOW) is None


def test_a_pod_that_outlived_its_grace_period_is_lost_since_its_end() -> None:
    old = pod(phase="Running")
    old["metadata"]["deletionTimestamp"] = "2026-11-16T11:59:00Z"

    assert is_suspicious(old, NOW)
    assert lost_since(old, {}, NOW) == NOW - timedelta(minutes=1)


def test_a_healthy_pod_is_not_suspicious() -> None:
    assert not is_suspicious(pod(phase="Running", conditions=ready("True")), NOW)
