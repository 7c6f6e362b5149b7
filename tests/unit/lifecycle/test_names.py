"""Names of what outlives a job: no other job of that name makes the same."""

from dataclasses import replace

from sparkpoint.lifecycle import decide
from sparkpoint.lifecycle.actions import StartDriver
from sparkpoint.lifecycle.naming import life_of, savepoint_name
from sparkpoint.lifecycle.phases import Kind, Phase
from sparkpoint.lifecycle.record import Record
from tests.unit.lifecycle.worlds import (
    A,
    B,
    driver,
    during,
    empty,
    lost,
    steady,
    wish,
    world,
)

FIRST = life_of("3f9a2c7b-6b0e-4a51-9a53-2f6f3c1d0e11")
SECOND = life_of("0badcafe-1c1f-4f0e-8d4c-93a1b7c3f9aa")


def test_a_life_is_the_beginning_of_the_uid() -> None:
    assert (FIRST, SECOND) == ("3f9a2c7b", "0badcafe")


def test_a_job_that_is_made_again_gets_another_directory() -> None:
    runs = [decide(world(Record(), life=life)).record.run for life in (FIRST, SECOND)]

    assert [run.folder for run in runs if run is not None] == [
        "epoch-1-3f9a2c7b",
        "epoch-1-0badcafe",
    ]


def test_savepoints_and_later_epochs_have_the_life_in_their_names() -> None:
    run = replace(empty(A), directory="epoch-1-3f9a2c7b")
    record = steady(run, life=FIRST)

    decision = decide(world(record, wish=wish(B, compatibility="Skip", generation=2)))

    operation = decision.record.operation
    assert operation is not None
    assert operation.savepoint == "visits-upgrade-7-3f9a2c7b"
    assert operation.target is not None
    assert operation.target.folder == "epoch-2-3f9a2c7b"


def test_an_epoch_that_leaves_a_lost_node_behind_has_it_too() -> None:
    run = replace(empty(A), directory="epoch-1-3f9a2c7b")
    record = during(Kind.RECOVER, Phase.STOP, run, target=replace(run, attempt=2), life=FIRST)

    decision = decide(world(record, pods=(lost(driver(run)),)))

    operation = decision.record.operation
    assert operation is not None
    assert operation.target is not None
    assert operation.target.folder == "epoch-2-3f9a2c7b"
    assert operation.savepoint == "visits-recover-7-1-3f9a2c7b"


def test_a_record_from_before_goes_on_with_its_names() -> None:
    record = steady(empty(A))

    upgraded = decide(world(record, wish=wish(B, compatibility="Skip", generation=2), life=FIRST))

    operation = upgraded.record.operation
    assert operation is not None
    assert upgraded.record.life == ""
    assert operation.savepoint == "visits-upgrade-7"
    assert operation.target is not None
    assert operation.target.folder == "epoch-2"


def test_what_is_written_down_counts_and_not_what_is_seen() -> None:
    begun = decide(world(Record(), life=FIRST))

    again = decide(world(begun.record, life=SECOND))

    assert again.record == begun.record
    [start] = again.actions
    assert isinstance(start, StartDriver)
    assert start.run.folder == "epoch-1-3f9a2c7b"


def test_a_long_name_fits_and_stays_its_own() -> None:
    job = "a-job-whose-name-is-as-long-as-it-may-be"
    other = f"{job[:-1]}x"

    names = [
        savepoint_name(job, "recover-123456-2", FIRST),
        savepoint_name(other, "recover-123456-2", SECOND),
    ]

    assert len(job) == 40
    assert all(len(name) <= 63 for name in names)
    assert len(set(names)) == 2
    assert names[0].endswith("-recover-123456-2-3f9a2c7b")
