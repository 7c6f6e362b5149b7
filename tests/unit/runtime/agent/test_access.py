"""Who gets in, and what becomes of requests that make no sense."""

import contextlib
import http.client
import json
import logging
import socket
import threading
from collections.abc import Mapping
from pathlib import Path

import pytest

from sparkpoint.runtime.agent import Agent, AgentError, routes, server, start_agent
from sparkpoint.runtime.agent.guard import IN_FLIGHT
from sparkpoint.runtime.client import SyncAgentClient
from tests.support.waiting import await_true
from tests.unit.runtime.agent.conftest import StartAgent
from tests.unit.runtime.agent.fakes import TOKEN, FakeJob, pretended

GOOD = {"Authorization": f"Bearer {TOKEN}"}


def ask(
    agent: Agent,
    method: str,
    path: str,
    *,
    body: bytes | str | None = None,
    headers: Mapping[str, str] = GOOD,
) -> tuple[int, dict[str, str], bytes]:
    """One request by hand; no answer ever holds the token."""
    with contextlib.closing(http.client.HTTPConnection(agent.host, agent.port, timeout=20)) as link:
        link.request(method, path, body=body, headers=dict(headers))
        response = link.getresponse()
        data = response.read()
        shown = dict(response.getheaders())
    assert TOKEN.encode() not in data + str(shown).encode()
    return response.status, shown, data


def error_of(data: bytes) -> dict[str, str]:
    content: dict[str, dict[str, str]] = json.loads(data)
    return content["error"]


PATHS = [
    ("GET", "/v1/progress"),
    ("GET", "/v1/savepoints/a"),
    ("PUT", "/v1/savepoints/a"),
    ("GET", "/v1/stop/a"),
    ("PUT", "/v1/stop/a"),
    ("PUT", "/v1/gate/3"),
    ("GET", "/no/such/path"),
    ("DELETE", "/v1/progress"),
]


@pytest.mark.parametrize(("method", "path"), PATHS)
def test_nothing_but_probes_and_metrics_is_answered_without_the_token(
    agent: Agent, job: FakeJob, method: str, path: str
) -> None:
    status, headers, data = ask(agent, method, path, headers={}, body=b"{}")

    assert status == 401
    assert headers["Server"] == "sparkpoint"
    assert headers["WWW-Authenticate"] == "Bearer"
    assert error_of(data)["type"] == "Unauthorized"
    assert job.stops == []


@pytest.mark.parametrize(
    "given",
    [
        "",
        "Bearer",
        "Bearer ",
        f"Bearer {TOKEN}x",
        f"Bearer {TOKEN[:-1]}",
        f"Basic {TOKEN}",
        TOKEN,
        f"Bearer {TOKEN} {TOKEN}",
        "Bearer \xff\xfe",
    ],
)
def test_a_wrong_token_is_refused(agent: Agent, given: str) -> None:
    with contextlib.closing(http.client.HTTPConnection(agent.host, agent.port, timeout=20)) as link:
        link.putrequest("GET", "/v1/progress")
        link.putheader("Authorization", given.encode("latin-1"))
        link.endheaders()

        response = link.getresponse()
        data = response.read()

    assert response.status == 401
    assert TOKEN.encode() not in data


@pytest.mark.parametrize("path", ["/healthz", "/readyz", "/metrics"])
def test_probes_and_metrics_need_no_token(agent: Agent, path: str) -> None:
    assert ask(agent, "GET", path, headers={})[0] == 200


@pytest.mark.parametrize("path", ["/healthz/", "/metrics/../v1/progress", "//healthz"])
def test_a_path_that_only_looks_open_is_not(agent: Agent, path: str) -> None:
    assert ask(agent, "GET", path, headers={})[0] == 401


def test_unknown_paths_and_methods_are_answered_as_json(agent: Agent) -> None:
    status, _, data = ask(agent, "GET", "/v2/progress")
    assert (status, error_of(data)["type"]) == (404, "NotFound")

    status, headers, data = ask(agent, "DELETE", "/v1/savepoints/a")
    assert (status, error_of(data)["type"]) == (405, "MethodNotAllowed")
    assert set(headers["Allow"].split(",")) == {"GET", "HEAD", "PUT"}


