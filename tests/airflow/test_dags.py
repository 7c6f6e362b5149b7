"""The DAGs as they are, in one process: `dag.test()`, with the real hook and the real trigger."""

import time
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from sparkpoint.airflow import triggers
from sparkpoint.airflow.rights import RIGHTS
from tests.airflow.conftest import Ground, aged, mount
from tests.unit.airflow.world import job, savepoint
from tests.unit.cli.jobs.apiserver import RefusalError

_IDS = {
    "sparkpoint_campaign": "campaigns",
    "sparkpoint_cleanup": "cleanup",
    "sparkpoint_restore_drill": "drills",
    "sparkpoint_savepoints": "savepoints",
}
"""With the name of their rights."""
_PARAMS = {"jobs": [], "selector": ""}


@pytest.fixture(autouse=True)
def _in_a_hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    """In one process no worker has to let go of a task."""
    monkeypatch.setattr(triggers, "_SETTLE", 0.0)


def _run(dagbag: Any, ground: Ground, name: str, **conf: Any) -> Any:
    # All that a test does not give: `dag.test()` remembers what was given to the run before.
    conf = {**_PARAMS, **conf}
    made = dagbag.dags[name].test(run_conf=conf, logical_date=datetime.now(UTC))
    rights = RIGHTS[_IDS[name]]
    beyond = {what: verbs - rights[what] for what, verbs in ground.verbs().items()}
    assert not any(beyond.values()), beyond
    return made


def _states(run: Any) -> dict[str, str]:
    return {
        f"{each.task_id}[{each.map_index}]" if each.map_index >= 0 else each.task_id: each.state
        for each in run.get_task_instances()
    }


def test_all_dags_are_read_without_a_mistake_and_quickly(dagbag: Any) -> None:
    from airflow.dag_processing.dagbag import DagBag

    began = time.process_time()
    again = DagBag(dagbag.dag_folder)

    assert again.import_errors == {}
    assert set(again.dags) == set(_IDS)
    assert time.process_time() - began < 5


@pytest.mark.parametrize(
    ("notifier", "arguments", "words"),
    [
        ("tests.airflow.bell.Bell", '{"path": "/dev/null"}', ""),
        ("tests.airflow.bell.Bell", "{}", "missing 1 required keyword-only argument: 'path'"),
        ("tests.airflow.bell.Horn", "{}", "has no attribute 'Horn'"),
        ("Bell", "{}", "Empty module name"),
        ("tests.airflow.bell.Bell", "path", "Expecting value"),
    ],
)
def test_a_notifier_is_made_as_the_environment_says_or_the_dag_is_not_read(
    dagbag: Any, monkeypatch: pytest.MonkeyPatch, notifier: str, arguments: str, words: str
) -> None:
    from airflow.dag_processing.dagbag import DagBag

    monkeypatch.setenv("SPARKPOINT_NOTIFIER", notifier)
    monkeypatch.setenv("SPARKPOINT_NOTIFIER_ARGUMENTS", arguments)

    again = DagBag(f"{dagbag.dag_folder}/sparkpoint_cleanup.py")

    assert bool(words) is bool(again.import_errors)
    for said in again.import_errors.values():
        assert words in said
        assert "Set SPARKPOINT_NOTIFIER to the path of a class" in said


@pytest.mark.parametrize(
    ("said", "dry"),
    [("yes", True), ("1", True), ("True", True), ("off", False), ("", False), ("ture", None)],
)
def test_a_switch_that_is_not_understood_does_not_count_as_off(
    dagbag: Any, monkeypatch: pytest.MonkeyPatch, said: str, dry: bool | None
) -> None:
    from airflow.dag_processing.dagbag import DagBag

    monkeypatch.setenv("SPARKPOINT_CLEANUP_DRY_RUN", said)

    again = DagBag(f"{dagbag.dag_folder}/sparkpoint_cleanup.py")

    if dry is None:
        [error] = again.import_errors.values()
        assert "SPARKPOINT_CLEANUP_DRY_RUN is 'ture': write true or false." in error
    else:
        assert again.dags["sparkpoint_cleanup"].params["dry_run"] is dry


