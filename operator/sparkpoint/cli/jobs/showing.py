"""`job list`, `job status` and `job wait`: looking, and changing nothing."""

import sys
from datetime import UTC, datetime, timedelta
from typing import Final

from sparkpoint.cli.answer import Answer, Settings, printable, write_text
from sparkpoint.cli.jobs.awaiting import await_goal
from sparkpoint.cli.jobs.cluster import JOBS, Cluster, Object
from sparkpoint.cli.jobs.documents import job_line, operation_document, status_document
from sparkpoint.cli.jobs.facts import status_of
from sparkpoint.cli.jobs.finding import find_job, list_jobs, savepoints_of
from sparkpoint.cli.jobs.following import follow
from sparkpoint.cli.jobs.render import list_text, status_text
from sparkpoint.cli.jobs.session import Place, open_cluster
from sparkpoint.cli.jobs.verdicts import Goal
from sparkpoint.cli.render.text import seconds

__all__ = ["list_all", "show_status", "wait_for", "watch_status"]

_SHOWN: Final = 5
"""Savepoints that a status lists."""
_REDRAWN: Final = 5.0
"""Seconds after which ages are told anew."""
_CLEAR_SCREEN: Final = "\x1b[H\x1b[2J"


def list_all(settings: Settings, place: Place, *, everywhere: bool) -> Answer:
    """All jobs of a namespace, or of the cluster."""
    jobs = list_jobs(open_cluster(place), everywhere=everywhere)
    text = list_text(jobs, datetime.now(UTC), namespaces=everywhere)
    return Answer(document={"jobs": [job_line(body) for body in jobs]}, text=text)


def show_status(settings: Settings, place: Place, name: str) -> Answer:
    """One job, once."""
    cluster = open_cluster(place)
    body = find_job(cluster, name)
    savepoints = savepoints_of(cluster, name)[:_SHOWN]
    text = status_text(body, savepoints, datetime.now(UTC))
    return Answer(document=status_document(body, savepoints), text=text)


def watch_status(settings: Settings, place: Place, name: str) -> Answer:
    """One job, whenever it changes, until Ctrl-C; on a terminal in place."""
    cluster = open_cluster(place)
    on_terminal = sys.stdout.isatty()
    last = find_job(cluster, name)
    changes = follow(cluster, JOBS, name, seconds=None, tick=_REDRAWN if on_terminal else None)
    shown = ""
    try:
        for change in changes:
            last = change or last
            shown = _show_again(cluster, name, last, shown, on_terminal=on_terminal)
    except KeyboardInterrupt:
        pass
    finally:
        changes.close()
    return Answer(document={}, text="")


def _show_again(cluster: Cluster, name: str, body: Object, shown: str, *, on_terminal: bool) -> str:
    text = status_text(body, savepoints_of(cluster, name)[:_SHOWN], datetime.now(UTC))
    if text != shown:
        start = _CLEAR_SCREEN if on_terminal else ""
        write_text(f"{start}{printable(text)}\n{'' if on_terminal else chr(10)}")
    return text


def wait_for(
    settings: Settings, place: Place, name: str, *, goal: Goal, what: str, timeout: timedelta
) -> Answer:
    """Until a job is as it should be."""
    cluster = open_cluster(place)
    find_job(cluster, name)
    waited = await_goal(settings, cluster, JOBS, name, goal, timeout)
    phase = status_of(waited.body).get("phase")
    return Answer(
        document={**operation_document(name, waited), "for": what},
        text="" if waited.exit else f"{name}: {what} after {seconds(waited.seconds)} ({phase})",
        alarm=f"{name}: {waited.message}" if waited.exit else "",
        exit=waited.exit,
    )
