"""Whether the API server's definitions of our resources are those of this operator.

A field that a definition lacks is dropped by the API server in silence: a wish that nobody hears
of, or a line of a record that is gone when it is needed. So an operator does not act on definitions
that are older than itself. Compared is what the API server publishes to everybody, and no version
number: that needs no right on definitions, and finds also what somebody changed by hand.
"""

import asyncio
import logging
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final, Protocol

from sparkpoint.api.common import API_VERSION
from sparkpoint.api.crd import RESOURCES, ResourceKind, definition
from sparkpoint.controller.cluster import Object
from sparkpoint.controller.errors import ClusterError, UnfitError

__all__ = ["Difference", "Publisher", "check_definitions", "differences"]

logger = logging.getLogger(__name__)

_PATIENCE: Final = 10.0
"""Seconds in which the API server publishes a definition that was changed just now."""
_PAUSE: Final = 2.0
_NAMED: Final = 5
"""Fields that are named in a sentence; the others are counted."""


class Publisher(Protocol):
    """What this asks of the API server."""

    async def published(self, api_version: str) -> Object:
        """The schemas of all kinds of this version."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """Fields of one kind that one of the two does not know."""

    kind: str
    lacking: tuple[str, ...]
    """That this operator knows, and the API server does not."""
    unknown: tuple[str, ...]
    """That the API server knows, and this operator does not."""


async def check_definitions(server: Publisher, *, patience: float = _PATIENCE) -> None:
    """UnfitError if a definition is older than this operator; a warning if one is newer."""
    deadline = asyncio.get_running_loop().time() + patience
    while True:
        try:
            found = differences(await server.published(API_VERSION))
        except ClusterError as error:
            logger.warning("The definitions could not be compared with this operator: %s", error)
            return
        if not any(each.lacking for each in found):
            break
        if asyncio.get_running_loop().time() > deadline:
            raise UnfitError(" ".join(_is_older(each) for each in found if each.lacking))
        await asyncio.sleep(min(_PAUSE, patience))
    for each in found:
        if each.unknown:
            logger.warning("%s", _is_newer(each))


def differences(published: Object) -> list[Difference]:
    """Between what is published and our models, for each kind."""
    schemas = (published.get("components") or {}).get("schemas") or {}
    return [_difference(resource, _published_of(schemas, resource)) for resource in RESOURCES]


def _difference(resource: ResourceKind, theirs: dict[str, Any]) -> Difference:
    [version] = definition(resource)["spec"]["versions"]
    ours, known = set(_fields(version["schema"]["openAPIV3Schema"])), set(_fields(theirs))
    return Difference(
        kind=resource.kind,
        lacking=tuple(sorted(ours - known)),
        unknown=tuple(sorted(known - ours)),
    )


def _published_of(schemas: dict[str, Any], resource: ResourceKind) -> dict[str, Any]:
    for schema in schemas.values():
        for each in schema.get("x-kubernetes-group-version-kind") or ():
            if each.get("kind") == resource.kind:
                found: dict[str, Any] = schema
                return found
    return {}


def _fields(schema: dict[str, Any]) -> Iterator[str]:
    """Paths of what a resource says of itself, and not of what all resources have in common."""
    for part in ("spec", "status"):
        yield from _below((schema.get("properties") or {}).get(part) or {}, part)


def _below(schema: dict[str, Any], path: str) -> Iterator[str]:
    for name, inner in (schema.get("properties") or {}).items():
        yield f"{path}.{name}"
        yield from _below(inner, f"{path}.{name}")
    if isinstance(items := schema.get("items"), dict):
        yield from _below(items, f"{path}[]")
    if isinstance(values := schema.get("additionalProperties"), dict):
        yield from _below(values, f"{path}.*")


def _is_older(found: Difference) -> str:
    return (
        f"The definition of {found.kind} is older than this operator: it lacks "
        f"{_listed(found.lacking)}, and the API server would drop that in silence. Apply the "
        "definitions of this version first: kubectl apply --server-side -f crds/ (helm upgrade "
        "does it, unless crds.install is false)."
    )


def _is_newer(found: Difference) -> str:
    return (
        f"The definition of {found.kind} is newer than this operator, which does not act upon "
        f"{_listed(found.unknown)}: upgrade the operator."
    )


def _listed(fields: tuple[str, ...]) -> str:
    rest = len(fields) - _NAMED
    return ", ".join(fields[:_NAMED]) + (f" and {rest} more" if rest > 0 else "")
