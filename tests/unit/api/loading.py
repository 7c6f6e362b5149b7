"""The sample resources: judged in Python by the unit tests, and by a real API server."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

__all__ = ["ACCEPTED", "EXAMPLES", "REFUSED", "Accepted", "Refused"]

Document = dict[str, Any]

_SAMPLES = Path(__file__).parent / "samples"
_EXAMPLES = Path(__file__).parents[3] / "examples"


@dataclass(frozen=True, slots=True)
class Accepted:
    """A resource that can be applied."""

    name: str
    resource: Document


@dataclass(frozen=True, slots=True)
class Refused:
    """A resource that cannot be applied, or not over the old one."""

    name: str
    field: str
    says: str
    """Part of what Python says."""
    server: str
    """Part of what the API server says."""
    resource: Document
    old: Document | None


def _accepted(path: Path) -> Accepted:
    return Accepted(path.stem, yaml.load(path.read_text(), yaml.CSafeLoader))


def _refused(path: Path) -> Refused:
    expected, *documents = yaml.load_all(path.read_text(), yaml.CSafeLoader)
    *before, resource = documents
    says = expected["says"]
    return Refused(
        name=path.stem,
        field=expected["field"],
        says=says,
        server=expected.get("server", says),
        resource=resource,
        old=before[0] if before else None,
    )


ACCEPTED = [_accepted(path) for path in sorted(_SAMPLES.glob("accepted/*.yaml"))]
REFUSED = [_refused(path) for path in sorted(_SAMPLES.glob("refused/*.yaml"))]
EXAMPLES = [_accepted(path) for path in sorted(_EXAMPLES.glob("*.yaml"))]