@pytest.mark.parametrize(
    "path", ["/v1/savepoints/UPPER", "/v1/savepoints/a%2Fb", "/v1/stop/-a", "/v1/savepoints/..%2Fa"]
)
def test_a_bad_name_is_refused(agent: Agent, path: str) -> None:
    status, _, data = ask(agent, "PUT", path, body=b"{}")

    assert (status, error_of(data)["type"]) == (400, "BadName")


@pytest.mark.parametrize("wait", ["x", "-1", "61", "nan", "inf", ""])
def test_a_bad_wait_is_refused(agent: Agent, wait: str) -> None:
    status, _, data = ask(agent, "GET", f"/v1/savepoints/a?wait={wait}")

    assert (status, error_of(data)["type"]) == (400, "BadWait")


@pytest.mark.parametrize(
    ("path", "body", "sentence"),
    [
        ("/v1/savepoints/a", b"", "at repository"),
        ("/v1/savepoints/a", b"{", "as a whole"),
        ("/v1/savepoints/a", b"[]", "as a whole"),
        ("/v1/savepoints/a", b"\xff\xfe", "as a whole"),
        ("/v1/savepoints/a", b'{"repository": 7}', "at repository"),
        ("/v1/savepoints/a", b'{"repository": " "}', "repository is empty"),
        ("/v1/savepoints/a", b'{"repository": "/r", "tags": ["A B"]}', "name of a tag"),
        ("/v1/stop/a", b'{"savepoint_name": "x"}', "or neither"),
        ("/v1/stop/a", b'{"savepoint": {"repository": "/r"}}', "or neither"),
        (
            "/v1/stop/a",
            b'{"savepoint_name": "X", "savepoint": {"repository": "/r"}}',
            "name of a savepoint",
        ),
        ("/v1/stop/a", b'{"budget_seconds": -1}', "budget_seconds"),
        ("/v1/stop/a", b'{"budget_seconds": 1e99}', "budget_seconds"),
    ],
)
def test_a_bad_body_is_refused_with_the_field(
    agent: Agent, job: FakeJob, path: str, body: bytes, sentence: str
) -> None:
    status, _, data = ask(agent, "PUT", path, body=body)

    assert status == 400
    assert sentence in error_of(data)["message"]
    assert job.stops == []


def test_a_body_above_64_kib_is_refused(agent: Agent) -> None:
    body = json.dumps({"repository": "/r", "parent": "p" * 66_000})

    status, _, data = ask(agent, "PUT", "/v1/savepoints/a", body=body)

    assert (status, error_of(data)["type"]) == (413, "TooLarge")


def test_headers_without_end_are_refused(agent: Agent, client: SyncAgentClient) -> None:
    with contextlib.suppress(ConnectionError):
        status, _, _ = ask(agent, "GET", "/v1/progress", headers={**GOOD, "X-Long": "x" * 20_000})
        assert status == 400

    assert client.healthy()


def test_what_is_no_http_does_not_disturb_the_agent(agent: Agent, client: SyncAgentClient) -> None:
    with socket.create_connection((agent.host, agent.port), timeout=20) as link:
        link.sendall(b"\x16\x03\x01\x00 not http\r\n\r\n")
        assert link.recv(65536).startswith(b"HTTP/1.")

    assert client.healthy()


def test_a_client_that_never_ends_its_header_is_cut_off(
    job: FakeJob, start: StartAgent, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "_IDLE", 0.2)
    agent = start(pretended(root))

    with socket.create_connection((agent.host, agent.port), timeout=20) as link:
        link.sendall(b"GET /v1/progress HTTP/1.1\r\nHost: x\r\n")

        assert link.recv(1) == b""


