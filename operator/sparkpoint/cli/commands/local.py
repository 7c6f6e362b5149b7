"""`sparkpoint local`: talk to what `sparkpoint run --local` has started."""

import functools
from collections.abc import Callable
from pathlib import Path

import click

from sparkpoint.cli.answer import Answer, Settings
from sparkpoint.cli.failures import Failure, as_document
from sparkpoint.cli.options import NEW_NAME, answering, examples

__all__ = ["explained", "local"]


def explained(function: Callable[..., Answer]) -> Callable[..., Answer]:
    """Turn what may be wrong with a local run into an answer."""

    @functools.wraps(function)
    def act(*arguments: object, **values: object) -> Answer:
        # Late: help pages load nothing heavy.
        from sparkpoint.cli.work.localerrors import LocalError

        try:
            return function(*arguments, **values)
        except LocalError as error:
            failure = Failure(
                type(error).__name__.removesuffix("Error"),
                str(error),
                error.exit,
                retry_helps=error.retry_helps,
                candidates=error.candidates,
            )
        return Answer(
            document=as_document(failure), text="", alarm=failure.message, exit=failure.exit
        )

    return act


_home_option = click.option(
    "--home",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="DIR",
    help="Default: the only one below .sparkpoint.",
)


@click.group(short_help="Watch, capture and stop what `run --local` runs.")
def local() -> None:
    """Watch, capture and stop what `sparkpoint run --local` runs."""


@local.command(
    short_help="Show how the queries are doing.",
    epilog=examples("sparkpoint local status", "sparkpoint local status --home .sparkpoint/visits"),
)
@_home_option
@answering
@explained
def status(settings: Settings, home: Path | None) -> Answer:
    """Show how the queries are doing: last batch, rows per second, state, watermark, last commit.

    If nothing runs, it says how the last run ended.
    """
    from sparkpoint.cli.work.localagent import show_status

    return show_status(home)


@local.command(
    short_help="Make a savepoint while the queries run.",
    epilog=examples("sparkpoint local savepoint --name before-change --tag keep"),
)
@_home_option
@click.option(
    "--name", type=NEW_NAME, metavar="NAME", help="Default: the time and a few random digits."
)
@click.option("--tag", "tags", multiple=True, metavar="T", help="Repeatable.")
@answering
@explained
def savepoint(
    settings: Settings, home: Path | None, name: str | None, tags: tuple[str, ...]
) -> Answer:
    """Make a savepoint of all queries while they run, in the repository of the run."""
    from sparkpoint.cli.work.localagent import make_savepoint

    return make_savepoint(settings, home, name=name, tags=tags)


@local.command(
    short_help="Stop at a batch boundary.",
    epilog=examples("sparkpoint local stop", "sparkpoint local stop --savepoint before-upgrade"),
)
@_home_option
@click.option(
    "--savepoint", "name", type=NEW_NAME, metavar="NAME", help="Make a savepoint there first."
)
@answering
@explained
def stop(settings: Settings, home: Path | None, name: str | None) -> Answer:
    """Let the running batches commit, begin no others, and end the process; wait for that."""
    from sparkpoint.cli.work.localagent import stop_run

    return stop_run(settings, home, savepoint=name)
