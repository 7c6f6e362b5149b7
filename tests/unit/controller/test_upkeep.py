"""What a job needs beside its driver, with the whole operator but for kopf: savepoints that stay or
go, objects that somebody deleted, pods that are left."""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from sparkpoint.api.job import JobSpec
from sparkpoint.controller.cache import ObjectCache
from sparkpoint.controller.cluster import (
    BUDGETS,
    CONFIG_MAPS,
    JOBS,
    PODS,
    REVISIONS,
    SAVEPOINTS,
    SECRETS,
    Kind,
    Object,
    metadata,
)
from sparkpoint.controller.errors import (
    ClusterError,
    ForbiddenError,
    UnavailableError,
    UnprocessableError,
)
from sparkpoint.controller.intents import Intent, Intents
from sparkpoint.controller.jobs import Job, read_job
from sparkpoint.controller.keys import FINALIZER, Key
from sparkpoint.controller.podfacts import lingers
from sparkpoint.controller.retention import Verdict, judge
from sparkpoint.controller.savepointuses import SavepointUses, mentions, names_of
from sparkpoint.runtime.model import EndReason
from tests.unit.controller.fakecluster import FakeCluster
from tests.unit.controller.simulation import KEY, NAME, NAMESPACE, SPEC, Simulation, is_released

SERVICES = Kind("v1", "Service", "services")
HOUR = timedelta(hours=1)


def running(**changes: Any) -> Simulation:
    """A job that has been there for long."""
    simulation = Simulation({**SPEC, **changes})
    begin(simulation)
    return simulation


def begin(simulation: Simulation) -> None:
    born = {"creationTimestamp": "2026-10-01T00:00:00Z"}
    simulation.cluster.edit(JOBS, NAMESPACE, NAME, lambda body: body["metadata"].update(born))
    simulation.settle(simulation.is_running)


def pass_time(simulation: Simulation, time: timedelta) -> None:
    end = simulation.world.now + time
    simulation.settle(lambda: simulation.world.now >= end, passes=1000, longest=60)


def add_savepoint(
    simulation: Simulation,
    name: str,
    *,
    age: timedelta,
    phase: str = "Completed",
    record: dict[str, Any] | None = None,
    **spec: Any,
) -> None:
    """One that was taken long ago."""
    now = simulation.world.now
    simulation.world.now = now - age
    moment = simulation.world.now.isoformat()
    simulation.cluster.add(
        {
            "apiVersion": "sparkpoint.dev/v1alpha1",
            "kind": "SparkSavepoint",
            "metadata": {"name": name, "namespace": NAMESPACE, "finalizers": [FINALIZER]},
            "spec": {"jobRef": {"name": NAME}, "trigger": "Periodic", **spec},
        }
    )
    simulation.world.now = now
    status = {"phase": phase, "completedAt": moment, "id": f"{name:0<64}", "name": name} | (
        {"record": record} if record else {}
    )
    simulation.cluster.edit(SAVEPOINTS, NAMESPACE, name, lambda body: body.update(status=status))


def left(simulation: Simulation) -> list[str]:
    found = simulation.cluster.all(SAVEPOINTS, NAMESPACE)
    return [name for body in found if (name := metadata(body)["name"])]


def job(name: str, **parts: Any) -> Object:
    about = {"name": name, "namespace": NAMESPACE, "uid": f"u-{name}", "resourceVersion": "1"}
    return {
        "apiVersion": "sparkpoint.dev/v1alpha1",
        "kind": "StatefulSparkJob",
        "metadata": about,
        "spec": {},
        **parts,
    }


def read(name: str, **parts: Any) -> Job:
    return read_job(job(name, **parts))


SAVEPOINT: Object = {
    "metadata": {"name": "monday", "namespace": NAMESPACE},
    "spec": {"jobRef": {"name": NAME}},
    "status": {"phase": "Completed", "id": "ab" * 32},
}
RUN = {
    "epoch": 2,
    "attempt": 1,
    "revision": {"name": "r", "code": "c"},
    "origin": {"begin": "Savepoint", "savepoint": f"{NAMESPACE}/{NAME}/monday"},
    "source": {"begin": "Savepoint", "savepoint": f"{NAMESPACE}/{NAME}/monday"},
}


@pytest.mark.parametrize(
    ("parts", "used"),
    [
        ({}, False),
        ({"spec": {"restoreFrom": {"savepoint": "monday"}}}, True),
        ({"spec": {"restoreFrom": {"savepoint": "tuesday"}}}, False),
        ({"spec": {"restoreFrom": {"manifest": {"job": NAME, "name": "monday"}}}}, True),
        ({"spec": {"restoreFrom": {"manifest": {"job": "other", "name": "monday"}}}}, False),
        (
            {
                "spec": {
                    "restoreFrom": {"manifest": {"namespace": "x", "job": NAME, "name": "monday"}}
                }
            },
            False,
        ),
        ({"spec": {"restoreFrom": {"manifest": {"job": NAME, "id": "ab" * 32}}}}, True),
        ({"spec": {"restoreFrom": "monday"}}, False),
        ({"status": {"record": {"run": RUN}}}, True),
        ({"status": {"record": {"run": RUN, "removed": True}}}, False),
    ],
)
def test_who_needs_a_savepoint_is_known_from_spec_and_record(
    parts: dict[str, Any], used: bool
) -> None:
    assert (not mentions(read("fork", **parts)).isdisjoint(names_of(SAVEPOINT))) == used


