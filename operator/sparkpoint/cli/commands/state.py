"""`sparkpoint state …`: looking into the state of savepoints, and changing how it is spread."""

from pathlib import Path

import click

from sparkpoint.cli.answer import Answer, Settings
from sparkpoint.cli.options import answering, examples, reference_argument, repository_option

__all__ = ["state"]


@click.group(short_help="Look into the state of a savepoint, or spread it anew.")
def state() -> None:
    """Look into the state of a savepoint, or spread it over another number of partitions.

    Always on savepoints, never on the directory of a query; needs no Spark.
    """


@state.command(
    short_help="Show operators, stores, rows and skew.",
    epilog=examples("sparkpoint state show before-upgrade --repository savepoints"),
)
@reference_argument
@repository_option
@answering
def show(settings: Settings, reference: str, repository: str) -> Answer:
    """Show what the state of a savepoint is made of, and how evenly it is spread.

    Rows are counted by reading all of it, which the HDFS-backed provider allows without Spark; of
    RocksDB, sizes are shown.
    """
    from sparkpoint.cli.work.state import show_state

    return show_state(settings, repository, reference)


@state.command(
    short_help="Make a savepoint with the same state in other partitions.",
    epilog=examples(
        "sparkpoint state repartition nightly --partitions 8 --repository savepoints",
        "sparkpoint state repartition nightly --partitions 3 --name narrow --repository savepoints",
    ),
)
@reference_argument
@click.option(
    "--partitions",
    required=True,
    type=click.IntRange(min=1),
    metavar="M",
    help="How many state partitions the queries are to have.",
)
@click.option("--name", help="Of the new savepoint. Default: the old name and -pM.")
@click.option(
    "--work-dir",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Where a copy is made and removed again. Default: the folder for temporary files.",
)
@repository_option
@answering
def repartition(
    settings: Settings,
    reference: str,
    partitions: int,
    name: str | None,
    work_dir: Path | None,
    repository: str,
) -> Answer:
    """Make a new savepoint whose queries have M state partitions; it is a child of the old one.

    The old one stays as it is: restore it to go back. Nothing is published unless every row is
    where Spark will look for it, none is missing and none is changed.
    """
    from sparkpoint.cli.work.state import Repartitioning, repartition_state

    wanted = Repartitioning(partitions=partitions, name=name, work_dir=work_dir)
    return repartition_state(settings, repository, reference, wanted)
