"""What the watches may be believed: that there is nothing to do but to wait, and no more."""

import asyncio
from collections.abc import Callable
from datetime import timedelta

import pytest

from sparkpoint.controller.cluster import CONFIG_MAPS, JOBS, PODS, SAVEPOINTS, Object, metadata
from sparkpoint.controller.errors import ClusterError, ForbiddenError
from sparkpoint.controller.keys import FINALIZER, Key
from sparkpoint.controller.metrics import Metrics
from sparkpoint.controller.passes import Gate, Passes, Requeue, aside
from sparkpoint.controller.reconciler import is_changed
from sparkpoint.controller.wiring import put_together
from tests.unit.controller.simulation import KEY, NAME, NAMESPACE, SPEC, Simulation

SCRIPT = {"application": {"script": {"configMap": {"name": "script", "key": "visits.py"}}}}


def launching(**changes: object) -> Simulation:
    """The driver's pod is there, and waits for a node."""
    simulation = Simulation({**SPEC, **changes})
    simulation.world.unschedulable = True
    if changes:
        put_script(simulation, "first")
    for _ in range(5):
        simulation.run_pass()
        simulation.world.step()
    assert drivers(simulation) == [f"{NAME}-e1-a1"]
    return simulation


def put_script(simulation: Simulation, text: str) -> None:
    about = {"name": "script", "namespace": NAMESPACE}
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": about, "data": {"visits.py": text}}
    simulation.cluster.add(body)


def drivers(simulation: Simulation) -> list[str]:
    found = simulation.cluster.all(PODS, NAMESPACE)
    return [metadata(pod)["name"] for pod in found if not metadata(pod).get("deletionTimestamp")]


def calls(simulation: Simulation, work: Callable[[], object]) -> list[tuple[str, str, str]]:
    before = len(simulation.cluster.calls)
    work()
    return simulation.cluster.calls[before:]


def test_to_wait_costs_the_api_server_nothing() -> None:
    simulation = launching()
    simulation.run_pass()

    simulation.world.now += timedelta(seconds=2)

    assert calls(simulation, simulation.run_pass) == []


def test_now_and_then_the_watch_is_not_believed_that_there_is_nothing_to_do() -> None:
    simulation = launching()
    simulation.run_pass()

    simulation.world.now += timedelta(seconds=11)

    assert calls(simulation, simulation.run_pass_behind) == [("list", "Pod", "")]


def test_a_watch_that_lost_a_pod_starts_no_other_driver() -> None:
    simulation = launching()
    before = simulation.status["record"]
    for pod in simulation.operator.pod_cache.of(KEY):
        simulation.operator.pod_cache.drop(KEY, metadata(pod)["name"])

    simulation.run_pass_behind()

    assert drivers(simulation) == [f"{NAME}-e1-a1"]
    assert simulation.status["record"] == before


def test_a_watch_that_shows_a_pod_no_more_is_not_believed_that_it_is_gone() -> None:
    simulation = Simulation()
    simulation.settle(simulation.is_running)
    [uid] = simulation.world.drivers
    for pod in simulation.operator.pod_cache.of(KEY):
        simulation.operator.pod_cache.drop(KEY, metadata(pod)["name"])

    simulation.run_pass_behind()

    assert simulation.status["record"].get("operation") is None
    assert list(simulation.world.drivers) == [uid]


def test_a_script_that_changes_is_what_runs_in_the_end() -> None:
    simulation = launching(**SCRIPT)
    changed = {"visits.py": "second"}
    simulation.cluster.edit(
        CONFIG_MAPS, NAMESPACE, "script", lambda body: body["data"].update(changed)
    )
    simulation.world.unschedulable = False

    def runs_second() -> bool:
        name = str(simulation.status.get("driver", {}).get("pod"))
        config = simulation.cluster.find(CONFIG_MAPS, NAMESPACE, name)
        said = config["data"].values() if config is not None else ()
        return simulation.is_running() and "second" in said

    simulation.settle(runs_second)


def test_before_something_is_done_that_can_turn_back_the_script_is_read_anew() -> None:
    simulation = launching(**SCRIPT, upgrade={"compatibility": "Enforce"})
    simulation.world.unschedulable = False
    simulation.settle(simulation.is_running)
    simulation.world.answers = lambda pod: None
    simulation.edit(args=["--more"])
    simulation.settle(lambda: phase(simulation) == "Prepare")
    simulation.run_pass()
    waiting = calls(simulation, simulation.run_pass)
    simulation.world.answers = lambda pod: {"answer": "Compatible"}
    simulation.world.step()
    acting = calls(simulation, simulation.run_pass)

    assert ("get", "ConfigMap", "script") not in waiting
    assert ("get", "ConfigMap", "script") in acting


