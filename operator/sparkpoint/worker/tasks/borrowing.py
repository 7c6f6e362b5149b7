"""A savepoint for the time of a look at it: taken of what runs, and removed again."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress

from sparkpoint.runtime.orders import Order
from sparkpoint.savepoint.errors import SavepointError
from sparkpoint.storage.errors import StorageError
from sparkpoint.worker.model import Answer
from sparkpoint.worker.tasks.capture import take
from sparkpoint.worker.tasks.dispose import Disposal, dispose
from sparkpoint.worker.telling import Telling

__all__ = ["borrowed"]


@contextmanager
def borrowed(order: Order, telling: Telling) -> Iterator[Answer]:
    """What came of the capture; without a savepoint in it, nothing was committed yet."""
    _forget(order, None, telling)  # what one that was killed has left
    captured = take(order, telling)
    try:
        yield captured
    finally:
        if captured.savepoint is not None:
            _forget(order, captured.savepoint.id, telling)


def _forget(order: Order, identity: str | None, telling: Telling) -> None:
    disposal = Disposal(
        repository=order.repository,
        endpoint_url=order.repository_endpoint,
        namespace=order.namespace,
        job=order.job,
        name=order.name,
        id=identity,
        grace=None,
    )
    with suppress(SavepointError, StorageError):  # a verdict is worth more than tidiness
        dispose(disposal, telling)
