"""The way to the API server: paths, bodies and errors, over real HTTP."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import quote

import pytest
from aiohttp import web
from kubernetes.aio import client

from sparkpoint.controller.apiserver import ApiServer
from sparkpoint.controller.cluster import JOBS, NODES, PODS, create_or_get
from sparkpoint.controller.errors import (
    AlreadyExistsError,
    ClusterError,
    ConflictError,
    ForbiddenError,
    NotFoundError,
    ThrottledError,
    UnavailableError,
    UnfitError,
    UnprocessableError,
)

T = TypeVar("T")
Call = Callable[[ApiServer], Awaitable[T]]
POD = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a", "namespace": "shop"}}


class Server:
    """Answers what it was told to, and remembers what it was asked."""

    def __init__(self, *answers: tuple[int, Any], headers: dict[str, str] | None = None) -> None:
        self._answers, self._headers = list(answers), headers or {}
        self.counted: list[tuple[str, str, str]] = []
        self.asked: list[tuple[str, str, Any, str]] = []
        self.heard: list[tuple[str | None, bool]] = []
        self.types: list[str] = []
        self.paths: list[str] = []
        """As they came, before anything was decoded."""

    async def _answer(self, request: web.Request) -> web.Response:
        text = await request.text()
        body = json.loads(text) if text else None
        token = request.headers.get("Authorization", "")
        self.asked.append((request.method, request.path_qs, body, token))
        self.paths.append(request.raw_path)
        self.types.append(request.content_type)
        status, answer = self._answers.pop(0)
        return web.json_response(answer, status=status, headers=self._headers)

    def run(self, call: Call[T]) -> T:
        """Do this against the server."""

        async def story() -> T:
            application = web.Application()
            application.router.add_route("*", "/{path:.*}", self._answer)
            runner = web.AppRunner(application)
            await runner.setup()
            await web.TCPSite(runner, "127.0.0.1", 0).start()
            settings = client.Configuration(
                host=f"http://127.0.0.1:{runner.addresses[0][1]}",
                api_key={"BearerToken": "bearer secret"},
            )
            connection = ApiServer(
                client.ApiClient(settings),
                timeout=5,
                asked=lambda *request: self.counted.append(request),
                hear=lambda date, took: self.heard.append((date, took < 5)),
            )
            try:
                return await call(connection)
            finally:
                await connection.close()
                await runner.cleanup()

        return asyncio.run(story())


def refusal(reason: str) -> dict[str, str]:
    return {"kind": "Status", "reason": reason, "message": f"{reason}!"}


def test_who_wrote_which_field_is_left_out() -> None:
    about = {"name": "a", "namespace": "shop", "managedFields": [{"manager": "kubectl"}]}
    noted = {**POD, "metadata": about}

    one = Server((200, noted)).run(lambda cluster: cluster.get(PODS, "shop", "a"))
    answer = {"metadata": {}, "items": [noted]}
    many = Server((200, answer)).run(lambda cluster: cluster.list(PODS, "shop", labels={}))

    assert [one, *many] == [POD, POD]


def test_every_answer_tells_the_time_of_the_api_server() -> None:
    server = Server((200, POD), (429, refusal("TooManyRequests")), headers={"Date": "then"})

    async def ask(cluster: ApiServer) -> None:
        await cluster.get(PODS, "shop", "a")
        with pytest.raises(ThrottledError):
            await cluster.get(PODS, "shop", "a")

    server.run(ask)

    assert server.heard == [("then", True), ("then", True)]


def test_an_object_is_read_with_the_token() -> None:
    server = Server((200, POD))

    found = server.run(lambda cluster: cluster.get(PODS, "shop", "a"))

    assert found == POD
    assert server.asked == [("GET", "/api/v1/namespaces/shop/pods/a", None, "bearer secret")]


def test_our_own_kinds_and_nodes_have_their_own_paths() -> None:
    server = Server((200, {}), (200, {}))

    server.run(lambda cluster: cluster.get(JOBS, "shop", "a"))
    server = Server((200, {}))
    server.run(lambda cluster: cluster.get(NODES, None, "n1"))

    assert server.asked[0][1] == "/api/v1/nodes/n1"


def test_a_name_is_one_part_of_a_path() -> None:
    server = Server((200, POD))

    server.run(lambda cluster: cluster.get(PODS, "shop", "a?b#c"))

    assert server.paths == [f"/api/v1/namespaces/shop/pods/{quote('a?b#c', safe='')}"]


@pytest.mark.parametrize(
    "name", [".", "..", "", "../../bank/pods/a", "a/../../../bank/pods/a", "a/status", "%2e%2e"]
)
def test_what_can_be_no_name_is_not_asked_for(name: str) -> None:
    server = Server()

    with pytest.raises(NotFoundError, match="no name"):
        server.run(lambda cluster: cluster.get(PODS, "shop", name))

    assert server.asked == []


def test_a_list_is_read_page_by_page_and_its_items_are_whole() -> None:
    item = {"metadata": {"name": "a"}}
    server = Server(
        (200, {"metadata": {"continue": "more"}, "items": [item]}),
        (200, {"metadata": {}, "items": [item]}),
    )

    found = server.run(lambda cluster: cluster.list(PODS, "shop", labels={"b": "2", "a": "1"}))

    assert [(each["apiVersion"], each["kind"]) for each in found] == [("v1", "Pod")] * 2
    assert "labelSelector=a%3D1,b%3D2" in server.asked[0][1]
    assert "continue=more" in server.asked[1][1]


def test_a_status_is_written_to_its_own_path() -> None:
    body = {
        "apiVersion": "sparkpoint.dev/v1alpha1",
        "kind": "StatefulSparkJob",
        "metadata": {"name": "a", "namespace": "shop", "resourceVersion": "7"},
    }
    server = Server((200, body))

    server.run(lambda cluster: cluster.replace_status(body))

    method, path, sent, _ = server.asked[0]
    assert (method, sent) == ("PUT", body)
    assert path == "/apis/sparkpoint.dev/v1alpha1/namespaces/shop/statefulsparkjobs/a/status"


def test_finalizers_are_written_alone_and_to_the_version_that_was_read() -> None:
    about = {"name": "a", "namespace": "shop", "resourceVersion": "7", "labels": {"team": "web"}}
    body = {
        "apiVersion": "sparkpoint.dev/v1alpha1",
        "kind": "StatefulSparkJob",
        "metadata": about,
        "spec": {"suspend": True},
    }
    server = Server((200, body))

    server.run(lambda cluster: cluster.set_finalizers(body, ["a/one", "b/two"]))

    method, path, sent, _ = server.asked[0]
    assert (method, server.types) == ("PATCH", ["application/merge-patch+json"])
    assert path == "/apis/sparkpoint.dev/v1alpha1/namespaces/shop/statefulsparkjobs/a"
    assert sent == {"metadata": {"resourceVersion": "7", "finalizers": ["a/one", "b/two"]}}
    assert server.counted == [("patch", "statefulsparkjobs", "200")]


def test_every_request_is_counted_in_the_words_of_kubernetes() -> None:
    more = (200, {"metadata": {"continue": "more"}, "items": []})
    last: tuple[int, Any] = (200, {"metadata": {}, "items": []})
    refused = (409, refusal("Conflict"))
    server = Server((200, POD), more, last, (200, POD), (200, POD), refused, (404, refusal("Gone")))

    async def one_of_each(cluster: ApiServer) -> None:
        await cluster.get(PODS, "shop", "a")
        await cluster.list(PODS, "shop", labels={})
        await cluster.create(POD)
        await cluster.replace(POD)
        with pytest.raises(ConflictError):
            await cluster.replace_status(POD)
        await cluster.delete(PODS, "shop", "a", uid="u1")

    server.run(one_of_each)

    expected = ["get", "list", "list", "create", "update", "update", "delete"]
    assert [verb for verb, _, _ in server.counted] == expected
    assert {resource for _, resource, _ in server.counted} == {"pods", "pods/status"}
    assert [code for _, _, code in server.counted] == ["200"] * 5 + ["409", "404"]


def test_exactly_this_object_is_deleted() -> None:
    server = Server((200, {}))

    server.run(lambda cluster: cluster.delete(PODS, "shop", "a", uid="u1"))

    assert server.asked[0][2]["preconditions"] == {"uid": "u1"}


@pytest.mark.parametrize("answer", [(404, refusal("NotFound")), (409, refusal("Conflict"))])
def test_what_is_gone_need_not_be_deleted(answer: tuple[int, Any]) -> None:
    Server(answer).run(lambda cluster: cluster.delete(PODS, "shop", "a", uid="u1"))


def test_what_is_there_need_not_be_created() -> None:
    server = Server((409, refusal("AlreadyExists")), (200, POD))

    assert server.run(lambda cluster: create_or_get(cluster, POD)) == POD


@pytest.mark.parametrize(
    ("status", "reason", "error", "retry_helps"),
    [
        (400, "BadRequest", UnprocessableError, False),
        (401, "Unauthorized", UnavailableError, True),
        (403, "Forbidden", ForbiddenError, True),
        (404, "NotFound", NotFoundError, False),
        (409, "AlreadyExists", AlreadyExistsError, False),
        (409, "Conflict", ConflictError, True),
        (413, "RequestEntityTooLarge", UnprocessableError, False),
        (422, "Invalid", UnprocessableError, False),
        (429, "TooManyRequests", ThrottledError, True),
        (500, "InternalError", UnavailableError, True),
        (503, "ServiceUnavailable", UnavailableError, True),
    ],
)
def test_every_refusal_has_its_error(
    status: int, reason: str, error: type[ClusterError], retry_helps: bool
) -> None:
    with pytest.raises(error, match=f"{reason}!") as caught:
        Server((status, refusal(reason))).run(lambda cluster: cluster.create(POD))

    assert caught.value.retry_helps is retry_helps


def test_a_busy_server_says_when_to_come_back() -> None:
    server = Server((429, refusal("TooManyRequests")), headers={"Retry-After": "17"})

    with pytest.raises(UnavailableError) as caught:
        server.run(lambda cluster: cluster.get(PODS, "shop", "a"))

    assert caught.value.retry_after == 17


def test_a_server_that_is_not_there_may_come_back() -> None:
    async def story() -> None:
        settings = client.Configuration(host="http://127.0.0.1:1")
        connection = ApiServer(client.ApiClient(settings), timeout=5)
        try:
            await connection.get(PODS, "shop", "a")
        finally:
            await connection.close()

    with pytest.raises(UnavailableError, match="no answer"):
        asyncio.run(story())


def test_kopf_gets_the_same_credentials() -> None:
    async def credentials(cluster: ApiServer) -> dict[str, Any]:
        return await cluster.credentials()

    found = Server().run(credentials)

    assert found["token"] == "secret"
    assert found["server"].startswith("http://127.0.0.1:")


@pytest.mark.parametrize(
    "content",
    [
        None,
        "{apiVersion: v1, kind: Config, contexts: [], users: [], clusters: []}",
        "",
        "just text",
        "a: [",
        "[a, list]",
    ],
)
def test_an_operator_without_a_way_to_the_api_server_says_so(
    content: str | None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    file = tmp_path / "config"
    if content is not None:
        file.write_text(content)
    monkeypatch.setattr("kubernetes.aio.config.kube_config.KUBE_CONFIG_DEFAULT_LOCATION", str(file))
    context = None if content is None else "nowhere"

    with pytest.raises(
        UnfitError, match=r"^No kubeconfig says where the API server is: .*\w\. Run .*KUBECONFIG"
    ):
        asyncio.run(ApiServer.connect(context, asked=lambda *_: None, hear=lambda *_: None))
