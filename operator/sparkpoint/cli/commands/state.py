"""`sparkpoint state …`: looking into the state of savepoints, and changing how it is spread."""

from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import click

from sparkpoint.cli.answer import Answer, Settings
from sparkpoint.cli.options import (
    NEW_NAME,
    answering,
    examples,
    ordinary_file,
    reference_argument,
    repository_option,
)

__all__ = ["state"]

_Decorated = TypeVar("_Decorated", bound=Callable[..., object])


def _store_options(function: _Decorated) -> _Decorated:
    """`--query`, `--operator` and `--store` or `--variable`: which state is meant."""
    for option in (
        click.option(
            "--store",
            "--variable",
            "store",
            metavar="NAME",
            help="A store, a state variable of transformWithState, or `timers`.",
        ),
        click.option("--operator", type=click.IntRange(min=0), metavar="ID", help="Its number."),
        click.option("--query", metavar="FOLDER", help="Folder of a query below the checkpoint."),
    ):
        function = option(function)
    return function


def _work_dir_option(function: _Decorated) -> _Decorated:
    """`--work-dir`."""
    return click.option(
        "--work-dir",
        type=click.Path(path_type=Path),
        metavar="DIR",
        help="Where a copy is made and removed again. Default: the folder for temporary files.",
    )(function)


def _parquet(context: click.Context, option: click.Parameter, file: Path | None) -> Path | None:
    """A file called like one of another kind would be taken for that."""
    if file is not None and file.suffix.lower() in {".csv", ".json", ".jsonl", ".txt"}:
        words = f"differences are written as Parquet, and {str(file)!r} is called otherwise."
        better = file.with_suffix(".parquet")
        raise click.BadParameter(f"{words} Call it {str(better)!r}.", param=option)
    return ordinary_file(context, option, file)


