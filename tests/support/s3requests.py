"""Which requests a piece of work sends to the S3 server."""

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote, urlsplit

from sparkpoint.storage.s3 import S3Store

__all__ = ["Request", "recorded"]


@dataclass(frozen=True, slots=True)
class Request:
    """One request, retries too."""

    operation: str
    key: str
    """Below the bucket; empty for a listing."""


@contextlib.contextmanager
def recorded(store: S3Store) -> Iterator[list[Request]]:
    """A list that grows with every request of the store's client, for its children too."""
    requests: list[Request] = []

    def record(request: Any, event_name: str, **_: object) -> None:
        path = unquote(urlsplit(request.url).path)
        key = path.removeprefix("/").partition("/")[2]
        requests.append(Request(event_name.rpartition(".")[2], key))

    events = store._client.meta.events
    events.register("before-send.s3", record)
    try:
        yield requests
    finally:
        events.unregister("before-send.s3", record)
