"""Operators and the sensor by themselves: what they ask for, when they wait, how they fail."""

import asyncio
import re
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.sdk.exceptions import (
    AirflowException,
    AirflowFailException,
    AirflowSkipException,
    TaskDeferred,
)

from sparkpoint.airflow.dagkit import sights_of
from sparkpoint.airflow.decisions.goals import End, judge
from sparkpoint.airflow.operators import (
    CollectGarbageOperator,
    CreateSavepointOperator,
    RescaleJobOperator,
    RestoreDrillOperator,
    RetainSavepointsOperator,
    UpgradeJobOperator,
    VerifySavepointOperator,
)
from sparkpoint.airflow.provider import get_provider_info
from sparkpoint.airflow.sensors import JobHealthSensor
from sparkpoint.airflow.triggers import ResourceTrigger
from sparkpoint.airflow.work.cleanup import cleanup_of, make_plans
from tests.airflow.conftest import Ground, aged
from tests.unit.airflow.world import job, savepoint


def _execute(kind: Any, *, dag: str = "d", **given: Any) -> tuple[Any, Any]:
    """What it returns, and the operator."""
    run = SimpleNamespace(dag_id=dag, run_id="manual__1", run_type="manual", logical_date=None)
    operator = kind(task_id="t", **given)
    return operator.execute({"dag_run": run}), operator


def _fails(expected: type[Exception], words: str, kind: Any, **given: Any) -> None:
    with pytest.raises(expected, match=re.escape(words)):
        _execute(kind, **given)


def test_a_savepoint_is_asked_for_and_waited_for_in_a_trigger(ground: Ground) -> None:
    ground.api.put(job())
    ground.operator.down = True

    with pytest.raises(TaskDeferred) as deferred:
        _execute(CreateSavepointOperator, job="visits")

    (made,) = ground.savepoints()
    _, given = deferred.value.trigger.serialize()
    assert given["names"] == [made["metadata"]["name"]]
    assert given["plural"] == "sparksavepoints"
    # Airflow itself ends the wait only if no triggerer did.
    left = datetime.fromisoformat(given["deadline"]) - datetime.now(UTC)
    assert timedelta(minutes=59) < left <= timedelta(hours=1) < deferred.value.timeout


def test_a_worker_that_died_before_it_waited_is_followed_by_one_that_adopts(
    ground: Ground,
) -> None:
    ground.api.put(job())
    ground.operator.down = True
    waited_for = []
    for _ in range(2):
        with pytest.raises(TaskDeferred) as deferred:
            _execute(CreateSavepointOperator, job="visits")
        waited_for.append(deferred.value.trigger.serialize()[1]["names"])

    (made,) = ground.savepoints()
    assert waited_for == [[made["metadata"]["name"]]] * 2


def test_of_two_dags_or_two_airflows_one_asks_and_the_other_is_skipped(ground: Ground) -> None:
    ground.api.put(job())
    ground.operator.down = True
    wanted = {"job": "visits", "fresh_since": "2026-01-01T00:00:00+00:00"}
    with pytest.raises(TaskDeferred):
        _execute(CreateSavepointOperator, **wanted)
    (made,) = ground.savepoints()
    name = made["metadata"]["name"]

    under_way = f"visits: Savepoint {name} is under way."
    _fails(AirflowSkipException, under_way, CreateSavepointOperator, dag="another", **wanted)
    ground.operator.wake()
    ground.until(lambda: ground.savepoints()[0].get("status"))
    fresh = f"visits: Fresh: {name} was captured at"
    _fails(AirflowSkipException, fresh, CreateSavepointOperator, dag="another", **wanted)

    assert len(ground.savepoints()) == 1


def test_one_that_was_deleted_is_asked_for_anew(ground: Ground) -> None:
    ground.api.put(job())
    ground.operator.down = True
    for _ in range(2):
        with pytest.raises(TaskDeferred):
            _execute(CreateSavepointOperator, job="visits")
        (made,) = ground.savepoints()
        ground.api.delete("SparkSavepoint", made["metadata"]["name"])

    assert len([each for each in ground.api.asked if each[0] == "POST"]) == 2


