"""Asking a worker inside the test's process."""

import os
from pathlib import Path

from sparkpoint.runtime.termination import LIMIT
from sparkpoint.savepoint import Repository
from sparkpoint.worker.fitting import render
from sparkpoint.worker.model import Answer
from sparkpoint.worker.process import answer_to
from tests.unit.worker.conftest import Place

__all__ = ["adopt", "ask", "capture", "repository_of"]


def ask(*arguments: str | Path) -> Answer:
    """The answer to a command line, which must fit where the kubelet looks."""
    answer = answer_to([str(each) for each in arguments], os.environ)
    text = render(answer)
    assert len(text.encode()) <= LIMIT
    assert Answer.model_validate_json(text).answer == answer.answer
    return answer


def capture(place: Place, *more: str, name: str = "first") -> Answer:
    """The usual capture of the epoch directory."""
    return ask(
        "capture",
        *("--epoch-dir", place.epoch_dir, "--job", "shop/visits", "--epoch", "3"),
        *("--repository", place.repository, "--name", name, *place.options),
        *more,
    )


def adopt(place: Place, checkpoint: str, *more: str, name: str = "origin") -> Answer:
    """The usual adoption of a checkpoint."""
    return ask(
        "adopt",
        *("--checkpoint", checkpoint, "--job", "shop/heir", "--repository", place.repository),
        *("--name", name, *place.options),
        *more,
    )


def repository_of(place: Place) -> Repository:
    """The repository, which must be there."""
    return Repository.open(place.store(place.repository))
