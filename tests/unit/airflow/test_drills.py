"""Drills: which savepoint, a copy that writes elsewhere, a verdict, and nothing left behind."""

import json
from datetime import timedelta

import pytest

from sparkpoint.airflow.decisions.drills import (
    DRILL,
    DRILL_OF,
    SETTINGS,
    check_savepoint,
    conclude,
    drill_job,
    drill_of,
    pick,
)
from sparkpoint.airflow.decisions.errors import DrillError
from sparkpoint.airflow.decisions.keys import RUN
from sparkpoint.airflow.work.drills import (
    conclude_drill,
    ensure_drill,
    remove_drill,
    remove_leftovers,
)
from sparkpoint.airflow.work.reading import look
from sparkpoint.api.validation import validate_resource
from tests.unit.airflow.world import NOW, Object, cluster, job, savepoint, time
from tests.unit.cli.jobs.apiserver import ApiServer

_KEY = "0123456789abcdef"
_ELSEWHERE = {SETTINGS: "args[1]=--output=/dev/null\nexecutor.instances=1"}
_GOOD = {"verified": {"good": True}, "queries": [{"name": "visits", "rows": 10}]}


def _check(**status: object) -> Object:
    return savepoint("check", status={**_GOOD, **status})


def test_the_newest_good_one_is_picked_or_any() -> None:
    made = [savepoint(f"s{n}", age=timedelta(hours=n)) for n in range(3)]
    made.append(savepoint("bad", phase="Failed"))

    assert pick(job(), made, chance=None) is made[0]
    assert {pick(job(), made, chance=c)["metadata"]["name"] for c in (0.0, 0.5, 0.999)} == {  # type: ignore[index]
        "s0",
        "s1",
        "s2",
    }
    assert pick(job(), [], chance=0.5) is None


@pytest.mark.parametrize("chance", [None, 0.0])
def test_what_an_earlier_job_of_the_name_left_is_not_picked(chance: float | None) -> None:
    made = [savepoint("earlier", age=timedelta(days=400)), savepoint("own")]

    assert pick(job(), made, chance=chance) is made[1]


def test_what_drills_have_left_behind_is_removed_and_nothing_else() -> None:
    api = ApiServer()
    long_ago, just_now = time(NOW - timedelta(days=2)), time(NOW)
    of, run = {"labels": {DRILL_OF: "visits"}}, {RUN: "drills scheduled"}
    existing = {"existing": {"repository": "s3://data/savepoints", "job": "visits", "name": "s"}}
    for body in (
        job("left", creationTimestamp=long_ago, annotations=run, **of),
        job("young", creationTimestamp=just_now, annotations=run, **of),
        job("anothers", creationTimestamp=long_ago, annotations={RUN: "others x"}, **of),
        job("no-copy", creationTimestamp=long_ago, annotations=run),
        savepoint("check", creationTimestamp=long_ago, annotations=run, spec=existing),
        savepoint("taken", creationTimestamp=long_ago, annotations=run),
    ):
        api.put(body)
    sights = look(lambda _: cluster(api), ["shop"], everywhere=False)

    removed = remove_leftovers(lambda _: cluster(api), sights, dag="drills", now=NOW)

    assert removed == ["shop/left", "shop/check"]
    assert {key[2] for key in api.objects} == {"young", "anothers", "no-copy", "taken"}


def test_a_copy_begins_from_the_savepoint_writes_elsewhere_and_leaves_nothing() -> None:
    origin = job(spec={"suspend": True, "restartNonce": 3}, annotations=_ELSEWHERE)

    copy = drill_job(
        origin, savepoint="s", settings=["args[1]=--output=/dev/null"], key=_KEY, run="r"
    )

    spec = copy["spec"]
    assert validate_resource(copy) == []
    assert spec["restoreFrom"] == {"savepoint": "s", "sink": "Fork"}
    assert spec["args"] == ["--input=/in", "--output=/dev/null"]
    assert spec["checkpoint"]["onDelete"] == spec["savepoints"]["onDelete"] == "Delete"
    assert spec["restart"] == {"policy": "Never"}
    assert "suspend" not in spec


