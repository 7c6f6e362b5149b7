"""`log`."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from sparkpoint.cli.answer import Answer, Settings
from sparkpoint.cli.render.documents import savepoint_document
from sparkpoint.cli.render.history import Restores, Uses, graph_text, log_text
from sparkpoint.cli.render.page import tree_page
from sparkpoint.cli.render.text import count, moment
from sparkpoint.cli.work.catalogue import notes_on
from sparkpoint.cli.work.commits import with_last_commits
from sparkpoint.cli.work.newfile import write_pieces
from sparkpoint.cli.work.places import open_repository
from sparkpoint.savepoint import Repository, Savepoint
from sparkpoint.savepoint.leases import readable_leases
from sparkpoint.savepoint.uses import Restored, read_restores

__all__ = ["show_log", "write_page"]


@dataclass(frozen=True, slots=True)
class _History:
    """The savepoints, newest first, and what is known of their use."""

    repository: Repository
    savepoints: Sequence[Savepoint]
    uses: Uses
    restores: Restores
    notes: tuple[str, ...]

    def document(self) -> dict[str, object]:
        children: dict[str, list[str]] = {}
        for each in self.savepoints:
            if each.manifest.parent:
                children.setdefault(each.manifest.parent.id, []).append(each.id)
        return {
            "repository": self.repository.store.uri,
            "savepoints": [
                _entry(
                    each,
                    children.get(each.id, []),
                    self.uses.get(each.id, ()),
                    self.restores.get(each.id, ()),
                )
                for each in self.savepoints
            ],
        }


def show_log(
    settings: Settings, location: str, *, job: tuple[str, str] | None, graph: bool
) -> Answer:
    """The savepoints and how they descend; of one job, with all that its line comes from."""
    found = _history(settings, location, job)
    render = graph_text if graph else log_text
    text = render(found.savepoints, found.uses, found.restores, datetime.now(UTC))
    return Answer(document=found.document(), text=text or "No savepoints.", notes=found.notes)


def write_page(
    settings: Settings, location: str, target: Path, *, job: tuple[str, str] | None
) -> Answer:
    """The same as a page for a browser."""
    found = _history(settings, location, job)
    uri = found.repository.store.uri
    page = tree_page(
        found.savepoints,
        found.uses,
        found.restores,
        repository=uri,
        endpoint_url=settings.endpoint_url,
        now=datetime.now(UTC),
    )
    write_pieces(target, page)
    text = f"Wrote {count(len(found.savepoints), 'savepoint')} to {target}: open it in a browser."
    return Answer(document=found.document() | {"html": str(target)}, text=text, notes=found.notes)


def _history(settings: Settings, location: str, job: tuple[str, str] | None) -> _History:
    repository = open_repository(settings, location)
    found = repository.list()
    shown = _of_job(found.savepoints, job)[::-1]
    restores = with_last_commits(
        settings, repository, shown, read_restores(repository.store, shown)
    )
    uses = _uses(repository, shown)
    return _History(repository, shown, uses, restores, notes_on(found.unreadable))


def _entry(
    savepoint: Savepoint, children: list[str], uses: Sequence[str], restores: Sequence[Restored]
) -> dict[str, object]:
    return {
        **savepoint_document(savepoint),
        "children": children,
        "usedBy": list(uses),
        "restoredTo": [
            {
                "target": each.target,
                "mode": each.mode,
                "at": moment(each.at),
                "lastCommit": moment(each.last_commit) if each.last_commit else None,
            }
            for each in restores
        ],
    }


def _of_job(savepoints: Sequence[Savepoint], job: tuple[str, str] | None) -> Sequence[Savepoint]:
    if job is None:
        return savepoints
    known = {each.id: each for each in savepoints}
    wanted: set[str] = set()
    for each in savepoints:
        if (each.manifest.namespace, each.manifest.job) != job:
            continue
        step: Savepoint | None = each
        while step is not None and step.id not in wanted:
            wanted.add(step.id)
            step = known.get(step.manifest.parent.id) if step.manifest.parent else None
    return [each for each in savepoints if each.id in wanted]


def _uses(repository: Repository, savepoints: Sequence[Savepoint]) -> Uses:
    """What is being restored, copied or captured from each right now, by its lease.

    Our own clock stands in for the store's: taking a lease to learn that would be a write.
    """
    now = time.time()
    active = [each.document for each in readable_leases(repository.store) if each.is_active(now)]
    return {
        savepoint.id: uses
        for savepoint in savepoints
        if (
            uses := [
                f"{document.purpose} on {document.host}"
                for document in active
                if savepoint.manifest.files.table in document.pins
            ]
        )
    }