def test_a_savepoint_of_each_job_that_is_due(dagbag: Any, ground: Ground) -> None:
    for name in ("due", "suspended", "fresh"):
        ground.api.put(job(name, spec={"suspend": name == "suspended"}))
    now = datetime.now(UTC).isoformat()
    ground.api.put(savepoint("new", of="fresh", status={"startedAt": now, "completedAt": now}))

    run = _run(dagbag, ground, "sparkpoint_savepoints")

    assert run.state == "success", _states(run)
    assert [body["status"]["phase"] for body in ground.savepoints("due")] == ["Completed"]
    assert not ground.savepoints("suspended")
    assert len(ground.savepoints("fresh")) == 1


def test_a_savepoint_that_fails_is_tried_again_as_the_next_attempt(
    dagbag: Any, ground: Ground
) -> None:
    ground.api.put(job("visits"))
    ground.operator.failing["visits"] = 1

    run = _run(dagbag, ground, "sparkpoint_savepoints")

    assert run.state == "success", _states(run)
    phases = [body["status"]["phase"] for body in ground.savepoints("visits")]
    assert phases == ["Failed", "Completed"]


def test_an_unknown_job_fails_with_a_sentence(
    dagbag: Any, ground: Ground, capfd: pytest.CaptureFixture[str]
) -> None:
    ground.api.put(job("visits"))

    run = _run(dagbag, ground, "sparkpoint_savepoints", jobs=["visist"])

    assert run.state == "failed"
    assert "There is no job visist." in "".join(capfd.readouterr())
    assert not ground.savepoints()


def test_a_run_fails_also_if_a_savepoint_could_not_even_be_asked_for(
    dagbag: Any, ground: Ground, capfd: pytest.CaptureFixture[str]
) -> None:
    for name in ("clicks", "visits"):
        # So young that nobody misses a savepoint yet.
        ground.api.put(job(name, creationTimestamp=datetime.now(UTC).isoformat()))
    ground.api.forbidden.add("POST")

    run = _run(dagbag, ground, "sparkpoint_savepoints")

    assert run.state == "failed"
    said = "".join(capfd.readouterr())
    for name in ("clicks", "visits"):
        assert f"{name}: no savepoint was asked for; see its task `take`." in said


def test_a_report_is_tried_again_when_the_cluster_does_not_answer(
    dagbag: Any, ground: Ground
) -> None:
    ground.api.put(job(spec={"suspend": True}))
    answer, lists = ground.api.answer, count()

    def away(method: str, path: str, body: Any) -> Any:
        # The third look at all jobs and savepoints is that of the report.
        if next(lists) == 2:
            raise RefusalError(503, "ServiceUnavailable", "Come again.")
        return answer(method, path, body)

    ground.api.answer = away  # type: ignore[method-assign]

    run = _run(dagbag, ground, "sparkpoint_savepoints")

    assert run.state == "success", _states(run)