def test_one_that_is_complete_is_found_again_also_when_its_job_is_gone(ground: Ground) -> None:
    ground.api.put(job())
    ground.operator.down = True
    with pytest.raises(TaskDeferred):
        _execute(CreateSavepointOperator, job="visits")
    (made,) = ground.savepoints()
    name = made["metadata"]["name"]
    ground.api.put_status("SparkSavepoint", name, {"phase": "Completed"})
    ground.api.delete("StatefulSparkJob", "visits")

    found, operator = _execute(CreateSavepointOperator, job="visits")

    assert found == name
    assert operator.links["savepoint"].endswith(f"/namespaces/shop/sparksavepoints/{name}")


@pytest.mark.parametrize(
    ("kind", "given", "sentence"),
    [
        (
            CreateSavepointOperator,
            {"job": "visist"},
            "No job visist in namespace shop. Did you mean visits?",
        ),
        (
            CreateSavepointOperator,
            {"job": "homeless"},
            "Job homeless has no place for savepoints: set spec.savepoints.repository.",
        ),
        (
            VerifySavepointOperator,
            {"savepoint": "none"},
            "No savepoint none in namespace shop.",
        ),
        (
            VerifySavepointOperator,
            {"savepoint": "failed"},
            "Savepoint failed is Failed: there is nothing to check.",
        ),
        (
            UpgradeJobOperator,
            {"job": "visits"},
            "Nothing is to be changed in job visits: say what.",
        ),
        (
            RescaleJobOperator,
            {"job": "visits", "instances": "many"},
            "'many' is no number of executors.",
        ),
        (
            JobHealthSensor,
            {"job": "none", "namespace": "empty"},
            "No job none in namespace empty. There is no job in it",
        ),
        (
            CreateSavepointOperator,
            {"job": "visits", "kubernetes_conn_id": "no_such"},
            "The conn_id `no_such` isn't defined. Make the connection: airflow connections add ID "
            "--conn-type kubernetes",
        ),
    ],
)
def test_bad_input_fails_with_a_sentence_and_without_another_try(
    ground: Ground, kind: Any, given: dict[str, Any], sentence: str
) -> None:
    ground.api.put(job())
    ground.api.put(job("homeless", spec={"savepoints": None}))
    ground.api.put(savepoint("failed", phase="Failed"))

    _fails(AirflowFailException, sentence, kind, **given)

    assert not ground.api.writes()


def test_what_the_cluster_refuses_fails_with_a_sentence_and_without_another_try(
    ground: Ground,
) -> None:
    ground.api.put(job())
    ground.api.forbidden.add("POST")
    _fails(AirflowFailException, "POST is not allowed", CreateSavepointOperator, job="visits")
    assert not ground.savepoints()

    ground.api.forbidden.add("GET")
    with pytest.raises(AirflowFailException, match="GET is not allowed"):
        sights_of({"namespaces": []})

    ground.api.forbidden.clear()
    ground.api.kinds.clear()
    without = "This cluster does not know StatefulSparkJobs: install Sparkpoint's CRDs"
    _fails(AirflowFailException, without, UpgradeJobOperator, job="visits", change={"image": "x"})
    with pytest.raises(AirflowFailException, match=without):
        sights_of({"namespaces": []})


def test_a_server_that_does_not_answer_is_a_reason_to_try_again(ground: Ground) -> None:
    ground.api.answer = lambda *_: 1 / 0  # type: ignore[assignment, method-assign]

    with pytest.raises(AirflowException) as failed:
        _execute(UpgradeJobOperator, job="visits", change={"image": "x"})

    assert not isinstance(failed.value, AirflowFailException)


def test_what_there_is_nothing_to_do_for_is_skipped(ground: Ground) -> None:
    ground.api.put(job(spec={"suspend": True}))
    since = "2026-01-01T00:00:00+00:00"
    skips = AirflowSkipException
    _fails(skips, "suspended", CreateSavepointOperator, job="visits", fresh_since=since)
    _fails(skips, "does not say", RestoreDrillOperator, job="visits", savepoint="s")
    _fails(skips, "Nothing", CollectGarbageOperator, removed={"asked": {}})


