"""Errors as answers: the one place where they become words, and where it is said whether trying
again helps."""

import traceback

from sparkpoint.runtime.explaining import explain, is_foreseen
from sparkpoint.state.errors import StateError
from sparkpoint.worker.errors import RefusedError, WorkerError
from sparkpoint.worker.model import Answer

__all__ = ["answer_of"]


def answer_of(error: Exception) -> Answer:
    """What to answer if a task ends with this; a fault of ours leaves its trace in the log."""
    match error:
        case RefusedError():
            return Answer(
                answer="Refused", message=str(error), kind="Refused", problems=error.problems
            )
        case WorkerError() | StateError():
            kind = type(error).__name__.removesuffix("Error")
            return Answer(
                answer="Failed", message=str(error), kind=kind, retry_helps=error.retry_helps
            )
        case _:
            info, foreseen = explain(error), is_foreseen(error)
            if not foreseen:
                traceback.print_exception(error)
            return Answer(
                answer="Failed",
                message=info.message,
                kind=info.type,
                retry_helps=info.retry_helps,
                unforeseen=not foreseen,
            )
