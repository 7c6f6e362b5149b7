"""A SparkSavepoint as the API server shows it, with what was written down about it."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from sparkpoint.api.crd import SAVEPOINTS as RESOURCE
from sparkpoint.api.errors import FieldError
from sparkpoint.api.job import JobSpec
from sparkpoint.api.savepoint import SavepointSpec
from sparkpoint.api.scalars import OnDelete, Verification
from sparkpoint.api.validation import validate
from sparkpoint.controller import objects
from sparkpoint.controller.cluster import Object, metadata
from sparkpoint.controller.keys import OPERATION, Key, key_of
from sparkpoint.controller.objects import Repository
from sparkpoint.controller.podfacts import label, parse_time
from sparkpoint.controller.records import read_savepoint_record
from sparkpoint.lifecycle.savepointworld import SavepointRecord, SavepointState, SavepointWish

__all__ = ["Identity", "SavepointView", "read_savepoint"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """A savepoint as its repository knows it."""

    repository: Repository
    namespace: str
    job: str
    name: str | None
    id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SavepointView:
    """One look at a SparkSavepoint."""

    body: Object
    key: Key
    spec: SavepointSpec | None
    errors: tuple[FieldError, ...]
    record: SavepointRecord
    deleting: datetime | None

    @property
    def uid(self) -> str:
        """Of the resource."""
        return str(metadata(self.body)["uid"])

    @property
    def job(self) -> Key:
        """The job that it belongs to."""
        return Key(self.key.namespace, self.body["spec"]["jobRef"]["name"])

    @property
    def status(self) -> Mapping[str, Any]:
        """As it was written last."""
        found: Mapping[str, Any] = self.body.get("status") or {}
        return found

    def wish(self, job: JobSpec | None) -> SavepointWish:
        """What it asks for; the job's spec says what it does not say itself."""
        spec = self.spec
        return SavepointWish(
            existing=spec is not None and spec.existing is not None,
            operation=label(self.body, OPERATION) or None,
            verify=self.verification(job) is not Verification.SKIP,
            backoff_limit=spec.backoff_limit if spec is not None else 0,
            dispose=spec is not None and spec.on_delete is OnDelete.DELETE,
            deleting=self.deleting,
        )

    def verification(self, job: JobSpec | None) -> Verification:
        """How it is to be checked."""
        if self.spec is not None and self.spec.verify is not None:
            return self.spec.verify
        saved = job.savepoints if job is not None else None
        return saved.verify if saved is not None else Verification.SKIP

    def identity(self, job: JobSpec | None) -> Identity | None:
        """Where it is, or will be; None: nothing says so."""
        existing = self.spec.existing if self.spec is not None else None
        if existing is not None:
            return Identity(
                repository=Repository(existing.repository, existing.endpoint_url),
                namespace=existing.namespace or self.key.namespace,
                job=existing.job,
                name=existing.name or self.status.get("name"),
                id=existing.id,
            )
        repository = self._repository(job)
        if repository is None:
            return None
        return Identity(
            repository=repository,
            namespace=self.key.namespace,
            job=self.job.name,
            name=self.key.name,
            id=self.status.get("id"),
        )

    def _repository(self, job: JobSpec | None) -> Repository | None:
        """The one that it was put into; the job's may be another one by now."""
        own = objects.repository_of(job) if job is not None else None
        written = self.status.get("repository")
        if written is None or (own is not None and own.uri == written):
            return own
        return Repository(written)


def read_savepoint(body: Object) -> SavepointView:
    """RecordError if its record cannot be read."""
    errors = tuple(validate(body.get("spec") or {}, resource=RESOURCE))
    return SavepointView(
        body=body,
        key=key_of(body),
        spec=SavepointSpec.model_validate(body["spec"]) if not errors else None,
        errors=errors,
        record=_record(body.get("status") or {}),
        deleting=parse_time(metadata(body).get("deletionTimestamp")),
    )


def _record(status: Mapping[str, Any]) -> SavepointRecord:
    """The phase counts: an operation of the job writes it without the rest."""
    record = read_savepoint_record(status.get("record"))
    phase = status.get("phase")
    return replace(
        record,
        state=SavepointState(phase) if phase is not None else record.state,
        described=record.described or status.get("id") is not None,
        started=record.started or parse_time(status.get("startedAt")),
    )