@click.group(short_help="Look into the state of a savepoint, or spread it anew.")
def state() -> None:
    """Look into the state of a savepoint, or spread it over another number of partitions.

    Always on savepoints, never on the directory of a query. Spark is needed only for state that
    nobody else can read, such as RocksDB's.
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
    short_help="Print the rows of a store, all or by a condition.",
    epilog=examples(
        "sparkpoint state query nightly --where \"key.k = 'key3'\" --repository savepoints",
        "sparkpoint state query nightly --sql 'SELECT max(value.count) AS most FROM state'"
        " --repository savepoints",
        "sparkpoint state query nightly --format parquet --output rows.parquet"
        " --repository savepoints",
    ),
)
@reference_argument
@_store_options
@click.option("--where", metavar="CONDITION", help="Which rows, such as \"key.url = '/'\".")
@click.option("--sql", metavar="SELECT", help="SQL over the table `state` instead.")
@click.option(
    "--format",
    "form",
    type=click.Choice(["table", "json", "csv", "parquet"]),
    help="How rows are written; json is one document per line. Default: as the name of --output "
    "ends, or a table.",
)
@click.option(
    "--limit",
    type=click.IntRange(min=1),
    metavar="N",
    help="Not more rows than that. Default: 100 if they are printed.",
)
@click.option(
    "--output",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    callback=ordinary_file,
    help="Write the rows to a file; a table is written as JSON.",
)
@_work_dir_option
@repository_option
@answering
def query(
    settings: Settings,
    reference: str,
    query: str | None,
    operator: int | None,
    store: str | None,
    where: str | None,
    sql: str | None,
    form: str | None,
    limit: int | None,
    output: Path | None,
    work_dir: Path | None,
    repository: str,
) -> Answer:
    """Print the rows of one store of a savepoint: `key`, `value` and `partition_id`.

    State of the HDFS-backed provider is read without Spark; other state is read by Spark, from a
    throw-away copy, which needs `pip install 'sparkpoint[spark]'`. Conditions, SQL and Parquet need
    `pip install 'sparkpoint[query]'`.
    """
    from sparkpoint.cli.work.staterows import Querying, look_into_state
    from sparkpoint.state.selection import Selection

    wanted = Querying(
        selection=Selection(query=query, operator=operator, store=store),
        where=where,
        sql=sql,
        form=form,
        limit=limit,
        output=output,
        work_dir=work_dir,
    )
    return look_into_state(settings, repository, reference, wanted)


@state.command(
    short_help="Tell what differs between the state of two savepoints.",
    epilog=examples(
        "sparkpoint state diff nightly nightly-p8 --repository savepoints",
        "sparkpoint state diff nightly nightly-p8 --output changes.parquet --repository savepoints",
    ),
)
@click.argument("before", metavar="A")
@click.argument("after", metavar="B")
@_store_options
@click.option(
    "--samples",
    type=click.IntRange(min=0, max=1000),
    default=5,
    metavar="N",
    help="How many keys of each kind and store are shown.",
)
@click.option(
    "--output",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    callback=_parquet,
    help="Write every difference to a Parquet file.",
)
@_work_dir_option
@repository_option
@answering
def diff(
    settings: Settings,
    before: str,
    after: str,
    query: str | None,
    operator: int | None,
    store: str | None,
    samples: int,
    output: Path | None,
    work_dir: Path | None,
    repository: str,
) -> Answer:
    """Tell which keys savepoint B has and A has not, the other way round, and which changed.

    For each store: counts and a few samples; with --output, every one of them. Memory does not grow
    with the state.
    """
    from sparkpoint.cli.work.staterows import Differing, compare_states
    from sparkpoint.state.selection import Selection

    wanted = Differing(
        selection=Selection(query=query, operator=operator, store=store),
        samples=samples,
        output=output,
        work_dir=work_dir,
    )
    return compare_states(settings, repository, (before, after), wanted)


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
@click.option(
    "--name",
    type=NEW_NAME,
    metavar="NAME",
    help="Of the new savepoint. Default: the old name and -pM.",
)
@_work_dir_option
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


@state.command(
    short_help="Make a savepoint with the same state, kept by RocksDB.",
    epilog=examples("sparkpoint state migrate nightly --repository savepoints"),
)
@reference_argument
@click.option(
    "--to", "provider", type=click.Choice(["rocksdb"]), default="rocksdb", help="The provider."
)
@click.option(
    "--name",
    type=NEW_NAME,
    metavar="NAME",
    help="Of the new savepoint. Default: the old name and -rocksdb.",
)
@_work_dir_option
@repository_option
@answering
def migrate(
    settings: Settings,
    reference: str,
    provider: str,
    name: str | None,
    work_dir: Path | None,
    repository: str,
) -> Answer:
    """Make a new savepoint whose state is kept by RocksDB; it is a child of the old one.

    From the HDFS-backed provider, which Spark takes if nobody says otherwise. Spark itself has no
    way from one to the other. Needs `pip install 'sparkpoint[spark]'`. Nothing is published unless
    Spark reads back the same rows, each where it will look for it.
    """
    from sparkpoint.cli.work.state import migrate_state

    return migrate_state(settings, repository, reference, name=name, work_dir=work_dir)


@state.command(
    short_help="Tell whether code can go on from a savepoint.",
    epilog=examples(
        "sparkpoint state check --savepoint nightly --repository savepoints -- visits.py",
    ),
)
@click.option("--savepoint", "reference", required=True, metavar="NAME_OR_ID", help="On which.")
@click.option("--conf", multiple=True, metavar="KEY=VALUE", help="Spark's, as the job will have.")
@click.option(
    "--spark-version",
    metavar="VERSION",
    help="That the job will run with. Default: the one that is installed here.",
)
@click.option("--master", default="local[2]", metavar="URL", help="Of the trial: local[N].")
@click.option(
    "--deadline",
    type=click.IntRange(min=1),
    default=600,
    metavar="SECONDS",
    help="After which there is no verdict.",
)
@click.option(
    "--functions", is_flag=True, help="Call functions that are sinks (foreachBatch), too."
)
@click.option(
    "--replay/--no-replay",
    default=True,
    help="Let the code do the last batch again, and compare what it makes of it. On by default.",
)
@click.option(
    "--work-dir",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    metavar="DIR",
    help="Where a copy is made and removed again. Default: the folder for temporary files.",
)
@repository_option
@click.argument("script", nargs=-1, type=click.UNPROCESSED, metavar="-- SCRIPT [ARGUMENT]...")
@answering
def check(
    settings: Settings,
    reference: str,
    conf: tuple[str, ...],
    spark_version: str | None,
    master: str,
    deadline: int,
    functions: bool,
    replay: bool,
    work_dir: Path | None,
    repository: str,
    script: tuple[str, ...],
) -> Answer:
    """Tell whether a script can go on from a savepoint: compatible, incompatible or unknown.

    The script runs as it is, for one batch, on a throw-away copy of the savepoint and with sinks
    that write nothing; nothing of the job is touched. Then it does the last batch again, and the
    state that comes of it is compared with the savepoint's: what differs, or could not be compared,
    makes it unknown. Without a script, only what files tell is looked at, which can say no, but
    never yes. Exit code 0, 3 or 1.
    """
    from sparkpoint.cli.work.statecheck import Checking, check_state

    wanted = Checking(
        script=script,
        conf=conf,
        spark_version=spark_version,
        master=master,
        deadline=deadline,
        functions=functions,
        replay=replay,
        work_dir=work_dir,
    )
    return check_state(settings, repository, reference, wanted)
