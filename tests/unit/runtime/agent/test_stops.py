"""Stops as operations, with and without a savepoint at the boundary."""

import json
from pathlib import Path

import pytest

from sparkpoint.runtime.agent import Agent
from sparkpoint.runtime.client import AgentRefusedError, SyncAgentClient
from sparkpoint.runtime.model import OperationState, SavepointRequest, StopRequest
from tests.support.waiting import await_true
from tests.unit.runtime.agent.fakes import FakeJob
from tests.unit.runtime.agent.test_access import ask
from tests.unit.runtime.agent.test_savepoints import orders

SAVEPOINT = SavepointRequest(repository="/r")
WITH_SAVEPOINT = StopRequest(savepoint_name="last", savepoint=SAVEPOINT, budget_seconds=5)


def test_a_stop_reports_and_then_lets_the_process_end(
    client: SyncAgentClient, job: FakeJob
) -> None:
    found = client.stop("s1", StopRequest(budget_seconds=2.5), wait=20)

    assert found.state is OperationState.DONE
    assert found.report is not None
    assert found.report.queries["q"].batch == 7
    await_true(lambda: job.finished == [("s1", None)], "the process may end")
    assert job.stops == [("s1", 2.5)]


def test_the_same_stop_again_is_the_same_stop(client: SyncAgentClient, job: FakeJob) -> None:
    first = client.stop("s1", wait=20)

    assert client.stop("s1") == first
    assert client.get_stop("s1") == first
    assert len(job.stops) == 1


def test_a_second_stop_is_a_conflict_that_names_the_first(
    client: SyncAgentClient, job: FakeJob
) -> None:
    job.may_stop.clear()
    client.stop("s1")

    for _ in range(2):
        with pytest.raises(AgentRefusedError, match="s1") as caught:
            client.stop("s2")
        assert (caught.value.status, caught.value.kind) == (409, "StopUnderWay")
        job.may_stop.set()
        client.get_stop("s1", wait=20)


def test_another_request_under_the_same_name_is_a_conflict_that_shows_both(
    agent: Agent, client: SyncAgentClient
) -> None:
    client.stop("s1", wait=20)

    status, _, data = ask(agent, "PUT", "/v1/stop/s1", body=b'{"budget_seconds": 9}')

    error = json.loads(data)["error"]
    assert status == 409
    assert (error["existing"]["budget_seconds"], error["wanted"]["budget_seconds"]) == (None, 9)


def test_a_stop_that_fails_says_so_and_can_be_tried_again(
    client: SyncAgentClient, job: FakeJob
) -> None:
    job.stop_error = RuntimeError("the JVM is gone")

    failed = client.stop("s1", wait=20)
    assert failed.state is OperationState.FAILED
    assert failed.error is not None
    assert "the JVM is gone" in failed.error.message
    assert job.finished == []

    job.stop_error = None
    assert client.stop("s1", wait=20).state is OperationState.DONE


def test_a_savepoint_is_taken_once_the_job_stands(
    client: SyncAgentClient, job: FakeJob, root: Path
) -> None:
    (root / "hold").touch()
    job.may_stop.clear()
    client.stop("s1", WITH_SAVEPOINT)
    await_true(lambda: len(orders(root)) == 1, "the capture is prepared")
    await_true(lambda: bool(job.stops), "the stop is asked for")
    assert client.get_savepoint("last").stage == "preparing"

    job.may_stop.set()
    await_true(lambda: client.get_savepoint("last").stage == "batch 7", "the capture runs")
    running = client.get_stop("s1")
    assert running.state is OperationState.RUNNING
    assert running.report is not None
    assert running.savepoint is not None
    assert running.savepoint.stage == "batch 7"
    assert job.finished == []

    (root / "hold").unlink()
    done = client.get_stop("s1", wait=20)
    assert done.state is OperationState.DONE
    assert done.savepoint is not None
    assert done.savepoint.result is not None
    await_true(lambda: job.finished == [("s1", "last")], "the process may end")


def test_a_savepoint_that_cannot_be_made_leaves_the_job_running(
    client: SyncAgentClient, job: FakeJob, root: Path
) -> None:
    (root / "fail").write_text(json.dumps({"type": "AccessDenied", "message": "no credentials"}))

    failed = client.stop("s1", WITH_SAVEPOINT, wait=20)

    assert failed.state is OperationState.FAILED
    assert failed.error is not None
    assert failed.error.type == "AccessDenied"
    assert failed.report is None
    assert job.stops == []
    assert job.finished == []


def test_a_savepoint_that_fails_after_the_stop_can_be_tried_again_or_given_up(
    client: SyncAgentClient, job: FakeJob, root: Path
) -> None:
    refused = json.dumps({"type": "Full", "message": "no space"})
    # The pretended process looks for it before it is ready, so it must appear in between.
    job.before_stop = lambda: None
    checkpoints = job.checkpoints

    def broken() -> dict[str, str]:
        raise RuntimeError("no space")

    job.checkpoints = broken  # type: ignore[method-assign]
    failed = client.stop("s1", WITH_SAVEPOINT, wait=20)
    assert failed.state is OperationState.FAILED
    assert failed.report is not None
    assert job.finished == []

    (root / "fail").write_text(refused)
    for name in ("s1", "another"):
        again = client.stop(name, WITH_SAVEPOINT, wait=20)
        assert again.state is OperationState.FAILED
        # It failed before it stopped anything; the job stands all the same.
        assert again.report == failed.report
    (root / "fail").unlink()
    job.checkpoints = checkpoints  # type: ignore[method-assign]
    assert client.stop("s2", wait=20).state is OperationState.DONE
    await_true(lambda: job.finished == [("s2", None)], "the process may end")


def test_a_live_savepoint_never_passes_for_the_one_at_the_boundary(
    client: SyncAgentClient, job: FakeJob
) -> None:
    client.savepoint("last", SAVEPOINT, wait=20)

    with pytest.raises(AgentRefusedError, match="another request") as caught:
        client.stop("s1", WITH_SAVEPOINT)

    assert caught.value.status == 409
    assert job.stops == []


def test_a_process_that_may_not_end_is_a_failure_and_the_savepoint_is_kept(
    client: SyncAgentClient, job: FakeJob, root: Path
) -> None:
    job.finish_error = RuntimeError("not now")
    client.stop("s1", WITH_SAVEPOINT, wait=20)
    await_true(lambda: client.get_stop("s1").state is OperationState.FAILED, "it failed")

    job.finish_error = None
    done = client.stop("s1", WITH_SAVEPOINT, wait=20)

    assert done.state is OperationState.DONE
    await_true(lambda: job.finished == [("s1", "last")], "the process may end")
    assert len(orders(root)) == 1


def test_a_stop_does_not_queue_behind_live_savepoints(
    client: SyncAgentClient, job: FakeJob, root: Path
) -> None:
    (root / "hold").touch()
    client.savepoint("live", SAVEPOINT)
    await_true(lambda: client.get_savepoint("live").stage == "batch 7", "it runs")

    client.stop("s1", WITH_SAVEPOINT)

    await_true(lambda: client.get_savepoint("last").stage == "batch 7", "both run")
    (root / "hold").unlink()
    assert client.get_stop("s1", wait=20).state is OperationState.DONE


def test_a_stop_that_nobody_asked_for_is_not_found(client: SyncAgentClient) -> None:
    with pytest.raises(AgentRefusedError) as caught:
        client.get_stop("s1")

    assert caught.value.status == 404