NOW = datetime(2026, 11, 16, 12, tzinfo=UTC)


def asked(
    uses: SavepointUses, cluster: FakeCluster, *, later: timedelta = timedelta()
) -> tuple[str, ...]:
    return asyncio.run(uses.ask(cluster, NAMESPACE, NOW + later)).users(SAVEPOINT)


def test_a_job_that_changes_its_mind_needs_another_savepoint() -> None:
    jobs, now = ObjectCache(), NOW
    uses, fork = SavepointUses(jobs), Key(NAMESPACE, "fork")
    wanted = {"restoreFrom": {"savepoint": "monday"}}
    jobs.put(fork, job("fork", spec=wanted))
    jobs.put(Key("elsewhere", "fork"), job("fork", spec=wanted))

    assert uses.shown(NAMESPACE, now).users(SAVEPOINT) == ("fork",)
    changed = job("fork", spec={})
    changed["metadata"]["resourceVersion"] = "2"
    jobs.put(fork, changed)
    assert uses.shown(NAMESPACE, now).users(SAVEPOINT) == ("fork",)

    # What is shown may be a minute old; who removes something asks anew.
    assert asked(uses, FakeCluster(lambda: now)) == ()
    assert uses.shown(NAMESPACE, now).users(SAVEPOINT) == ()
    jobs.put(
        fork,
        {**job("fork", spec=wanted), "metadata": {**changed["metadata"], "resourceVersion": "3"}},
    )
    assert uses.shown(NAMESPACE, now + timedelta(minutes=2)).users(SAVEPOINT) == ("fork",)


def test_who_needs_what_is_shown_by_the_same_index_until_something_of_it_changes() -> None:
    jobs = ObjectCache()
    uses, fork = SavepointUses(jobs), Key(NAMESPACE, "fork")
    first = uses.shown(NAMESPACE, NOW)

    jobs.put(fork, job("fork", spec={"args": ["another"]}))
    second = uses.shown(NAMESPACE, NOW + timedelta(minutes=2))
    changed = job("fork", spec={"restoreFrom": {"savepoint": "monday"}})
    changed["metadata"]["resourceVersion"] = "2"
    jobs.put(fork, changed)
    third = uses.shown(NAMESPACE, NOW + timedelta(minutes=4))

    assert second is first
    assert third is not first


def test_what_the_watch_has_not_shown_yet_is_known_from_the_api_server() -> None:
    cluster, uses = FakeCluster(lambda: NOW), SavepointUses(ObjectCache())
    cluster.add(job("fork", spec={"restoreFrom": {"savepoint": "monday"}}))

    assert uses.shown(NAMESPACE, NOW).users(SAVEPOINT) == ()
    assert asked(uses, cluster) == ("fork",)


def test_many_that_remove_something_at_once_ask_the_api_server_once() -> None:
    cluster, jobs = FakeCluster(lambda: NOW), ObjectCache()
    uses = SavepointUses(jobs)

    async def many() -> None:
        await asyncio.gather(*(uses.ask(cluster, NAMESPACE, NOW) for _ in range(20)))

    asyncio.run(many())
    assert len(cluster.calls) == 1
    # What the watch shows counts at once, and the API server is asked again soon.
    wanted = {"restoreFrom": {"savepoint": "monday"}}
    jobs.put(Key(NAMESPACE, "fork"), job("fork", spec=wanted))
    assert asked(uses, cluster) == ("fork",)
    cluster.add(job("other", spec=wanted))
    assert asked(uses, cluster, later=timedelta(seconds=6)) == ("fork", "other")
    assert len(cluster.calls) == 2


@pytest.mark.parametrize(
    ("record", "wanted"),
    [
        ({"run": RUN, "ofANewerOperator": True}, None),
        ({"run": {"source": [{"savepoint": "monday"}]}, "removed": "yes"}, "visits"),
        ("damaged", {"savepoint": "monday"}),
    ],
    ids=["as given", "of the job itself", "in the spec"],
)
def test_a_job_whose_record_cannot_be_read_needs_whatever_it_may_be_about(
    record: Any, wanted: Any
) -> None:
    cluster = FakeCluster(lambda: NOW)
    name = wanted if isinstance(wanted, str) else "fork"
    spec = {"restoreFrom": wanted} if isinstance(wanted, dict) else {}
    cluster.add(job(name, spec=spec))
    status = {"record": record}
    cluster.edit(JOBS, NAMESPACE, name, lambda body: body.update(status=status))

    assert asked(SavepointUses(ObjectCache()), cluster) == (name,)


