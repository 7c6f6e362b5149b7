"""`savepoint list`, `show`, `delete` and `tag`."""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime

from sparkpoint.cli.answer import Answer, Settings
from sparkpoint.cli.render.documents import catalogue_document, savepoint_document
from sparkpoint.cli.render.savepoints import list_text, savepoint_text
from sparkpoint.cli.work.places import open_repository
from sparkpoint.savepoint import Catalogue, Repository, Savepoint
from sparkpoint.savepoint.catalogue import Unreadable, choose, find_unreadable, read_savepoint
from sparkpoint.savepoint.errors import DamagedError
from sparkpoint.savepoint.names import check_name

__all__ = ["delete_savepoints", "list_savepoints", "notes_on", "show_savepoint", "tag_savepoint"]


def list_savepoints(
    settings: Settings, location: str, *, job: tuple[str, str] | None, tags: Sequence[str]
) -> Answer:
    """What there is, oldest first."""
    repository = open_repository(settings, location)
    namespace, name = job or (None, None)
    found = repository.list(namespace=namespace, job=name)
    chosen = tuple(each for each in found.savepoints if set(tags) <= set(each.tags))
    shown = Catalogue(chosen, found.unreadable)
    return Answer(
        document=catalogue_document(repository.store.uri, shown),
        text=list_text(shown.savepoints, datetime.now(UTC)),
        notes=notes_on(found.unreadable),
    )


def notes_on(unreadable: Iterable[Unreadable]) -> tuple[str, ...]:
    """A word about manifests that cannot be read; they are not simply left out."""
    return tuple(f"Left out: {each.problem}" for each in unreadable)


def show_savepoint(settings: Settings, location: str, reference: str) -> Answer:
    """All about one."""
    repository = open_repository(settings, location)
    savepoint = repository.find(reference)
    document = {
        "repository": repository.store.uri,
        "savepoint": savepoint_document(savepoint),
        "manifest": savepoint.manifest.model_dump(mode="json"),
    }
    return Answer(document=document, text=savepoint_text(savepoint, datetime.now(UTC)))


def delete_savepoints(
    settings: Settings, location: str, references: Sequence[str], *, dry_run: bool
) -> Answer:
    """Delete them, damaged ones too; all are looked up before the first is touched."""
    repository = open_repository(settings, location)
    found = repository.list()
    chosen = {target.path: target for target in (_target(repository, found, r) for r in references)}
    for target in () if dry_run else chosen.values():
        if isinstance(target, Savepoint):
            repository.delete(target)
        else:
            # There is no table to protect any more: without it nobody can be restoring this.
            repository.store.delete(target.path)
    whole = [target for target in chosen.values() if isinstance(target, Savepoint)]
    document = {
        "repository": repository.store.uri,
        "dryRun": dry_run,
        "deleted": [savepoint_document(target) for target in whole],
        "deletedDamaged": [t.path for t in chosen.values() if isinstance(t, Unreadable)],
    }
    verb = "Would delete" if dry_run else "Deleted"
    names = [t.key if isinstance(t, Savepoint) else t.path for t in chosen.values()]
    return Answer(document=document, text="\n".join(f"{verb} {name}" for name in names))


def _target(repository: Repository, found: Catalogue, reference: str) -> Savepoint | Unreadable:
    """The savepoint, or what is left of it; one of a newer format is not ours to delete."""
    damaged = find_unreadable(found, reference)
    if damaged is None or any(each.key == reference for each in found.savepoints):
        return choose(repository.store, found, reference)
    try:
        return read_savepoint(repository.store, damaged.path)
    except DamagedError:
        return damaged


def tag_savepoint(
    settings: Settings,
    location: str,
    reference: str,
    *,
    tags: Sequence[str],
    removed: Sequence[str],
) -> Answer:
    """Add and take away tags."""
    for tag in (*tags, *removed):
        check_name(tag, "tag")
    repository = open_repository(settings, location)
    savepoint = repository.find(reference)
    repository.tag(savepoint, tags)
    repository.untag(savepoint, removed)
    tagged = repository.find(savepoint.key)
    document = {"repository": repository.store.uri, "savepoint": savepoint_document(tagged)}
    return Answer(document=document, text=f"{tagged.key}: {', '.join(tagged.tags) or 'no tags'}")
