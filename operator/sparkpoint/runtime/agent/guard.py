"""What every request passes: the token, the bound on requests at once, and errors as JSON."""

import hmac
import logging
from collections.abc import Awaitable, Callable

from aiohttp import web

from sparkpoint.runtime.agent.answers import failure, refusal
from sparkpoint.runtime.agent.errors import RefusalError
from sparkpoint.runtime.correlation import correlation_in
from sparkpoint.runtime.operations import ConflictError

__all__ = ["IN_FLIGHT", "OPEN_PATHS", "Guard"]

logger = logging.getLogger(__name__)

OPEN_PATHS = frozenset({"/healthz", "/readyz", "/metrics"})
"""No token: the kubelet has none, and Prometheus cannot be given one per job. They show names and
figures, never data."""
IN_FLIGHT = 64
"""Requests with the token at once; a long poll is one for as long as it waits."""

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Guard:
    """Its methods are aiohttp middlewares; `explain` goes outermost."""

    def __init__(self, token: str) -> None:
        self._token = token.encode()
        self._in_flight = 0

    @web.middleware
    async def explain(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Turn every error into an answer of one shape."""
        try:
            return await handler(request)
        except RefusalError as error:
            return refusal(error)
        except ConflictError as error:
            shown = {"existing": error.existing, "wanted": error.wanted}
            remedy = "Choose another name, or send the same request again."
            return refusal(RefusalError(409, "Conflict", str(error), remedy=remedy, shown=shown))
        except web.HTTPException as error:
            return _http_failure(error)
        # The outermost loop of a request: the job behind it goes on whatever this one did.
        except Exception as error:
            logger.exception("%s %s failed", request.method, request.path[:200])
            kind = type(error).__name__.removesuffix("Error")
            return failure(500, kind, f"Unexpected {kind}: the driver's log has the rest.")

    @web.middleware
    async def admit(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Let in who has the token, as many as there is room for."""
        if request.path in OPEN_PATHS:
            # Cheap, and never crowded out by long polls.
            return await handler(request)
        if not self._is_known(request):
            raise RefusalError(
                401,
                "Unauthorized",
                "The token is missing or wrong.",
                remedy="Send the header `Authorization: Bearer <token>`.",
                headers={"WWW-Authenticate": "Bearer"},
            )
        if self._in_flight >= IN_FLIGHT:
            raise RefusalError(
                503,
                "TooManyRequests",
                f"{IN_FLIGHT} requests are being answered already.",
                remedy="Ask again in a moment.",
                headers={"Retry-After": "1"},
            )
        if request.method == "PUT":
            # Escaped as it came, so that no name can break the line.
            path, told = request.rel_url.raw_path[:200], correlation_in(request.headers)
            logger.info("Asked for %s, correlation %s", path, told)
        self._in_flight += 1
        try:
            return await handler(request)
        finally:
            self._in_flight -= 1

    def _is_known(self, request: web.Request) -> bool:
        scheme, _, given = request.headers.get("Authorization", "").partition(" ")
        # Headers are bytes; what is not UTF-8 in them must not raise here.
        data = given.strip().encode(errors="surrogateescape")
        return hmac.compare_digest(data, self._token) and scheme.lower() == "bearer"


_SENTENCES = {
    404: ("NotFound", "There is nothing at this path."),
    405: ("MethodNotAllowed", "This path does not take this method."),
    413: ("TooLarge", "The body is too large."),
}


def _http_failure(error: web.HTTPException) -> web.Response:
    kind, sentence = _SENTENCES.get(error.status, (type(error).__name__, error.reason))
    allowed = error.headers.get("Allow")
    return failure(error.status, kind, sentence, headers={"Allow": allowed} if allowed else None)
