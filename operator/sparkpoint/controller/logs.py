"""Logs: one line per record, for people or as JSON for machines."""

import json
import logging
import sys
from typing import Final, Literal

from sparkpoint.controller.correlation import current

__all__ = ["LogFormat", "configure_logs"]

LogFormat = Literal["console", "json"]

_CONSOLE: Final = "%(asctime)s %(levelname)-7s %(name)s: %(message)s%(topic)s"
_QUIET: Final = ("kopf", "aiohttp.access", "asyncio")
"""Loggers whose details are for their own developers."""


class _ConsoleFormatter(logging.Formatter):
    """A line for people, with the operation that it belongs to at its end."""

    def format(self, record: logging.LogRecord) -> str:
        topic = current()
        record.topic = f" [{topic.operation} {topic.id}]" if topic is not None and topic.id else ""
        return super().format(record)


class _JsonFormatter(logging.Formatter):
    """One JSON object per line."""

    def format(self, record: logging.LogRecord) -> str:
        line = {
            "time": self.formatTime(record, "%Y-%m-%dT%H:%M:%S%z"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        topic = current()
        if topic is not None:
            line["resource"] = topic.resource
        if topic is not None and topic.id:
            line |= {"operation": topic.operation, "correlation": topic.id}
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return json.dumps(line, ensure_ascii=False)


def configure_logs(kind: LogFormat, *, verbose: bool) -> None:
    """Send everything to standard error; `verbose` shows every pass."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_JsonFormatter() if kind == "json" else _ConsoleFormatter(_CONSOLE))
    root = logging.getLogger()
    root.handlers = [handler]
    root.setLevel(logging.DEBUG if verbose else logging.INFO)
    for name in _QUIET:
        logging.getLogger(name).setLevel(logging.INFO if verbose else logging.WARNING)
    # kopf warns whenever it ends the loop of a resource that is being deleted; so it should end.
    logging.getLogger("kopf.objects").setLevel(logging.INFO if verbose else logging.ERROR)
