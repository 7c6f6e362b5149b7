"""`sparkpoint savepoint list`, `show`, `verify`, `delete` and `tag`: what there is already."""

import click

from sparkpoint.cli.answer import Answer, Settings
from sparkpoint.cli.options import (
    answering,
    dry_run_option,
    examples,
    job_filter_option,
    reference_argument,
    references_argument,
    repository_option,
)

__all__ = ["delete", "list_command", "show", "tag", "verify"]


@click.command(
    "list",
    short_help="List savepoints, oldest first.",
    epilog=examples(
        "sparkpoint savepoint list --repository savepoints",
        "sparkpoint savepoint list --repository savepoints --job default/visits --json",
    ),
)
@repository_option
@job_filter_option
@click.option("--tag", "tags", multiple=True, metavar="T", help="Only with this tag; repeatable.")
@answering
def list_command(
    settings: Settings, repository: str, job: tuple[str, str] | None, tags: tuple[str, ...]
) -> Answer:
    """List the savepoints of a repository, oldest first."""
    from sparkpoint.cli.work.catalogue import list_savepoints

    return list_savepoints(settings, repository, job=job, tags=tags)


@click.command(
    short_help="Show everything about a savepoint.",
    epilog=examples("sparkpoint savepoint show before-upgrade --repository savepoints"),
)
@reference_argument
@repository_option
@answering
def show(settings: Settings, reference: str, repository: str) -> Answer:
    """Show everything that is known about a savepoint."""
    from sparkpoint.cli.work.catalogue import show_savepoint

    return show_savepoint(settings, repository, reference)


@click.command(
    short_help="Check that savepoints can be restored.",
    epilog=examples(
        "sparkpoint savepoint verify before-upgrade --repository savepoints",
        "sparkpoint savepoint verify --all --repository savepoints",
    ),
)
@references_argument(required=False)
@click.option("--all", "everything", is_flag=True, help="Every savepoint of the repository.")
@click.option(
    "--deep", is_flag=True, help="Let Spark load all state, too, from a copy that is thrown away."
)
@repository_option
@answering
def verify(
    settings: Settings,
    references: tuple[str, ...],
    everything: bool,
    deep: bool,
    repository: str,
) -> Answer:
    """Read every byte of savepoints, and check that nothing is missing or damaged.

    Exit code 5 if something is. With --deep Spark loads every store, and must find as many rows
    there as the files hold; needs `pip install 'sparkpoint[spark]'`.
    """
    if everything == bool(references):
        raise click.UsageError("Give either savepoints to verify, or --all.")
    from sparkpoint.cli.work.verify import verify_savepoints

    return verify_savepoints(settings, repository, references, deep=deep)


@click.command(
    short_help="Delete savepoints.",
    epilog=examples(
        "sparkpoint savepoint delete default/visits/before-upgrade --repository savepoints"
    ),
)
@references_argument(required=True)
@repository_option
@dry_run_option
@answering
def delete(
    settings: Settings, references: tuple[str, ...], repository: str, dry_run: bool
) -> Answer:
    """Delete savepoints. Others, their children too, stay whole.

    The space is freed by `sparkpoint collect`, after its grace period. The savepoints are all
    looked up before the first is deleted.
    """
    from sparkpoint.cli.work.catalogue import delete_savepoints

    return delete_savepoints(settings, repository, references, dry_run=dry_run)


@click.command(
    short_help="Give a savepoint tags, or take them away.",
    epilog=examples(
        "sparkpoint savepoint tag before-upgrade stable --repository savepoints",
        "sparkpoint savepoint tag before-upgrade --remove stable --repository savepoints",
    ),
)
@reference_argument
@click.argument("tags", metavar="[TAG]...", nargs=-1)
@click.option("--remove", "removed", multiple=True, metavar="TAG", help="Repeatable.")
@repository_option
@answering
def tag(
    settings: Settings,
    reference: str,
    tags: tuple[str, ...],
    removed: tuple[str, ...],
    repository: str,
) -> Answer:
    """Give a savepoint tags, or take them away. Its id stays the same."""
    if not (tags or removed):
        raise click.UsageError("Give a tag to add, or --remove TAG.")
    from sparkpoint.cli.work.catalogue import tag_savepoint

    return tag_savepoint(settings, repository, reference, tags=tags, removed=removed)
