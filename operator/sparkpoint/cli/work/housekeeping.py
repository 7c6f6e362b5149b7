"""`retain` and `collect`."""

from datetime import UTC, datetime, timedelta

from sparkpoint.cli.answer import Answer, Settings
from sparkpoint.cli.progress import shown_progress
from sparkpoint.cli.render.documents import collection_document, retention_document
from sparkpoint.cli.render.plans import collection_text, retention_text
from sparkpoint.cli.work.catalogue import notes_on
from sparkpoint.cli.work.places import open_repository
from sparkpoint.savepoint.retention import RetentionPlan, RetentionPolicy

__all__ = ["collect_garbage", "retain_savepoints"]


def retain_savepoints(
    settings: Settings,
    location: str,
    policy: RetentionPolicy,
    *,
    job: tuple[str, str] | None,
    dry_run: bool,
) -> Answer:
    """Plan, carry the plan out unless told not to, and print it."""
    repository = open_repository(settings, location)
    now = datetime.now(UTC)
    namespace, name = job or (None, None)
    plan = repository.retain(policy, now=now, namespace=namespace, job=name)
    if not dry_run:
        plan = repository.apply(plan)
    return Answer(
        document=retention_document(repository.store.uri, plan, dry_run=dry_run),
        text=retention_text(plan, now, dry_run=dry_run),
        notes=(*notes_on(plan.unreadable), *_nothing(plan, job)),
    )


def _nothing(plan: RetentionPlan, job: tuple[str, str] | None) -> tuple[str, ...]:
    """A job of which there is nothing may be a typing error."""
    if job is None or plan.keep or plan.remove or plan.unreadable:
        return ()
    listed = "`sparkpoint savepoint list` shows what there is"
    return (f"No savepoint of {'/'.join(job)} is there; {listed}.",)


def collect_garbage(
    settings: Settings, location: str, *, grace: timedelta, dry_run: bool
) -> Answer:
    """Free what no savepoint needs."""
    repository = open_repository(settings, location)
    with shown_progress(settings) as progress:
        result = repository.collect(grace=grace.total_seconds(), dry_run=dry_run, progress=progress)
    return Answer(
        document=collection_document(repository.store.uri, result),
        text=collection_text(result),
        notes=progress.notes,
    )
