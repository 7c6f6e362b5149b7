"""`sparkpoint job`: jobs in a cluster. What is here changes nothing; jobchanges.py does."""

from datetime import timedelta
from typing import TYPE_CHECKING

import click

from sparkpoint.cli.answer import Answer, Settings
from sparkpoint.cli.commands.joboptions import (
    complete_job,
    in_cluster,
    name_argument,
    timeout_option,
)
from sparkpoint.cli.options import examples

if TYPE_CHECKING:
    from sparkpoint.cli.jobs.session import Place

__all__ = ["job"]


@click.group(short_help="Operate jobs in a Kubernetes cluster.")
def job() -> None:
    """Operate StatefulSparkJobs in a Kubernetes cluster.

    The operator does the work; these commands ask for it, and show it as it happens. The cluster,
    the user and the namespace are those of kubectl.
    """


@job.command(
    "list",
    short_help="List jobs.",
    epilog=examples("sparkpoint job list -n shop", "sparkpoint job list -A --json"),
)
@click.option("-A", "--all-namespaces", "everywhere", is_flag=True, help="Of the whole cluster.")
@in_cluster
def list_command(settings: Settings, place: "Place", everywhere: bool) -> Answer:
    """List jobs: phase, batch, rate, last savepoint, and what needs a person."""
    if everywhere and place.namespace is not None:
        raise click.UsageError("Give either --namespace or --all-namespaces.")
    from sparkpoint.cli.jobs.showing import list_all

    return list_all(settings, place, everywhere=everywhere)


@job.command(
    short_help="Show everything about a job.",
    epilog=examples(
        "sparkpoint job status visits -n shop", "sparkpoint job status visits -n shop --json"
    ),
)
@name_argument
@click.option("-w", "--watch", is_flag=True, help="Show it again whenever it changes.")
@in_cluster
def status(settings: Settings, place: "Place", name: str, watch: bool) -> Answer:
    """Show a job: phase, revisions, what is under way, what is wrong and what to do about it,
    queries, savepoints, and the last operation."""
    if watch and settings.json:
        raise click.UsageError("--watch is for people; scripts may use `sparkpoint job wait`.")
    from sparkpoint.cli.jobs.showing import show_status, watch_status

    return (watch_status if watch else show_status)(settings, place, name)


@job.command(
    short_help="Show two jobs side by side.",
    epilog=examples("sparkpoint job compare trial-a trial-b -n shop"),
)
@click.argument("first", shell_complete=complete_job)
@click.argument("second", shell_complete=complete_job)
@in_cluster
def compare(settings: Settings, place: "Place", first: str, second: str) -> Answer:
    """Show two jobs side by side, such as two forks of one savepoint: what differs in their
    specs, where each began, how far each is, and the command that compares their state."""
    from sparkpoint.cli.jobs.comparing import compare_jobs

    return compare_jobs(settings, place, first, second)


@job.command(
    short_help="Wait until a job is as it should be.",
    epilog=examples(
        "sparkpoint job wait visits -n shop --for running",
        "sparkpoint job wait visits -n shop --for condition=Degraded=False --timeout 2m",
    ),
)
@name_argument
@click.option(
    "--for",
    "what",
    default="upgraded",
    show_default=True,
    metavar="WHAT",
    help="running, suspended, ready, upgraded (the newest spec is carried out and has proven"
    " itself), or condition=TYPE[=STATUS].",
)
@timeout_option(timedelta(minutes=10))
@in_cluster
def wait(settings: Settings, place: "Place", name: str, what: str, timeout: timedelta) -> Answer:
    """Wait until a job is as it should be.

    Exit code 6 if it will not be without a person, 7 if it was rolled back, 8 if the time is over.
    """
    from sparkpoint.cli.jobs.showing import wait_for
    from sparkpoint.cli.jobs.verdicts import goal_named

    goal = goal_named(what)
    if goal is None:
        raise click.UsageError(
            f"{what!r} is nothing to wait for: give running, suspended, ready, upgraded or "
            "condition=TYPE[=STATUS]."
        )
    return wait_for(settings, place, name, goal=goal, what=what, timeout=timeout)


@job.command(
    short_help="Print the log of a job's driver.",
    epilog=examples(
        "sparkpoint job logs visits -n shop --tail 100",
        "sparkpoint job logs visits -n shop --executor 1",
    ),
)
@name_argument
@click.option("-f", "--follow", is_flag=True, help="Go on as it grows.")
@click.option("--previous", is_flag=True, help="Of the attempt before, if its pod is still there.")
@click.option("--executor", type=click.IntRange(min=1), metavar="N", help="Of this executor.")
@click.option("--tail", type=click.IntRange(min=0), metavar="N", help="Only the last N lines.")
@in_cluster
def logs(
    settings: Settings,
    place: "Place",
    name: str,
    follow: bool,
    previous: bool,
    executor: int | None,
    tail: int | None,
) -> Answer:
    """Print the log of the driver of the present attempt, or of one of its executors."""
    if follow and settings.json:
        raise click.UsageError("--follow has no end, and --json prints one document.")
    from sparkpoint.cli.jobs.logs import Logs, show_logs

    wanted = Logs(follow=follow, previous=previous, executor=executor, tail=tail)
    return show_logs(settings, place, name, wanted)
