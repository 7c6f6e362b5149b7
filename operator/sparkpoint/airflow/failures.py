"""How what goes wrong with a cluster is told to Airflow: one sentence, and whether to try again."""

from collections.abc import Iterator
from contextlib import contextmanager

from airflow.sdk.exceptions import (
    AirflowException,
    AirflowFailException,
    AirflowNotFoundException,
)

from sparkpoint.airflow.decisions.errors import DecisionError
from sparkpoint.api.errors import InvalidResourceError
from sparkpoint.cli.jobs.errors import ClusterError

__all__ = ["telling"]

_USELESS = (DecisionError, InvalidResourceError, LookupError)
"""Trying again helps as little as it did the first time."""


@contextmanager
def telling() -> Iterator[None]:
    """End the task with what happened; without a retry where that cannot help.

    Without what led to it, too: a person looks for one sentence, and not below two tracebacks.
    """
    try:
        yield
    except ClusterError as error:
        kind = AirflowException if error.retry_helps else AirflowFailException
        raise kind(str(error)) from None
    except AirflowNotFoundException as error:
        raise AirflowFailException(
            f"{error}. Make the connection: airflow connections add ID --conn-type kubernetes"
        ) from None
    except _USELESS as error:
        raise AirflowFailException(str(error)) from None
