"""`sparkpoint log`, `retain` and `collect`: the repository as a whole."""

from datetime import timedelta
from pathlib import Path

import click

from sparkpoint.cli.answer import Answer, Settings
from sparkpoint.cli.options import (
    DURATION,
    answering,
    dry_run_option,
    examples,
    job_filter_option,
    ordinary_file,
    repository_option,
)

__all__ = ["collect", "log", "retain"]

_COUNT = click.IntRange(min=0)


@click.command(
    short_help="Show the versions of jobs and how they descend.",
    epilog=examples(
        "sparkpoint log --repository savepoints --graph",
        "sparkpoint log --repository savepoints --job default/visits",
        "sparkpoint log --repository savepoints --html savepoints.html",
    ),
)
@repository_option
@job_filter_option
@click.option("--graph", is_flag=True, help="Draw the tree, one line per savepoint.")
@click.option(
    "--html",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    callback=ordinary_file,
    help="Write the tree as a page for a browser, one file that needs nothing else.",
)
@answering
def log(
    settings: Settings,
    repository: str,
    job: tuple[str, str] | None,
    graph: bool,
    html: Path | None,
) -> Answer:
    """Show every savepoint, newest first: parent, job, revision, batch, age, size, tags, uses."""
    from sparkpoint.cli.work.history import show_log, write_page

    if html is None:
        return show_log(settings, repository, job=job, graph=graph)
    if graph:
        raise click.UsageError("Give either --graph or --html.")
    if not html.parent.is_dir():
        raise click.UsageError(f"The directory {str(html.parent)!r} does not exist: make it first.")
    return write_page(settings, repository, html, job=job)


@click.command(
    short_help="Delete savepoints that no rule keeps.",
    epilog=examples(
        "sparkpoint retain --repository savepoints --keep-last 3 --keep-tagged --dry-run",
        "sparkpoint retain --repository savepoints --keep-hourly 24 --keep-daily 7 --max-age 30d",
    ),
)
@repository_option
@job_filter_option
@click.option("--keep-last", "last", type=_COUNT, default=0, metavar="N", help="Newest N.")
@click.option("--keep-hourly", "hourly", type=_COUNT, default=0, metavar="N", help="Last N hours.")
@click.option("--keep-daily", "daily", type=_COUNT, default=0, metavar="N", help="Last N days.")
@click.option("--keep-weekly", "weekly", type=_COUNT, default=0, metavar="N", help="Last N weeks.")
@click.option(
    "--keep-monthly", "monthly", type=_COUNT, default=0, metavar="N", help="Last N months."
)
@click.option("--keep-tagged", "tagged", is_flag=True, help="Whatever has a tag.")
@click.option(
    "--max-age",
    type=DURATION,
    metavar="D",
    help="Rules but --keep-tagged do not keep what is older; alone, keep what is younger.",
)
@dry_run_option
@answering
def retain(
    settings: Settings,
    repository: str,
    job: tuple[str, str] | None,
    max_age: timedelta | None,
    dry_run: bool,
    tagged: bool,
    **counts: int,
) -> Answer:
    """Delete the savepoints that no rule keeps, and say why each of the others is kept.

    Rules hold for each job on its own, and only ever keep: of each of the last N hours, days,
    weeks or months (UTC) that have savepoints, the newest stays. The newest of a job always stays.
    The space is freed by `sparkpoint collect`. Durations: 90s, 15m, 12h, 7d, 2w, 1d12h.
    """
    if not (any(counts.values()) or tagged or max_age is not None):
        raise click.UsageError(
            "No rule keeps anything: give at least one of --keep-last, --keep-hourly, "
            "--keep-daily, --keep-weekly, --keep-monthly (with 1 or more), --keep-tagged, "
            "--max-age."
        )
    from sparkpoint.cli.work.housekeeping import retain_savepoints
    from sparkpoint.savepoint.retention import RetentionPolicy

    policy = RetentionPolicy(
        last=counts["last"],
        hourly=counts["hourly"],
        daily=counts["daily"],
        weekly=counts["weekly"],
        monthly=counts["monthly"],
        tagged=tagged,
        max_age=max_age,
    )
    return retain_savepoints(settings, repository, policy, job=job, dry_run=dry_run)


@click.command(
    short_help="Free the space of deleted savepoints.",
    epilog=examples(
        "sparkpoint collect --repository savepoints --dry-run",
        "sparkpoint collect --repository savepoints --grace 6h",
    ),
)
@repository_option
@click.option(
    "--grace",
    type=DURATION,
    default="1h",
    show_default=True,
    metavar="D",
    help="Spare what is younger; longer than any capture takes.",
)
@dry_run_option
@answering
def collect(settings: Settings, repository: str, grace: timedelta, dry_run: bool) -> Answer:
    """Free what no savepoint needs any more.

    Safe while others capture, restore, copy or delete. Never removes anything that a savepoint
    names.
    """
    from sparkpoint.cli.work.housekeeping import collect_garbage

    return collect_garbage(settings, repository, grace=grace, dry_run=dry_run)
