"""What both resources share: the base of every model, references, conditions.

Models are plain data. The rules between their fields are in `rules.py`, the schema that the API
server gets is made in `schema.py`.
"""

from enum import StrEnum
from typing import Annotated, Any, Final

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, JsonValue
from pydantic.alias_generators import to_camel

from sparkpoint.api.scalars import Digest, Location, ObjectName, RepositoryName, Url

__all__ = [
    "API_VERSION",
    "GROUP",
    "VERSION",
    "Condition",
    "ConditionStatus",
    "FreeForm",
    "LocalReference",
    "ManifestReference",
    "Metadata",
    "Record",
    "StatusRecord",
    "keyed_by",
]

GROUP: Final = "sparkpoint.dev"
VERSION: Final = "v1alpha1"
API_VERSION: Final = "sparkpoint.dev/v1alpha1"


def keyed_by(key: str) -> dict[str, JsonValue]:
    """Mark a list as a map: no two items share the key, and several writers may own items."""
    return {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": [key]}


FreeForm = Annotated[
    dict[str, Any], Field(json_schema_extra={"x-kubernetes-preserve-unknown-fields": True})
]
"""An object whose content the API server keeps as it is: elsewhere it drops unknown fields."""


class Record(BaseModel):
    """A part of a spec: camelCase in the resource, unknown keys refused, never changed."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        alias_generator=to_camel,
        validate_by_name=True,
        validate_by_alias=True,
        serialize_by_alias=True,
        use_attribute_docstrings=True,
        # A spec may hold secrets in plain text, and exceptions end in logs.
        hide_input_in_errors=True,
    )


class StatusRecord(Record):
    """A part of a status: what a newer operator wrote into it is ignored."""

    model_config = ConfigDict(extra="ignore")


class Metadata(StatusRecord):
    """The part of a Kubernetes object's metadata that decisions are made from."""

    name: str
    namespace: str = "default"
    uid: str = ""
    generation: int = 0
    resource_version: str = ""
    creation_timestamp: AwareDatetime | None = None
    deletion_timestamp: AwareDatetime | None = None
    labels: dict[str, str] = Field(default_factory=dict)
    annotations: dict[str, str] = Field(default_factory=dict)
    finalizers: tuple[str, ...] = ()


class LocalReference(Record):
    """An object in the same namespace, by name."""

    name: ObjectName
    """Name of the object."""


class ManifestReference(Record):
    """A savepoint as the repository knows it, whether or not this cluster has a resource for it."""

    repository: Location
    """Repository that holds it: a path on a volume of the job, or s3://bucket/prefix."""
    endpoint_url: Url | None = None
    """S3 endpoint of the repository, where it differs from the job's `storage.endpointUrl`."""
    namespace: RepositoryName | None = None
    """Namespace that the savepoint was taken in; by default the resource's own."""
    job: RepositoryName
    """Job that the savepoint was taken of."""
    name: RepositoryName | None = None
    """Name of the savepoint. Give this or `id`."""
    id: Digest | None = None
    """Id of the savepoint, the digest of its manifest. Give this or `name`."""


class ConditionStatus(StrEnum):
    """Whether a condition holds."""

    TRUE = "True"
    FALSE = "False"
    UNKNOWN = "Unknown"


class Condition(StatusRecord):
    """One aspect of the resource's state, as `kubectl wait --for=condition=…` reads it."""

    type: Annotated[str, Field(max_length=316)]
    """Which aspect."""
    status: ConditionStatus
    """Whether it holds."""
    observed_generation: int | None = None
    """Generation of the spec that was looked at."""
    last_transition_time: AwareDatetime
    """When `status` changed last."""
    reason: Annotated[str, Field(max_length=1024)]
    """One word for programs: why."""
    message: Annotated[str, Field(max_length=32768)] = ""
    """One sentence for people: why, and what to do."""