def test_what_the_job_itself_names_is_not_removed() -> None:
    simulation = running(
        savepoints={**SPEC["savepoints"], "retention": {"last": 1}},
    )
    for name, hours in (("new", 1), ("named", 2), ("old", 3)):
        add_savepoint(simulation, name, age=hours * HOUR)
    simulation.edit(restoreFrom={"savepoint": "named"}, suspend=True)
    simulation.settle(lambda: "old" not in left(simulation), passes=400)

    assert "named" in left(simulation)
    assert f"used by {NAME}" in simulation.savepoint("named")["status"]["keptBecause"]


def test_what_the_job_itself_has_begun_to_name_is_not_removed_though_the_watch_lags() -> None:
    simulation = running(savepoints={**SPEC["savepoints"], "retention": {"last": 1}})
    add_savepoint(simulation, "new", age=HOUR)
    add_savepoint(simulation, "named", age=2 * HOUR, retention={"ttl": "2h1m"})
    pass_time(simulation, timedelta(minutes=1))
    assert left(simulation) == ["named", "new"]
    simulation.feed()

    simulation.edit(restoreFrom={"savepoint": "named"})
    simulation.world.now += timedelta(seconds=20)
    add_savepoint(simulation, "older", age=3 * HOUR)
    simulation.operator.savepoint_cache.put(KEY, simulation.savepoint("older"))
    setattr(simulation, "feed", lambda: None)  # noqa: B010 - the watch shows nothing for now
    simulation.run_pass()

    assert "deletionTimestamp" in metadata(simulation.savepoint("older"))
    assert "deletionTimestamp" not in metadata(simulation.savepoint("named"))


def test_what_another_job_names_is_not_removed() -> None:
    simulation = running(savepoints={**SPEC["savepoints"], "retention": {"last": 1}})
    for name, hours in (("new", 1), ("forked", 2), ("old", 3)):
        add_savepoint(simulation, name, age=hours * HOUR)
    # The watch has not shown it yet.
    simulation.cluster.add(job("fork", spec={"restoreFrom": {"savepoint": "forked"}}))

    simulation.settle(lambda: left(simulation) == ["forked", "new"], passes=400)

    assert simulation.savepoint("forked")["status"]["keptBecause"] == ["used by fork"]
    assert simulation.savepoint("new")["status"]["keptBecause"][0] == "newest"


@pytest.mark.parametrize("call", range(6))
@pytest.mark.parametrize("after", [False, True])
def test_an_operator_that_dies_while_it_removes_savepoints_is_followed(
    call: int, after: bool
) -> None:
    simulation = running(savepoints={**SPEC["savepoints"], "retention": {"last": 1}})
    simulation.world.answers = lambda pod: {"answer": "Disposed"}
    add_savepoint(simulation, "new", age=HOUR)
    add_savepoint(simulation, "old", age=2 * HOUR)
    add_savepoint(simulation, "failed", age=25 * HOUR, phase="Failed")
    simulation.cluster.crash = (len(simulation.cluster.calls) + call, after)

    simulation.settle(lambda: left(simulation) == ["new"])

    assert simulation.crashes == 1
    assert simulation.savepoint("new")["status"]["keptBecause"][0] == "newest"


def test_a_savepoint_that_another_job_names_keeps_its_data_when_it_is_deleted() -> None:
    simulation = running()
    add_savepoint(simulation, "forked", age=HOUR, onDelete="Delete")
    simulation.cluster.add(job("fork", spec={"restoreFrom": {"savepoint": "forked"}}))

    simulation.cluster.remove(SAVEPOINTS, NAMESPACE, "forked")
    simulation.settle(lambda: left(simulation) == [], longest=60)

    assert simulation.pods("worker") == []
    assert "DataRetained" in simulation.events()


def test_a_savepoint_whose_own_job_cannot_be_read_keeps_its_data() -> None:
    simulation = running()
    add_savepoint(simulation, "mine", age=HOUR, onDelete="Delete")
    record = {"run": {"source": {"savepoint": "mine"}}}
    simulation.cluster.edit(
        JOBS, NAMESPACE, NAME, lambda body: body["status"].update(record=record)
    )
    simulation.cluster.remove(SAVEPOINTS, NAMESPACE, "mine")

    simulation.run_savepoints()

    assert left(simulation) == ["mine"]
    assert "go back to it" in simulation.savepoint("mine")["status"]["message"]
    assert simulation.pods("worker") == []


def test_a_savepoint_that_stays_after_all_keeps_its_data_when_somebody_deletes_it() -> None:
    simulation = running()
    # An operator died between the word that it goes and its deletion; then it got a tag.
    add_savepoint(simulation, "kept", age=HOUR, record={"expired": True}, tags=["gold"])
    simulation.settle(lambda: "keptBecause" in simulation.savepoint("kept")["status"])
    simulation.world.answers = lambda pod: None

    simulation.cluster.remove(SAVEPOINTS, NAMESPACE, "kept")
    simulation.run_savepoints()

    assert left(simulation) == []
    assert simulation.pods("worker") == []


