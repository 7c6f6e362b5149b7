"""`state show` and `state repartition`."""

from dataclasses import dataclass
from pathlib import Path

from sparkpoint.cli.answer import Answer, Settings
from sparkpoint.cli.progress import shown_progress
from sparkpoint.cli.render.documents import savepoint_document
from sparkpoint.cli.render.state import moved_document, moved_text, survey_document, survey_text
from sparkpoint.cli.work.places import open_repository
from sparkpoint.state import RepartitionRequest, repartition, survey

__all__ = ["Repartitioning", "repartition_state", "show_state"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Repartitioning:
    """What the command line says about it."""

    partitions: int
    name: str | None
    work_dir: Path | None


def show_state(settings: Settings, location: str, reference: str) -> Answer:
    """What the state of a savepoint is made of."""
    repository = open_repository(settings, location)
    savepoint = repository.find(reference)
    with shown_progress(settings) as progress:
        stores = survey(repository, savepoint, progress=progress)
    document = {
        "repository": repository.store.uri,
        "savepoint": savepoint_document(savepoint),
        "stores": [survey_document(store) for store in stores],
    }
    unread = dict.fromkeys(
        f"Rows of operator {store.operator} are not counted: {store.unread}."
        for store in stores
        if store.unread
    )
    return Answer(
        document=document,
        text=survey_text(savepoint.key, stores),
        notes=(*progress.notes, *unread),
    )


def repartition_state(
    settings: Settings, location: str, reference: str, wanted: Repartitioning
) -> Answer:
    """Spread the state of a savepoint over other partitions, in a new savepoint."""
    repository = open_repository(settings, location)
    savepoint = repository.find(reference)
    request = RepartitionRequest(
        partitions=wanted.partitions, name=wanted.name, work_folder=wanted.work_dir
    )
    with shown_progress(settings) as progress:
        result = repartition(repository, savepoint, request, progress=progress)
    document = {
        "repository": repository.store.uri,
        "parent": savepoint_document(savepoint),
        "savepoint": savepoint_document(result.savepoint),
        "partitions": wanted.partitions,
        "rows": result.rows,
        "seconds": result.seconds,
        "stores": [moved_document(query, m) for query, each in result.moved.items() for m in each],
    }
    return Answer(document=document, text=moved_text(result), notes=tuple(progress.notes))
