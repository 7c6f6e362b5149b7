"""Options that commands share, and the types of their values."""

import functools
import re
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import TypeVar

import click
from click.shell_completion import CompletionItem

from sparkpoint.cli.answer import Answer, Settings, emit

__all__ = [
    "DURATION",
    "JOB",
    "NEW_NAME",
    "PLACE",
    "answering",
    "answering_alone",
    "dry_run_option",
    "examples",
    "job_filter_option",
    "ordinary_file",
    "reference_argument",
    "references_argument",
    "repository_option",
]

_Decorated = TypeVar("_Decorated", bound=Callable[..., object])
_UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0, "w": 604800.0}
_LONGEST = timedelta(days=100 * 366)
_KEYWORDS = ("latest", "none", "continued")
"""What stands for a savepoint without being the name of one."""


class _Duration(click.ParamType[timedelta]):
    """`90s`, `15m`, `12h`, `7d`, `2w`, or several in a row: `1d12h`."""

    name = "duration"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> timedelta:
        if isinstance(value, timedelta):
            return value
        text = str(value).strip()
        if text == "0":
            return timedelta(0)
        parts = re.findall(r"(\d+(?:\.\d+)?)([smhdw])", text)
        if not parts or "".join(number + unit for number, unit in parts) != text:
            self.fail(f"{text!r} is not a duration: write 90s, 15m, 12h, 7d, 2w or 1d12h.")
        seconds = sum(float(number) * _UNITS[unit] for number, unit in parts)
        if seconds > _LONGEST.total_seconds():
            self.fail(f"{text!r} is longer than a century.")
        return timedelta(seconds=seconds)


class _Job(click.ParamType[tuple[str, str]]):
    """`NAMESPACE/NAME`, or `NAME` in the namespace `default`."""

    name = "job"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, str]:
        if isinstance(value, tuple):
            return value
        parts = str(value).split("/")
        if len(parts) > 2 or not all(parts):
            self.fail(f"{value!r} is not a job: write NAMESPACE/NAME, or NAME.")
        return (parts[0], parts[1]) if len(parts) == 2 else ("default", parts[0])


class _Place(click.ParamType[str]):
    """A path or URI; the shell completes folders, and leaves buckets to whoever types them."""

    name = "place"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> str:
        return str(value)

    def get_missing_message(self, param: click.Parameter, ctx: click.Context | None) -> str | None:
        return f"Give it, or set {param.envvar}." if param.envvar else None

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        return [CompletionItem(incomplete, type="dir")]


class _NewName(click.ParamType[str]):
    """The name of a savepoint that is to be; whether it can be one at all is judged elsewhere."""

    name = "name"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> str:
        if value in _KEYWORDS:
            self.fail(
                f"{value!r} cannot be the name of a savepoint, as --parent and --savepoint mean "
                "something else by it. Choose another."
            )
        return str(value)


DURATION = _Duration()
JOB = _Job()
NEW_NAME = _NewName()
PLACE = _Place()


def examples(*commands: str) -> str:
    """The part of a help page that people read first; a test runs every one of them."""
    # \b keeps click from wrapping the lines.
    return "\n".join(["\b", "Examples:", *(f"  {command}" for command in commands)])


def answering(function: Callable[..., Answer]) -> Callable[..., None]:
    """Give a command the common options, and print the answer that it returns."""
    return click.option(
        "--endpoint-url",
        metavar="URL",
        envvar=["AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"],
        help="S3 server other than Amazon's.  [env: AWS_ENDPOINT_URL_S3, AWS_ENDPOINT_URL]",
    )(answering_alone(function))


def answering_alone(function: Callable[..., Answer]) -> Callable[..., None]:
    """The same for a command that never asks a server."""

    @click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
    @click.option("-q", "--quiet", is_flag=True, help="No progress bar, no notes.")
    @functools.wraps(function)
    def run(
        *, as_json: bool, quiet: bool, endpoint_url: str | None = None, **values: object
    ) -> None:
        settings = Settings(endpoint_url=endpoint_url or None, json=as_json, quiet=quiet)
        answer = function(settings, **values)
        emit(answer, settings)
        if answer.exit:
            raise click.exceptions.Exit(answer.exit)

    return run


def repository_option(function: _Decorated) -> _Decorated:
    """`--repository URI`."""
    return click.option(
        "--repository",
        type=PLACE,
        required=True,
        metavar="URI",
        envvar="SPARKPOINT_REPOSITORY",
        help="Directory or s3://bucket/prefix.  [env: SPARKPOINT_REPOSITORY]",
    )(function)


def reference_argument(function: _Decorated) -> _Decorated:
    """`NAME_OR_ID`."""
    return click.argument("reference", metavar="NAME_OR_ID", shell_complete=_savepoints)(function)


def references_argument(*, required: bool) -> Callable[[_Decorated], _Decorated]:
    """`NAME_OR_ID...`."""
    metavar = "NAME_OR_ID..." if required else "[NAME_OR_ID]..."
    return click.argument(
        "references", metavar=metavar, nargs=-1, required=required, shell_complete=_savepoints
    )


def _savepoints(ctx: click.Context, _: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """What goes by its name, or by all of it if several have that; of a directory alone.

    Whoever presses a key does not wait for a server.
    """
    place = ctx.params.get("repository") or ctx.params.get("origin")
    if not place:
        return []
    try:
        found = [path.parts[-3:] for path in Path(place, "savepoints").glob("*/*/*.json")]
    except OSError:
        return []
    keys = [(namespace, job, name.removesuffix(".json")) for namespace, job, name in found]
    names = [name for *_, name in keys]
    texts = [key[2] if names.count(key[2]) == 1 else "/".join(key) for key in sorted(keys)]
    return [CompletionItem(text) for text in texts if text.startswith(incomplete)]


def job_filter_option(function: _Decorated) -> _Decorated:
    """`--job`, to look at one job only."""
    return click.option("--job", type=JOB, metavar="NS/NAME", help="Only of this job.")(function)


def dry_run_option(function: _Decorated) -> _Decorated:
    """`--dry-run`."""
    return click.option("--dry-run", is_flag=True, help="Only say what would be done.")(function)


def ordinary_file(_: click.Context, option: click.Parameter, file: Path | None) -> Path | None:
    """What is written takes the place of what is there: neither a device nor a link shall go."""
    if file is not None and (file.is_symlink() or (file.exists() and not file.is_file())):
        words = f"{str(file)!r} is a link or no ordinary file, which would be replaced."
        raise click.BadParameter(f"{words} Name another one.", param=option)
    return file
