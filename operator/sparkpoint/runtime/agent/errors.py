"""What can go wrong in the agent.

AgentError             the agent cannot start: a bad token, a port that is taken
RefusalError           an answer to a request: status, kind, sentence, way out
CaptureFailedError     a savepoint did not come to be; carries what the status will say
"""

from sparkpoint.runtime.model import Document, ErrorInfo

__all__ = ["AgentError", "CaptureFailedError", "RefusalError"]


class AgentError(Exception):
    """The agent cannot start; the message says what to change."""


class RefusalError(Exception):
    """A request that is answered with an error."""

    def __init__(
        self,
        status: int,
        kind: str,
        message: str,
        *,
        remedy: str | None = None,
        shown: dict[str, Document] | None = None,
        headers: dict[str, str] | None = None,
    ) -> None:
        super().__init__(message)
        self.status, self.kind, self.message, self.remedy = status, kind, message, remedy
        self.shown, self.headers = shown or {}, headers or {}


class CaptureFailedError(Exception):
    """A savepoint failed, as the process that tried has put it."""

    def __init__(self, info: ErrorInfo) -> None:
        super().__init__(info.message)
        self.info = info
