"""The two CustomResourceDefinitions, as plain documents. Writing them to files is not done here."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from sparkpoint.api.common import GROUP, VERSION, Record
from sparkpoint.api.job import JobSpec, StatefulSparkJob
from sparkpoint.api.jobrules import JOB_RULES
from sparkpoint.api.jobstatus import JobStatus
from sparkpoint.api.rules import Rule
from sparkpoint.api.savepoint import SavepointSpec, SavepointStatus, SparkSavepoint
from sparkpoint.api.savepointrules import SAVEPOINT_RULES
from sparkpoint.api.schema import Schema, rule_entry, spec_schema, status_schema

__all__ = ["JOBS", "RESOURCES", "SAVEPOINTS", "Column", "ResourceKind", "definition"]


@dataclass(frozen=True, slots=True)
class Column:
    """What `kubectl get` shows; it writes names in capitals."""

    name: str
    path: str
    type: str = "string"


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourceKind:
    """One of our resources: its names, its models, its rules and how it is shown."""

    model: type[Record]
    spec: type[Record]
    status: type[Record]
    plural: str
    short_name: str
    rules: Sequence[Rule]
    columns: Sequence[Column]
    scale: dict[str, str] | None = None

    @property
    def kind(self) -> str:
        """As in `kind:`."""
        return self.model.__name__


_AGE = Column("Age", ".metadata.creationTimestamp", "date")

JOBS: Final = ResourceKind(
    model=StatefulSparkJob,
    spec=JobSpec,
    status=JobStatus,
    plural="statefulsparkjobs",
    short_name="ssj",
    rules=JOB_RULES,
    columns=(
        Column("Phase", ".status.phase"),
        Column("Batch", ".status.batch", "integer"),
        Column("Rate", ".status.rate"),
        Column("Executors", ".status.executors", "integer"),
        Column("Partitions", ".status.partitions", "integer"),
        Column("Last-Savepoint", ".status.lastSavepoint.name"),
        Column("Restored-From", ".status.restoredFrom.name"),
        _AGE,
    ),
    scale={
        "specReplicasPath": ".spec.executor.instances",
        "statusReplicasPath": ".status.executors",
        "labelSelectorPath": ".status.selector",
    },
)

SAVEPOINTS: Final = ResourceKind(
    model=SparkSavepoint,
    spec=SavepointSpec,
    status=SavepointStatus,
    plural="sparksavepoints",
    short_name="ssp",
    rules=SAVEPOINT_RULES,
    columns=(
        Column("Job", ".spec.jobRef.name"),
        Column("Phase", ".status.phase"),
        Column("Batch", ".status.batch", "integer"),
        Column("Size", ".status.size"),
        Column("New", ".status.newSize"),
        Column("Verified", ".status.verified.verdict"),
        Column("Parent", ".status.parent"),
        _AGE,
    ),
)

RESOURCES: Final = (JOBS, SAVEPOINTS)

_METADATA: Final = {
    "type": "object",
    # Only what is declared can be blamed by a rule, and has a bound.
    "properties": {"name": {"type": "string", "maxLength": 253}},
}


def definition(resource: ResourceKind) -> dict[str, Any]:
    """The CustomResourceDefinition, ready for `kubectl apply --server-side`."""
    version = {
        "name": VERSION,
        "served": True,
        "storage": True,
        "additionalPrinterColumns": [
            {"name": column.name, "type": column.type, "jsonPath": column.path}
            for column in resource.columns
        ],
        "subresources": {"status": {}} | ({"scale": resource.scale} if resource.scale else {}),
        "schema": {"openAPIV3Schema": _root_schema(resource)},
    }
    names = {
        "kind": resource.kind,
        "listKind": f"{resource.kind}List",
        "plural": resource.plural,
        "singular": resource.kind.lower(),
        "shortNames": [resource.short_name],
        "categories": ["spark"],
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{resource.plural}.{GROUP}"},
        "spec": {"group": GROUP, "scope": "Namespaced", "names": names, "versions": [version]},
    }


def _root_schema(resource: ResourceKind) -> Schema:
    about_root = [rule for rule in resource.rules if rule.model is resource.model]
    fields = resource.model.model_fields
    spec, status = spec_schema(resource.spec, resource.rules), status_schema(resource.status)
    return {
        "description": resource.model.__doc__,
        "type": "object",
        "x-kubernetes-validations": [rule_entry(rule) for rule in about_root],
        "required": ["spec"],
        "properties": {
            "apiVersion": {"description": f"{GROUP}/{VERSION}.", "type": "string"},
            "kind": {"description": f"{resource.kind}.", "type": "string"},
            "metadata": _METADATA,
            "spec": {**spec, "description": fields["spec"].description},
            "status": {**status, "description": fields["status"].description},
        },
    }
