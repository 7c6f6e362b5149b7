"""The rules of a SparkSavepoint's spec."""

from typing import Final

from sparkpoint.api.common import ManifestReference
from sparkpoint.api.rules import Rule, exactly_one, rule, transition, without_user
from sparkpoint.api.savepoint import SavepointRetention, SavepointSpec, SparkSavepoint

__all__ = ["SAVEPOINT_RULES"]

_LONGEST_NAME = 63
_REMEDY = "make another SparkSavepoint, or put the old value back"


def _fixed(name: str) -> Rule:
    """What a savepoint was taken of, and how, cannot be changed afterwards."""
    key = SavepointSpec.model_fields[name].alias or name
    return transition(
        SavepointSpec,
        lambda new, old: bool(getattr(new, name) == getattr(old, name)),
        field=key,
        cel=f"has(self.{key}) == has(oldSelf.{key}) && "
        f"(!has(self.{key}) || self.{key} == oldSelf.{key})",
        message=f"{key} of a savepoint cannot change",
        remedy=_REMEDY,
    )


SAVEPOINT_RULES: Final[tuple[Rule, ...]] = (
    rule(
        SparkSavepoint,
        lambda savepoint: len(savepoint.metadata.name) <= _LONGEST_NAME,
        field="metadata.name",
        cel=f"size(self.metadata.name) <= {_LONGEST_NAME}",
        message="the name of a savepoint is also the value of labels",
        remedy=f"use at most {_LONGEST_NAME} characters",
    ),
    exactly_one(ManifestReference, "name", "id"),
    without_user(ManifestReference, "endpoint_url", found_cel="self.endpointUrl.{user}"),
    rule(
        SavepointRetention,
        lambda kept: (kept.ttl, kept.keep_until, kept.keep_forever or None).count(None) >= 2,
        cel="[has(self.ttl), has(self.keepUntil), self.keepForever]"
        ".filter(given, given).size() < 2",
        message="ttl, keepUntil and keepForever exclude each other",
        remedy="keep one of them",
    ),
    *(_fixed(name) for name in ("job_ref", "trigger", "existing", "verify", "backoff_limit")),
)