def test_more_jobs_than_airflow_maps_are_taken_in_several_runs_the_oldest_first(
    dagbag: Any, ground: Ground, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("AIRFLOW__CORE__MAX_MAP_LENGTH", "2")
    for name, hours in (("a", 9), ("b", 10), ("c", None)):
        ground.api.put(job(name))
        if hours is not None:
            moment = (datetime.now(UTC) - timedelta(hours=hours)).isoformat()
            taken = {"startedAt": moment, "completedAt": moment}
            ground.api.put(savepoint(f"of-{name}", of=name, status=taken))

    first = _run(dagbag, ground, "sparkpoint_savepoints")
    after_first = [len(ground.savepoints(name)) for name in ("a", "b", "c")]
    second = _run(dagbag, ground, "sparkpoint_savepoints")
    after_second = [len(ground.savepoints(name)) for name in ("a", "b", "c")]

    assert (first.state, second.state) == ("success", "success")
    assert (after_first, after_second) == ([1, 2, 1], [2, 2, 1])
    assert "shop/a: due, but not in this run: Airflow maps no more" in "".join(capfd.readouterr())


def test_an_airflow_that_was_away_for_three_ticks_makes_one_run(dagbag: Any) -> None:
    from airflow.sdk import timezone
    from airflow.serialization.encoders import coerce_to_core_timetable
    from airflow.timetables.base import DataInterval, TimeRestriction

    dag, now = dagbag.dags["sparkpoint_savepoints"], datetime.now(UTC)
    timetable = coerce_to_core_timetable(dag.timetable)
    may = TimeRestriction(earliest=dag.start_date, latest=None, catchup=dag.catchup)

    def after(moment: datetime) -> datetime:
        last = DataInterval.exact(timezone.coerce_datetime(moment))
        found = timetable.next_dagrun_info(last_automated_data_interval=last, restriction=may)
        return datetime.fromisoformat(found.run_after.isoformat())

    late = after(now - timedelta(hours=4))
    assert now - timedelta(hours=1) <= late <= now
    assert after(late) > now


@pytest.mark.parametrize("dry_run", [True, False])
def test_a_cleanup_removes_what_its_plan_says(dagbag: Any, ground: Ground, dry_run: bool) -> None:
    ground.api.put(job("visits", creationTimestamp="2025-01-01T00:00:00Z"))
    for number in range(2, 8):
        ground.api.put(aged(number, spec={"tags": ["keep"]} if number == 7 else {}))

    run = _run(dagbag, ground, "sparkpoint_cleanup", last=3, max_fraction=0.6, dry_run=dry_run)

    assert run.state == "success", _states(run)
    left = {body["metadata"]["name"] for body in ground.savepoints()}
    removed = set() if dry_run else {"visits-5", "visits-6"}
    assert left == {f"visits-{number}" for number in range(2, 8)} - removed


def test_a_cleanup_that_would_remove_too_much_removes_nothing(
    dagbag: Any, ground: Ground, capfd: pytest.CaptureFixture[str]
) -> None:
    ground.api.put(job("visits", creationTimestamp="2025-01-01T00:00:00Z"))
    for number in range(2, 8):
        ground.api.put(aged(number))

    run = _run(dagbag, ground, "sparkpoint_cleanup", last=1, max_fraction=0.5)

    assert run.state == "failed"
    sentence = "visits: It would remove 5 of 6 good savepoints, and no more than 50% may go in one"
    assert sentence in "".join(capfd.readouterr())
    assert len(ground.savepoints()) == 6


@pytest.mark.parametrize("damaged", [False, True])
def test_a_drill_restores_writes_down_and_leaves_nothing(
    dagbag: Any, ground: Ground, damaged: bool
) -> None:
    drill = {"airflow.sparkpoint.dev/drill": "args[1]=--output=/dev/null"}
    ground.api.put(job("visits", annotations=drill, creationTimestamp="2025-01-01T00:00:00Z"))
    ground.api.put(aged(1))
    # Somebody ended a run before it could clean up.
    left = {"labels": {"airflow.sparkpoint.dev/drill-of": "visits"}}
    left["annotations"] = {"airflow.sparkpoint.dev/run": "sparkpoint_restore_drill r"}
    ground.api.put(job("left", creationTimestamp="2025-01-01T00:00:00Z", **left))
    if damaged:
        ground.operator.damaged.add("visits-1")

    run = _run(dagbag, ground, "sparkpoint_restore_drill")

    assert run.state == ("failed" if damaged else "success"), _states(run)
    (body,) = ground.savepoints()
    written = body["metadata"]["annotations"]["airflow.sparkpoint.dev/drilled"]
    assert f'"good": {str(not damaged).lower()}' in written
    assert {key[2] for key in ground.api.objects} == {"visits", "visits-1"}
    made = [each for each in ground.api.asked if each[0] == "POST"]
    copies = [each[2] for each in made if each[2]["kind"] == "StatefulSparkJob"]
    assert [each["spec"]["args"][1] for each in copies] == (
        [] if damaged else ["--output=/dev/null"]
    )


def test_a_campaign_goes_wave_by_wave_and_stops_at_the_first_failure(
    dagbag: Any, ground: Ground
) -> None:
    for name in ("a", "b", "c", "d"):
        ground.api.put(job(name, labels={"team": "shop"}))
    ground.operator.rolled_back.add("b")

    run = _run(
        dagbag,
        ground,
        "sparkpoint_campaign",
        selector="team=shop",
        change={"image": "runtime:2"},
        waves=[1, 2, 1],
    )

    assert run.state == "failed", _states(run)
    images = {name: ground.api.job(name)["spec"]["image"] for name in ("a", "b", "c", "d")}
    assert images == {"a": "runtime:2", "b": "runtime:2", "c": "runtime:2", "d": "runtime:1"}


def test_a_configmap_that_is_mounted_as_the_folder_is_read_once(
    dagbag: Any, tmp_path: Path
) -> None:
    from airflow.dag_processing.dagbag import DagBag

    mounted = DagBag(str(mount(tmp_path)))

    assert mounted.import_errors == {}
    assert set(mounted.dags) == set(_IDS)
    assert len(mounted.dagbag_stats) == len(_IDS)