def test_why_a_savepoint_stays_is_written_once() -> None:
    rules = {"last": 2, "maxAge": "10h"}
    simulation = running(savepoints={**SPEC["savepoints"], "retention": rules})
    for name, hours in (("new", 1), ("older", 2)):
        add_savepoint(simulation, name, age=hours * HOUR)
    simulation.settle(lambda: "keptBecause" in simulation.savepoint("older")["status"])
    status = simulation.savepoint("older")["status"]
    assert status["keptBecause"] == ["last"]
    assert status["expiresAt"] > simulation.world.now.isoformat()
    simulation.run_savepoints()
    simulation.cluster.calls.clear()

    pass_time(simulation, timedelta(minutes=30))

    written = [name for verb, kind, name in simulation.cluster.writes if kind == "SparkSavepoint"]
    assert written == []
    assert simulation.savepoint("older")["status"]["expiresAt"] == status["expiresAt"]


@pytest.mark.parametrize("stamp", ["000000000000", "202613011200"])
def test_a_savepoint_whose_name_is_nearly_one_of_the_schedule_holds_nothing_up(stamp: str) -> None:
    simulation = running()
    add_savepoint(simulation, f"{NAME}-periodic-{stamp}", age=HOUR, trigger="Manual")
    driver = next(iter(simulation.world.drivers.values()))

    driver.end(EndReason.SCRIPT_FAILED, 1, "a bug", clean=False)

    simulation.settle(lambda: simulation.is_running() and simulation.status["attempt"] == 2)


SCRIPT = {"configMap": {"name": "code", "key": "job.py"}}


def removed(pod: Object) -> dict[str, Any]:
    """What a worker answers that removes a savepoint or checkpoints."""
    arguments = pod["spec"]["containers"][0]["args"]
    return {"answer": "Disposed" if "dispose" in arguments else "Removed"}


def running_from_config_map(**changes: Any) -> Simulation:
    simulation = Simulation({**SPEC, "application": {"script": SCRIPT}, **changes})
    simulation.world.answers = removed
    simulation.cluster.add(
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": "code", "namespace": NAMESPACE},
            "data": {"job.py": "print('one')"},
        }
    )
    begin(simulation)
    return simulation


def lose_script(simulation: Simulation) -> None:
    simulation.cluster.erase(CONFIG_MAPS, NAMESPACE, "code")


def mistype(simulation: Simulation) -> None:
    simulation.edit(image="")


@pytest.mark.parametrize("spoil", [lose_script, mistype])
def test_savepoints_that_newer_rules_keep_stay_while_the_spec_cannot_be_carried_out(
    spoil: Callable[[Simulation], None],
) -> None:
    saved = SPEC["savepoints"]
    simulation = running_from_config_map(savepoints={**saved, "retention": {"last": 1}})
    simulation.edit(savepoints={**saved, "retention": {"last": 30}})
    pass_time(simulation, timedelta(minutes=1))
    for number in range(4):
        add_savepoint(simulation, f"kept-{number}", age=(number + 1) * HOUR)

    spoil(simulation)
    pass_time(simulation, 2 * HOUR)

    assert simulation.condition("Accepted")["status"] == "False"
    assert left(simulation) == [f"kept-{number}" for number in range(4)]


def test_savepoints_go_by_the_present_rules_though_the_script_is_missing() -> None:
    saved = SPEC["savepoints"]
    simulation = running_from_config_map(savepoints={**saved, "retention": {"last": 30}})
    add_savepoint(simulation, "new", age=HOUR)
    add_savepoint(simulation, "old", age=2 * HOUR)
    lose_script(simulation)
    pass_time(simulation, timedelta(minutes=1))

    simulation.edit(savepoints={**saved, "retention": {"last": 1}})

    simulation.settle(lambda: left(simulation) == ["new"])


def test_savepoints_have_their_time_again_once_the_spec_is_corrected() -> None:
    simulation = running(savepoints={**SPEC["savepoints"], "retention": {"last": 1}})
    simulation.world.answers = removed
    mistype(simulation)
    add_savepoint(simulation, "new", age=HOUR)
    add_savepoint(simulation, "old", age=2 * HOUR)
    pass_time(simulation, timedelta(minutes=1))
    assert left(simulation) == ["new", "old"]

    simulation.edit(image=SPEC["image"])

    simulation.settle(lambda: left(simulation) == ["new"])


def deleted_with(
    spoil: Callable[[Simulation], None], *, stored: str, present: str | None
) -> Simulation:
    """A job that is deleted while its spec cannot be carried out; its savepoint is `mine`."""

    def parts(word: str | None) -> dict[str, Any]:
        said = {} if word is None else {"onDelete": word}
        return {name: {**SPEC[name], **said} for name in ("checkpoint", "savepoints")}

    simulation = running_from_config_map(**parts(stored))
    simulation.edit(**parts(present))
    pass_time(simulation, timedelta(minutes=1))
    add_savepoint(simulation, "mine", age=HOUR)
    spoil(simulation)
    pass_time(simulation, timedelta(minutes=2))
    simulation.cluster.remove(JOBS, NAMESPACE, NAME)
    simulation.settle(lambda: is_released(simulation))
    return simulation


