"""`savepoint copy`."""

from dataclasses import replace

from sparkpoint.cli.answer import Answer, Settings
from sparkpoint.cli.progress import shown_progress
from sparkpoint.cli.render.documents import savepoint_document
from sparkpoint.cli.render.savepoints import copy_text
from sparkpoint.cli.work.places import make_repository, open_repository

__all__ = ["copy_to_repository"]


def copy_to_repository(
    settings: Settings,
    reference: str,
    *,
    origin: str,
    target: str,
    target_endpoint: str | None,
    verify: bool = False,
) -> Answer:
    """Copy a savepoint; the target is made if it does not exist."""
    here = open_repository(settings, origin)
    savepoint = here.find(reference)
    elsewhere = replace(settings, endpoint_url=target_endpoint or settings.endpoint_url)
    there = make_repository(elsewhere, target)
    with shown_progress(settings) as progress:
        result = here.copy(savepoint, there, verify=verify, progress=progress)
    document = {
        "savepoint": savepoint_document(result.savepoint),
        "from": here.store.uri,
        "to": there.store.uri,
        "copiedBytes": result.copied_bytes,
        "verifiedBytes": result.verified_bytes,
    }
    text = copy_text(result, there.store.uri)
    return Answer(document=document, text=text, notes=(*there.notes, *progress.notes))
