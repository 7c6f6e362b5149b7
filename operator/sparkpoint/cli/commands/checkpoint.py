"""`sparkpoint checkpoint …`: looking at checkpoints as Spark wrote them."""

import click

from sparkpoint.cli.answer import Answer, Settings
from sparkpoint.cli.options import PLACE, answering, examples

__all__ = ["checkpoint"]


@click.group(short_help="Look into a checkpoint.")
def checkpoint() -> None:
    """Look into a checkpoint as Spark wrote it. Nothing is changed."""


@checkpoint.command(
    short_help="Say what a checkpoint holds, and what is unsafe about it.",
    epilog=examples(
        "sparkpoint checkpoint show checkpoints/visits",
        "sparkpoint checkpoint show s3://lake/checkpoints/visits --json",
    ),
)
@click.argument("path", type=PLACE, metavar="PATH_OR_URI")
@answering
def show(settings: Settings, path: str) -> Answer:
    """Say what the checkpoint at PATH_OR_URI holds.

    Its queries, their last batch, operators, partitions, state store provider and pinned
    configuration; whether they stopped at a boundary; and what would make it unsafe to restore.
    """
    from sparkpoint.cli.work.checkpoints import show_checkpoint

    return show_checkpoint(settings, path)
