"""Which query is which: a name that stays, and the folder of its checkpoint.

Names come from the script. One query without a name is told from others by being the only one; the
line it was started on decides whether two starts are the same query.
"""

import hashlib
import re
import threading
from collections.abc import Callable
from dataclasses import dataclass

from sparkpoint.runtime.errors import IdentityError

__all__ = ["UNNAMED", "Identities", "Identity", "Place", "folder_of_name"]

UNNAMED = "query"
"""The name that the only query without one gets."""
_SAFE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_UNSAFE_CHARACTERS = re.compile(r"[^A-Za-z0-9._-]+")
_LONGEST_STEM = 80
_HASH = 8


@dataclass(frozen=True, slots=True)
class Place:
    """A line of the script."""

    file: str
    line: int
    text: str = ""

    def __str__(self) -> str:
        return f"{self.file}:{self.line}" + (f": {self.text}" if self.text else "")


@dataclass(frozen=True, slots=True)
class Identity:
    """A query's name, and the name of its folder in the epoch directory."""

    name: str
    folder: str


def folder_of_name(name: str) -> str:
    """The name itself where it is safe in every store, else something close and unique to it."""
    if _SAFE.fullmatch(name) and not name.endswith("."):
        return name
    stem = _UNSAFE_CHARACTERS.sub("-", name).strip("-._")[:_LONGEST_STEM].strip("-._")
    digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:_HASH]
    return f"{stem}-{digest}" if stem else digest


class Identities:
    """Who has which name; safe from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._names: dict[str, str] = {}
        self._places: dict[str, Place] = {}
        self._unnamed: Place | None = None
        self._established: set[str] = set()

    def claim(
        self, name: str | None, place: Place, *, is_active: Callable[[str], bool]
    ) -> Identity:
        """The identity of a query that is about to be started, or IdentityError."""
        with self._lock:
            if name is None:
                return self._claim_unnamed(place, is_active(UNNAMED))
            if name == UNNAMED and self._unnamed is not None:
                raise _taken(name, self._unnamed, place)
            return self._claim_folder(name, place)

    def _claim_unnamed(self, place: Place, active: bool) -> Identity:
        first = self._unnamed
        if first is None:
            if UNNAMED in self._names.values():
                raise _taken(UNNAMED, place, self._places[UNNAMED])
            identity = self._claim_folder(UNNAMED, place)
            self._unnamed = place
            return identity
        if (first.file, first.line) != (place.file, place.line) or active:
            raise _second_unnamed(first, place)
        return Identity(UNNAMED, UNNAMED)

    def _claim_folder(self, name: str, place: Place) -> Identity:
        folder = folder_of_name(name)
        # Some file systems do not tell upper from lower case.
        other = self._names.setdefault(folder.lower(), name)
        if other != name:
            raise IdentityError(
                f"The queries {other!r} ({self._places[other]}) and {name!r} ({place}) would share "
                f"the checkpoint folder {folder!r}. Give one of them another name."
            )
        self._places[name] = place
        return Identity(name, folder)

    def establish(self, identity: Identity) -> None:
        """The query has been started: the name is its own for good."""
        with self._lock:
            self._established.add(identity.name)

    def release(self, identity: Identity) -> None:
        """The query could not be started: the name is free again, unless it ran before."""
        with self._lock:
            if identity.name in self._established:
                return
            self._names.pop(identity.folder.lower(), None)
            self._places.pop(identity.name, None)
            if identity.name == UNNAMED:
                self._unnamed = None


def _second_unnamed(first: Place, second: Place) -> IdentityError:
    return IdentityError(
        "Two queries have no name, so that nobody could tell which checkpoint belongs to which "
        "after a restart:\n"
        f"  {first}\n"
        f"  {second}\n"
        'Give each of them one with .queryName("…").'
    )


def _taken(name: str, unnamed: Place, named: Place) -> IdentityError:
    return IdentityError(
        f"A query is called {name!r}, which is also what the one without a name is called:\n"
        f"  without a name: {unnamed}\n"
        f"  with it:        {named}\n"
        'Give the first one a name with .queryName("…").'
    )
