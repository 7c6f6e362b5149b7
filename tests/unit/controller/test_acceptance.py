"""What cannot be made is refused before the job is touched, or told of and tried again."""

from typing import Any

import pytest

from sparkpoint.api.job import JobSpec
from sparkpoint.controller.wishes import accept, kept_wish
from sparkpoint.lifecycle.phases import Kind, Phase
from sparkpoint.lifecycle.world import Policy
from sparkpoint.runtime.model import EndReason
from tests.unit.controller.simulation import SPEC, Simulation
from tests.unit.lifecycle.worlds import A, during, empty

BAD = {"spec": {"tolerations": "all", "containers": [{"command": ["sh"]}]}}
NEW_CODE = {"application": {"script": {"path": "/opt/job/better.py"}}}


def test_a_bad_template_is_not_accepted_and_the_job_runs_on() -> None:
    simulation = Simulation()
    simulation.settle(simulation.is_running)

    simulation.edit(
        **NEW_CODE,
        driver={"podTemplate": BAD},
        executor={"instances": 2, "podTemplate": {"spec": {"volumes": [{}]}}},
    )
    for _ in range(5):
        simulation.run_pass()
        simulation.world.step()

    accepted = simulation.condition("Accepted")
    assert (accepted["status"], accepted["reason"]) == ("False", "InvalidSpec")
    assert "spec.driver.podTemplate.spec.tolerations" in accepted["message"]
    assert "spec.executor.podTemplate.spec.volumes[0].name" in accepted["message"]
    assert (simulation.status["phase"], simulation.status["attempt"]) == ("Running", 1)
    assert all(driver.phase == "running" for driver in simulation.world.drivers.values())


def test_mistakes_elsewhere_do_not_hide_those_of_templates() -> None:
    paths = [
        error.path for error in accept({**SPEC, "image": "", "driver": {"podTemplate": BAD}}).errors
    ]

    assert "spec.image" in paths
    assert "spec.driver.podTemplate.spec.tolerations" in paths


def test_templates_that_are_no_objects_are_refused_once() -> None:
    for broken in ({"podTemplate": "sh"}, "sh"):
        errors = accept({**SPEC, "driver": broken}).errors

        assert len(errors) == 1
        assert errors[0].path.startswith("spec.driver")


def _without_repository(**more: Any) -> dict[str, Any]:
    spec = {key: value for key, value in SPEC.items() if key != "savepoints"}
    return {**spec, "upgrade": {"mode": "LastCommit", "compatibility": "Skip"}, **more}


def test_a_savepoint_that_nobody_knows_the_place_of_is_told_and_waited_for() -> None:
    manifest = {"repository": "s3://old/savepoints", "job": "other", "name": "noon"}
    wanted = {"restoreFrom": {"manifest": manifest}}
    simulation = Simulation(_without_repository(**wanted))
    simulation.settle(lambda: bool(simulation.world.drivers))
    # It ends before its gate was opened, and what says where the savepoint is was taken away.
    for driver in simulation.world.drivers.values():
        driver.end(EndReason.SCRIPT_FAILED, 1, "a bug", clean=False)
    simulation.edit(restoreFrom=None)
    simulation.settle(lambda: simulation.condition("Degraded")["reason"] == "ObjectRefused")
    began = simulation.world.now

    attempts = set()
    while (simulation.world.now - began).total_seconds() < 600:
        simulation.run_pass()
        simulation.world.step()
        attempts.add(simulation.status["attempt"])
        simulation.world.now += simulation.world.now.resolution * 5_000_000
    assert "savepoints.repository" in simulation.condition("Degraded")["message"]
    assert len(attempts) < 10, "with pauses that grow"

    simulation.edit(**wanted)
    simulation.settle(simulation.is_running, passes=400)

    assert simulation.status["restoredFrom"]["name"] == "shop/other/noon"


def _accepted_before(**changes: Any) -> JobSpec:
    """A spec that an operator has accepted which did not know today's rules."""
    return JobSpec.model_validate({**SPEC, **changes})


_LONG = {"checkpoint": {**SPEC["checkpoint"], "timeout": "48h"}}
_DEADLINE = {"podTemplate": {"spec": {"activeDeadlineSeconds": 9}}}


@pytest.mark.parametrize(
    ("before", "path"),
    [
        (_LONG, "spec.checkpoint.timeout"),
        ({"driver": _DEADLINE}, "spec.driver.podTemplate.spec.activeDeadlineSeconds"),
    ],
)
def test_a_rule_that_is_new_takes_no_other_wish_from_who_has_broken_it_before(
    before: dict[str, Any], path: str
) -> None:
    former = _accepted_before(**before)
    spec = {**SPEC, **before, "suspend": True}

    accepted = accept(spec, former=former)
    asked_now = accept(spec, former=_accepted_before())
    first = accept(spec)

    assert accepted.errors == ()
    assert accepted.spec is not None
    assert accepted.spec.suspend
    assert [error.path for error in asked_now.errors] == [path]
    assert [error.path for error in first.errors] == [path]


def test_a_mistake_that_was_accepted_before_may_not_be_made_otherwise() -> None:
    former = _accepted_before(**_LONG)
    longer = {"checkpoint": {**SPEC["checkpoint"], "timeout": "72h"}}

    assert len(accept({**SPEC, **longer}, former=former).errors) == 1


def test_pods_that_are_no_longer_safe_enough_are_not_kept() -> None:
    unsafe = {"driver": {"podTemplate": {"spec": {"hostNetwork": True}}}}
    former = _accepted_before(**unsafe)

    assert accept({**SPEC, **unsafe}, former=former, unsafe_pods=True).errors == ()
    assert accept({**SPEC, **unsafe}, former=former).errors


@pytest.mark.parametrize("strict", [True, False])
def test_a_typing_mistake_changes_nothing_about_the_trial_under_way(strict: bool) -> None:
    """The stored revision may be from before the strictness was changed."""
    record = during(Kind.UPGRADE, Phase.PREPARE, empty(A), strict=strict or None)
    stored = Policy(compatibility="Enforce" if strict else "Strict")

    wish = kept_wish(record, policy=stored, generation=3, deleting=None)

    assert wish is not None
    assert wish.policy.strict is strict


@pytest.mark.parametrize("compatibility", ["Skip", "Warn", "Enforce"])
def test_what_is_not_strict_stays_what_it_is(compatibility: Any) -> None:
    stored = Policy(compatibility=compatibility)

    wish = kept_wish(
        during(Kind.UPGRADE, Phase.PREPARE, empty(A)), policy=stored, generation=3, deleting=None
    )

    assert wish is not None
    assert wish.policy is stored


def test_a_template_of_which_no_pod_can_be_made_is_not_kept() -> None:
    """The driver that runs would be stopped, and none could follow it."""
    bad = {"driver": {"podTemplate": BAD}}

    errors = accept({**SPEC, **bad}, former=_accepted_before(**bad)).errors

    assert "spec.driver.podTemplate.spec.tolerations" in {error.path for error in errors}


def test_a_job_that_breaks_a_new_rule_is_suspended_in_the_time_that_an_agent_takes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    simulation = Simulation({**SPEC, **_LONG})
    with monkeypatch.context() as earlier:
        earlier.setattr("sparkpoint.controller.wishes.validate", lambda *_, **__: [])
        simulation.settle(simulation.is_running)
    stops = next(iter(simulation.world.drivers.values())).stops

    simulation.edit(suspend=True)
    simulation.settle(lambda: simulation.status["phase"] == "Suspended")

    assert simulation.condition("Accepted")["status"] == "True"
    assert [request.budget_seconds for request, _ in stops.values()] == [86400]
