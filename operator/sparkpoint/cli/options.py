"""Options that commands share, and the types of their values."""

import functools
import re
from collections.abc import Callable
from datetime import timedelta
from typing import TypeVar

import click

from sparkpoint.cli.answer import Answer, Settings, emit

__all__ = [
    "DURATION",
    "JOB",
    "NEW_NAME",
    "answering",
    "dry_run_option",
    "examples",
    "job_filter_option",
    "reference_argument",
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


def examples(*commands: str) -> str:
    """The part of a help page that people read first; a test runs every one of them."""
    # \b keeps click from wrapping the lines.
    return "\n".join(["\b", "Examples:", *(f"  {command}" for command in commands)])


def answering(function: Callable[..., Answer]) -> Callable[..., None]:
    """Give a command the common options, and print the answer that it returns."""

    @click.option(
        "--endpoint-url",
        metavar="URL",
        envvar=["AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"],
        help="S3 server other than Amazon's.  [env: AWS_ENDPOINT_URL]",
    )
    @click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
    @click.option("-q", "--quiet", is_flag=True, help="No progress bar, no notes.")
    @functools.wraps(function)
    def run(*, endpoint_url: str | None, as_json: bool, quiet: bool, **values: object) -> None:
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
        required=True,
        metavar="URI",
        envvar="SPARKPOINT_REPOSITORY",
        help="Directory or s3://bucket/prefix.  [env: SPARKPOINT_REPOSITORY]",
    )(function)


def reference_argument(function: _Decorated) -> _Decorated:
    """`NAME_OR_ID`."""
    return click.argument("reference", metavar="NAME_OR_ID")(function)


def job_filter_option(function: _Decorated) -> _Decorated:
    """`--job`, to look at one job only."""
    return click.option("--job", type=JOB, metavar="NS/NAME", help="Only of this job.")(function)


def dry_run_option(function: _Decorated) -> _Decorated:
    """`--dry-run`."""
    return click.option("--dry-run", is_flag=True, help="Only say what would be done.")(function)
