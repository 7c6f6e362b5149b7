"""How kopf is set up: each value that differs from its default, and why."""

import logging
from typing import Any, Final

import kopf
from kopf import BodyEssence

from sparkpoint.controller.keys import JOB

__all__ = ["configure"]

_PREFIX: Final = "kopf.sparkpoint.dev"


class _NoDiff(kopf.DiffBaseStorage):
    """No handler of ours asks what has changed in a resource.

    kopf would copy every object of every event to find out, pods included, and write a copy of the
    spec into an annotation.
    """

    def build(self, **_: Any) -> BodyEssence:
        """Nothing of it counts."""
        return BodyEssence()

    def fetch(self, **_: Any) -> BodyEssence:
        """The same as ever, so that nothing has changed."""
        return BodyEssence()

    def store(self, **_: Any) -> None:
        """Nothing is kept."""


def configure(settings: kopf.OperatorSettings) -> kopf.OperatorSettings:
    """The settings of this operator; the same object."""
    # One operator at a time: peering does not fence, and pauses both of two equals.
    settings.peering.standalone = True
    # Needs no rights on namespaces and CRDs; the CRDs must be there before we start.
    settings.scanning.disabled = True
    # Names of our own: two operators on kopf with the usual ones undo each other's work. This
    # finalizer is on nothing: kopf takes off whatever no handler of deletions asks for, and ours is
    # put on and taken off by passes.
    settings.persistence.finalizer = f"{_PREFIX}/none"
    settings.persistence.progress_storage = kopf.AnnotationsProgressStorage(
        prefix=_PREFIX, v1=False
    )
    settings.persistence.diffbase_storage = _NoDiff()
    # Events are told by us, once each.
    settings.posting.loggers = False
    settings.posting.level = logging.INFO
    settings.networking.request_timeout = 30
    settings.networking.connect_timeout = 10
    # Server-side: the other pods of the cluster are none of our business.
    settings.watching.label_selectors["v1", "pods"] = JOB
    settings.watching.chunk_size = 100
    # A worker of kopf keeps the last event while it waits for more: at the start, of all objects.
    settings.queueing.idle_timeout = 0.1
    settings.execution.default_backoff = 15
    settings.execution.max_workers = 4
    settings.background.cancellation_polling = 10
    return settings
