"""`job savepoint`, `suspend`, `resume` and `restore`: what is asked of the API server, and when."""

import re
from typing import Any

import pytest

from tests.unit.cli.jobs.apiserver import ApiServer, Object
from tests.unit.cli.jobs.resources import condition, operation, savepoint
from tests.unit.cli.running import run, run_well


def spec_patches(api: ApiServer) -> list[Any]:
    return [body["spec"] for method, _, body in api.writes() if method == "PATCH"]


def settles(phase: str, *on_the_way: Object) -> Any:
    """An operator that goes through these and ends in a phase."""
    ready = condition(
        "Ready", *(("True", "Committing") if phase == "Running" else ("False", phase))
    )

    def react(body: Object) -> list[Object]:
        if body["kind"] != "StatefulSparkJob":
            return []
        seen = {"observedGeneration": body["metadata"]["generation"]}
        steps = [{**seen, "operation": each} for each in on_the_way]
        return [*steps, {**seen, "operation": None, "phase": phase, "conditions": [ready]}]

    return react


def takes(**status: Any) -> Any:
    """An operator that takes savepoints."""
    done = {"phase": "Completed", "id": "a" * 64, "batch": 44, "bytes": 2048, "newBytes": 10}

    def react(body: Object) -> list[Object]:
        seen = {"observedGeneration": 1}
        return [{**seen, "phase": "InProgress"}, {**seen, **done, **status}]

    return react


def test_suspend_waits_until_the_job_stands(shop: ApiServer) -> None:
    shop.reacts = settles(
        "Suspended", operation("Suspend", "Stop"), operation("Suspend", "Capture")
    )

    outcome = run_well("job", "suspend", "visits")

    assert spec_patches(shop) == [{"suspend": True}]
    assert outcome.out.startswith("visits: suspended after ")
    assert outcome.err == ""
    assert shop.job()["spec"]["args"] == ["--input=/in", "--output=/out", "--fast"]


def test_resume_of_a_job_that_runs_changes_nothing(shop: ApiServer) -> None:
    outcome = run_well("job", "resume", "visits", "--json")

    assert shop.writes() == []
    assert (outcome.document["result"], outcome.document["phase"]) == ("Succeeded", "Running")


def test_resume_of_a_job_whose_driver_does_not_come_up_ends_with_6(shop: ApiServer) -> None:
    shop.job()["spec"]["suspend"] = True

    def react(body: Object) -> list[Object]:
        generation = body["metadata"]["generation"]
        ended = {"kind": "Resume", "result": "Failed", "message": "No such image."}
        return [
            {
                "observedGeneration": generation,
                "phase": "Running",
                "conditions": [condition("Ready", "Unknown", "AgentSilent")],
                "lastOperation": {**ended, "targetGeneration": generation},
            }
        ]

    shop.reacts = react

    outcome = run("job", "resume", "visits", "--timeout", "20s")

    assert outcome.code == 6
    assert "Resume has failed, and the job is not ready. No such image." in outcome.err


def test_resume_without_waiting_says_where_to_look(shop: ApiServer) -> None:
    shop.job()["spec"]["suspend"] = True

    outcome = run_well("job", "resume", "visits", "--no-wait")

    assert spec_patches(shop) == [{"suspend": False}]
    assert "sparkpoint job status visits" in outcome.out


def test_a_wait_ends_when_somebody_else_wants_the_opposite(shop: ApiServer) -> None:
    shop.reacts = lambda body: [{"operation": operation("Suspend", "Stop")}]

    def overturn() -> None:
        body = shop.job()
        shop.put({**body, "spec": {**body["spec"], "suspend": False}}, what="MODIFIED")

    shop.on_watch = overturn

    outcome = run("job", "suspend", "visits", "--json")

    assert (outcome.code, outcome.document["result"]) == (6, "Overtaken")
    assert "spec.suspend" in outcome.err


def test_a_wait_that_is_too_long_ends_with_8_and_what_it_waits_for(shop: ApiServer) -> None:
    shop.reacts = lambda body: [
        {
            "observedGeneration": body["metadata"]["generation"],
            "operation": operation("Suspend", "Stop", "Batch 42 runs."),
        }
    ]

    outcome = run("job", "suspend", "visits", "--timeout", "3s")

    assert outcome.code == 8
    assert "Suspend: Stop. Batch 42 runs. It goes on by itself." in outcome.err
    assert shop.job()["spec"]["suspend"] is True