@pytest.mark.parametrize("spoil", [lose_script, mistype])
@pytest.mark.parametrize("present", ["Retain", None])
def test_what_a_job_says_to_retain_stays_though_its_spec_cannot_be_carried_out(
    spoil: Callable[[Simulation], None], present: str | None
) -> None:
    simulation = deleted_with(spoil, stored="Delete", present=present)

    assert simulation.pods("worker") == []
    assert left(simulation) == ["mine"]


@pytest.mark.parametrize("spoil", [lose_script, mistype])
def test_what_a_job_has_always_said_to_delete_goes_though_its_spec_cannot_be_carried_out(
    spoil: Callable[[Simulation], None],
) -> None:
    simulation = deleted_with(spoil, stored="Delete", present="Delete")

    assert len(simulation.pods("worker")) == 1
    assert left(simulation) == []


@pytest.mark.parametrize("odd", ["Delte", 3, None])
def test_what_cannot_be_read_says_nothing_about_removing(odd: object) -> None:
    def spoil(simulation: Simulation) -> None:
        simulation.edit(checkpoint={**SPEC["checkpoint"], "onDelete": odd}, savepoints=odd, image=1)

    simulation = deleted_with(spoil, stored="Delete", present="Delete")

    assert simulation.pods("worker") == []
    assert left(simulation) == ["mine"]


def judgements(monkeypatch: pytest.MonkeyPatch) -> list[datetime]:
    """When savepoints were judged."""
    found: list[datetime] = []

    def counted(*arguments: Any, now: datetime, **more: Any) -> tuple[Verdict, ...]:
        found.append(now)
        return judge(*arguments, now=now, **more)

    monkeypatch.setattr("sparkpoint.controller.upkeep.judge", counted)
    return found


