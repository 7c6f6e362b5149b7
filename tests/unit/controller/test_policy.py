"""Wishes about operations, from the spec to the words of decisions."""

from datetime import timedelta
from typing import Any

import pytest

from sparkpoint.api import validate_resource
from sparkpoint.controller.policy import policy_of
from sparkpoint.lifecycle.world import Policy
from sparkpoint.runtime.agent.routes import LONGEST_BUDGET
from tests.unit.controller.objects.samples import make_spec, minimal

_CHECKPOINT = {"location": "s3://data/checkpoints"}
_SAVEPOINTS = {"repository": "s3://data/savepoints"}

_CASES: dict[str, tuple[dict[str, Any], dict[str, object]]] = {
    "nothing said": (
        {},
        {
            "mode": "Savepoint",
            "compatibility": "Enforce",
            "rollback": True,
            "rollback_to": "Savepoint",
            "deadline": timedelta(minutes=10),
            "stable_after": 3,
            "restart": "OnFailure",
            "backoff_initial": timedelta(seconds=10),
            "backoff_max": timedelta(minutes=5),
            "backoff_factor": 2.0,
            "reset_after": timedelta(minutes=10),
            "max_failures": None,
            "stop_timeout": timedelta(minutes=2),
            "delete_timeout": timedelta(minutes=10),
            "final_savepoint": False,
            "retain_checkpoint": True,
        },
    ),
    "upgrade": (
        {
            "upgrade": {
                "mode": "Savepoint",
                "compatibility": "Warn",
                "rollback": {"enabled": False, "deadline": "3m", "stableAfterCommits": 7},
            }
        },
        {
            "compatibility": "Warn",
            "rollback": False,
            "deadline": timedelta(minutes=3),
            "stable_after": 7,
        },
    ),
    "a slow trigger": (
        {"checkpoint": {**_CHECKPOINT, "interval": "10m"}},
        {"interval": timedelta(minutes=10), "deadline": timedelta(minutes=10)},
    ),
    "a rollback goes to the newest commit where no savepoint is taken": (
        {"upgrade": {"mode": "LastCommit"}},
        {"mode": "LastCommit", "rollback_to": "Latest"},
    ),
    "a rollback goes where it is said to": (
        {"upgrade": {"rollback": {"to": "Latest"}}},
        {"mode": "Savepoint", "rollback_to": "Latest"},
    ),
    "stateless, unchecked": (
        {"upgrade": {"mode": "Stateless", "compatibility": "Skip"}},
        {"mode": "Stateless", "compatibility": "Skip"},
    ),
    "restart": (
        {
            "restart": {
                "policy": "Always",
                "backoff": {"initial": "1s", "factor": 3, "max": "1h"},
                "resetAfter": "5m",
                "maxAttempts": 4,
            }
        },
        {
            "restart": "Always",
            "backoff_initial": timedelta(seconds=1),
            "backoff_factor": 3.0,
            "backoff_max": timedelta(hours=1),
            "reset_after": timedelta(minutes=5),
            "max_failures": 4,
        },
    ),
    "never again": ({"restart": {"policy": "Never"}}, {"restart": "Never"}),
    "a long batch gets its time, in a deletion too": (
        {"checkpoint": {**_CHECKPOINT, "timeout": "29m"}},
        {"stop_timeout": timedelta(minutes=30), "delete_timeout": timedelta(minutes=90)},
    ),
    "deletion": (
        {
            "checkpoint": {**_CHECKPOINT, "onDelete": "Delete"},
            "savepoints": {**_SAVEPOINTS, "finalOnDelete": True},
        },
        {"final_savepoint": True, "retain_checkpoint": False},
    ),
    "no savepoints at all": (
        {"savepoints": None, "upgrade": {"mode": "LastCommit"}},
        {"final_savepoint": False, "mode": "LastCommit", "repository": False},
    ),
}


@pytest.mark.parametrize(("changes", "expected"), _CASES.values(), ids=_CASES)
def test_policy_of_a_spec(changes: dict[str, Any], expected: dict[str, object]) -> None:
    policy: Policy = policy_of(make_spec(**changes))

    assert {name: getattr(policy, name) for name in expected} == expected


@pytest.mark.parametrize(
    ("timeout", "is_taken"),
    [
        (f"{LONGEST_BUDGET:.0f}s", True),
        (f"{LONGEST_BUDGET + 1:.0f}s", False),
        ("24h", True),
        ("1d", True),
        ("24h1ms", False),
        ("2d", False),
    ],
)
def test_a_stop_may_take_as_long_as_its_agent_allows_and_no_longer(
    timeout: str, is_taken: bool
) -> None:
    resource = {
        "apiVersion": "sparkpoint.dev/v1alpha1",
        "kind": "StatefulSparkJob",
        "metadata": {"name": "visits"},
        "spec": {**minimal(), "checkpoint": {**_CHECKPOINT, "timeout": timeout}},
    }

    errors = validate_resource(resource)

    assert [each.path for each in errors] == ([] if is_taken else ["spec.checkpoint.timeout"])