def phase(simulation: Simulation) -> str:
    return str((simulation.status.get("operation") or {}).get("phase"))


def test_a_job_is_read_anew_by_an_operator_that_begins_to_act() -> None:
    simulation, term = launching(), [1]
    simulation.operator = put_together(
        simulation.cluster,
        simulation.world.dial,
        clock=lambda: simulation.world.now,
        make_token=lambda: "token",
        term=lambda: term[0],
    )

    def reads() -> int:
        found = calls(simulation, simulation.run_pass)
        return sum(1 for call in found if call == ("get", JOBS.kind, NAME))

    assert [reads(), reads()] == [1, 0]
    # Another one may have written since: it gave the Lease up, and has it again.
    term[0] = 2
    assert [reads(), reads()] == [1, 0]


def test_what_somebody_else_wrote_is_found_by_the_write_and_read_then() -> None:
    simulation = launching()
    simulation.run_pass()
    stale: Object = simulation.job
    simulation.edit(args=["--more"])
    simulation.operator.job_cache.drop(KEY, NAME)
    simulation.operator.job_cache.put(KEY, stale)
    simulation.world.now += timedelta(minutes=30)

    simulation.run_pass_behind()
    simulation.run_pass_behind()

    assert simulation.status["observedGeneration"] == metadata(simulation.job)["generation"]


def test_a_change_is_written_down_by_the_pass_that_sees_it() -> None:
    simulation = Simulation()
    simulation.settle(simulation.is_running)
    simulation.edit(args=["--change=1"])

    made = calls(simulation, simulation.run_pass)

    asked = [(verb, kind) for verb, kind, _ in made]
    assert asked[: asked.index(("status", "StatefulSparkJob"))] == [
        ("ask", "Agent"),
        ("create", "ControllerRevision"),
        ("create", "Event"),
    ]
    assert simulation.status["operation"]["targetGeneration"] == 2
    assert simulation.status["observedGeneration"] == 2


def test_a_revision_that_another_operator_stored_is_begun_all_the_same() -> None:
    simulation = Simulation()
    simulation.settle(simulation.is_running)
    first = simulation.status["revisions"]["current"]
    simulation.edit(args=["--change=1"])
    simulation.settle(lambda: simulation.status["lastOperation"]["kind"] == "Upgrade")
    simulation.settle(simulation.is_running)
    simulation.restart()
    simulation.edit(args=[])

    simulation.run_pass()

    assert simulation.status["operation"]["targetRevision"] == first


def test_a_revision_that_is_refused_is_not_begun() -> None:
    simulation = Simulation()
    simulation.settle(simulation.is_running)
    simulation.edit(args=["--change=1"])

    def refuse(verb: str, what: Object | str) -> ClusterError | None:
        stored = isinstance(what, dict) and what["kind"] == "ControllerRevision"
        return ForbiddenError("exceeded quota") if verb == "create" and stored else None

    simulation.cluster.refuse = refuse
    simulation.run_pass()

    assert "operation" not in simulation.status
    assert simulation.status["observedGeneration"] == 1


@pytest.mark.parametrize("restarted", [False, True])
def test_a_spec_that_is_stored_as_it_is_wished_for_is_kept_once(*, restarted: bool) -> None:
    simulation = Simulation()
    simulation.settle(simulation.is_running)
    if restarted:
        simulation.restart()
    simulation.run_pass()

    observer, uid = simulation.operator.jobs._observer, metadata(simulation.job)["uid"]
    [stored] = observer._revisions._known[uid].values()
    _, accepted = observer._intents._judged[uid]

    assert accepted.spec is stored.spec


def test_a_pass_that_waits_for_an_agent_makes_room() -> None:
    told: list[str] = []

    async def story() -> None:
        gate, answer = Gate(1), asyncio.Event()
        passes = Passes("job", gate, Metrics())

        async def asks(key: Key) -> Requeue:
            told.append("asks")
            async with aside():
                await answer.wait()
            told.append("has heard")
            return Requeue(seconds=0)

        async def works(key: Key) -> Requeue:
            told.append("works")
            answer.set()
            await asyncio.sleep(0)
            told.append("has worked")
            return Requeue(seconds=0)

        first = asyncio.create_task(passes.run(KEY, asks))
        await asyncio.sleep(0)
        await passes.run(Key(NAMESPACE, "orders"), works)
        await first
        assert gate.free == 1

    asyncio.run(story())
    assert told == ["asks", "works", "has worked", "has heard"]


