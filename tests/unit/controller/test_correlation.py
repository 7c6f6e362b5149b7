"""One id from the status to the Events, the pods, the log and the agent."""

import asyncio
import io
import json
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import aiohttp
import pytest
from aiohttp import web

from sparkpoint.controller.agents import dial_over
from sparkpoint.controller.cluster import EVENTS, PODS, SAVEPOINTS
from sparkpoint.controller.correlation import correlation_id, current, relate, topic_of
from sparkpoint.controller.errors import UnavailableError
from sparkpoint.controller.keys import CORRELATION, EPOCH, OPERATION
from sparkpoint.controller.logs import LogFormat, configure_logs
from sparkpoint.controller.podfacts import label
from sparkpoint.runtime.client import AgentClientError
from sparkpoint.runtime.correlation import correlation_in
from tests.unit.controller.simulation import KEY, NAMESPACE, Simulation

NEW_CODE = {"application": {"script": {"path": "/opt/job/better.py"}}}


@contextmanager
def logged(kind: LogFormat, *, verbose: bool = False) -> Iterator[io.StringIO]:
    """What the operator's log says."""
    stream, root = io.StringIO(), logging.getLogger()
    handlers, level = root.handlers, root.level
    levels = {name: logging.getLogger(name).level for name in ("kopf", "asyncio", "kopf.objects")}
    try:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("sys.stderr", stream)
            configure_logs(kind, verbose=verbose)
        yield stream
    finally:
        root.handlers, root.level = handlers, level
        for name, former in levels.items():
            logging.getLogger(name).setLevel(former)


def upgraded() -> tuple[Simulation, list[dict[str, Any]]]:
    """A job that was upgraded, and the lines of the log since then."""
    simulation = Simulation()
    simulation.settle(simulation.is_running)
    with logged("json") as log:
        simulation.edit(**NEW_CODE)
        simulation.settle(lambda: simulation.is_running() and simulation.status["epoch"] == 2)
    return simulation, [json.loads(line) for line in log.getvalue().splitlines()]


def test_an_id_follows_from_uid_and_operation_alone() -> None:
    first = correlation_id("uid-1", "upgrade-2")

    assert first == correlation_id("uid-1", "upgrade-2")
    assert len({first, correlation_id("uid-2", "upgrade-2"), correlation_id("uid-1", "x")}) == 3
    assert len(first) == 12


def test_an_upgrade_has_one_id_everywhere() -> None:
    simulation, lines = upgraded()

    uid = simulation.job["metadata"]["uid"]
    wanted = correlation_id(uid, "upgrade-2")
    assert simulation.status["lastOperation"]["correlationId"] == wanted
    pods = simulation.cluster.all(PODS, NAMESPACE, {EPOCH: "2"})
    [driver] = [pod for pod in pods if label(pod, "sparkpoint.dev/role") == "driver"]
    marks = {OPERATION: "upgrade-2", CORRELATION: wanted}
    assert marks.items() <= driver["metadata"]["annotations"].items()
    [savepoint] = simulation.cluster.all(SAVEPOINTS, NAMESPACE)
    assert savepoint["metadata"]["annotations"] == marks
    told = {
        event["reason"]: event["metadata"]["annotations"]
        for event in simulation.cluster.all(EVENTS, NAMESPACE)
        if event["involvedObject"]["kind"] == "StatefulSparkJob"
    }
    assert told["Upgrade"] == told["UpgradeSucceeded"] == marks
    assert told["StartSucceeded"][CORRELATION] == correlation_id(uid, "start-1")
    about_the_job = [line for line in lines if line["resource"] == str(KEY)]
    assert about_the_job
    assert {line["correlation"] for line in about_the_job} == {wanted}


def test_the_operation_that_is_under_way_shows_its_id() -> None:
    simulation = Simulation()

    simulation.settle(lambda: "operation" in simulation.status)

    operation = simulation.status["operation"]
    uid = simulation.job["metadata"]["uid"]
    assert operation["correlationId"] == correlation_id(uid, operation["id"])


