"""Which reads load every state store, for what Spark says of its operators."""

import json

import pytest

from sparkpoint.state import StoreSurvey
from sparkpoint.state.spark.words import condition_in
from sparkpoint.state.tally import StoreTally, Tally
from sparkpoint.worker.deep import counted, load_state, miscounted
from sparkpoint.worker.loading import Loaded, views_of
from sparkpoint.worker.telling import Telling
from tests.unit.savepoint.synthetic import SyntheticQuery
from tests.unit.worker.asking import capture, repository_of
from tests.unit.worker.conftest import Place


def store(
    kind: str, name: str = "default", operator: int = 0, **properties: object
) -> dict[str, str]:
    return {
        "operator": str(operator),
        "kind": kind,
        "store": name,
        "properties": json.dumps(properties),
    }


def test_an_operator_is_read_store_by_store() -> None:
    views = views_of([store("stateStoreSave"), store("dedupe", operator=1)])

    assert views == [
        {"operatorId": "0", "storeName": "default"},
        {"operatorId": "1", "storeName": "default"},
    ]


def test_a_join_is_read_side_by_side_however_many_stores_it_has() -> None:
    names = ("left-keyToNumValues", "left-keyWithIndexToValue", "right-keyToNumValues")

    views = views_of([store("symmetricHashJoin", name) for name in names])

    assert views == [
        {"operatorId": "0", "joinSide": "left"},
        {"operatorId": "0", "joinSide": "right"},
    ]


def test_state_variables_are_read_by_name_and_timers_as_timers() -> None:
    named = [json.dumps({"stateName": "totals"}), {"stateName": "recent"}]
    timers = [
        {"stateName": f"$eventTimers_{each}"} for each in ("keyToTimestamp", "timestampToKey")
    ]
    ttl = [{"stateName": "$ttl_totals"}]

    views = views_of([store("transformWithStateExec", stateVariables=[*named, *timers, *ttl])])

    assert views == [
        {"operatorId": "0", "stateVarName": "totals"},
        {"operatorId": "0", "stateVarName": "recent"},
        {"operatorId": "0", "readRegisteredTimers": "true"},
    ]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (
            "An error.\n: X: [CANNOT_LOAD.ANY] No load.\n\tat x\nCaused by: A: one\n\tat y\n"
            "Caused by: B: two\n\tat z",
            "[CANNOT_LOAD.ANY] No load., caused by B: two",
        ),
        ("An error.\n\tat x\nCaused by: A: one\n\tat y", "An error., caused by A: one"),
        ("[STDS_INVALID_OPTION] No such option.\n\tat x", "[STDS_INVALID_OPTION] No such option."),
        ("", ""),
    ],
)
def test_of_a_trace_the_condition_and_the_last_cause_are_told(text: str, reason: str) -> None:
    assert condition_in(text) == reason


def test_spark_must_load_as_many_rows_as_the_manifest_says_and_the_files_hold() -> None:
    def surveyed(query: str, name: str, rows: int | None) -> StoreSurvey:
        tally = None if rows is None else StoreTally(0, name, (Tally(rows=rows),))
        return StoreSurvey(query, 0, None, "hdfs", name, (1,), tally)

    expected = counted(
        [
            surveyed("totals", "default", 5),
            surveyed("join", "left-keyToNumValues", 3),
            surveyed("join", "left-keyWithIndexToValue", 7),
            surveyed("rocks", "default", None),
        ]
    )
    loaded = Loaded(rows={"totals": 4, "join": 7, "rocks": 9, "": 2})

    assert expected == {"totals": 5, "join": 7}
    assert miscounted(loaded, told={"join": 8, "rocks": 9, "": 3}, held=expected) == (
        "join: Spark loads 7 rows of state, and the manifest says 8",
        "Spark loads 2 rows of state, and the manifest says 3",
        "totals: Spark loads 4 rows of state, and its files hold 5",
    )


def test_state_that_spark_cannot_load_is_not_counted(
    disk: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its files may be such that nobody can: these are noise."""
    SyntheticQuery(disk.local / "visits", provider="hdfs", seed="noise").run(3)
    disk.publish()
    capture(disk)
    repository = repository_of(disk)
    broken = Loaded(broken=("visits: EOFException",))
    monkeypatch.setattr("sparkpoint.worker.deep.run_child", lambda *_: broken.model_dump_json())

    found = load_state(repository, repository.find("first"), Telling("verify", write=print))

    assert found == broken