def test_what_is_gone_before_it_was_waited_for_is_still_asked_what_it_has_freed(
    ground: Ground,
) -> None:
    ground.api.put(job("visits", creationTimestamp="2025-01-01T00:00:00Z"))
    for number in (2, 3):
        ground.api.put(aged(number))
    ground.api.holds_deleted = True
    rules = {"last": 1, "max_fraction": 1}
    sights = sights_of({"namespaces": []})
    [plan] = make_plans(sights, sights[0].jobs, cleanup_of(rules), datetime.now(UTC))
    removed, _ = _execute(RetainSavepointsOperator, plan=plan.document(), rules=rules)
    ground.until(lambda: len(ground.savepoints()) == 1)

    with pytest.raises(TaskDeferred) as deferred:
        _execute(CollectGarbageOperator, removed=removed)

    # As it is stored until a triggerer has room for it.
    given = deferred.value.trigger.serialize()[1]
    event = asyncio.run(_first(ResourceTrigger(**given)))
    assert event.xcoms == {"freed": {"bytes": ground.operator.freed, "unknown": []}}


async def _first(trigger: ResourceTrigger) -> Any:
    return await asyncio.wait_for(anext(trigger.run()), 60)


def test_a_job_is_rescaled_once_and_a_rollback_fails_the_task(ground: Ground) -> None:
    ground.api.put(job())

    for _ in range(2):
        assert _execute(RescaleJobOperator, job="visits", instances="5")[0] == "visits"
    ground.operator.rolled_back.add("visits")
    with pytest.raises(AirflowException, match="did not commit"):
        _execute(UpgradeJobOperator, job="visits", change={"image": "bad"})

    assert ground.api.job()["spec"]["executor"] == {"instances": 5}
    assert ground.api.job()["metadata"]["generation"] == 3


def test_what_the_api_server_adds_to_a_change_is_not_somebody_elses(ground: Ground) -> None:
    """Such as `optional: false` of a reference in a list."""
    ground.api.put(job())
    ground.operator.down = True

    def add(_: Any) -> None:
        ground.api.before_patch = lambda _: None
        put = ground.api.put

        def defaulted(body: Any, *, what: str = "ADDED") -> Any:
            ground.api.put = put  # type: ignore[method-assign]
            body["spec"]["driver"]["env"][0]["valueFrom"]["secretKeyRef"]["optional"] = False
            body["spec"]["restart"] = {"policy": "OnFailure"}
            return put(body, what=what)

        ground.api.put = defaulted  # type: ignore[method-assign]

    ground.api.before_patch = add
    env = [{"name": "KEY", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}}]

    change = {"driver": {"env": env}, "restart": None}
    with pytest.raises(TaskDeferred) as deferred:
        _execute(UpgradeJobOperator, job="visits", change=change)

    goal = deferred.value.trigger.serialize()[1]["goal"]
    assert judge(goal, "visits", ground.api.job()).end is End.WAITING
    ground.api.job()["spec"]["driver"]["env"][0]["name"] = "OTHER"
    assert "Somebody else" in judge(goal, "visits", ground.api.job()).message


@pytest.mark.parametrize("tags", [["a", "b"], "a,b", "a, b"])
def test_tags_may_come_from_a_template_as_a_text(ground: Ground, tags: Any) -> None:
    ground.api.put(job())
    ground.operator.down = True

    with pytest.raises(TaskDeferred):
        _execute(CreateSavepointOperator, job="visits", tags=tags)

    assert ground.savepoints()[0]["spec"]["tags"] == ["a", "b"]


def test_a_sensor_lets_a_healthy_job_through_and_waits_for_others(ground: Ground) -> None:
    ground.api.put(job())

    assert _execute(JobHealthSensor, job="visits")[0] == "visits"
    with pytest.raises(TaskDeferred):
        _execute(JobHealthSensor, job="visits", condition="Degraded")


def test_a_check_is_asked_for_and_the_data_is_left_to_its_owner(ground: Ground) -> None:
    ground.api.put(job())
    ground.api.put(savepoint("s"))
    ground.operator.down = True

    with pytest.raises(TaskDeferred):
        _execute(VerifySavepointOperator, savepoint="s")

    made = [body for verb, _, body in ground.api.asked if verb == "POST"]
    assert [body["spec"]["existing"]["name"] for body in made] == ["s"]
    assert made[0]["spec"]["onDelete"] == "Retain"


def test_the_provider_says_what_it_is() -> None:
    assert get_provider_info()["package-name"] == "sparkpoint"
