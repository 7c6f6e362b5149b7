"""Options that the commands of `sparkpoint job` share."""

import functools
from collections.abc import Callable
from datetime import timedelta
from typing import TypeVar

import click

from sparkpoint.cli.answer import Answer, Settings, emit
from sparkpoint.cli.options import DURATION

__all__ = [
    "SINK",
    "VERIFY",
    "complete_job",
    "in_cluster",
    "name_argument",
    "sink_option",
    "timeout_option",
    "waiting_options",
]

_Decorated = TypeVar("_Decorated", bound=Callable[..., object])


class _Word(click.ParamType[str]):
    """A word of the API, in whatever case."""

    name = "word"

    def __init__(self, *words: str) -> None:
        self._words = {word.lower(): word for word in words}

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> str:
        found = self._words.get(str(value).lower())
        if found is None:
            self.fail(f"{value!r} is not one of {', '.join(self._words)}.", param, ctx)
        return found

    def get_metavar(self, param: click.Parameter, ctx: click.Context | None = None) -> str:
        return "|".join(self._words)

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list["click.shell_completion.CompletionItem"]:
        from click.shell_completion import CompletionItem

        return [CompletionItem(word) for word in self._words if word.startswith(incomplete)]


SINK = _Word("Resume", "Rewind", "Fork")
VERIFY = _Word("Skip", "Content", "Deep")


def in_cluster(function: Callable[..., Answer]) -> Callable[..., None]:
    """Give a command the options that say which cluster, and print the answer that it returns."""

    @click.option("-n", "--namespace", metavar="NAME", help="Default: the one of the context.")
    @click.option("--context", metavar="NAME", help="Of the kubeconfig. Default: the current one.")
    @click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
    @click.option("-q", "--quiet", is_flag=True, help="No progress, no notes.")
    @functools.wraps(function)
    def run(
        *,
        namespace: str | None,
        context: str | None,
        as_json: bool,
        quiet: bool,
        **values: object,
    ) -> None:
        from sparkpoint.cli.jobs.session import Place

        settings = Settings(json=as_json, quiet=quiet)
        answer = function(settings, Place(context=context, namespace=namespace), **values)
        if answer.document or answer.text:
            emit(answer, settings)
        if answer.exit:
            raise click.exceptions.Exit(answer.exit)

    return run


def complete_job(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """Names of jobs; none if the cluster cannot be asked."""
    from sparkpoint.cli.jobs.errors import ClusterError
    from sparkpoint.cli.jobs.finding import list_jobs
    from sparkpoint.cli.jobs.session import Place, open_cluster

    place = Place(context=ctx.params.get("context"), namespace=ctx.params.get("namespace"))
    try:
        names = [body["metadata"]["name"] for body in list_jobs(open_cluster(place))]
    except ClusterError:
        return []
    return [name for name in names if name.startswith(incomplete)]


def name_argument(function: _Decorated) -> _Decorated:
    """`NAME` of a job."""
    return click.argument("name", shell_complete=complete_job)(function)


def timeout_option(default: timedelta) -> Callable[[_Decorated], _Decorated]:
    """`--timeout`."""
    return click.option(
        "--timeout",
        type=DURATION,
        default=default,
        metavar="DURATION",
        help=f"How long to wait; then exit code 8.  [default: {default.seconds // 60}m]",
    )


def waiting_options(function: _Decorated) -> _Decorated:
    """`--wait/--no-wait` and `--timeout`."""
    timed = timeout_option(timedelta(minutes=30))(function)
    return click.option(
        "--wait/--no-wait", default=True, help="Wait until it is done.  [default: wait]"
    )(timed)


def sink_option(*, required: bool) -> Callable[[_Decorated], _Decorated]:
    """`--sink`."""
    return click.option(
        "--sink",
        type=SINK,
        required=required,
        help="resume: nothing was written since the savepoint. rewind: later output is given up,"
        " where the sink allows. fork: a new identity that writes elsewhere.",
    )
