"""`sparkpoint job savepoint`, `suspend`, `resume`, `restore`, `rollback` and `fork`."""

from datetime import timedelta
from typing import TYPE_CHECKING

import click

from sparkpoint.cli.answer import Answer, Settings
from sparkpoint.cli.commands.joboptions import (
    VERIFY,
    in_cluster,
    name_argument,
    sink_option,
    waiting_options,
)
from sparkpoint.cli.options import NEW_NAME, dry_run_option, examples

if TYPE_CHECKING:
    from sparkpoint.cli.jobs.session import Place

__all__ = ["COMMANDS"]


@click.command(
    short_help="Take a savepoint of a job.",
    epilog=examples(
        "sparkpoint job savepoint visits -n shop",
        "sparkpoint job savepoint visits -n shop --name before-fair --tag keep --verify content",
    ),
)
@name_argument
@click.option(
    "--name",
    "savepoint",
    type=NEW_NAME,
    metavar="NAME",
    help="Default: the job, the time, and a bit.",
)
@click.option("--tag", "tags", multiple=True, metavar="T", help="Keeps it; repeatable.")
@click.option(
    "--verify",
    type=VERIFY,
    help="How it is checked afterwards. content: every byte. deep: and Spark loads the state."
    " Default: as the job says.",
)
@waiting_options
@in_cluster
def savepoint(
    settings: Settings,
    place: "Place",
    name: str,
    savepoint: str | None,
    tags: tuple[str, ...],
    verify: str | None,
    wait: bool,
    timeout: timedelta,
) -> Answer:
    """Take a savepoint of a job, running or suspended.

    With --name, the same command once more finds what the first one has made.
    """
    from sparkpoint.cli.jobs.awaiting import Patience
    from sparkpoint.cli.jobs.savepoints import NewSavepoint, take_savepoint

    wanted = NewSavepoint(name=savepoint, tags=tags, verify=verify)
    return take_savepoint(settings, place, name, wanted, Patience(wait, timeout))


@click.command(
    short_help="Stop a job at a boundary, with a savepoint.",
    epilog=examples("sparkpoint job suspend visits -n shop"),
)
@name_argument
@waiting_options
@in_cluster
def suspend(
    settings: Settings, place: "Place", name: str, wait: bool, timeout: timedelta
) -> Answer:
    """Stop a job between two batches, with a savepoint, and keep it stopped."""
    from sparkpoint.cli.jobs.awaiting import Patience
    from sparkpoint.cli.jobs.changing import suspend as ask

    return ask(settings, place, name, Patience(wait, timeout))


@click.command(
    short_help="Let a suspended job go on.",
    epilog=examples("sparkpoint job resume visits -n shop --no-wait"),
)
@name_argument
@waiting_options
@in_cluster
def resume(settings: Settings, place: "Place", name: str, wait: bool, timeout: timedelta) -> Answer:
    """Let a suspended job go on from where it stands."""
    from sparkpoint.cli.jobs.awaiting import Patience
    from sparkpoint.cli.jobs.changing import resume as ask

    return ask(settings, place, name, Patience(wait, timeout))


@click.command(
    short_help="Bring a job to the state of a savepoint.",
    epilog=examples("sparkpoint job restore visits -n shop --savepoint before-sale --sink rewind"),
)
@name_argument
@click.option(
    "--savepoint", required=True, metavar="NAME|latest", help="A SparkSavepoint of the namespace."
)
@sink_option(required=True)
@click.option("--again", is_flag=True, help="Even if it was restored from this one already.")
@waiting_options
@in_cluster
def restore(
    settings: Settings,
    place: "Place",
    name: str,
    savepoint: str,
    sink: str,
    again: bool,
    wait: bool,
    timeout: timedelta,
) -> Answer:
    """Bring a job to the state of a savepoint. What it has now is captured before."""
    from sparkpoint.cli.jobs.awaiting import Patience
    from sparkpoint.cli.jobs.changing import restore as ask

    patience = Patience(wait, timeout)
    return ask(
        settings, place, name, savepoint=savepoint, sink=sink, again=again, patience=patience
    )


@click.command(
    short_help="Go back to an earlier revision.",
    epilog=examples(
        "sparkpoint job rollback visits -n shop --dry-run",
        "sparkpoint job rollback visits -n shop --savepoint latest --sink rewind",
    ),
)
@name_argument
@click.option(
    "--to",
    metavar="REVISION",
    help="Default: the last stable one, or the one before it if that is what the spec says.",
)
@click.option(
    "--savepoint",
    metavar="NAME|latest",
    help="Bring the state back, too. latest: the newest one of that revision. Default: the state"
    " goes on from where it is.",
)
@sink_option(required=False)
@click.option(
    "--script/--no-script",
    default=None,
    help="Whether a script in a ConfigMap goes back, too. Must be said if it has changed.",
)
@dry_run_option
@waiting_options
@in_cluster
def rollback(
    settings: Settings,
    place: "Place",
    name: str,
    to: str | None,
    savepoint: str | None,
    sink: str | None,
    script: bool | None,
    dry_run: bool,
    wait: bool,
    timeout: timedelta,
) -> Answer:
    """Put the spec of an earlier revision back, and say what that changes before it is done.

    What belongs to no revision, such as schedules, retention and the rules of upgrades, stays.
    """
    if (savepoint is None) != (sink is None):
        raise click.UsageError("--savepoint and --sink go together: how is it restored?")
    from sparkpoint.cli.jobs.awaiting import Patience
    from sparkpoint.cli.jobs.rollback import Rollback, roll_back

    wanted = Rollback(to=to, savepoint=savepoint, sink=sink, script=script)
    patience = Patience(wait, timeout)
    return roll_back(settings, place, name, wanted, patience, dry_run=dry_run)


@click.command(
    short_help="Start a second job from a savepoint.",
    epilog=examples(
        "sparkpoint job fork visits trial -n shop --savepoint latest"
        " --set args[1]=--output=/data/trial --dry-run",
    ),
)
@name_argument
@click.argument("new")
@click.option(
    "--savepoint", required=True, metavar="NAME|latest", help="What the new job begins with."
)
@click.option(
    "--set",
    "changes",
    multiple=True,
    metavar="FIELD=VALUE",
    help="A field of the new spec, such as executor.instances=4, args[1]=--output=/b or"
    " sparkConf[spark.sql.ansi.enabled]=true; repeatable.",
)
@click.option("--same-output", is_flag=True, help="Even if it may write to where NAME does.")
@click.option("--dry-run", is_flag=True, help="Only print the manifest.")
@waiting_options
@in_cluster
def fork(
    settings: Settings,
    place: "Place",
    name: str,
    new: str,
    savepoint: str,
    changes: tuple[str, ...],
    same_output: bool,
    dry_run: bool,
    wait: bool,
    timeout: timedelta,
) -> Answer:
    """Start a second job, NEW, with the spec of NAME and the state of a savepoint.

    It gets checkpoints of its own and a new identity; where it writes is up to --set.
    """
    from sparkpoint.cli.jobs.awaiting import Patience
    from sparkpoint.cli.jobs.fork import Fork, fork_job
    from sparkpoint.cli.jobs.specs import AssignmentError

    wanted = Fork(name=new, savepoint=savepoint, changes=changes, same_output=same_output)
    try:
        return fork_job(settings, place, name, wanted, Patience(wait, timeout), dry_run=dry_run)
    except AssignmentError as error:
        raise click.UsageError(f"--set {error}") from error


COMMANDS = (savepoint, suspend, resume, restore, rollback, fork)
