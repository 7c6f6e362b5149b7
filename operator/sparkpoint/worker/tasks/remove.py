"""`remove`: the epoch directories of a job, and never anything else.

Below the checkpoint location, a job's data is `<namespace>/<job>/epoch-<n>-<life>`. What has
another name stays, and so does whatever a symbolic link leads to. The life tells one job from the
next of its name: whatever is removed late, it is never the data of another one.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import PurePosixPath

from sparkpoint.savepoint.progress import Amount
from sparkpoint.storage import DirectoryStore, Store, open_store
from sparkpoint.worker.errors import OutsideError
from sparkpoint.worker.given import Given
from sparkpoint.worker.model import Answer
from sparkpoint.worker.telling import Telling

__all__ = ["USAGE", "Plan", "Removal", "plan", "read", "remove"]

USAGE = "--root URI --job NAMESPACE/NAME [--life LIFE] [--keep-epoch N]… [--endpoint-url URL]"

_NUMBER = r"epoch-(0|[1-9][0-9]{0,17})"
_REHEARSAL = r"(\.rehearsal)?"
"""A driver that was killed leaves the copy of a rehearsal beside its epoch directory."""
_LIFE = re.compile(r"[0-9a-z]{1,32}")
_SHOWN = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Removal:
    """What the command line asks for."""

    root: str
    endpoint_url: str | None
    namespace: str
    job: str
    life: str
    """Empty: of jobs from before directories had one in their names."""
    keep: frozenset[int]


@dataclass(frozen=True, slots=True)
class Plan:
    """What is to be done with what was found in the job's folder."""

    remove: tuple[str, ...]
    keep: tuple[str, ...]
    strange: tuple[str, ...]
    """Not of the scheme: none of our business."""


def read(given: Given) -> Callable[[Telling], Answer]:
    """What the command line asks for."""
    namespace, job = given.job()
    removal = Removal(
        root=given.place("--root"),
        endpoint_url=given.endpoint(),
        namespace=namespace,
        job=job,
        life=_life(given),
        keep=frozenset(given.numbers("--keep-epoch")),
    )
    return partial(remove, removal)


def _life(given: Given) -> str:
    text = given.optional("--life") or ""
    if text and not _LIFE.fullmatch(text):
        given.refuse(f"--life is {text[:80]!r}: give up to 32 lower-case letters and digits")
    return text


def remove(removal: Removal, telling: Telling) -> Answer:
    """Remove what is there; nothing is there the second time."""
    store = open_store(removal.root, removal.endpoint_url)
    _check_root(store)
    folder = f"{removal.namespace}/{removal.job}"
    folders, files = store.children(folder)
    names = [*folders, *(entry.path.rsplit("/", 1)[-1] for entry in files)]
    found = plan(names, folders=frozenset(folders), keep=removal.keep, life=removal.life)
    for name in found.remove:
        telling.start(f"{store.uri}/{folder}/{name}", Amount())
        store.remove_folder(
            f"{folder}/{name}", removed=lambda size: telling.advance(Amount(1, size))
        )
    return Answer(
        answer="Removed", message=_message(f"{store.uri}/{folder}", found), removed=found.remove
    )


def plan(
    names: list[str], *, folders: frozenset[str], keep: frozenset[int], life: str = ""
) -> Plan:
    """Sort what was found into what goes, what stays, and what is not ours."""
    epoch = re.compile(_NUMBER + (f"-{life}" if life else "") + _REHEARSAL)
    epochs = {
        name: int(match[1])
        for name in names
        if name in folders and (match := epoch.fullmatch(name))
    }
    ordered = sorted(epochs, key=lambda name: epochs[name])
    return Plan(
        remove=tuple(name for name in ordered if epochs[name] not in keep),
        keep=tuple(name for name in ordered if epochs[name] in keep),
        strange=tuple(sorted(set(names) - set(epochs))),
    )


def _check_root(store: Store) -> None:
    """Refuse the root of the file system, also behind a link: everybody's data is below it."""
    if isinstance(store, DirectoryStore) and len(PurePosixPath(store.uri).parts) < 2:
        raise OutsideError(
            f"{store.uri} is the root of the file system, which cannot be a checkpoint location. "
            "Give the location of the job's checkpoints."
        )


def _message(where: str, found: Plan) -> str:
    parts = [f"Removed from {where}: {_listed(found.remove) or 'nothing, there was none'}."]
    if found.keep:
        parts.append(f"Kept: {_listed(found.keep)}.")
    if found.strange:
        parts.append(f"Left alone, as these are no epochs of it: {_listed(found.strange)}.")
    return " ".join(parts)


def _listed(names: tuple[str, ...]) -> str:
    more = len(names) - _SHOWN
    return ", ".join(names[:_SHOWN]) + (f" and {more} more" if more > 0 else "")
