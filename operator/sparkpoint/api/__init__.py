"""The resources `StatefulSparkJob` and `SparkSavepoint`: one source of CRDs, validation and docs.

Only pydantic is needed; nothing here speaks to Kubernetes.
"""

from sparkpoint.api.common import API_VERSION, GROUP, VERSION
from sparkpoint.api.errors import FieldError, InvalidResourceError
from sparkpoint.api.job import JobSpec, StatefulSparkJob
from sparkpoint.api.jobstatus import JobStatus
from sparkpoint.api.savepoint import SavepointSpec, SavepointStatus, SparkSavepoint
from sparkpoint.api.validation import (
    parse_job,
    parse_savepoint,
    parse_spec,
    validate,
    validate_resource,
)

__all__ = [
    "API_VERSION",
    "GROUP",
    "VERSION",
    "FieldError",
    "InvalidResourceError",
    "JobSpec",
    "JobStatus",
    "SavepointSpec",
    "SavepointStatus",
    "SparkSavepoint",
    "StatefulSparkJob",
    "parse_job",
    "parse_savepoint",
    "parse_spec",
    "validate",
    "validate_resource",
]