def test_a_client_that_never_ends_its_body_is_answered(
    agent: Agent, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(routes, "_BODY_SECONDS", 0.1)
    head = f"PUT /v1/savepoints/a HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {TOKEN}\r\n"

    with socket.create_connection((agent.host, agent.port), timeout=20) as link:
        link.sendall(f"{head}Content-Length: 100\r\n\r\n{{".encode())

        assert link.recv(65536).startswith(b"HTTP/1.1 408 ")


def test_a_long_poll_whose_client_is_gone_gives_its_place_back(
    agent: Agent, client: SyncAgentClient, job: FakeJob
) -> None:
    job.may_stop.clear()
    client.stop("s")
    head = f"GET /v1/stop/s?wait=60 HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {TOKEN}\r\n\r\n"
    with socket.create_connection((agent.host, agent.port), timeout=20) as link:
        link.sendall(head.encode())
        await_true(lambda: agent._guard._in_flight == 1, "it waits")

    await_true(lambda: agent._guard._in_flight == 0, "its place is free")
    job.may_stop.set()


def test_too_many_requests_at_once_are_refused_and_health_still_answers(
    agent: Agent, client: SyncAgentClient, job: FakeJob
) -> None:
    job.may_stop.clear()
    client.stop("s")
    path = "/v1/stop/s?wait=60"
    waiting = [threading.Thread(target=ask, args=(agent, "GET", path)) for _ in range(IN_FLIGHT)]
    for each in waiting:
        each.start()
    # Not found out by asking: such a request would take the place of one that is to wait.
    await_true(lambda: agent._guard._in_flight == IN_FLIGHT, "the bound is reached")

    assert ask(agent, "GET", "/v1/progress")[0] == 503
    for probe in ("/healthz", "/readyz", "/metrics"):
        assert ask(agent, "GET", probe, headers={})[0] == 200
    job.may_stop.set()
    for each in waiting:
        each.join(20)
    assert ask(agent, "GET", "/v1/progress")[0] == 200


def test_a_taken_port_is_an_error_that_names_it(agent: Agent, job: FakeJob, root: Path) -> None:
    with pytest.raises(AgentError, match=f"127.0.0.1:{agent.port}.*in use"):
        start_agent(job, host="127.0.0.1", port=agent.port, token=TOKEN, savepoints=pretended(root))


@pytest.mark.parametrize(("host", "port"), [("192.0.2.1", 0), ("127.0.0.1", 65536)])
def test_an_address_that_cannot_be_bound_is_an_error_that_names_it(
    job: FakeJob, root: Path, host: str, port: int
) -> None:
    with pytest.raises(AgentError, match=f"cannot listen on {host}:{port}"):
        start_agent(job, host=host, port=port, token=TOKEN, savepoints=pretended(root))


@pytest.mark.parametrize("token", ["", " ", "abc\n", " abc", "a\0c"])
def test_a_token_that_nobody_could_send_is_refused(job: FakeJob, root: Path, token: str) -> None:
    with pytest.raises(AgentError, match="token"):
        start_agent(job, host="127.0.0.1", port=0, token=token, savepoints=pretended(root))


def test_an_unexpected_error_of_the_job_is_an_answer_and_a_log(
    agent: Agent, job: FakeJob, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(epoch: int) -> None:
        raise KeyError("secret detail")

    job.open_gate = broken  # type: ignore[method-assign, assignment]

    status, _, data = ask(agent, "PUT", "/v1/gate/3")

    assert status == 500
    assert b"secret detail" not in data
    assert any(record.levelno == logging.ERROR for record in caplog.records)


def test_closing_twice_is_fine_and_frees_the_port(agent: Agent, job: FakeJob, root: Path) -> None:
    agent.close()
    agent.close()

    again = start_agent(
        job, host="127.0.0.1", port=agent.port, token=TOKEN, savepoints=pretended(root)
    )
    again.close()


def test_what_is_asked_for_is_logged_with_what_it_belongs_to(
    agent: Agent, caplog: pytest.LogCaptureFixture
) -> None:
    for headers in ({**GOOD, "X-Correlation-Id": "0123456789ab"}, GOOD):
        ask(agent, "PUT", "/v1/stop/a%0Ab", headers=headers)

    asked = [message for message in caplog.messages if message.startswith("Asked for")]
    assert asked == [
        "Asked for /v1/stop/a%0Ab, correlation 0123456789ab",
        "Asked for /v1/stop/a%0Ab, correlation -",
    ]
