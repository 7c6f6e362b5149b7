"""`log`."""

import time
from collections.abc import Sequence
from datetime import UTC, datetime

from sparkpoint.cli.answer import Answer, Settings
from sparkpoint.cli.render.documents import savepoint_document
from sparkpoint.cli.render.history import Uses, graph_text, log_text
from sparkpoint.cli.render.text import moment
from sparkpoint.cli.work.catalogue import notes_on
from sparkpoint.cli.work.commits import with_last_commits
from sparkpoint.cli.work.places import open_repository
from sparkpoint.savepoint import Repository, Savepoint
from sparkpoint.savepoint.leases import readable_leases
from sparkpoint.savepoint.uses import Restored, read_restores

__all__ = ["show_log"]


def show_log(
    settings: Settings, location: str, *, job: tuple[str, str] | None, graph: bool
) -> Answer:
    """The savepoints and how they descend; of one job, with all that its line comes from."""
    repository = open_repository(settings, location)
    found = repository.list()
    shown = _of_job(found.savepoints, job)[::-1]
    uses = _uses(repository, shown)
    restores = with_last_commits(
        settings, repository, shown, read_restores(repository.store, shown)
    )
    now = datetime.now(UTC)
    document = {
        "repository": repository.store.uri,
        "savepoints": [_entry(each, shown, uses, restores.get(each.id, ())) for each in shown],
    }
    render = graph_text if graph else log_text
    text = render(shown, uses, restores, now)
    return Answer(
        document=document, text=text or "No savepoints.", notes=notes_on(found.unreadable)
    )


def _entry(
    savepoint: Savepoint, among: Sequence[Savepoint], uses: Uses, restores: Sequence[Restored]
) -> dict[str, object]:
    children = [s.id for s in among if s.manifest.parent and s.manifest.parent.id == savepoint.id]
    return {
        **savepoint_document(savepoint),
        "children": children,
        "usedBy": list(uses.get(savepoint.id, ())),
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
