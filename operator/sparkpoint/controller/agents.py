"""Talking to the agents of drivers: what they are asked, and what is made of their answers."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Protocol

import aiohttp

from sparkpoint.controller.correlation import current
from sparkpoint.lifecycle.world import AgentFact, QueryFact, StopFact
from sparkpoint.runtime.client import AgentClient, AgentClientError, AgentRefusedError
from sparkpoint.runtime.model import (
    ErrorInfo,
    GateInfo,
    OperationState,
    Progress,
    QueryProgress,
    SavepointOperation,
    SavepointRequest,
    StopOperation,
    StopRequest,
)

__all__ = ["Agent", "AgentAnswer", "Dial", "agent_fact", "ask_agent", "dial_over", "in_words"]

_TIMEOUT = 5.0
"""Seconds: an agent answers from memory; one that takes longer is as good as silent."""
_NOT_FOUND = 404
_PATIENCE = 10.0
"""Seconds to wait for the end of a stop that is under way. The driver is gone right after it, and
with it all that its agent could tell of the savepoint; who waits is answered first."""


class Agent(Protocol):
    """The part of the agent's client that the operator uses."""

    async def progress(self) -> Progress:
        """The queries as they are now."""
        ...

    async def get_stop(self, operation: str, *, wait: float = 0) -> StopOperation:
        """How far a stop is; waits so many seconds for its end."""
        ...

    async def stop(self, operation: str, request: StopRequest | None = None) -> StopOperation:
        """Ask for a stop at the boundary."""
        ...

    async def get_savepoint(self, name: str) -> SavepointOperation:
        """How far a savepoint is."""
        ...

    async def savepoint(self, name: str, request: SavepointRequest) -> SavepointOperation:
        """Ask for a savepoint."""
        ...

    async def open_gate(self, epoch: int) -> GateInfo:
        """Let the queries of this epoch start."""
        ...


_LATENCY = timedelta(seconds=2)
"""By which a driver's clock may seem to differ from ours only because its answer took a while."""

Dial = Callable[[str, str], Agent]
"""URL and token -> the agent there. Nothing is sent yet."""


def dial_over(session: aiohttp.ClientSession) -> Dial:
    """Agents over HTTP; each is told which operation it is asked for."""

    def dial(url: str, token: str) -> Agent:
        topic = current()
        correlation = topic.id if topic is not None else ""
        return AgentClient(url, token, timeout=_TIMEOUT, session=session, correlation=correlation)

    return dial


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentAnswer:
    """What an agent said in one look."""

    progress: Progress
    stop: StopOperation | None = None


async def ask_agent(
    agent: Agent, *, job: str, epoch: int, stops: Sequence[str], clock: Callable[[], datetime]
) -> AgentAnswer | None:
    """One look; None if it does not answer, or is not the agent that was meant.

    Of the stops that may have been asked for, the first one that the agent knows is looked at.
    """
    try:
        progress = _by_our_clock(await agent.progress(), clock())
        # An address can be given to another pod while we still believe it to be ours.
        if (progress.job, progress.epoch) != (job, epoch):
            return None
        return AgentAnswer(progress=progress, stop=await _first_stop(agent, stops))
    except AgentClientError:
        return None


def _by_our_clock(progress: Progress, now: datetime) -> Progress:
    """With the times of a driver whose node has another clock as ours has them."""
    behind = now - progress.now if progress.now is not None else timedelta(0)
    if abs(behind) <= _LATENCY:
        return progress
    # Whole seconds: an idle query is not to look different only because an answer took longer.
    behind = timedelta(seconds=round(behind.total_seconds()))
    queries = [
        query.model_copy(update={"last_commit": query.last_commit + behind})
        if query.last_commit is not None
        else query
        for query in progress.queries
    ]
    return progress.model_copy(update={"queries": queries})


async def _first_stop(agent: Agent, stops: Sequence[str]) -> StopOperation | None:
    for operation in stops:
        try:
            return await agent.get_stop(operation, wait=_PATIENCE)
        except AgentRefusedError as error:
            if error.status != _NOT_FOUND:
                raise
    return None


def agent_fact(answer: AgentAnswer, *, attempt: int) -> AgentFact:
    """What decisions need of an answer."""
    return AgentFact(
        epoch=answer.progress.epoch,
        attempt=attempt,
        phase=answer.progress.phase,
        queries=tuple(_query(query) for query in answer.progress.queries),
        stop=_stop(answer.stop) if answer.stop is not None else None,
    )


def _query(query: QueryProgress) -> QueryFact:
    return QueryFact(
        name=query.name,
        batch=query.batch,
        active=query.active,
        busy=query.trigger_active,
        last_commit=query.last_commit,
    )


def _stop(stop: StopOperation) -> StopFact:
    taken = stop.savepoint
    done = taken is not None and taken.state is OperationState.DONE
    ends = stop.report.queries if stop.report is not None else {}
    return StopFact(
        operation=stop.operation,
        state=stop.state.value,
        touched=stop.report is not None,
        savepoint=taken.name if taken is not None and done else None,
        empty=stop.error is not None and stop.error.type == "NothingCommitted",
        batches={name: end.batch for name, end in ends.items() if end.batch is not None},
        message=in_words(stop.error) if stop.error is not None else "",
    )


def in_words(error: ErrorInfo) -> str:
    """What went wrong, and what to do about it."""
    if not error.remedy or error.remedy in error.message:
        return error.message
    return f"{error.message} {error.remedy}"
