"""What cannot be made is refused before the job is touched, or told of and tried again."""

from typing import Any

from sparkpoint.controller.wishes import accept
from sparkpoint.runtime.model import EndReason
from tests.unit.controller.simulation import SPEC, Simulation

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
