"""`savepoint restore`."""

from collections.abc import Iterator
from dataclasses import dataclass

from sparkpoint.cli.answer import Answer, Settings
from sparkpoint.cli.progress import shown_progress
from sparkpoint.cli.render.documents import restore_document
from sparkpoint.cli.render.savepoints import restore_text
from sparkpoint.cli.work.places import check_outside, located, open_place, open_repository
from sparkpoint.cli.work.sinks import sink_stores
from sparkpoint.savepoint import (
    Manifest,
    MaterializeRequest,
    MaterializeResult,
    Mode,
    Repository,
    Savepoint,
    SinkPolicy,
)
from sparkpoint.savepoint.sinks import doubts
from sparkpoint.savepoint.uses import note_restore
from sparkpoint.storage import Store, open_store
from sparkpoint.storage.errors import AccessDeniedError, BadLocationError, StorageError

__all__ = ["Restoring", "restore_savepoint"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Restoring:
    """What the command line says about it."""

    target: str
    mode: str
    sinks: tuple[str, ...]
    sink_policy: str
    verify: bool = False


def restore_savepoint(settings: Settings, location: str, reference: str, how: Restoring) -> Answer:
    """Materialize a savepoint in a place that Spark can start from."""
    repository = open_repository(settings, location)
    savepoint = repository.find(reference)
    target = open_place(settings, how.target)
    check_outside(settings, target)
    mode, policy = Mode(how.mode), SinkPolicy(how.sink_policy)
    sinks = sink_stores(settings, how.sinks, savepoint.manifest, mode=mode, policy=policy)
    request = MaterializeRequest(
        mode=mode,
        sink_policy=policy,
        sinks=sinks,
        origin=_origin(settings, savepoint.manifest),
        verify=how.verify,
    )
    with located(target), shown_progress(settings) as progress:
        result = repository.materialize(savepoint, target, request, progress=progress)
    notes = (
        *progress.notes,
        *_noted(repository, result),
        *_notes(savepoint.manifest, mode, policy, sinks),
        *(_left_behind(repository, savepoint) if mode is Mode.RESUME else ()),
    )
    return Answer(document=restore_document(result, notes), text=restore_text(result), notes=notes)


def _origin(settings: Settings, manifest: Manifest) -> Store | None:
    """Where it was captured: not always a place that can be looked at from here."""
    try:
        return open_store(manifest.source.uri, settings.endpoint_url)
    except BadLocationError:
        return None


def _noted(repository: Repository, result: MaterializeResult) -> Iterator[str]:
    """Leave a note for `log`; the restore is done, so that must not fail any more."""
    try:
        note_restore(repository.store, result.savepoint, target=result.uri, mode=result.mode.value)
    except AccessDeniedError:
        pass  # that the repository cannot be written to was told when no lease could be had
    except StorageError as error:
        yield f"The restore is complete, but `sparkpoint log` will not show it: {error}"


def _left_behind(repository: Repository, savepoint: Savepoint) -> Iterator[str]:
    """To go on from an old batch is nearly always meant as a rewind."""
    manifest = savepoint.manifest
    newest = repository.newest(namespace=manifest.namespace, job=manifest.job)
    later = {query.id: query.batch for query in newest.manifest.queries} if newest else {}
    for query in manifest.queries:
        if newest is not None and later.get(query.id, -1) > query.batch:
            yield (
                f"Query {query.prefix or query.id} has gone on since: {newest.key} is at batch "
                f"{later[query.id]}, this at batch {query.batch}. Sinks may have that output "
                "already. To go back, restore with --mode rewind; to try something, with fork."
            )


def _notes(
    manifest: Manifest, mode: Mode, policy: SinkPolicy, sinks: dict[str, Store]
) -> tuple[str, ...]:
    """A restore that did not look at the sink may skip batches, so it must not be silent."""
    if policy is SinkPolicy.IGNORE:
        return ()
    if mode is not Mode.REWIND:
        return tuple(doubts(manifest, sinks, mode=mode))
    unseen = [q for q in manifest.queries if q.sink is None and q.prefix not in sinks]
    return tuple(
        f"The sink of query {query.prefix or query.id} is unknown and was not looked at. If it is "
        f"a file sink or a table that has batches after {query.batch}, Spark skips them: give "
        "--sink, or roll it back yourself."
        for query in unseen
    )
