"""Retention and collection as text: what stays and why, what goes."""

from datetime import datetime

from sparkpoint.cli.render.text import age, count, size, table
from sparkpoint.savepoint import Savepoint
from sparkpoint.savepoint.collect import CollectPlan, CollectResult
from sparkpoint.savepoint.retention import RetentionPlan

__all__ = ["collection_text", "retention_text"]


def retention_text(plan: RetentionPlan, now: datetime, *, dry_run: bool) -> str:
    """Every savepoint with the reasons for keeping it, as restic prints it; then the others."""
    kept = [(*_row(kept.savepoint, now), ", ".join(kept.reasons)) for kept in plan.keep]
    removed = [(*_row(each, now),) for each in plan.remove]
    parts = [f"Keep {count(len(kept), 'savepoint')}:"]
    if kept:
        parts.append(table(("NAME", "JOB", "AGE", "SIZE", "REASONS"), kept, right="SIZE"))
    verb = "Would remove" if dry_run else "Removed"
    parts += ["", f"{verb} {count(len(removed), 'savepoint')}{':' if removed else '.'}"]
    if removed:
        parts.append(table(("NAME", "JOB", "AGE", "SIZE"), removed, right="SIZE"))
    if removed and not dry_run:
        parts.append("`sparkpoint collect` frees their space.")
    return "\n".join(parts)


def _row(savepoint: Savepoint, now: datetime) -> tuple[str, str, str, str]:
    manifest = savepoint.manifest
    return (
        manifest.name,
        f"{manifest.namespace}/{manifest.job}",
        age(manifest.created, now),
        size(manifest.files.bytes),
    )


def collection_text(result: CollectResult) -> str:
    """What was freed, what is kept, and what a later run will free."""
    plan = result.plan
    if result.dry_run:
        first = f"Would free {size(plan.bytes)} in {_freed(plan, len(plan.objects))}."
    else:
        first = f"Freed {size(result.freed_bytes)} in {_freed(plan, result.removed_objects)}."
    lines = [first, f"Kept {size(plan.kept_bytes)} in {count(plan.kept_objects, 'object')}."]
    if plan.young_bytes:
        lines.append(f"{size(plan.young_bytes)} more are unused, but too young or in use.")
    if plan.wasted_bytes:
        lines.append(f"{size(plan.wasted_bytes)} are unused inside packs that are needed.")
    return "\n".join(lines)


def _freed(plan: CollectPlan, objects: int) -> str:
    """What killed captures left unfinished takes space as well."""
    unfinished = count(len(plan.temporaries), "unfinished file")
    return count(objects, "object") + (f" and {unfinished}" if plan.temporaries else "")