def test_a_check_is_a_resource_that_the_api_takes_and_that_leaves_the_data() -> None:
    check = check_savepoint(savepoint("s"), job=job(), level="Deep", key=_KEY, run="r")

    assert validate_resource(check) == []
    assert check["spec"]["onDelete"] == "Retain"


@pytest.mark.parametrize("settings", [[], ["nonsense"]])
def test_without_a_place_to_write_there_is_no_copy(settings: list[str]) -> None:
    with pytest.raises(DrillError):
        drill_job(job(), savepoint="s", settings=settings, key=_KEY, run="r")


@pytest.mark.parametrize(
    ("check", "copy", "ran", "words"),
    [
        (_check(), None, False, ""),
        (_check(), job(), True, ""),
        (None, None, False, "not checked"),
        (_check(verified={"good": False, "problems": ["gone"]}), None, False, "gone"),
        (_check(verified=None, message="no node"), None, False, "no node"),
        (_check(), None, True, "throw-away job is gone"),
        (_check(), job(status={"queries": []}), True, "did not start"),
        (_check(), job(status={"queries": [{"name": "visits", "batch": 3}]}), True, "batch 40"),
        (_check(), job(status={"queries": [{"name": "visits", "batch": 41}]}), True, "has none"),
    ],
)
def test_a_drill_is_good_or_says_what_was_not(
    check: Object | None, copy: Object | None, ran: bool, words: str
) -> None:
    result = conclude(
        savepoint("s"), check=check, copy=copy, ran=ran, began=NOW - timedelta(seconds=9), now=NOW
    )

    assert result.good is not bool(words)
    assert words in " ".join(result.problems)
    assert result.seconds == 9
    assert json.loads(result.annotation())["good"] is result.good


def test_a_drill_is_made_once_written_down_and_removed_and_no_other_job_is() -> None:
    api = ApiServer()
    api.put(job(annotations=_ELSEWHERE))
    api.put(savepoint("s"))
    world = cluster(api)

    first = ensure_drill(world, "visits", savepoint="s", key=_KEY, run="r")
    again = ensure_drill(world, "visits", savepoint="s", key=_KEY, run="r")
    result = conclude_drill(world, "visits", savepoint="s", key=_KEY, ran=True, now=NOW)
    removed = [remove_drill(world, "visits", savepoint="s", key=_KEY) for _ in range(2)]

    assert first["metadata"]["uid"] == again["metadata"]["uid"]
    assert not result.good
    written = api.objects["sparksavepoints", "shop", "s"]
    assert drill_of(written) is not None
    assert DRILL in written["metadata"]["annotations"]
    assert removed == [["visits-drill-01234567"], []]
    assert ("statefulsparkjobs", "shop", "visits") in api.objects


def test_rows_are_those_that_the_check_has_counted_as_nobody_did_before() -> None:
    taken = savepoint("s", status={"queries": [{"name": "visits", "batch": 40}]})
    emptied = job(status={"queries": [{"name": "visits", "batch": 41, "stateRows": 0}]})

    good = conclude(taken, check=_check(), copy=job(), ran=True, began=NOW, now=NOW)
    bad = conclude(taken, check=_check(), copy=emptied, ran=True, began=NOW, now=NOW)

    assert (good.good, good.rows) == (True, 10)
    assert bad.problems == ("Query visits had 10 rows of state, and has none.",)


@pytest.mark.parametrize("batch", [0, None])
def test_a_copy_may_stand_at_the_very_first_batch(batch: int | None) -> None:
    taken = savepoint("s", status={"queries": [{"name": "visits", "batch": 0}]})
    copy = job(status={"queries": [{"name": "visits", "batch": batch, "stateRows": 10}]})

    result = conclude(taken, check=_check(), copy=copy, ran=True, began=NOW, now=NOW)

    assert result.good is (batch == 0)
