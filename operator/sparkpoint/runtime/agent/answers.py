"""How answers look: documents as JSON, and errors as `{"error": {"type", "message", "remedy"}}`."""

import json
import os
from collections.abc import Mapping

from aiohttp import web
from pydantic import ValidationError

from sparkpoint.runtime.agent.errors import RefusalError
from sparkpoint.runtime.model import Document
from sparkpoint.runtime.redaction import Redaction

__all__ = ["answer", "bad_request", "failure", "refusal"]


def answer(document: Document, status: int = 200) -> web.Response:
    """A document, without the secrets of this process's environment in its sentences."""
    content = _redacted(json.loads(document.model_dump_json()))
    text = json.dumps(content, ensure_ascii=False, separators=(",", ":"))
    return web.json_response(text=text, status=status)


def refusal(error: RefusalError) -> web.Response:
    """A refusal, with what is needed to understand it."""
    shown = {key: each.model_dump(mode="json") for key, each in error.shown.items()}
    return failure(
        error.status,
        error.kind,
        error.message,
        remedy=error.remedy,
        headers=error.headers,
        shown=shown,
    )


def failure(
    status: int,
    kind: str,
    message: str,
    *,
    remedy: str | None = None,
    headers: Mapping[str, str] | None = None,
    shown: Mapping[str, object] | None = None,
) -> web.Response:
    """The one shape of all errors."""
    content: dict[str, object] = {"type": kind, "message": message, **(shown or {})}
    if remedy is not None:
        content["remedy"] = remedy
    return web.json_response(_redacted({"error": content}), status=status, headers=headers)


def _redacted(content: dict[str, object]) -> dict[str, object]:
    found: dict[str, object] = Redaction.of(os.environ).document(content)
    return found


def bad_request(error: ValidationError) -> RefusalError:
    """The first thing that is wrong with a body; never its content, which may hold a secret."""
    first = error.errors(include_url=False, include_input=False)[0]
    field = ".".join(str(part) for part in first["loc"])
    where = f"at {field}" if field else "as a whole"
    return RefusalError(400, "BadRequest", f"The body is wrong {where}: {first['msg']}.")
