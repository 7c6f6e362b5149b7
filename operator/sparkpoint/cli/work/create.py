"""`savepoint create`."""

from collections.abc import Iterator
from dataclasses import dataclass

from sparkpoint.cli.answer import Answer, Settings
from sparkpoint.cli.progress import shown_progress
from sparkpoint.cli.render.documents import savepoint_document
from sparkpoint.cli.render.savepoints import capture_text
from sparkpoint.cli.work.naming import derive_job, names_for
from sparkpoint.cli.work.places import (
    located,
    make_repository,
    open_place,
    queries_in,
)
from sparkpoint.cli.work.sinks import recorded_sinks
from sparkpoint.savepoint import CaptureRequest, Savepoint
from sparkpoint.savepoint.capture import CONTINUED

__all__ = ["NewSavepoint", "create_savepoint"]


@dataclass(frozen=True, slots=True, kw_only=True)
class NewSavepoint:
    """What the command line says about it."""

    job: tuple[str, str] | None = None
    name: str | None = None
    queries: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    parent: str | None = None
    revision: str | None = None
    sinks: tuple[str, ...] = ()
    read_all: bool = False
    accept_doubtful: bool = False


def create_savepoint(
    settings: Settings, checkpoint: str, location: str, wanted: NewSavepoint
) -> Answer:
    """Capture a checkpoint into a repository, which is made if it does not exist."""
    source = open_place(settings, checkpoint)
    # Looked for first, so that a mistyped path makes no repository.
    queries = queries_in(source)
    names = () if wanted.job else names_for(source)
    sinks = recorded_sinks(settings, wanted.sinks, wanted.queries or queries)
    repository = make_repository(settings, location)
    job = wanted.job or derive_job(repository, source, names, queries=wanted.queries or queries)
    request = CaptureRequest(
        namespace=job[0],
        job=job[1],
        name=wanted.name,
        parent=wanted.parent or CONTINUED,
        queries=wanted.queries,
        tags=tuple(dict.fromkeys(wanted.tags)),
        revision=wanted.revision,
        trigger="cli",
        sinks=sinks,
        read_all=wanted.read_all,
        accept_doubtful=wanted.accept_doubtful,
    )
    with located(source), shown_progress(settings) as progress:
        result = repository.capture(source, request, progress=progress)
    document = {
        "repository": repository.store.uri,
        "savepoint": savepoint_document(result.savepoint),
        "readBytes": result.read_bytes,
    }
    notes = (*repository.notes, *progress.notes, *_warnings(result.savepoint))
    return Answer(document=document, text=capture_text(result), notes=notes)


def _warnings(savepoint: Savepoint) -> Iterator[str]:
    for query in savepoint.manifest.queries:
        for warning in query.warnings:
            yield f"Query {query.prefix}: {warning}" if query.prefix else warning
