"""What many jobs are measured with (`tests/scale`) is what it is said to be."""

from sparkpoint.controller.cluster import JOBS, SAVEPOINTS, metadata
from tests.scale.ground import kept_savepoint
from tests.unit.controller.simulation import NAME, NAMESPACE
from tests.unit.controller.test_upkeep import running


def test_to_savepoints_that_are_only_kept_nothing_is_done_but_to_tell_why() -> None:
    simulation = running()
    body = kept_savepoint(NAME, 1, identity=64 * "0", taken=simulation.world.now)
    metadata(body).update(namespace=NAMESPACE, generation=1)
    status = body.pop("status")
    simulation.cluster.add(body)
    name = metadata(body)["name"]
    simulation.cluster.edit(SAVEPOINTS, NAMESPACE, name, lambda each: each.update(status=status))
    simulation.run_pass()
    simulation.cluster.calls.clear()

    simulation.run_savepoints()
    simulation.run_pass()

    told = simulation.savepoint(name)["status"]
    assert told == {**status, "keptBecause": ["newest", "trigger Manual"]}
    assert [kind for _, kind, _ in simulation.cluster.writes if kind != JOBS.kind] == []
