"""Every object of a minimal and of a full job, as a person has looked at them."""

import pytest
import yaml

from sparkpoint.controller import objects
from sparkpoint.controller.objects import Manifest
from sparkpoint.lifecycle.record import Begin, Origin, Run
from tests.unit.controller.objects.samples import GOLDEN, OWNER, golden_spec, make_run

_RESTORED = Origin(begin=Begin.SAVEPOINT, savepoint="visits-upgrade-4", sink="Rewind")
_RUNS: dict[str, tuple[Run, objects.Expectation]] = {
    "minimal": (make_run(epoch=1, attempt=1), "empty"),
    "full": (make_run(origin=_RESTORED), "restored"),
}


def built(name: str) -> list[Manifest]:
    """All that can be built from the spec of this name."""
    spec, (run, expect) = golden_spec(name), _RUNS[name]
    script = "print('visits')\n" if spec.application.script.config_map else None
    secret = objects.agent_secret(OWNER, run.epoch, "token")
    task = ("--job", "shop/visits")
    return [
        secret,
        *objects.driver_objects(
            OWNER,
            spec,
            run,
            expect=expect,
            token_secret=secret["metadata"]["name"],
            script=script,
        ),
        objects.ui_service(OWNER, spec),
        objects.worker_pod(OWNER, spec, name="visits-work", arguments=("remove", *task), run=run),
        *objects.spark_worker_objects(
            OWNER, spec, name="visits-trial", arguments=("verify", *task), script=script
        ),
        objects.controller_revision(OWNER, run.revision.name, spec, 5, script=script),
    ]


@pytest.mark.parametrize("name", sorted(_RUNS))
def test_objects_are_those_of_the_golden_files(name: str) -> None:
    golden = list(yaml.load_all((GOLDEN / f"{name}.objects.yaml").read_text(), yaml.CSafeLoader))

    assert built(name) == golden
