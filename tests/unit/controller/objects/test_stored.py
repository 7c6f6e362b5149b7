"""Revisions and tokens as Kubernetes keeps them."""

import base64
import json

import pytest

from sparkpoint.controller import objects
from tests.unit.controller.objects.samples import OWNER, golden_spec


@pytest.mark.parametrize("name", ["minimal", "full"])
def test_a_spec_comes_back_as_it_was_kept(name: str) -> None:
    spec = golden_spec(name)

    kept = objects.controller_revision(OWNER, "a1b2c3d4e5", spec, 4)

    assert objects.spec_of(json.loads(json.dumps(kept))) == spec
    assert objects.script_of(kept) is None
    assert (kept["metadata"]["name"], kept["revision"]) == ("visits-a1b2c3d4e5", 4)


def test_the_script_is_kept_with_it() -> None:
    kept = objects.controller_revision(OWNER, "r", golden_spec("full"), 4, script="print('é')\n")

    assert objects.script_of(json.loads(json.dumps(kept))) == "print('é')\n"
    assert objects.spec_of(kept) == golden_spec("full")


def test_defaults_are_kept_too_so_that_a_later_operator_reads_the_same() -> None:
    kept = objects.controller_revision(OWNER, "r", golden_spec("minimal"), 1)

    assert kept["data"]["spec"]["checkpoint"]["timeout"] == "60s"
    assert kept["data"]["spec"]["driver"]["memory"] == "1g"


def test_the_token_of_an_epoch() -> None:
    secret = objects.agent_secret(OWNER, 3, "tökén")

    assert secret["metadata"]["name"] == objects.agent_secret_name("visits", 3) == "visits-e3-agent"
    assert base64.b64decode(secret["data"]["token"]).decode() == "tökén"
    assert secret["metadata"]["labels"]["sparkpoint.dev/epoch"] == "3"
