"""The repository as one thing: what the command line, the operator and the agent talk to.

Everything here delegates; each operation is a module of its own.
"""

import contextlib
import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Annotated, Literal

from pydantic import StringConstraints, model_validator

from sparkpoint.savepoint import catalogue
from sparkpoint.savepoint.capture import CaptureRequest, CaptureResult, capture
from sparkpoint.savepoint.catalogue import Catalogue, Savepoint
from sparkpoint.savepoint.collect import DEFAULT_GRACE, CollectResult, collect
from sparkpoint.savepoint.errors import (
    NewerFormatError,
    NoSuchSavepointError,
    NotARepositoryError,
    ProtectedError,
    TargetNotEmptyError,
)
from sparkpoint.savepoint.manifest import FORMAT, NEWEST, Strict, canonical, parse_document
from sparkpoint.savepoint.materialize import MaterializeRequest, MaterializeResult, materialize
from sparkpoint.savepoint.names import OBJECTS, REPOSITORY, SAVEPOINTS
from sparkpoint.savepoint.progress import Progress
from sparkpoint.savepoint.publish import withdraw
from sparkpoint.savepoint.reserve import is_reserve, keep_reserve
from sparkpoint.savepoint.retention import (
    Kept,
    RetentionPlan,
    RetentionPolicy,
    plan_retention,
    tag_reasons,
)
from sparkpoint.savepoint.table import Table
from sparkpoint.savepoint.transfer import CopyResult, copy_savepoint
from sparkpoint.savepoint.verify import Verification, verify
from sparkpoint.storage import Store
from sparkpoint.storage.errors import AlreadyExistsError, BadLocationError, NotFoundError

__all__ = ["Repository"]


class _Identity(Strict):
    format: Literal[1, 2]
    id: Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{32}$")]
    digests: Literal["blake3"] | None = None
    """Given where every byte of a capture is to be read; whoever keeps the repository may write
    it there at any time."""

    @model_validator(mode="after")
    def _knows_its_keys(self) -> "_Identity":
        if self.format == FORMAT and self.digests is not None:
            raise ValueError("format 1 has no such key: it always means what this says")
        return self


