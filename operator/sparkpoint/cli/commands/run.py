"""`sparkpoint run`: a script on this machine, with agent, savepoints and restore."""

from pathlib import Path

import click

from sparkpoint.cli.answer import Answer, Settings
from sparkpoint.cli.commands.local import explained
from sparkpoint.cli.options import JOB, answering, examples

__all__ = ["run"]


@click.command(
    short_help="Run a script on this machine, with savepoints and restore.",
    # Everything after the script is the script's.
    context_settings={"allow_interspersed_args": False},
    epilog=examples(
        "sparkpoint run --local visits.py",
        "sparkpoint run --local visits.py --input data/visits",
        "sparkpoint run --local --restore before-change --mode rewind visits.py",
    ),
)
@click.option("--local", is_flag=True, help="On this machine; there is no other way (see below).")
@click.option("--job", type=JOB, metavar="NS/NAME", help="Default: default/ and the script's name.")
@click.option(
    "--home",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="DIR",
    help="Where its state is kept. Default: .sparkpoint/ and the job's name.",
)
@click.option(
    "--repository",
    metavar="URI",
    envvar="SPARKPOINT_REPOSITORY",
    help="Where savepoints go and come from. Default: in the home.  [env: SPARKPOINT_REPOSITORY]",
)
@click.option("--restore", metavar="NAME_OR_ID", help="Begin from this savepoint.")
@click.option(
    "--mode",
    type=click.Choice(["resume", "rewind", "fork"]),
    help="How to restore. resume: the same query goes on. rewind: it goes back. fork: another query"
    " starts.  [default: resume]",
)
@click.option(
    "--sink",
    "sinks",
    multiple=True,
    metavar="[QUERY=]PATH_OR_URI",
    help="Where a query's file sink writes, for --restore to look at.",
)
@click.option(
    "--sink-policy",
    type=click.Choice(["refuse", "truncate", "seed", "ignore"]),
    help="If the sink does not fit, as for `savepoint restore`.  [default: refuse]",
)
@click.option("--fresh", is_flag=True, help="Begin without state. What there is stays there.")
@click.option(
    "--port", type=click.IntRange(1, 65535), metavar="N", help="The agent's. Default: a free one."
)
@click.option(
    "--master",
    metavar="URL",
    help="Spark's master, such as local[2], unless the script names one. Default: what Spark's"
    " configuration says, else local[*].",
)
@click.argument("script", type=click.Path(path_type=Path))
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
@answering
@explained
def run(
    settings: Settings,
    local: bool,
    script: Path,
    arguments: tuple[str, ...],
    job: tuple[str, str] | None,
    home: Path | None,
    repository: str | None,
    fresh: bool,
    port: int | None,
    master: str | None,
    restore: str | None,
    mode: str | None,
    sinks: tuple[str, ...],
    sink_policy: str | None,
) -> Answer:
    """Run SCRIPT on this machine as it is, so that it can be watched, captured and stopped.

    Its queries' checkpoints are kept in the home, whatever the script says: run it again, and it
    goes on. Ctrl-C stops after the running batch; a second one at once. Everything after SCRIPT is
    the script's own. `sparkpoint local` talks to it meanwhile. In a cluster, apply a
    StatefulSparkJob instead.
    """
    if not local:
        raise click.UsageError(
            "Give --local to run on this machine. In a cluster, a job is run by applying a "
            "StatefulSparkJob: kubectl apply -f job.yaml"
        )
    if restore is None and (mode or sinks or sink_policy):
        raise click.UsageError(
            "--mode, --sink and --sink-policy say how to restore: give --restore."
        )
    if restore is not None and fresh:
        raise click.UsageError("--restore begins from a savepoint, --fresh from nothing: give one.")
    from sparkpoint.cli.work.localrun import Restore, RunRequest, run_local

    how = restore and Restore(
        reference=restore,
        mode=mode or "resume",
        sinks=sinks,
        sink_policy=sink_policy or "refuse",
    )
    wanted = RunRequest(
        script=script,
        arguments=arguments,
        job=job,
        home=home,
        repository=repository or None,
        restore=how or None,
        fresh=fresh,
        port=port,
        master=master,
    )
    run_local(settings, wanted)