def test_what_ends_and_what_begins_in_one_pass_are_told_apart() -> None:
    simulation = Simulation()
    simulation.settle(simulation.is_running)
    simulation.world.broken = lambda pod: label(pod, EPOCH) == "2"
    simulation.edit(**NEW_CODE)
    simulation.settle(lambda: simulation.is_running() and simulation.status["epoch"] > 2)

    operations = {
        event["reason"]: event["metadata"]["annotations"][OPERATION]
        for event in simulation.cluster.all(EVENTS, NAMESPACE)
    }

    assert operations["UpgradeRolledBack"] == "upgrade-2"
    assert operations["Rollback"] == operations["RollbackSucceeded"] == "rollback-3"


def test_a_pass_that_fails_is_logged_with_what_it_was_about() -> None:
    simulation = Simulation()
    simulation.settle(simulation.is_running)
    simulation.edit(**NEW_CODE)
    simulation.settle(lambda: "operation" in simulation.status)

    simulation.cluster.refuse = lambda verb, what: (
        UnavailableError("down") if verb == "status" else None
    )
    with logged("json") as log:
        simulation.run_pass()

    [line] = [json.loads(line) for line in log.getvalue().splitlines()]
    assert "down" in line["message"]
    assert (line["resource"], line["operation"]) == (str(KEY), "upgrade-2")


def test_people_see_it_at_the_end_of_a_line() -> None:
    with logged("console") as log, topic_of(KEY):
        logging.getLogger("sparkpoint").info("Before.")
        relate(KEY, "upgrade-2", "0123456789ab")
        logging.getLogger("sparkpoint").info("Stopping.")

    before, after = log.getvalue().splitlines()
    assert before.endswith("sparkpoint: Before.")
    assert after.endswith("sparkpoint: Stopping. [upgrade-2 0123456789ab]")
    assert current() is None


def test_passes_at_the_same_time_do_not_mix_their_topics() -> None:
    async def work(name: str) -> str:
        with topic_of(KEY):
            relate(KEY, name, name)
            await asyncio.sleep(0)
            topic = current()
            return topic.id if topic is not None else ""

    async def story() -> list[str]:
        return await asyncio.gather(*(work(name) for name in ("a", "b", "c")))

    assert asyncio.run(story()) == ["a", "b", "c"]


def test_an_agent_is_told_what_it_is_asked_for() -> None:
    seen: list[str] = []

    async def answer(request: web.Request) -> web.Response:
        seen.append(correlation_in(request.headers))
        return web.json_response({}, status=404)

    async def story() -> None:
        application = web.Application()
        application.router.add_route("*", "/{path:.*}", answer)
        runner = web.AppRunner(application)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        url = f"http://127.0.0.1:{runner.addresses[0][1]}"
        async with aiohttp.ClientSession() as session:
            dial = dial_over(session)
            with topic_of(KEY):
                for correlation in ("", "0123456789ab"):
                    relate(KEY, "upgrade-2", correlation)
                    with pytest.raises(AgentClientError):
                        await dial(url, "token").open_gate(1)
        await runner.cleanup()

    asyncio.run(story())

    assert seen == ["-", "0123456789ab"]


@pytest.mark.parametrize("given", ["a\nb", "x" * 65, "%0a", "", "ü"])
def test_a_header_that_could_break_a_line_is_not_logged(given: str) -> None:
    assert correlation_in({"X-Correlation-Id": given}) == "-"


def test_an_id_that_somebody_edited_is_not_believed() -> None:
    simulation, _ = upgraded()
    [savepoint] = simulation.cluster.all(SAVEPOINTS, NAMESPACE)

    simulation.cluster.edit(
        SAVEPOINTS,
        NAMESPACE,
        savepoint["metadata"]["name"],
        lambda body: body["metadata"]["annotations"].update({CORRELATION: "evil\r\nHost: x"}),
    )
    with logged("json", verbose=True) as log:
        simulation.run_savepoints()

    assert "evil" not in log.getvalue()