class Repository:
    """Savepoints in a store. Many processes may use one at the same time."""

    def __init__(
        self, store: Store, identity: str, *, version: int = FORMAT, reads_all: bool = False
    ) -> None:
        self.store = store
        self.id = identity
        self.format = version
        self.written_anew = False
        """Its `repository.json` was lost, and `init` has written another one."""
        self._unread = version >= NEWEST and not reads_all

    @property
    def notes(self) -> tuple[str, ...]:
        """What a person should know of how it was opened."""
        if not self.written_anew:
            return ()
        return (
            f"{self.store.uri} had lost its {REPOSITORY}; a new one says format {self.format}. "
            f"{_SAY_AGAIN}",
        )

    @classmethod
    def open(cls, store: Store) -> "Repository":
        """Open what `init` made."""
        found = cls.open_if_present(store)
        if found is None:
            raise NotARepositoryError(_missing(store))
        return found

    @classmethod
    def open_if_present(cls, store: Store) -> "Repository | None":
        """Open what `init` made; None if there is no `repository.json`, lost or never written."""
        where = f"{store.uri}/{REPOSITORY}"
        try:
            data = store.read(REPOSITORY, limit=65536)
        except NotFoundError:
            return None
        found = parse_document(_Identity, data, where, newest=NEWEST, way_out=_REMOVE)
        reads_all = found.digests is not None
        return cls(store, found.id, version=found.format, reads_all=reads_all)

    @classmethod
    def init(cls, store: Store) -> "Repository":
        """Make a repository, or open the one that is there.

        One that has savepoints but has lost its `repository.json` gets another.
        """
        present = cls.open_if_present(store)
        if present is not None:
            return present
        lost = _savepoints_in(store)
        version = _of_empty(store) if lost is None else _format_of(lost)
        document = canonical(_Identity(format=version, id=uuid.uuid4().hex))
        # If somebody else makes one at the same time, theirs is as good.
        with contextlib.suppress(AlreadyExistsError):
            store.create(REPOSITORY, document)
        keep_reserve(store)
        repository = cls.open(store)
        repository.written_anew = lost is not None
        return repository

    def capture(
        self, source: Store, request: CaptureRequest, *, progress: Progress | None = None
    ) -> CaptureResult:
        """Make a savepoint of a checkpoint, of a running query too."""
        return capture(self.store, source, request, unread=self._unread, progress=progress)

    def materialize(
        self,
        savepoint: Savepoint,
        target: Store,
        request: MaterializeRequest | None = None,
        *,
        progress: Progress | None = None,
    ) -> MaterializeResult:
        """Restore a savepoint into a place from which Spark can start."""
        request = request or MaterializeRequest()
        return materialize(self.store, savepoint, target, request, progress=progress)

    def list(self, *, namespace: str | None = None, job: str | None = None) -> Catalogue:
        """All savepoints, oldest first, and what could not be read."""
        return catalogue.read_all(self.store, namespace=namespace, job=job)

    def find(
        self, reference: str, *, namespace: str | None = None, job: str | None = None
    ) -> Savepoint:
        """One savepoint by name, `job/name`, `namespace/job/name`, tag, id, or start of an id."""
        return catalogue.find(self.store, reference, namespace=namespace, job=job)

    def newest(self, *, namespace: str, job: str) -> Savepoint | None:
        """The newest savepoint of a job, by `Savepoint.order`."""
        return catalogue.newest(self.store, namespace=namespace, job=job)

    def files(self, savepoint: Savepoint) -> Table:
        """The table of a savepoint's files."""
        return catalogue.read_table(self.store, savepoint)

    def verify(
        self, savepoints: Iterable[Savepoint], *, progress: Progress | None = None
    ) -> "Sequence[Verification]":
        """Check that savepoints can be restored, reading every byte once."""
        return verify(self.store, savepoints, progress=progress)

    def copy(
        self,
        savepoint: Savepoint,
        target: "Repository",
        *,
        verify: bool = False,
        progress: Progress | None = None,
    ) -> CopyResult:
        """Copy a savepoint to another repository, where it has the same id.

        What it lacks there is copied again; `verify` reads all that is there to find out.
        """
        if savepoint.manifest.format > target.format:
            raise NewerFormatError(
                f"{savepoint.key} has format {savepoint.manifest.format}, and the repository "
                f"{target.store.uri} was made with format {target.format}, whose readers do not "
                "know it. Copy it into a new repository."
            )
        return copy_savepoint(self.store, savepoint, target.store, verify=verify, progress=progress)

    def delete(self, savepoint: Savepoint, *, protected: Mapping[str, str] | None = None) -> None:
        """Remove a savepoint; its bytes go with the next collection after the grace period.

        `protected` is id -> who uses it, from whoever knows; ProtectedError names the user.
        """
        user = (protected or {}).get(savepoint.id)
        if user is not None:
            raise ProtectedError(
                f"{savepoint.key} is used by {user}. Stop that, or delete another savepoint."
            )
        withdraw(self.store, savepoint)

    def retain(
        self,
        policy: RetentionPolicy,
        *,
        now: datetime,
        protected: Mapping[str, str] | None = None,
        namespace: str | None = None,
        job: str | None = None,
    ) -> RetentionPlan:
        """What a policy would keep and remove; nothing is removed here: `apply` does."""
        found = self.list(namespace=namespace, job=job)
        plan = plan_retention(found.savepoints, policy, now=now, protected=protected)
        return replace(plan, unreadable=found.unreadable)

    def apply(
        self, plan: RetentionPlan, *, protected: Mapping[str, str] | None = None
    ) -> RetentionPlan:
        """Delete what the plan removes, oldest first; the plan as it was carried out.

        What is gone already is fine. What has got a tag since that the plan's policy keeps, stays.
        """
        spared: list[Kept] = []
        for savepoint in reversed(plan.remove):
            if reasons := self._tagged_since(savepoint, plan.policy):
                spared.append(Kept(savepoint, reasons))
                continue
            with contextlib.suppress(NoSuchSavepointError):
                self.delete(savepoint, protected=protected)
        return plan.sparing(spared)

    def _tagged_since(
        self, savepoint: Savepoint, policy: RetentionPolicy | None
    ) -> tuple[str, ...]:
        if policy is None or not (policy.tagged or policy.tags):
            return ()
        return tuple(tag_reasons(catalogue.read_tags_of(self.store, savepoint.id), policy))

    def collect(
        self,
        *,
        grace: float = DEFAULT_GRACE,
        dry_run: bool = False,
        progress: Progress | None = None,
    ) -> CollectResult:
        """Free what no savepoint needs. `grace` is in seconds."""
        return collect(self.store, grace=grace, dry_run=dry_run, progress=progress)

    def tag(self, savepoint: Savepoint, tags: Iterable[str]) -> None:
        """Give it tags; its id does not change."""
        catalogue.add_tags(self.store, savepoint.id, tags)

    def untag(self, savepoint: Savepoint, tags: Iterable[str]) -> None:
        """Take tags away."""
        catalogue.remove_tags(self.store, savepoint.id, tags)


