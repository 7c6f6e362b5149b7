"""Revisions and tokens as Kubernetes keeps them."""

import base64
import json

import pytest

from sparkpoint.api.pods import Driver
from sparkpoint.controller import objects
from sparkpoint.controller.errors import RecordError
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


def test_an_operator_of_before_reads_what_says_nothing_of_its_later_fields() -> None:
    usual = objects.controller_revision(OWNER, "r", golden_spec("minimal"), 1)
    driver = Driver(disruption_budget=False)
    said = golden_spec("minimal").model_copy(update={"driver": driver})
    unusual = objects.controller_revision(OWNER, "r", said, 1)

    assert "disruptionBudget" not in usual["data"]["spec"]["driver"]
    assert objects.spec_of(unusual) == said


def test_what_a_later_operator_has_kept_is_read_as_far_as_it_is_known() -> None:
    kept = json.loads(json.dumps(objects.controller_revision(OWNER, "r", golden_spec("full"), 1)))
    kept["data"]["spec"]["later"] = kept["data"]["spec"]["driver"]["later"] = {"a": 1}

    assert objects.spec_of(kept) == golden_spec("full")


def test_what_cannot_be_read_is_told_without_what_it_says() -> None:
    kept = json.loads(json.dumps(objects.controller_revision(OWNER, "r", golden_spec("full"), 1)))
    kept["data"]["spec"]["upgrade"]["compatibility"] = "secret"

    with pytest.raises(
        RecordError, match=r"visits-r cannot be read: upgrade\.compatibility: "
    ) as told:
        objects.spec_of(kept)
    assert "secret" not in str(told.value)


def test_the_token_of_an_epoch() -> None:
    secret = objects.agent_secret(OWNER, 3, "tökén")

    assert secret["metadata"]["name"] == objects.agent_secret_name("visits", 3) == "visits-e3-agent"
    assert base64.b64decode(secret["data"]["token"]).decode() == "tökén"
    assert secret["metadata"]["labels"]["sparkpoint.dev/epoch"] == "3"
