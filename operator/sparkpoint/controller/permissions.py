"""Whether the operator has the rights that it will need, asked before it begins.

Without it, a right that is missing is found out in the midst of an upgrade, one job at a time.
"""

import asyncio
import logging
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final, Protocol

from sparkpoint.controller.claims import CLAIM_NAME
from sparkpoint.controller.cluster import LEASES
from sparkpoint.controller.errors import ClusterError, UnfitError
from sparkpoint.controller.rights import OWN_NAMESPACE, SERVED_NAMESPACES, Rights

__all__ = ["Judge", "Question", "check_permissions"]

logger = logging.getLogger(__name__)

_AT_ONCE: Final = 8
_PATIENCE: Final = 5.0
"""Seconds in which the API server knows a role that was made just now."""
_PAUSE: Final = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """May this operator do that?"""

    verb: str
    group: str
    resource: str
    """With its part, such as `pods/status`."""
    namespace: str
    """Empty: in all of them."""
    name: str = ""
    """Empty: to any object."""


class Judge(Protocol):
    """What this asks of the API server."""

    async def allows(self, question: Question) -> bool:
        """Whether we may."""
        ...


async def check_permissions(
    server: Judge,
    *,
    namespaces: Sequence[str],
    lease: tuple[str, str] | None,
    patience: float = _PATIENCE,
) -> None:
    """UnfitError with all that is missing. No `namespaces` are all; `lease`: (namespace, name)."""
    deadline = asyncio.get_running_loop().time() + patience
    asked = [*_of_served(namespaces), *_of_lease(lease)]
    while True:
        try:
            refused = await _refused(server, asked)
        except ClusterError as error:
            logger.warning("The operator's rights could not be looked up: %s", error)
            return
        if not refused:
            return
        if asyncio.get_running_loop().time() > deadline:
            raise UnfitError(_sentence(refused))
        asked = refused
        await asyncio.sleep(min(_PAUSE, patience))


def _of_served(namespaces: Sequence[str]) -> Iterator[Question]:
    for namespace in namespaces or ("",):
        for each in _questions(SERVED_NAMESPACES, namespace):
            yield _named(each, CLAIM_NAME) if each.resource == LEASES.plural else each


def _of_lease(lease: tuple[str, str] | None) -> Iterator[Question]:
    if lease is None:
        return
    namespace, name = lease
    for each in _questions(OWN_NAMESPACE, namespace):
        yield _named(each, name)


def _named(question: Question, name: str) -> Question:
    """About the object of this name alone; what is not there yet cannot be allowed by its name."""
    return question if question.verb == "create" else replace(question, name=name)


def _questions(rights: Rights, namespace: str) -> Iterator[Question]:
    for (group, resource), verbs in rights.items():
        for verb in sorted(verbs):
            yield Question(verb=verb, group=group, resource=resource, namespace=namespace)


async def _refused(server: Judge, asked: Sequence[Question]) -> list[Question]:
    gate = asyncio.Semaphore(_AT_ONCE)

    async def allowed(question: Question) -> bool:
        async with gate:
            return await server.allows(question)

    answers = await asyncio.gather(*map(allowed, asked))
    return [question for question, answer in zip(asked, answers, strict=True) if not answer]


def _sentence(refused: Sequence[Question]) -> str:
    by_place: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for each in refused:
        place = f"in {each.namespace}" if each.namespace else "in all namespaces"
        by_place[place][each.resource].append(each.verb)
    told = [
        f"{place}: " + ", ".join(f"{'/'.join(verbs)} {what}" for what, verbs in resources.items())
        for place, resources in by_place.items()
    ]
    return (
        f"This operator lacks rights, {'; '.join(told)}. Grant them (the chart does, unless "
        "rbac.create is false), or have it serve only namespaces in which it has them."
    )