_SAY_AGAIN = 'If it said `"digests":"blake3"`, that has to be said again.'
_ANEW = (
    "`sparkpoint savepoint create` into it, or `savepoint copy` to it, writes that file anew from "
    f"what the savepoints say; nothing else depends on it. {_SAY_AGAIN}"
)
_REMOVE = f"Restore it from a copy of the repository, or remove it: {_ANEW}"


_CHECK = "Check the location; the first `savepoint create` makes a repository."


def _missing(store: Store) -> str:
    if _savepoints_in(store) is not None:
        return f"{store.uri} has savepoints, but its {REPOSITORY} is lost. {_ANEW}"
    with contextlib.suppress(BadLocationError):
        if not _others_in(store):
            return (
                f"{store.uri} is empty or does not exist: there is no savepoint repository. "
                f"{_CHECK}"
            )
    return f"{store.uri} is not a savepoint repository: it has no {REPOSITORY}. {_CHECK}"


def _savepoints_in(store: Store) -> Catalogue | None:
    """What a repository without its file has; None if objects and the manifest of a savepoint are
    not where a repository has them."""
    try:
        folders, _ = store.children()
    except BadLocationError:
        return None  # a link to a folder: whatever this is, no repository has one
    if not {OBJECTS, SAVEPOINTS} <= set(folders):
        return None
    found = catalogue.read_all(store)
    any_newer = any(each.newer for each in found.unreadable)
    return found if found.savepoints or any_newer else None


def _format_of(found: Catalogue) -> Literal[1, 2]:
    """The oldest format in which all savepoints can be: what it was, or one that means less."""
    if newer := [each for each in found.unreadable if each.newer]:
        raise NewerFormatError(newer[0].problem)
    return max(savepoint.manifest.format for savepoint in found.savepoints)


def _of_empty(store: Store) -> Literal[1, 2]:
    """The format of a new repository; TargetNotEmptyError where there is no room for one."""
    if others := _others_in(store):
        raise TargetNotEmptyError(
            f"{store.uri} is not empty (it has {others[0]!r}) and no repository. Choose an empty "
            "place for a new one."
        )
    return NEWEST


def _others_in(store: Store) -> list[str]:
    """What is there, but for what a fresh volume or a repository without savepoints has."""
    folders, files = store.children()
    names = [name for name in folders if name != "lost+found"]
    return [*names, *(entry.path for entry in files if not is_reserve(entry))]