def test_a_savepoint_is_asked_for_and_awaited(shop: ApiServer) -> None:
    shop.reacts = takes()

    outcome = run_well("job", "savepoint", "visits", "--name", "one", "--tag", "b", "--tag", "a")

    [(_, _, body)] = shop.writes()
    assert body["spec"] == {"jobRef": {"name": "visits"}, "trigger": "Manual", "tags": ["a", "b"]}
    assert outcome.out.startswith("Savepoint one is complete\n")
    assert re.search(r"batch +44$", outcome.out, re.MULTILINE)


def test_the_same_savepoint_once_more_is_the_same_one(shop: ApiServer) -> None:
    shop.reacts = takes()
    first = run_well("job", "savepoint", "visits", "--name", "one", "--json").document

    again = run_well("job", "savepoint", "visits", "--name", "one", "--json").document

    assert again["savepoint"] == first["savepoint"]
    assert again["savepoint"]["name"] == "one"


def test_a_name_that_means_another_savepoint_is_refused(shop: ApiServer) -> None:
    outcome = run("job", "savepoint", "visits", "--name", "nightly", "--verify", "deep")

    assert outcome.code == 3
    assert "another savepoint nightly, with spec.verify: None" in outcome.err
    assert len(shop.writes()) == 1


def test_a_name_that_cannot_be_one_is_refused_before_anything_is_asked(shop: ApiServer) -> None:
    outcome = run("job", "savepoint", "visits", "--name", "Not_A_Name", "--tag", "Bad Tag")

    assert (outcome.code, shop.writes()) == (3, [])
    assert "metadata.name" in outcome.err
    assert "spec.tags[0]" in outcome.err
    assert run("job", "status", "..").code == run("job", "status", "").code == 4


def test_without_a_name_each_savepoint_has_its_own(shop: ApiServer) -> None:
    for _ in range(2):
        run_well("job", "savepoint", "visits", "--no-wait")

    names = [body["metadata"]["name"] for _, _, body in shop.writes()]
    assert len(set(names)) == 2
    assert all(name.startswith("visits-2") for name in names)


@pytest.mark.parametrize(
    ("status", "code", "says"),
    [
        ({"phase": "Failed", "message": "Disk full. Make room."}, 6, "Disk full. Make room."),
        ({"verified": {"good": True, "verdict": "Content"}}, 0, ""),
        ({"verified": {"good": False, "problems": ["object x is missing"]}}, 5, "object x"),
        ({"record": {"checked": True}}, 6, "could not be checked"),
    ],
)
def test_how_a_savepoint_fares_is_the_exit_code(
    shop: ApiServer, status: dict[str, Any], code: int, says: str
) -> None:
    shop.reacts = takes(**status)

    outcome = run("job", "savepoint", "visits", "--verify", "content", "--name", "one")

    assert outcome.code == code
    assert says in outcome.err


def test_a_job_without_a_repository_is_not_asked_for_a_savepoint(shop: ApiServer) -> None:
    del shop.job()["spec"]["savepoints"]

    outcome = run("job", "savepoint", "visits")

    assert (outcome.code, shop.writes()) == (3, [])
    assert "spec.savepoints.repository" in outcome.err


def test_restore_names_the_savepoint_and_keeps_the_rest(shop: ApiServer) -> None:
    shop.reacts = settles("Running", operation("Restore", "Prepare"))
    source = {"repository": "s3://data/savepoints", "job": "visits", "name": "x"}
    shop.job()["spec"]["restoreFrom"] = {"manifest": source, "nonce": 3}

    run_well("job", "restore", "visits", "--savepoint", "before-sale", "--sink", "rewind")

    assert shop.job()["spec"]["restoreFrom"] == {"savepoint": "before-sale", "sink": "Rewind"}
    assert shop.job()["spec"]["executor"] == {"instances": 2}


def test_the_same_restore_once_more_takes_another_nonce_and_only_if_asked(shop: ApiServer) -> None:
    shop.reacts = settles("Running")
    arguments = ("job", "restore", "visits", "--savepoint", "nightly", "--sink", "rewind")
    run_well(*arguments)

    again = run_well(*arguments)
    assert "--again" in again.err
    assert len(shop.writes()) == 1
    run_well(*arguments, "--again")
    run_well(*arguments, "--again")

    assert shop.job()["spec"]["restoreFrom"]["nonce"] == 2


