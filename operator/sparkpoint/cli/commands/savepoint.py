"""`sparkpoint savepoint create`, `restore` and `copy`: where bytes move. The rest: catalogue.py."""

import re

import click

from sparkpoint.cli.answer import Answer, Settings
from sparkpoint.cli.options import (
    JOB,
    NEW_NAME,
    PLACE,
    answering,
    examples,
    reference_argument,
    repository_option,
)

__all__ = ["savepoint"]

_UNFIT = re.compile(
    r"[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"
)
"""Control characters, separators of lines and paragraphs, what turns the direction of a text, and
bytes that are no text."""


def _not_empty(_: click.Context, option: click.Parameter, value: str | None) -> str | None:
    """A variable of a shell that is not set must not choose something."""
    if value is not None and not value.strip():
        raise click.BadParameter("it is empty. Leave the option out for its default.", param=option)
    return value


def _one_line(_: click.Context, option: click.Parameter, value: str | None) -> str | None:
    if value is not None and _UNFIT.search(value):
        words = f"{value!r} has line breaks, control characters, another direction or stray bytes"
        raise click.BadParameter(f"{words}, which would tear lists and logs.", param=option)
    return value


@click.group(short_help="Make savepoints, look at them, bring them back.")
def savepoint() -> None:
    """Make savepoints, look at them, bring them back.

    NAME_OR_ID is a name, JOB/NAME, NAMESPACE/JOB/NAME, the start of an id (four digits or more), or
    a tag. If it could mean several savepoints, they are listed and nothing is done.
    """


@savepoint.command(
    short_help="Make a savepoint of a checkpoint.",
    epilog=examples(
        "sparkpoint savepoint create --checkpoint checkpoints/visits --repository savepoints",
        "sparkpoint savepoint create --checkpoint checkpoints/visits --repository savepoints"
        " --job shop/visits --name before-upgrade --tag keep",
        "sparkpoint savepoint create --checkpoint s3://lake/checkpoints/visits"
        " --repository s3://lake/savepoints",
    ),
)
@click.option(
    "--checkpoint", type=PLACE, required=True, metavar="PATH_OR_URI", help="What to capture."
)
@repository_option
@click.option(
    "--job",
    type=JOB,
    metavar="NS/NAME",
    help="Whose it is. Default: default/ and the checkpoint's folder, or the one above if that is"
    " just called checkpoint.",
)
@click.option(
    "--name", type=NEW_NAME, metavar="NAME", help="Default: the time and a few random digits."
)
@click.option(
    "--query",
    "queries",
    multiple=True,
    metavar="NAME",
    help="Folder of a query below the checkpoint; repeatable. Default: all.",
)
@click.option("--tag", "tags", multiple=True, metavar="T", help="Repeatable.")
@click.option(
    "--parent",
    metavar="ID|latest|none",
    callback=_not_empty,
    help="Default: what this directory was last captured as or restored from, else the job's"
    " latest.",
)
@click.option(
    "--revision",
    metavar="TEXT",
    callback=_one_line,
    help="Version of the job's code, for the record.",
)
@click.option(
    "--sink",
    "sinks",
    multiple=True,
    metavar="[QUERY=]KIND[:URI]",
    help="Where a query writes, so that a rewind can check it: file:/data/out, /data/out, delta,"
    " iceberg, kafka, foreachBatch, other.",
)
@click.option(
    "--read-all",
    is_flag=True,
    help="Also read what an S3 server would copy by itself and vouch for by its MD5.",
)
@click.option(
    "--accept-doubtful",
    is_flag=True,
    help="Take state that may be left from before a rewind by hand, which is refused otherwise.",
)
@answering
def create(
    settings: Settings,
    checkpoint: str,
    repository: str,
    job: tuple[str, str] | None,
    name: str | None,
    queries: tuple[str, ...],
    tags: tuple[str, ...],
    parent: str | None,
    revision: str | None,
    sinks: tuple[str, ...],
    read_all: bool,
    accept_doubtful: bool,
) -> Answer:
    """Make a savepoint of the last committed batch of a checkpoint.

    The query may be running: it is neither paused nor locked. What the repository has already is
    not copied again. The first savepoint makes the repository.
    """
    from sparkpoint.cli.work.create import NewSavepoint, create_savepoint

    wanted = NewSavepoint(
        job=job,
        name=name,
        queries=queries,
        tags=tags,
        parent=parent,
        revision=revision,
        sinks=sinks,
        read_all=read_all,
        accept_doubtful=accept_doubtful,
    )
    return create_savepoint(settings, checkpoint, repository, wanted)


