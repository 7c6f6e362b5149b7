"""Environment variables of a job's pods: credentials and places of its storage, and its own."""

from typing import Any

from sparkpoint.api.job import JobSpec
from sparkpoint.api.pods import Driver, EnvVar, Executor, Storage
from sparkpoint.controller.objects.merge import filled, merge
from sparkpoint.controller.objects.places import LOCAL_DIRECTORY

__all__ = ["environment", "from_field", "literal", "local_directories", "plain", "region_of"]

_CREDENTIALS = (
    ("AWS_ACCESS_KEY_ID", False),
    ("AWS_SECRET_ACCESS_KEY", False),
    # Only temporary credentials have one.
    ("AWS_SESSION_TOKEN", True),
)
_LOCAL_DIRECTORIES = "SPARK_LOCAL_DIRS"
_USUAL_REGION = "us-east-1"
"""What servers other than Amazon's are happy with."""


def environment(spec: JobSpec, role: Driver | Executor) -> dict[str, Any]:
    """`env` and `envFrom` of a container; what the role says wins over what storage implies."""
    own = {"env": [_variable(variable) for variable in role.env]}
    sources = [source.model_dump(exclude_none=True) for source in role.env_from]
    return filled({**merge({"env": _storage(spec.storage)}, own), "envFrom": sources})


def local_directories(spec: JobSpec) -> list[dict[str, Any]]:
    """Where Spark puts its files, unless the job says it: this would win over its configuration."""
    said = {variable.name for variable in spec.driver.env} | spec.spark_conf.keys()
    if said & {_LOCAL_DIRECTORIES, "spark.local.dir"}:
        return []
    return [plain(_LOCAL_DIRECTORIES, LOCAL_DIRECTORY)]


def region_of(storage: Storage) -> str | None:
    """The S3 region; one is needed even by servers that have none."""
    return storage.region or (_USUAL_REGION if storage.endpoint_url else None)


def plain(name: str, value: str) -> dict[str, Any]:
    """A variable with a value."""
    return {"name": name, "value": value}


def from_field(name: str, path: str) -> dict[str, Any]:
    """A variable that tells the pod about itself."""
    return {"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}}


def literal(text: str) -> str:
    """A text in which Kubernetes replaces nothing; it would replace `$(NAME)` by a variable."""
    return text.replace("$", "$$")


def _variable(variable: EnvVar) -> dict[str, Any]:
    return variable.model_dump(exclude_none=True)


def _storage(storage: Storage) -> list[dict[str, Any]]:
    region = region_of(storage)
    variables = [_credential(storage.secret_name, *each) for each in _CREDENTIALS]
    endpoint = storage.endpoint_url
    return [
        *(variables if storage.secret_name is not None else []),
        *([plain("AWS_ENDPOINT_URL", literal(endpoint))] if endpoint else []),
        # boto3 reads the one, Java the other.
        *([plain(n, region) for n in ("AWS_REGION", "AWS_DEFAULT_REGION")] if region else []),
    ]


def _credential(secret: str | None, key: str, optional: bool) -> dict[str, Any]:
    reference = {"name": secret, "key": key, **({"optional": True} if optional else {})}
    return {"name": key, "valueFrom": {"secretKeyRef": reference}}
