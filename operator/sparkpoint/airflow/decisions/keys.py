"""Which savepoint a run of a DAG means: its key, its attempts, and what a second try adopts.

Airflow runs a task at least once: after a crash, a retry or a clear the same run asks again. The
key is the same each time, so that what the run made before is found, whoever made it.
"""

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

from sparkpoint.cli.jobs.facts import metadata, status_of

__all__ = ["ATTEMPT", "RUN", "RUN_KEY", "Adopt", "Create", "attempt_name", "choose", "run_key"]

Object = dict[str, Any]

RUN_KEY: Final = "airflow.sparkpoint.dev/run-key"
"""A label: which task of which run asked for it."""
ATTEMPT: Final = "airflow.sparkpoint.dev/attempt"
"""A label: how often the run had to ask before, because what it had asked for failed."""
RUN: Final = "airflow.sparkpoint.dev/run"
"""An annotation: the run, for people."""

_LONGEST_JOB: Final = 40
"""Of a job's name in the savepoint's, which has room for 63 characters."""


@dataclass(frozen=True, slots=True)
class Adopt:
    """The run has one already."""

    savepoint: Object


@dataclass(frozen=True, slots=True)
class Create:
    """It has none, or only such that failed."""

    attempt: int


def run_key(*, namespace: str, job: str, dag: str, task: str, run: str) -> str:
    """The same for all tries of a task in a run; never the number of the try."""
    # No name has a line break in it, so that two different lists never make one text.
    text = "\n".join((namespace, job, dag, task, run))
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def attempt_name(job: str, key: str, attempt: int) -> str:
    """Two workers that ask at the same time ask for the same name: one of them finds it taken."""
    return f"{job[:_LONGEST_JOB].rstrip('-.')}-{key}-{attempt}"


def choose(made: Iterable[Object]) -> Adopt | Create:
    """Among what carries the run's key: adopt what did not fail, else make the next attempt.

    What is complete comes before what is under way; of several, the newest attempt.
    """
    known = sorted(made, key=lambda body: (_is_complete(body), _attempt(body)))
    usable = [body for body in known if not _is_lost(body)]
    if usable:
        return Adopt(usable[-1])
    return Create(1 + max((_attempt(body) for body in known), default=-1))


def _attempt(body: Object) -> int:
    text = str((metadata(body).get("labels") or {}).get(ATTEMPT, ""))
    return int(text) if text.isdecimal() else 0


def _is_complete(body: Object) -> bool:
    return status_of(body).get("phase") == "Completed"


def _is_lost(body: Object) -> bool:
    """It failed, is damaged, or is going."""
    status = status_of(body)
    damaged = not (status.get("verified") or {}).get("good", True)
    going = metadata(body).get("deletionTimestamp") is not None
    return status.get("phase") == "Failed" or damaged or going
