"""What the operator counts: the page, its figures, and what becomes of those of a job that goes."""

import asyncio
import time
from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta

from prometheus_client.parser import text_string_to_metric_families

from sparkpoint.controller.cluster import JOBS, SAVEPOINTS
from sparkpoint.controller.keys import EPOCH, Key
from sparkpoint.controller.metrics import JobFigures, Metrics
from sparkpoint.controller.passes import Gate, Passes, Requeue
from sparkpoint.controller.podfacts import label
from tests.unit.controller.simulation import KEY, NAME, NAMESPACE, SPEC, Simulation, is_released

Samples = dict[tuple[tuple[str, str], ...], float]
NEW_CODE = {"application": {"script": {"path": "/opt/job/better.py"}}}
HOURLY = {**SPEC["savepoints"], "schedule": "0 * * * *"}
VISITS = {"namespace": NAMESPACE, "job": NAME}


def samples(page: str, name: str) -> Samples:
    """Sorted labels -> value, of one metric."""
    return {
        tuple(sorted(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(page)
        for sample in family.samples
        if sample.name == name
    }


def one(page: str, name: str, labels: Mapping[str, str] | None = None) -> float | None:
    return samples(page, name).get(tuple(sorted((labels or {}).items())))


def page_of(simulation: Simulation) -> str:
    return simulation.operator.metrics.render()


def timed(simulation: Simulation) -> Simulation:
    """With metrics that go by the clock of the simulation."""
    simulation.operator.metrics._now = simulation.world.now.timestamp
    return simulation


def test_prometheus_can_read_the_page() -> None:
    metrics = Metrics()
    metrics.passed("job", "done", 0.02)
    metrics.passed("job", "error", 2.0)
    metrics.ended("Upgrade", "Succeeded", seconds=42.0, downtime=1.5)
    metrics.seen("job", KEY, "Running")
    metrics.asked("list", "pods", "200")
    metrics.asked("list", "pods", "200")
    metrics.asked("list", "pods", "0")

    page = metrics.render()

    families = list(text_string_to_metric_families(page))
    assert all(each.documentation and each.type != "unknown" for each in families)
    assert len({each.name for each in families}) == len(families)
    passes = samples(page, "sparkpoint_operator_passes_total")
    assert passes == {
        (("kind", "job"), ("result", "done")): 1,
        (("kind", "job"), ("result", "error")): 1,
    }
    bucket = "sparkpoint_operator_pass_duration_seconds_bucket"
    buckets = {le: one(page, bucket, {"kind": "job", "le": le}) for le in ("0.05", "5.0", "+Inf")}
    assert buckets == {"0.05": 1, "5.0": 2, "+Inf": 2}
    requests = "sparkpoint_operator_api_requests_total"
    assert one(page, requests, {"verb": "list", "resource": "pods", "code": "200"}) == 2
    assert one(page, requests, {"verb": "list", "resource": "pods", "code": "0"}) == 1
    used = one(page, "process_cpu_seconds_total")
    assert used is not None
    assert 0 < used <= time.process_time() + 0.001


def test_what_a_clock_that_was_set_back_measured_lowers_no_sum() -> None:
    metrics = Metrics()
    metrics.ended("Upgrade", "Succeeded", seconds=40.0, downtime=2.0)
    metrics.ended("Upgrade", "Succeeded", seconds=-40.0, downtime=-2.0)

    page, upgrade = metrics.render(), {"kind": "Upgrade"}
    assert one(page, "sparkpoint_operation_seconds_sum", upgrade) == 40.0
    assert one(page, "sparkpoint_operation_downtime_seconds_sum", upgrade) == 2.0


def test_resources_are_counted_by_phase_and_those_that_go_are_not() -> None:
    metrics, other = Metrics(), Key("shop", "other")
    for phase in ("Starting", "Running"):
        metrics.seen("job", KEY, phase)
    metrics.seen("job", other, "Running")
    metrics.seen("savepoint", other, "Completed")

    before = samples(metrics.render(), "sparkpoint_operator_resources")
    metrics.gone("job", other)
    metrics.gone("job", other)

    running, completed = (("kind", "job"), ("phase", "Running")), ("phase", "Completed")
    assert before == {running: 2, (("kind", "savepoint"), completed): 1}
    after = samples(metrics.render(), "sparkpoint_operator_resources")
    assert after == {running: 1, (("kind", "savepoint"), completed): 1}


def test_ages_are_those_of_the_moment_in_which_they_are_read() -> None:
    moments = iter([100.0, 160.0])
    metrics = Metrics(now=lambda: next(moments))
    metrics.figures(KEY, JobFigures(savepoint_at=90.0, verified_at=200.0))

    first, second = metrics.render(), metrics.render()

    assert one(first, "sparkpoint_savepoint_age_seconds", VISITS) == 10
    assert one(second, "sparkpoint_savepoint_age_seconds", VISITS) == 70
    # A clock that is ahead of ours makes nothing younger than new.
    assert one(second, "sparkpoint_savepoint_verified_age_seconds", VISITS) == 0


def test_an_operator_that_waits_tells_nothing_of_jobs() -> None:
    metrics = Metrics()
    metrics.seen("job", KEY, "Running")
    metrics.figures(KEY, JobFigures(degraded="GaveUp", savepoint_at=1.0))

    metrics.acts = lambda: False

    page = metrics.render()
    assert one(page, "sparkpoint_leader") == 0
    assert NAME not in page
    assert samples(page, "sparkpoint_operator_resources") == {}


def test_an_upgrade_is_counted_once_with_its_time_and_its_downtime() -> None:
    simulation = Simulation()
    simulation.settle(simulation.is_running)
    simulation.edit(**NEW_CODE)
    simulation.settle(lambda: simulation.is_running() and simulation.status["epoch"] == 2)
    for _ in range(3):
        simulation.run_pass()

    page, last = page_of(simulation), simulation.status["lastOperation"]
    assert samples(page, "sparkpoint_operations_total") == {
        (("kind", "Start"), ("result", "Succeeded")): 1,
        (("kind", "Upgrade"), ("result", "Succeeded")): 1,
    }
    upgrade = {"kind": "Upgrade"}
    assert one(page, "sparkpoint_operation_seconds_count", upgrade) == 1
    assert one(page, "sparkpoint_operation_downtime_seconds_count", upgrade) == 1
    downtime = one(page, "sparkpoint_operation_downtime_seconds_sum", upgrade)
    assert downtime == last["downtimeSeconds"]
    # Nothing was down before the first start.
    assert one(page, "sparkpoint_operation_downtime_seconds_count", {"kind": "Start"}) is None


def test_an_operation_that_gives_way_to_another_in_one_pass_is_counted_too() -> None:
    simulation = Simulation()
    simulation.settle(simulation.is_running)
    simulation.world.broken = lambda pod: label(pod, EPOCH) == "2"
    simulation.edit(**NEW_CODE)
    simulation.settle(lambda: simulation.is_running() and simulation.status["epoch"] > 2)

    ended = samples(page_of(simulation), "sparkpoint_operations_total")
    assert ended == {
        (("kind", "Start"), ("result", "Succeeded")): 1,
        (("kind", "Upgrade"), ("result", "RolledBack")): 1,
        (("kind", "Rollback"), ("result", "Succeeded")): 1,
    }


def test_what_is_known_of_savepoints_is_told_and_goes_with_the_job() -> None:
    spec = {**SPEC, "savepoints": {**SPEC["savepoints"], "schedule": "0 */6 * * *"}}
    simulation = timed(Simulation(spec))
    simulation.settle(simulation.is_running)
    simulation.edit(**NEW_CODE)
    simulation.settle(lambda: simulation.is_running() and simulation.status["epoch"] == 2)
    simulation.run_pass()

    page = page_of(timed(simulation))
    age = one(page, "sparkpoint_savepoint_age_seconds", VISITS)
    assert age is not None
    assert 0 <= age < 600
    assert one(page, "sparkpoint_savepoint_bytes", VISITS) == 4096
    assert one(page, "sparkpoint_savepoint_new_bytes", VISITS) == 2048
    assert one(page, "sparkpoint_savepoint_interval_seconds", VISITS) == 6 * 3600
    assert one(page, "sparkpoint_savepoint_verified_age_seconds", VISITS) is None

    simulation.cluster.remove(JOBS, NAMESPACE, NAME)
    simulation.settle(lambda: is_released(simulation))
    simulation.operator.jobs.forget(KEY)
    assert f'job="{NAME}"' not in page_of(simulation)


def test_a_job_that_never_had_a_savepoint_says_for_how_long() -> None:
    simulation = timed(Simulation({**SPEC, "savepoints": HOURLY}))
    simulation.settle(simulation.is_running)
    simulation.world.now += timedelta(minutes=30)
    simulation.run_pass()

    page = page_of(timed(simulation))
    missing = one(page, "sparkpoint_savepoint_missing_seconds", VISITS)
    assert missing is not None
    assert missing >= 1800
    assert one(page, "sparkpoint_savepoint_age_seconds", VISITS) is None

    simulation.edit(**NEW_CODE)
    simulation.settle(lambda: simulation.is_running() and simulation.status["epoch"] == 2)
    page = page_of(simulation)
    assert one(page, "sparkpoint_savepoint_missing_seconds", VISITS) is None
    assert one(page, "sparkpoint_savepoint_age_seconds", VISITS) is not None


def test_no_savepoint_is_expected_of_a_job_without_a_repository() -> None:
    bare = {key: SPEC[key] for key in SPEC if key != "savepoints"}
    simulation = Simulation({**bare, "upgrade": {"mode": "LastCommit"}})
    simulation.settle(simulation.is_running)
    simulation.run_pass()

    page = page_of(simulation)
    assert samples(page, "sparkpoint_savepoint_missing_seconds") == {}
    assert samples(page, "sparkpoint_savepoint_expected") == {}


def test_no_newer_savepoint_is_expected_of_a_job_that_stands() -> None:
    simulation = Simulation({**SPEC, "savepoints": HOURLY})
    simulation.settle(simulation.is_running)
    page = page_of(simulation)
    assert one(page, "sparkpoint_savepoint_interval_seconds", VISITS) == 3600
    assert one(page, "sparkpoint_savepoint_expected", VISITS) == 1

    simulation.edit(suspend=True)
    simulation.settle(lambda: simulation.status["phase"] == "Suspended")
    simulation.run_pass()

    page = page_of(simulation)
    assert one(page, "sparkpoint_savepoint_age_seconds", VISITS) is not None
    assert one(page, "sparkpoint_savepoint_interval_seconds", VISITS) is None
    assert one(page, "sparkpoint_savepoint_expected", VISITS) is None


def test_only_a_savepoint_that_was_found_good_counts_as_verified() -> None:
    simulation = timed(Simulation())
    simulation.settle(simulation.is_running)
    simulation.edit(**NEW_CODE)
    simulation.settle(lambda: simulation.is_running() and simulation.status["epoch"] == 2)
    [savepoint] = simulation.cluster.all(SAVEPOINTS, NAMESPACE)
    checked = {"at": "2026-11-16T12:10:00Z", "level": "Content", "good": True, "verdict": "Content"}

    simulation.cluster.edit(
        SAVEPOINTS,
        NAMESPACE,
        savepoint["metadata"]["name"],
        lambda body: body["status"].update(verified=checked),
    )
    simulation.run_pass()

    page = page_of(timed(simulation))
    ages = ["sparkpoint_savepoint_verified_age_seconds", "sparkpoint_savepoint_age_seconds"]
    assert one(page, ages[0], VISITS) == one(page, ages[1], VISITS) is not None


def test_every_job_is_told_and_whether_one_that_should_run_does() -> None:
    simulation = timed(Simulation())
    simulation.settle(simulation.is_running)
    simulation.run_pass()
    runs = page_of(simulation)
    simulation.edit(suspend=True)
    simulation.settle(lambda: simulation.status["phase"] == "Suspended")
    simulation.run_pass()
    stands = page_of(simulation)

    assert one(runs, "sparkpoint_job_ready", VISITS) == 1
    assert one(stands, "sparkpoint_job_ready", VISITS) is None
    for page, phase in ((runs, "Running"), (stands, "Suspended")):
        told = samples(page, "sparkpoint_operator_job_info")
        assert told == {(("job", NAME), ("namespace", NAMESPACE), ("phase", phase)): 1}


def test_of_a_job_that_nobody_looks_at_it_is_not_told_whether_it_runs() -> None:
    simulation = timed(Simulation())
    simulation.settle(simulation.is_running)
    pause = {"sparkpoint.dev/paused": "true"}
    simulation.cluster.edit(
        JOBS, NAMESPACE, NAME, lambda body: body["metadata"].update(annotations=pause)
    )
    simulation.restart()
    simulation.run_pass()

    page = page_of(simulation)
    assert one(page, "sparkpoint_job_ready", VISITS) is None
    assert len(samples(page, "sparkpoint_operator_job_info")) == 1


def test_no_savepoint_is_too_old_of_a_job_that_is_paused() -> None:
    metrics, key = Metrics(now=lambda: 2000.0), Key("shop", "visits")
    known = JobFigures(expected=True, interval=60.0, savepoint_at=1.0, bytes=1, verified_at=1.0)
    metrics.figures(key, replace(known, missing_since=1.0, new_bytes=1))

    metrics.paused(key, "Running")

    paused = metrics.render()
    assert "sparkpoint_savepoint_" not in "".join(
        line for line in paused.splitlines() if not line.startswith("#")
    )
    assert 'sparkpoint_operator_job_info{namespace="shop",job="visits",phase="Running"} 1' in paused


def test_a_job_that_is_changed_or_deleted_is_not_told_as_one_that_does_not_run() -> None:
    simulation = timed(Simulation())
    simulation.settle(simulation.is_running)
    simulation.edit(**NEW_CODE)
    for _ in range(60):
        simulation.run_pass()
        assert one(page_of(simulation), "sparkpoint_job_ready", VISITS) in (None, 1)
        simulation.world.step()
    gone = {"deletionTimestamp": "2026-11-16T12:00:00Z"}
    simulation.cluster.edit(JOBS, NAMESPACE, NAME, lambda body: body["metadata"].update(gone))
    simulation.run_pass()

    assert one(page_of(simulation), "sparkpoint_job_ready", VISITS) is None


def test_a_job_that_needs_a_person_says_why() -> None:
    simulation = Simulation({**SPEC, "restart": {"maxAttempts": 1}})
    simulation.world.broken = lambda pod: True
    simulation.settle(lambda: simulation.status.get("phase") == "Failed")
    simulation.run_pass()

    degraded = samples(page_of(simulation), "sparkpoint_job_degraded")

    reason = simulation.condition("Degraded")["reason"]
    assert degraded == {(("job", NAME), ("namespace", NAMESPACE), ("reason", reason)): 1}


def test_a_job_that_goes_while_it_is_looked_at_leaves_nothing_behind() -> None:
    metrics = Metrics()
    passes = Passes("job", Gate(1), metrics)

    async def work(key: Key) -> Requeue:
        passes.forget(key)
        metrics.seen("job", key, "Running")
        metrics.figures(key, JobFigures(savepoint_at=1.0))
        return Requeue(seconds=0)

    asyncio.run(passes.run(KEY, work))

    assert f'job="{NAME}"' not in metrics.render()
    assert samples(metrics.render(), "sparkpoint_operator_resources") == {}


def test_passes_that_wait_for_their_turn_are_the_queue() -> None:
    metrics = Metrics()
    lengths: list[float | None] = []

    async def work(_: Key) -> Requeue:
        await asyncio.sleep(0)
        lengths.append(one(metrics.render(), "sparkpoint_queue_length"))
        return Requeue(seconds=0)

    async def story() -> None:
        passes = Passes("job", Gate(1), metrics)
        await asyncio.gather(*(passes.run(Key("shop", str(n)), work) for n in range(3)))

    asyncio.run(story())

    assert lengths == [2, 1, 0]
    assert one(metrics.render(), "sparkpoint_last_pass_timestamp_seconds") is not None
