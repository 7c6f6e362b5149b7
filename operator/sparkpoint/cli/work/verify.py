"""`savepoint verify`."""

from collections.abc import Sequence

from sparkpoint.cli.answer import Answer, Settings
from sparkpoint.cli.exits import Exit
from sparkpoint.cli.progress import shown_progress
from sparkpoint.cli.render.documents import unreadable_documents, verification_document
from sparkpoint.cli.render.savepoints import verification_text
from sparkpoint.cli.work.places import open_repository
from sparkpoint.savepoint import Catalogue
from sparkpoint.savepoint.catalogue import choose

__all__ = ["verify_savepoints"]


def verify_savepoints(settings: Settings, location: str, references: Sequence[str]) -> Answer:
    """Read every byte of the named savepoints, or of all if none is named."""
    repository = open_repository(settings, location)
    found = repository.list()
    if references:
        chosen = {(s := choose(repository.store, found, each)).id: s for each in references}
        found = Catalogue(tuple(chosen.values()))
    with shown_progress(settings) as progress:
        verified = repository.verify(found.savepoints, progress=progress)
    bad = [each.savepoint.key for each in verified if not each.good]
    bad += [each.path for each in found.unreadable]
    total = len(verified) + len(found.unreadable)
    document = {
        "repository": repository.store.uri,
        "good": not bad,
        "savepoints": [verification_document(each) for each in verified],
        "unreadable": unreadable_documents(found),
    }
    unreadable = [(each.path, each.problem) for each in found.unreadable]
    return Answer(
        document=document,
        text=verification_text(verified, unreadable),
        notes=progress.notes,
        alarm=_alarm(repository.store.uri, bad, total),
        exit=Exit.DAMAGED if bad else Exit.OK,
    )


def _alarm(uri: str, bad: Sequence[str], total: int) -> str:
    if not bad:
        return ""
    return (
        f"{len(bad)} of {total} savepoints in {uri} are damaged: {', '.join(bad)}. Copy them again "
        "from another repository, or delete them."
    )
