"""What the local build takes from a Containerfile, so that there is one truth.

Not a Docker: it reads the final stage's packages and configuration, in the form our files have.
"""

import json
import re
from dataclasses import dataclass
from pathlib import Path

from dev.image.archive import ImageConfig

__all__ = ["Containerfile", "read_containerfile"]

_IMAGES = Path(__file__).parent.parent.parent / "images"


@dataclass(frozen=True, slots=True)
class Containerfile:
    """Debian packages and configuration of an image."""

    packages: tuple[str, ...]
    programs: tuple[str, ...] | None
    """Patterns of the programs that stay; None: all of them."""
    config: ImageConfig


def read_containerfile(image: str) -> Containerfile:
    """Read the final stage of `images/<image>/Containerfile`, and the Debian that it is made of."""
    text = (_IMAGES / image / "Containerfile").read_text().replace("\\\n", " ")
    stage = text[text.rindex("\nFROM ") :]
    debian = _stage(text, "debian") if "\nFROM scratch\n" in stage else stage
    return Containerfile(
        tuple(_one(r"apt-get install --yes --no-install-recommends ([^&\n]+)", debian).split()),
        _programs(debian),
        ImageConfig(
            entrypoint=json.loads(_one(r"^ENTRYPOINT (.+)$", stage)),
            user=_one(r"^USER (.+)$", stage),
            working_directory=_one(r"^WORKDIR (.+)$", stage),
            environment=dict(re.findall(r"^ENV (\w+)=(.*)$", stage, re.MULTILINE)),
        ),
    )


def _stage(text: str, name: str) -> str:
    return _one(rf"(?s)^FROM \S+ AS {name}\n(.*?)(?=^FROM )", text)


def _programs(debian: str) -> tuple[str, ...] | None:
    kept = re.findall(r"^RUN find /usr/bin /usr/sbin -mindepth 1 (.+) -delete$", debian, re.M)
    return tuple(re.findall(r"! -name '([^']+)'", kept[0])) if kept else None


def _one(pattern: str, text: str) -> str:
    found = re.findall(pattern, text, re.MULTILINE)
    if len(found) != 1:
        raise ValueError(f"expected one match of {pattern!r} in the Containerfile, found {found}")
    return str(found[0]).strip()
