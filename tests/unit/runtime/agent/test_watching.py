"""What the agent shows: probes, progress, metrics, the gate."""

import threading

import pytest

from sparkpoint.runtime.agent import Agent
from sparkpoint.runtime.client import AgentRefusedError, SyncAgentClient
from sparkpoint.runtime.model import GateInfo, Progress
from tests.support.waiting import await_true
from tests.unit.runtime.agent.fakes import FakeJob
from tests.unit.runtime.agent.test_access import ask


def test_progress_is_what_the_job_says(client: SyncAgentClient, job: FakeJob) -> None:
    assert client.progress() == job.progress()


@pytest.mark.parametrize(
    ("active", "gate", "status"),
    [(True, "none", 200), (False, "none", 503), (False, "waiting", 200), (False, "closed", 503)],
)
def test_ready_means_that_queries_run_or_the_gate_waits(
    agent: Agent, job: FakeJob, active: bool, gate: str, status: int
) -> None:
    job.active = active
    job.gate = GateInfo.model_validate({"epoch": 3, "state": gate})

    assert ask(agent, "GET", "/readyz", headers={})[0] == status


def test_metrics_are_text_of_the_right_type(agent: Agent) -> None:
    status, headers, data = ask(agent, "GET", "/metrics", headers={})

    assert status == 200
    assert headers["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8"
    assert b'sparkpoint_query_batch{query="q"} 7\n' in data
    assert b'job_name="visits"' in data


def test_a_job_that_hangs_does_not_make_the_agent_hang(
    agent: Agent, client: SyncAgentClient, job: FakeJob
) -> None:
    asked, free = [], threading.Event()
    answer = job.progress()

    def slow() -> Progress:
        asked.append(1)
        assert free.wait(20)
        return answer

    job.progress = slow  # type: ignore[method-assign]
    statuses: list[int] = []
    waiting = [
        threading.Thread(target=lambda: statuses.append(ask(agent, "GET", "/v1/progress")[0]))
        for _ in range(5)
    ]
    for each in waiting:
        each.start()
    await_true(lambda: bool(asked), "the job was asked")

    assert client.healthy()

    free.set()
    for each in waiting:
        each.join(20)
    assert statuses == [200] * 5


def test_opening_the_gate_twice_is_fine(client: SyncAgentClient, job: FakeJob) -> None:
    job.gate = GateInfo(epoch=3, state="waiting")

    assert client.open_gate(3).state == "open"
    assert client.open_gate(3).state == "open"


def test_the_gate_of_another_epoch_is_a_conflict(client: SyncAgentClient, job: FakeJob) -> None:
    job.gate = GateInfo(epoch=3, state="waiting")

    with pytest.raises(AgentRefusedError, match="epoch 3") as caught:
        client.open_gate(4)

    assert caught.value.status == 409
    assert job.gate.state == "waiting"


def test_a_closed_gate_is_a_conflict(client: SyncAgentClient, job: FakeJob) -> None:
    job.gate = GateInfo(epoch=4, state="closed")

    with pytest.raises(AgentRefusedError, match="closed") as caught:
        client.open_gate(3)

    assert caught.value.status == 409


@pytest.mark.parametrize("epoch", ["x", "-1", "1.5", "99999999999", "%C2%B2"])
def test_an_epoch_is_a_number(agent: Agent, epoch: str) -> None:
    assert ask(agent, "PUT", f"/v1/gate/{epoch}")[0] == 400