def test_latest_is_the_newest_that_can_be_restored(shop: ApiServer) -> None:
    shop.reacts = settles("Running")
    shop.put(savepoint("running", phase="InProgress"))
    damaged = savepoint("damaged", completed="2026-07-30T11:30:00Z")
    damaged["status"]["verified"] = {"good": False}
    shop.put(damaged)
    shop.put(savepoint("foreign", completed="2026-07-30T11:40:00Z", of="clicks"))

    run_well("job", "restore", "visits", "--savepoint", "latest", "--sink", "rewind")

    assert shop.job()["spec"]["restoreFrom"]["savepoint"] == "nightly"


@pytest.mark.parametrize(
    ("name", "code", "says"),
    [
        ("nigthly", 4, "Did you mean nightly?"),
        ("broken", 3, "failed"),
        ("Not A Name", 4, "There are: before-sale, broken, nightly"),
    ],
)
def test_a_savepoint_that_cannot_be_restored_is_refused_before_anything_is_written(
    shop: ApiServer, name: str, code: int, says: str
) -> None:
    shop.put(savepoint("broken", phase="Failed"))

    outcome = run("job", "restore", "visits", "--savepoint", name, "--sink", "resume")

    assert (outcome.code, shop.writes()) == (code, [])
    assert says in outcome.err


def test_the_sink_policy_has_to_be_said(shop: ApiServer) -> None:
    outcome = run("job", "restore", "visits", "--savepoint", "nightly")

    assert (outcome.code, shop.asked) == (2, [])
    assert "--sink" in outcome.err


def test_a_restore_that_the_rules_refuse_lists_the_fields_and_changes_nothing(
    shop: ApiServer,
) -> None:
    shop.job()["spec"]["checkpoint"]["adopt"] = "s3://data/old"

    outcome = run("job", "restore", "visits", "--savepoint", "nightly", "--sink", "rewind")

    assert (outcome.code, shop.writes()) == (3, [])
    assert "spec.checkpoint.adopt" in outcome.err
    assert "remove one of them" in outcome.err


def test_a_restore_that_is_rolled_back_ends_with_7(shop: ApiServer) -> None:
    def react(body: Object) -> list[Object]:
        degraded = [condition("Degraded", "True", "RolledBack", "It did not commit.")]
        return [{"observedGeneration": body["metadata"]["generation"], "conditions": degraded}]

    shop.reacts = react

    outcome = run("job", "restore", "visits", "--savepoint", "nightly", "--sink", "rewind")

    assert outcome.code == 7
    assert "It did not commit." in outcome.err


def test_a_status_that_is_written_meanwhile_is_no_conflict(shop: ApiServer) -> None:
    shop.reacts = settles("Running")
    batches = iter(range(42, 45))

    def progress(_: Object) -> None:
        batch = next(batches, None)
        if batch is not None:
            shop.put_status("StatefulSparkJob", "visits", {"batch": batch})

    shop.before_patch = progress

    run_well("job", "restore", "visits", "--savepoint", "nightly", "--sink", "rewind")

    assert shop.job()["spec"]["restoreFrom"]["savepoint"] == "nightly"


def test_a_spec_that_is_changed_meanwhile_is_left_alone(shop: ApiServer) -> None:
    def interfere(body: Object) -> None:
        about = {**body["metadata"], "generation": body["metadata"]["generation"] + 1}
        shop.put({**body, "metadata": about, "spec": {**body["spec"], "image": "runtime:2"}})

    shop.before_patch = interfere

    outcome = run("job", "restore", "visits", "--savepoint", "nightly", "--sink", "rewind")

    assert outcome.code == 3
    assert "changed by somebody else" in outcome.err
    assert "restoreFrom" not in shop.job()["spec"]


def test_nothing_is_asked_of_a_job_that_is_being_deleted(shop: ApiServer) -> None:
    shop.job()["metadata"]["deletionTimestamp"] = "2026-07-30T12:00:00Z"

    for command in ("suspend", "resume", "savepoint"):
        assert run("job", command, "visits").code == 3
    assert shop.writes() == []
