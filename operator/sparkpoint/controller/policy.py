"""A spec's wishes about operations, in the words that decisions are made in."""

from datetime import timedelta
from typing import Final, Literal

from sparkpoint.api.job import JobSpec
from sparkpoint.api.policies import Compatibility, RestartPolicy, RollbackTarget, UpgradeMode
from sparkpoint.api.scalars import OnDelete
from sparkpoint.lifecycle.world import Policy

__all__ = ["UNKNOWN", "policy_of"]

UNKNOWN: Final = Policy(repository=False)
"""Where no spec can be read: nothing says where a savepoint could go."""

_MODES: Final[dict[UpgradeMode, Literal["Savepoint", "LastCommit", "Stateless"]]] = {
    UpgradeMode.SAVEPOINT: "Savepoint",
    UpgradeMode.LAST_COMMIT: "LastCommit",
    UpgradeMode.STATELESS: "Stateless",
}
_CHECKS: Final[dict[Compatibility, Literal["Strict", "Enforce", "Warn", "Skip"]]] = {
    Compatibility.STRICT: "Strict",
    Compatibility.ENFORCE: "Enforce",
    Compatibility.WARN: "Warn",
    Compatibility.SKIP: "Skip",
}
_TARGETS: Final[dict[RollbackTarget, Literal["Savepoint", "Latest"]]] = {
    RollbackTarget.SAVEPOINT: "Savepoint",
    RollbackTarget.LATEST: "Latest",
}
_RESTARTS: Final[dict[RestartPolicy, Literal["Always", "OnFailure", "Never"]]] = {
    RestartPolicy.ALWAYS: "Always",
    RestartPolicy.ON_FAILURE: "OnFailure",
    RestartPolicy.NEVER: "Never",
}

_CAPTURE: Final = timedelta(minutes=1)
"""For what a stop captures once the last batch is committed."""
_DELETION: Final = timedelta(minutes=10)


def policy_of(spec: JobSpec) -> Policy:
    """What the spec says, and what follows from it."""
    upgrade, restart, saved = spec.upgrade, spec.restart, spec.savepoints
    interval = spec.checkpoint.interval
    stop = spec.checkpoint.timeout.timedelta + _CAPTURE
    return Policy(
        mode=_MODES[upgrade.mode],
        compatibility=_CHECKS[upgrade.compatibility],
        rollback=upgrade.rollback.enabled,
        rollback_to=_TARGETS[upgrade.rollback_target],
        deadline=upgrade.rollback.deadline.timedelta,
        stable_after=upgrade.rollback.stable_after_commits,
        interval=interval.timedelta if interval is not None else timedelta(),
        restart=_RESTARTS[restart.policy],
        backoff_initial=restart.backoff.initial.timedelta,
        backoff_max=restart.backoff.max.timedelta,
        backoff_factor=float(restart.backoff.factor),
        reset_after=restart.reset_after.timedelta,
        max_failures=restart.max_attempts,
        stop_timeout=stop,
        # A stop is given up after twice its time; a final savepoint needs some, too.
        delete_timeout=max(_DELETION, 3 * stop),
        repository=saved is not None,
        final_savepoint=saved is not None and saved.final_on_delete,
        retain_checkpoint=spec.checkpoint.on_delete is OnDelete.RETAIN,
    )
