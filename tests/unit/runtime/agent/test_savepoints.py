"""Savepoints as operations: names, queue, waiting, killing. The captures are pretended here."""

import json
import os
import signal
import threading
import time
from pathlib import Path

import pytest

from sparkpoint.runtime.agent import Agent
from sparkpoint.runtime.agent.savepoints import QUEUE
from sparkpoint.runtime.client import AgentRefusedError, SyncAgentClient
from sparkpoint.runtime.model import OperationState, SavepointRequest
from tests.support.processes import alive
from tests.support.waiting import await_true
from tests.unit.runtime.agent.conftest import Connect
from tests.unit.runtime.agent.fakes import FakeJob
from tests.unit.runtime.agent.test_access import ask, error_of

REQUEST = SavepointRequest(repository="/r")
OTHER = SavepointRequest(repository="/other")


def orders(root: Path) -> list[tuple[str, int]]:
    """Name and process id of every capture that was begun."""
    log = root / "log"
    lines = log.read_text().splitlines() if log.exists() else []
    return [(line.split()[0], int(line.split()[1])) for line in lines]


def test_a_savepoint_ends_with_its_summary(client: SyncAgentClient) -> None:
    found = client.savepoint("a", REQUEST, wait=20)

    assert found.state is OperationState.DONE
    assert found.result is not None
    assert found.result.batches == {"q": 7}
    assert (found.done_bytes, found.total_bytes) == (10, 10)


def test_the_same_request_again_is_the_same_savepoint(client: SyncAgentClient, root: Path) -> None:
    first = client.savepoint("a", REQUEST, wait=20)

    assert client.savepoint("a", REQUEST) == first
    assert client.get_savepoint("a") == first
    assert len(orders(root)) == 1


def test_many_who_ask_at_once_get_one_savepoint(agent: Agent, connect: Connect, root: Path) -> None:
    results: list[object] = []

    def ask_for_it(link: SyncAgentClient) -> None:
        results.append(link.savepoint("a", REQUEST, wait=20).result)

    askers = [threading.Thread(target=ask_for_it, args=[connect(agent)]) for _ in range(8)]
    for each in askers:
        each.start()
    for each in askers:
        each.join(30)

    assert len(results) == 8
    assert len(set(map(str, results))) == 1
    assert len(orders(root)) == 1


def test_another_request_under_a_used_name_is_a_conflict_that_shows_both(
    agent: Agent, client: SyncAgentClient
) -> None:
    client.savepoint("a", REQUEST, wait=20)

    status, _, data = ask(agent, "PUT", "/v1/savepoints/a", body=OTHER.model_dump_json())

    error = json.loads(data)["error"]
    assert status == 409
    assert error["existing"]["request"]["repository"] == "/r"
    assert error["wanted"]["request"]["repository"] == "/other"


def test_how_far_it_is_shows_while_it_runs(client: SyncAgentClient, root: Path) -> None:
    (root / "hold").touch()

    found = client.savepoint("a", REQUEST)
    assert found.state is OperationState.RUNNING
    await_true(lambda: client.get_savepoint("a").stage == "batch 7", "progress is shown")

    assert client.get_savepoint("a").done_bytes == 5
    (root / "hold").unlink()
    assert client.get_savepoint("a", wait=20).state is OperationState.DONE


def test_a_running_savepoint_is_answered_with_202(
    agent: Agent, client: SyncAgentClient, root: Path
) -> None:
    (root / "hold").touch()
    body = REQUEST.model_dump_json()

    assert ask(agent, "PUT", "/v1/savepoints/a", body=body)[0] == 202
    (root / "hold").unlink()
    assert ask(agent, "PUT", "/v1/savepoints/a?wait=20", body=body)[0] == 200


def test_a_long_poll_ends_with_the_savepoint_and_not_later(
    agent: Agent, connect: Connect, client: SyncAgentClient, root: Path
) -> None:
    (root / "hold").touch()
    client.savepoint("a", REQUEST)
    begun = time.monotonic()

    assert client.get_savepoint("a", wait=0.2).state is OperationState.RUNNING
    assert 0.2 <= time.monotonic() - begun < 5

    ends: list[float] = []
    other = connect(agent)

    def wait() -> None:
        assert other.get_savepoint("a", wait=30).state is OperationState.DONE
        ends.append(time.monotonic())

    waiting = threading.Thread(target=wait)
    waiting.start()
    (root / "hold").unlink()
    released = time.monotonic()
    waiting.join(20)
    assert ends
    assert ends[0] - released < 5


def test_a_name_that_nobody_asked_for_is_not_found(client: SyncAgentClient) -> None:
    with pytest.raises(AgentRefusedError, match="PUT the request") as caught:
        client.get_savepoint("a", wait=5)

    assert caught.value.status == 404


def test_after_a_failure_the_same_request_tries_again(client: SyncAgentClient, root: Path) -> None:
    error = {"type": "Unavailable", "message": "no answer", "retry_helps": True}
    (root / "fail").write_text(json.dumps(error))

    failed = client.savepoint("a", REQUEST, wait=20)
    assert failed.state is OperationState.FAILED
    assert failed.error is not None
    assert failed.error.model_dump(include=set(error)) == error
    assert client.get_savepoint("a") == failed

    (root / "fail").unlink()
    assert client.savepoint("a", REQUEST, wait=20).state is OperationState.DONE
    assert len(orders(root)) == 2