def test_who_hurries_goes_before_the_others_that_wait() -> None:
    told: list[str] = []

    async def story() -> None:
        gate, begun = Gate(1), asyncio.Event()
        hurries = Key(NAMESPACE, "changed")
        passes = Passes("job", gate, Metrics(), hurries=lambda key: key == hurries)

        async def work(key: Key) -> Requeue:
            told.append(key.name)
            await begun.wait()
            return Requeue(seconds=0)

        keys = [KEY, Key(NAMESPACE, "orders"), Key(NAMESPACE, "clicks"), hurries]
        tasks = [asyncio.create_task(passes.run(key, work)) for key in keys]
        for _ in range(3):
            await asyncio.sleep(0)
        # Who does not wait any more is nobody's next.
        tasks[1].cancel()
        begun.set()
        await asyncio.gather(*tasks, return_exceptions=True)
        assert gate.free == 1

    asyncio.run(story())
    assert told == [NAME, "changed", "clicks"]


def test_who_begins_to_hurry_while_it_waits_goes_before_the_others() -> None:
    told: list[str] = []
    changed: set[Key] = set()

    async def story() -> None:
        gate, begun = Gate(1), asyncio.Event()
        passes = Passes("job", gate, Metrics(), hurries=changed.__contains__)

        async def work(key: Key) -> Requeue:
            told.append(key.name)
            await begun.wait()
            return Requeue(seconds=0)

        keys = [KEY, *(Key(NAMESPACE, name) for name in ("orders", "clicks", "carts"))]
        tasks = [asyncio.create_task(passes.run(key, work)) for key in keys]
        for _ in range(3):
            await asyncio.sleep(0)
        changed.add(keys[3])
        for key in keys:
            passes.hasten(key)
        begun.set()
        await asyncio.gather(*tasks)
        assert gate.free == 1

    asyncio.run(story())
    assert told == [NAME, "carts", "orders", "clicks"]


def test_a_place_that_was_given_to_one_that_is_gone_is_given_on() -> None:
    async def story() -> int:
        gate = Gate(1)
        await gate.enter()
        waiting = asyncio.create_task(gate.enter())
        await asyncio.sleep(0)
        gate.leave()
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
        return gate.free

    assert asyncio.run(story()) == 1


def test_a_change_of_a_known_job_hurries() -> None:
    def body(generation: int, **status: int) -> Object:
        return {"metadata": {"generation": generation}, "status": status}

    assert is_changed(body(2, observedGeneration=1))
    assert not is_changed(body(2, observedGeneration=2))
    # One of many new ones: they wait for one another.
    assert not is_changed(body(1))
    assert not is_changed(None)


def test_a_pass_that_is_cut_off_while_it_stands_aside_takes_nobodys_place() -> None:
    async def story() -> int:
        gate = Gate(1)
        passes = Passes("job", gate, Metrics())

        async def asks(key: Key) -> Requeue:
            async with aside():
                await asyncio.Event().wait()
            raise AssertionError("nobody answers")

        task = asyncio.create_task(passes.run(KEY, asks))
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        return gate.free

    assert asyncio.run(story()) == 1


def test_an_operator_that_starts_does_not_tell_the_progress_of_all_jobs_at_once() -> None:
    simulation = Simulation()
    simulation.settle(simulation.is_running)
    for _ in range(3):
        simulation.run_pass()
        simulation.world.step()
    simulation.restart()

    def writes() -> list[str]:
        found = calls(simulation, simulation.run_pass)
        return [verb for verb, kind, _ in found if (verb, kind) == ("status", JOBS.kind)]

    assert writes() == []
    simulation.world.now += timedelta(seconds=31)
    assert writes() == ["status"]


def test_a_savepoint_that_an_operation_takes_is_not_looked_at_without_a_pause() -> None:
    simulation = Simulation()
    simulation.settle(simulation.is_running)
    simulation.edit(args=["--more"])

    def unfinished() -> list[Key]:
        found = simulation.cluster.all(SAVEPOINTS, NAMESPACE)
        phases = {metadata(each)["name"]: (each.get("status") or {}).get("phase") for each in found}
        return [Key(NAMESPACE, name) for name, phase in phases.items() if phase != "Completed"]

    while not unfinished():
        simulation.run_pass()
    [key] = unfinished()
    about = {"finalizers": [FINALIZER]}
    simulation.cluster.edit(
        SAVEPOINTS, NAMESPACE, key.name, lambda body: body["metadata"].update(about)
    )
    simulation.feed()

    waits = [asyncio.run(simulation.operator.savepoints.run_once(key)).seconds for _ in range(3)]

    assert min(waits) > 0