@savepoint.command(
    short_help="Restore a savepoint to where Spark can start from it.",
    epilog=examples(
        "sparkpoint savepoint restore before-upgrade --repository savepoints --to restored/visits",
        "sparkpoint savepoint restore before-upgrade --repository savepoints --to restored/trial"
        " --mode fork",
    ),
)
@reference_argument
@repository_option
@click.option(
    "--to", "target", type=PLACE, required=True, metavar="PATH_OR_URI", help="An empty place."
)
@click.option(
    "--mode",
    type=click.Choice(["resume", "rewind", "fork"]),
    default="resume",
    show_default=True,
    help="resume: the same query goes on. rewind: it goes back. fork: another query starts.",
)
@click.option(
    "--sink",
    "sinks",
    type=PLACE,
    multiple=True,
    metavar="[QUERY=][file:]PATH_OR_URI",
    help="Where a query's file sink writes. Default: what the savepoint knows, except to fork.",
)
@click.option(
    "--sink-policy",
    type=click.Choice(["refuse", "truncate", "seed", "ignore"]),
    default="refuse",
    show_default=True,
    help="If the sink does not fit. truncate: forget its newer output. seed: give a new sink an"
    " empty beginning. ignore: do not look.",
)
@click.option(
    "--verify",
    is_flag=True,
    help="Read also what the S3 server would copy by itself. All else is always checked.",
)
@answering
def restore(
    settings: Settings,
    reference: str,
    repository: str,
    target: str,
    mode: str,
    sinks: tuple[str, ...],
    sink_policy: str,
    verify: bool,
) -> Answer:
    """Restore a savepoint to where Spark can start from it.

    The target must be empty, or an earlier restore that no query has run on: then only the
    difference is copied. A restore that was killed is finished by the same command.
    """
    from sparkpoint.cli.work.restore import Restoring, restore_savepoint

    how = Restoring(target=target, mode=mode, sinks=sinks, sink_policy=sink_policy, verify=verify)
    return restore_savepoint(settings, repository, reference, how)


@savepoint.command(
    short_help="Copy a savepoint to another repository.",
    epilog=examples(
        "sparkpoint savepoint copy before-upgrade --from savepoints --to s3://lake/savepoints"
    ),
)
@reference_argument
@click.option(
    "--from",
    "origin",
    type=PLACE,
    required=True,
    metavar="URI",
    envvar="SPARKPOINT_REPOSITORY",
    help="Repository that has it.  [env: SPARKPOINT_REPOSITORY]",
)
@click.option(
    "--to", "target", type=PLACE, required=True, metavar="URI", help="Made if it does not exist."
)
@click.option(
    "--to-endpoint-url", metavar="URL", help="S3 server of the target, if it is another one."
)
@click.option(
    "--verify",
    is_flag=True,
    help="Read what the target has of it already, and copy again what is wrong.",
)
@answering
def copy(
    settings: Settings,
    reference: str,
    origin: str,
    target: str,
    to_endpoint_url: str | None,
    verify: bool,
) -> Answer:
    """Copy a savepoint to another repository, where it has the same id, name and tags.

    Only what the target lacks is copied. If it has the savepoint already, what is missing of it
    there or has another size is copied again.
    """
    from sparkpoint.cli.work.copying import copy_to_repository

    return copy_to_repository(
        settings,
        reference,
        origin=origin,
        target=target,
        target_endpoint=to_endpoint_url,
        verify=verify,
    )