def test_after_a_failure_a_corrected_request_may_take_the_name(
    client: SyncAgentClient, root: Path
) -> None:
    (root / "fail").write_text(json.dumps({"type": "BadLocation", "message": "no such bucket"}))
    client.savepoint("a", OTHER, wait=20)
    (root / "fail").unlink()

    assert client.savepoint("a", REQUEST, wait=20).state is OperationState.DONE


def test_a_name_that_the_repository_knows_is_a_conflict(
    agent: Agent, client: SyncAgentClient, root: Path
) -> None:
    (root / "fail").write_text(json.dumps({"type": "NameTaken", "message": "of another epoch"}))

    with pytest.raises(AgentRefusedError, match="of another epoch") as caught:
        client.savepoint("a", REQUEST, wait=20)

    assert (caught.value.status, caught.value.kind) == (409, "NameTaken")
    assert ask(agent, "GET", "/v1/savepoints/a")[0] == 409


def test_savepoints_queue_and_a_full_queue_refuses(
    agent: Agent, client: SyncAgentClient, root: Path
) -> None:
    (root / "hold").touch()
    names = [f"s{number}" for number in range(QUEUE + 1)]
    for name in names:
        assert client.savepoint(name, REQUEST).state is OperationState.RUNNING
    await_true(lambda: client.get_savepoint("s0").stage == "batch 7", "the first one runs")

    status, headers, data = ask(agent, "PUT", "/v1/savepoints/late", body=REQUEST.model_dump_json())
    assert (status, error_of(data)["type"]) == (429, "QueueFull")
    assert headers["Retry-After"] == "10"
    assert client.savepoint("s1", REQUEST).stage == "queued"
    assert f"sparkpoint_savepoints_running {QUEUE + 1}\n" in client.metrics()

    (root / "hold").unlink()
    for name in names:
        assert client.get_savepoint(name, wait=20).state is OperationState.DONE
    assert [name for name, _ in orders(root)] == names
    assert client.savepoint("late", REQUEST, wait=20).state is OperationState.DONE


def test_a_killed_capture_fails_alone_and_can_be_tried_again(
    client: SyncAgentClient, root: Path
) -> None:
    (root / "hold").touch()
    client.savepoint("a", REQUEST)
    await_true(lambda: client.get_savepoint("a").stage == "batch 7", "it runs")

    os.kill(orders(root)[0][1], signal.SIGKILL)

    failed = client.get_savepoint("a", wait=20)
    assert failed.state is OperationState.FAILED
    assert failed.error is not None
    assert failed.error.type == "CaptureKilled"
    assert "SIGKILL (out of memory?)" in failed.error.message
    assert failed.error.retry_helps
    (root / "hold").unlink()
    assert client.savepoint("a", REQUEST, wait=20).state is OperationState.DONE


def test_closing_the_agent_ends_the_capture_and_answers_who_waits(
    agent: Agent, client: SyncAgentClient, root: Path
) -> None:
    (root / "hold").touch()
    client.savepoint("a", REQUEST)
    client.savepoint("b", REQUEST)
    await_true(lambda: client.get_savepoint("a").stage == "batch 7", "it runs")
    answers: list[bytes] = []
    waiting = [
        threading.Thread(
            target=lambda path=f"/v1/savepoints/{name}?wait=60": answers.append(
                ask(agent, "GET", path)[2]
            )
        )
        for name in "ab"
    ]
    for each in waiting:
        each.start()
    await_true(lambda: agent._guard._in_flight == 2, "both wait")

    agent.close()

    for each in waiting:
        each.join(20)
    states = [json.loads(each)["error"]["type"] for each in answers]
    assert states == ["DriverEnding"] * 2
    assert len(orders(root)) == 1
    await_true(lambda: not alive(orders(root)[0][1]), "the process is gone")


def test_a_process_that_cannot_be_started_is_a_failure_with_a_sentence(
    agent: Agent, client: SyncAgentClient
) -> None:
    object.__setattr__(agent._settings, "command", ("/no/such/python",))

    failed = client.savepoint("a", REQUEST, wait=20)

    assert failed.error is not None
    assert failed.error.type == "CaptureNotStarted"


def test_a_job_that_cannot_name_its_checkpoints_is_a_failure(
    client: SyncAgentClient, job: FakeJob, root: Path
) -> None:
    def broken() -> dict[str, str]:
        raise RuntimeError("no session")

    job.checkpoints = broken  # type: ignore[method-assign]

    failed = client.savepoint("a", REQUEST, wait=20)

    assert failed.error is not None
    assert failed.error.message == "Unexpected Runtime: no session"
    await_true(lambda: not alive(orders(root)[0][1]), "the process is gone")


def test_the_metrics_count_savepoints(client: SyncAgentClient, root: Path) -> None:
    client.savepoint("a", REQUEST, wait=20)
    (root / "fail").write_text(json.dumps({"type": "Full", "message": "no space"}))
    client.savepoint("b", REQUEST, wait=20)

    page = client.metrics()

    assert 'sparkpoint_savepoints_total{result="done"} 1\n' in page
    assert 'sparkpoint_savepoints_total{result="failed"} 1\n' in page
    assert "sparkpoint_savepoint_new_bytes_total 5\n" in page
    assert "sparkpoint_savepoint_duration_seconds_sum 0.25\n" in page