def test_savepoints_that_stay_are_not_judged_at_every_look(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    simulation = running()
    for number in range(3):
        add_savepoint(simulation, f"kept-{number}", age=number * HOUR, trigger="Manual")
    pass_time(simulation, timedelta(minutes=5))
    found = judgements(monkeypatch)

    pass_time(simulation, timedelta(minutes=30))

    assert len(found) <= 1


def test_savepoints_are_judged_again_once_other_rules_hold(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever it was that made them hold: it need not be a change of the job's own."""
    saved = SPEC["savepoints"]
    simulation = running(savepoints={**saved, "retention": {"last": 30}})
    simulation.world.answers = removed
    add_savepoint(simulation, "new", age=HOUR)
    add_savepoint(simulation, "old", age=2 * HOUR)
    pass_time(simulation, timedelta(minutes=5))
    fewer = JobSpec.model_validate({**SPEC, "savepoints": {**saved, "retention": {"last": 1}}})
    read = Intents.read

    async def other(self: Intents, job: Job, *, afresh: bool = False) -> Intent:
        return replace(await read(self, job, afresh=afresh), spec=fewer)

    monkeypatch.setattr(Intents, "read", other)

    simulation.settle(lambda: left(simulation) == ["new"], passes=60)


def test_a_savepoint_whose_time_comes_goes_though_nothing_else_happens(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    simulation = running()
    add_savepoint(simulation, "new", age=HOUR, trigger="Manual")
    add_savepoint(simulation, "old", age=2 * HOUR, retention={"ttl": "150m"})
    pass_time(simulation, timedelta(minutes=5))
    end = simulation.world.now + timedelta(minutes=25)
    found = judgements(monkeypatch)

    simulation.settle(
        lambda: "deletionTimestamp" in metadata(simulation.savepoint("old")),
        passes=1000,
        longest=60,
    )

    assert end <= simulation.world.now < end + timedelta(minutes=2)
    assert len(found) <= 4


def test_a_savepoint_that_another_job_begins_to_name_is_told_so() -> None:
    simulation = running()
    add_savepoint(simulation, "kept", age=HOUR, trigger="Manual")
    pass_time(simulation, timedelta(minutes=5))
    assert simulation.savepoint("kept")["status"]["keptBecause"] == ["newest", "trigger Manual"]

    body = job("fork", spec={"restoreFrom": {"savepoint": "kept"}})
    simulation.operator.job_cache.put(Key(NAMESPACE, "fork"), body)
    pass_time(simulation, timedelta(minutes=2))

    assert "used by fork" in simulation.savepoint("kept")["status"]["keptBecause"]


def test_a_pass_tells_of_a_few_savepoints_and_the_next_ones_of_the_rest() -> None:
    simulation = running()
    for number in range(12):
        add_savepoint(simulation, f"kept-{number}", age=HOUR, trigger="Manual")
    simulation.cluster.calls.clear()
    told = []

    for _ in range(3):
        requeue = simulation.run_pass()
        written = [
            name for verb, kind, name in simulation.cluster.writes if kind == "SparkSavepoint"
        ]
        told.append((len(written), requeue.seconds <= 1))

    assert told == [(5, True), (10, True), (12, False)]


def test_failures_that_nobody_asked_for_go_after_a_day_and_without_a_worker() -> None:
    simulation = running()
    add_savepoint(simulation, "good", age=HOUR)
    add_savepoint(simulation, "failed", age=25 * HOUR, phase="Failed")
    add_savepoint(simulation, "mine", age=25 * HOUR, phase="Failed", trigger="Manual")

    simulation.settle(lambda: "failed" not in left(simulation))

    assert left(simulation) == ["good", "mine"]
    assert simulation.pods("worker") == []


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        (SERVICES, "visits-ui"),
        (CONFIG_MAPS, "visits-e1-a1"),
        (BUDGETS, "visits-e1-a1"),
        (SECRETS, "visits-e1-agent"),
    ],
)
def test_what_somebody_deletes_beside_a_driver_is_made_again(kind: Kind, name: str) -> None:
    simulation = running()
    before = simulation.cluster.find(kind, NAMESPACE, name)
    assert before is not None
    simulation.cluster.erase(kind, NAMESPACE, name)

    pass_time(simulation, timedelta(minutes=11))

    after = simulation.cluster.find(kind, NAMESPACE, name)
    assert after is not None
    content = ("spec", "data", "immutable")
    assert [after.get(part) for part in content] == [before.get(part) for part in content]
    assert (simulation.status["epoch"], simulation.status["attempt"]) == (1, 1)
    assert simulation.is_running()


def add_pending(simulation: Simulation, number: int, *, node: str | None = "one") -> None:
    """An executor that replaces one which died, and does not start."""
    [driver] = simulation.pods("driver")
    simulation.world.add_executor(driver, number)
    hold_up(simulation, f"{metadata(driver)['name']}-exec-{number}", node=node)


def hold_up(simulation: Simulation, name: str, *, node: str | None) -> None:
    """A pod does not start."""

    def change(body: Object) -> None:
        body["spec"] |= {"nodeName": node} if node is not None else {}
        body["status"] = {"phase": "Pending"}

    simulation.cluster.edit(PODS, NAMESPACE, name, change)


def test_what_keeps_an_executor_from_starting_is_made_again_at_once() -> None:
    simulation = running()
    simulation.cluster.erase(CONFIG_MAPS, NAMESPACE, "visits-e1-a1")

    add_pending(simulation, 3)
    pass_time(simulation, timedelta(seconds=10))
    patient = simulation.cluster.find(CONFIG_MAPS, NAMESPACE, "visits-e1-a1")
    pass_time(simulation, timedelta(seconds=30))

    assert patient is None
    assert simulation.cluster.find(CONFIG_MAPS, NAMESPACE, "visits-e1-a1") is not None


def test_a_driver_that_does_not_start_is_given_what_somebody_deleted() -> None:
    simulation = Simulation()
    simulation.run_pass()
    simulation.run_pass()
    [driver] = simulation.pods("driver")
    simulation.world.unschedulable = True
    hold_up(simulation, metadata(driver)["name"], node="one")
    simulation.cluster.erase(CONFIG_MAPS, NAMESPACE, "visits-e1-a1")

    pass_time(simulation, timedelta(seconds=30))

    assert simulation.cluster.find(CONFIG_MAPS, NAMESPACE, "visits-e1-a1") is not None


@pytest.mark.parametrize(("node", "looks"), [("one", 2), (None, 0)])
def test_each_pod_that_does_not_start_is_a_reason_to_look_once(
    node: str | None, looks: int
) -> None:
    simulation = running()
    look, calls = ("get", "ConfigMap", "visits-e1-a1"), simulation.cluster.calls
    simulation.settle(lambda: look in calls, passes=1000, longest=60)
    calls.clear()

    for number in (3, 4):
        add_pending(simulation, number, node=node)
        pass_time(simulation, timedelta(minutes=2))

    assert calls.count(look) == looks


@pytest.mark.parametrize("restarted", [False, True])
def test_a_revision_that_somebody_deletes_is_kept_again(restarted: bool) -> None:
    simulation = running()
    [before] = simulation.cluster.all(REVISIONS, NAMESPACE)
    simulation.cluster.erase(REVISIONS, NAMESPACE, metadata(before)["name"])
    if restarted:
        simulation.restart()

    pass_time(simulation, timedelta(minutes=11))

    [after] = simulation.cluster.all(REVISIONS, NAMESPACE)
    assert metadata(after)["name"] == metadata(before)["name"]
    assert after["data"] == before["data"]


def test_a_driver_that_follows_finds_its_secret_although_somebody_deleted_it() -> None:
    simulation = running()
    simulation.cluster.erase(SECRETS, NAMESPACE, "visits-e1-agent")
    [driver] = simulation.world.drivers.values()

    driver.end(EndReason.SCRIPT_FAILED, 1, "boom", clean=False)
    simulation.settle(lambda: simulation.is_running() and simulation.status["attempt"] == 2)

    assert simulation.cluster.find(SECRETS, NAMESPACE, "visits-e1-agent") is not None


@pytest.mark.parametrize("error", [ForbiddenError("no"), UnprocessableError("bad")])
def test_a_repair_that_is_refused_holds_nothing_else_up(
    error: ClusterError, caplog: pytest.LogCaptureFixture
) -> None:
    simulation = running(savepoints={**SPEC["savepoints"], "retention": {"last": 1}})
    simulation.cluster.erase(SERVICES, NAMESPACE, "visits-ui")
    simulation.cluster.erase(BUDGETS, NAMESPACE, "visits-e1-a1")

    def refuse(verb: str, what: Object | str) -> ClusterError | None:
        return error if isinstance(what, dict) and what["kind"] == "Service" else None

    simulation.cluster.refuse = refuse
    pass_time(simulation, timedelta(minutes=11))
    add_savepoint(simulation, "new", age=HOUR)
    add_savepoint(simulation, "old", age=2 * HOUR)
    simulation.world.answers = lambda pod: {"answer": "Disposed"}
    simulation.settle(lambda: left(simulation) == ["new"])

    assert simulation.cluster.find(BUDGETS, NAMESPACE, "visits-e1-a1") is not None
    told = [each.getMessage() for each in caplog.records if each.levelname == "WARNING"]
    assert len(told) == 1
    assert told[0].startswith(f"{NAMESPACE}/{NAME}: Service visits-ui cannot be put right: {error}")


def test_a_revision_beside_the_run_that_cannot_be_read_is_told_and_holds_nothing_up(
    caplog: pytest.LogCaptureFixture,
) -> None:
    simulation = running()
    (first,) = simulation.cluster.all(REVISIONS, NAMESPACE)
    proven = simulation.status["record"]["stable"]
    simulation.edit(application={"script": {"path": "/opt/job/better.py"}})
    simulation.settle(lambda: simulation.is_running() and simulation.status["epoch"] == 2)

    def go_back_to_the_first(body: Object) -> None:
        body["status"]["record"]["stable"] = proven

    def damage(body: Object) -> None:
        body["data"]["spec"]["checkpoint"] = "of another form"

    simulation.cluster.edit(JOBS, NAMESPACE, NAME, go_back_to_the_first)
    simulation.cluster.edit(REVISIONS, NAMESPACE, metadata(first)["name"], damage)
    simulation.restart()

    pass_time(simulation, timedelta(minutes=15))

    assert "RecordUnreadable" not in simulation.events()
    told = [each.getMessage() for each in caplog.records if each.levelname == "WARNING"]
    assert any(f"{metadata(first)['name']} cannot be read" in each for each in told)


def test_a_repair_that_the_api_server_does_not_answer_is_done_soon_and_holds_nothing_up() -> None:
    simulation = running(savepoints={**SPEC["savepoints"], "retention": {"last": 1}})
    simulation.world.answers = lambda pod: {"answer": "Disposed"}
    simulation.cluster.erase(SERVICES, NAMESPACE, "visits-ui")
    simulation.cluster.refuse = lambda verb, what: (
        UnavailableError("busy") if what == "Service/visits-ui" else None
    )
    pass_time(simulation, timedelta(minutes=11))
    add_savepoint(simulation, "new", age=HOUR)
    add_savepoint(simulation, "old", age=2 * HOUR)
    simulation.settle(lambda: left(simulation) == ["new"])
    simulation.cluster.refuse = lambda verb, what: None
    pass_time(simulation, timedelta(minutes=2))

    assert simulation.cluster.find(SERVICES, NAMESPACE, "visits-ui") is not None


def port_of(simulation: Simulation) -> int:
    service = simulation.cluster.find(SERVICES, NAMESPACE, "visits-ui")
    assert service is not None
    port: int = service["spec"]["ports"][0]["port"]
    return port


def test_the_service_follows_the_port_of_the_pages() -> None:
    simulation = running()
    assert port_of(simulation) == 4040

    simulation.edit(sparkConf={"spark.ui.port": "4141"})
    simulation.settle(lambda: simulation.is_running() and simulation.status["epoch"] == 2)
    simulation.run_pass()

    assert port_of(simulation) == 4141


def test_a_service_that_somebody_changed_is_put_right_and_keeps_its_address() -> None:
    simulation = running()

    def change(body: Object) -> None:
        body["spec"]["selector"] = {"app": "mine"}
        body["spec"]["clusterIP"] = "10.96.0.7"

    simulation.cluster.edit(SERVICES, NAMESPACE, "visits-ui", change)
    pass_time(simulation, timedelta(minutes=11))

    service = simulation.cluster.find(SERVICES, NAMESPACE, "visits-ui")
    assert service is not None
    assert service["spec"]["selector"]["sparkpoint.dev/job"] == NAME
    assert service["spec"]["clusterIP"] == "10.96.0.7"


def test_looking_for_what_was_changed_costs_little() -> None:
    simulation = running()
    pass_time(simulation, timedelta(minutes=11))
    simulation.cluster.calls.clear()

    pass_time(simulation, timedelta(minutes=30))

    asked = [call for call in simulation.cluster.calls if call[0] != "ask"]
    progress = [call for call in asked if call[:2] == ("status", "StatefulSparkJob")]
    # Five objects each time, and once the sweep for what an operator before may have left.
    assert len(asked) - len(progress) <= 3 * 5 + 4


def with_sidecar(simulation: Simulation) -> None:
    """The kubelet of pods whose sidecar runs on when Spark has ended."""
    world = simulation.world

    def terminate(pod: Object, code: int, message: str) -> None:
        name = pod["spec"]["containers"][0]["name"]
        ended = {"exitCode": code, "reason": "Error" if code else "Completed", "message": message}
        statuses = [
            {"name": name, "state": {"terminated": ended}},
            {"name": "proxy", "state": {"running": {}}},
        ]
        world.set_status(pod, {"phase": "Running", "containerStatuses": statuses})

    setattr(world, "_terminate", terminate)  # noqa: B010 - a test's own kubelet


def test_a_driver_with_a_sidecar_is_followed_by_another_and_its_pod_ends() -> None:
    simulation = running()
    with_sidecar(simulation)
    [driver] = simulation.world.drivers.values()

    driver.end(EndReason.SCRIPT_FAILED, 1, "boom", clean=False)
    simulation.settle(lambda: simulation.is_running() and simulation.status["attempt"] == 2)

    assert not [pod for pod in simulation.pods("driver") if lingers(pod)]
    assert simulation.status["driver"]["reason"] == "ScriptFailed"
    assert simulation.status["driver"]["exitCode"] == 1


def test_a_job_with_a_sidecar_is_suspended_with_its_savepoint() -> None:
    simulation = running()
    with_sidecar(simulation)
    for driver in simulation.world.drivers.values():
        driver.hasty = True

    simulation.edit(suspend=True)
    simulation.settle(lambda: simulation.status["phase"] == "Suspended")
    simulation.settle(lambda: not simulation.pods("driver"))

    assert simulation.status["lastOperation"]["result"] == "Succeeded"
    assert simulation.status["lastSavepoint"]["batch"] is not None


def test_trials_that_never_start_do_not_pile_up() -> None:
    upgrade = {"compatibility": "Enforce", "rollback": {"deadline": "1m"}}
    simulation = running(upgrade=upgrade)
    add_savepoint(simulation, "base", age=timedelta(0))
    simulation.settle(lambda: "lastSavepoint" in simulation.status)
    simulation.world.answers = lambda pod: None

    simulation.edit(application={"script": {"path": "/opt/job/better.py"}})
    simulation.settle(lambda: simulation.condition("Degraded")["reason"] == "NotPrepared")
    for _ in range(3):
        simulation.settle(lambda: "operation" in simulation.status, longest=30)
        simulation.settle(lambda: "operation" not in simulation.status, longest=30)
    pass_time(simulation, timedelta(seconds=5))

    assert simulation.status["lastOperation"]["kind"] == "Upgrade"
    assert len(simulation.pods("worker")) <= 1
    configurations = [
        metadata(body)["name"] for body in simulation.cluster.all(CONFIG_MAPS, NAMESPACE)
    ]
    assert configurations == ["visits-e1-a1"]


def wait_in_line(simulation: Simulation, reason: str, message: str) -> None:
    [pod] = simulation.pods("driver")
    waiting = {"waiting": {"reason": reason, "message": message}}
    name = pod["spec"]["containers"][0]["name"]
    status = {"phase": "Pending", "containerStatuses": [{"name": name, "state": waiting}]}
    simulation.world.set_status(pod, status)


@pytest.mark.parametrize(
    ("reason", "message", "words"),
    [
        ("CreateContainerConfigError", 'secret "s3" not found', "storage.secretName"),
        ("ImagePullBackOff", 'Back-off pulling image "nowhere/no:1"', "spec.image"),
    ],
)
def test_a_driver_that_does_not_start_is_told_with_what_it_lacks(
    reason: str, message: str, words: str
) -> None:
    simulation = Simulation()
    simulation.world.unschedulable = True
    simulation.settle(lambda: bool(simulation.pods("driver")))
    wait_in_line(simulation, reason, message)

    simulation.run_pass()
    told = [simulation.condition(name)["message"] for name in ("Progressing", "Ready")]
    assert any(message in each and words in each for each in told)
    pass_time(simulation, timedelta(minutes=2))

    degraded = simulation.condition("Degraded")
    assert degraded["status"] == "True"
    assert message in degraded["message"]
    assert words in degraded["message"]


def test_executors_are_told_of_if_none_of_them_starts() -> None:
    simulation = running()
    message = "0/3 nodes are available: 3 Insufficient memory."
    condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
    first, second = simulation.pods("executor")

    def hold_up(pod: Object) -> None:
        conditions = [{**condition, "message": message}]
        simulation.world.set_status(pod, {"phase": "Pending", "conditions": conditions})

    hold_up(first)
    pass_time(simulation, timedelta(minutes=2))
    assert simulation.condition("Degraded")["status"] == "False"
    hold_up(second)
    pass_time(simulation, timedelta(minutes=2))

    assert message in simulation.condition("Degraded")["message"]


def test_a_driver_whose_volume_is_missing_is_told() -> None:
    simulation = Simulation()
    simulation.world.unschedulable = True
    simulation.settle(lambda: bool(simulation.pods("driver")))
    wait_in_line(simulation, "ContainerCreating", "")

    pass_time(simulation, timedelta(minutes=5))

    assert "kubectl describe pod visits-e1-a1" in simulation.condition("Degraded")["message"]
