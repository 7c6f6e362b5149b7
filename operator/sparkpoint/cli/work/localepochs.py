"""Which of a home's checkpoints is the current one.

`epochs/<n>` holds the checkpoints of epoch n, `epochs/current` the number. An epoch is filled first
and becomes current last, in one step: whoever is killed in between leaves the old one current, and
the next one to come uses what was begun. No epoch is ever deleted; writing another number into
`epochs/current` brings an old one back.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from sparkpoint.cli.work.localerrors import DamagedHomeError
from sparkpoint.cli.work.localhome import Home, write_durably
from sparkpoint.savepoint.errors import TargetChangedError, TargetNotEmptyError

__all__ = ["Epoch", "begin_fresh", "begin_restored", "current_epoch", "go_on"]


@dataclass(frozen=True, slots=True)
class Epoch:
    """A directory of checkpoints."""

    number: int
    path: Path


def current_epoch(home: Home) -> Epoch | None:
    """The epoch that goes on; None before the first one."""
    current = home.epochs / "current"
    try:
        text = current.read_text().strip()
    except FileNotFoundError:
        return None
    if not (text.isascii() and text.isdecimal() and len(text) < 10):
        raise DamagedHomeError(
            f"{current} should hold the number of an epoch, and holds {text[:40]!r}. There are: "
            f"{_listed(home)}. Write the right one into it, or run with --fresh or --restore."
        )
    epoch = _epoch(home, int(text))
    if not epoch.path.is_dir():
        raise DamagedHomeError(
            f"{current} says {epoch.number}, but {epoch.path} is not there. There are: "
            f"{_listed(home)}. Write the right number into it, or run with --fresh or --restore."
        )
    return epoch


def go_on(home: Home) -> Epoch | None:
    """The current epoch; None if this home has never had one."""
    epoch = current_epoch(home)
    if epoch is None and any(not _is_empty(each) for each in _existing(home)):
        raise DamagedHomeError(
            f"{home.epochs} has checkpoints ({_listed(home)}), but nothing says which is the "
            f"current one: a restore did not finish, or {home.epochs / 'current'} was lost. Run "
            "with --restore again, with --fresh to begin anew, or write the number into that file."
        )
    return epoch


def begin_fresh(home: Home) -> Epoch:
    """A new epoch without any state becomes the current one."""
    last = _last(home)
    epoch = last if last is not None and _is_begun(home, last) and _is_empty(last) else _new(home)
    epoch.path.mkdir(parents=True, exist_ok=True)
    return _make_current(home, epoch)


def begin_restored(home: Home, fill: Callable[[Path], None]) -> Epoch:
    """A new epoch becomes the current one once `fill` has put all of its state there."""
    home.epochs.mkdir(parents=True, exist_ok=True)
    last = _last(home)
    if last is not None and _is_begun(home, last):
        try:
            fill(last.path)
            return _make_current(home, last)
        except (TargetNotEmptyError, TargetChangedError):
            pass  # no restore left it like this, or a query has run there: it is kept as it is
    epoch = _new(home)
    fill(epoch.path)
    return _make_current(home, epoch)


def _make_current(home: Home, epoch: Epoch) -> Epoch:
    write_durably(home.epochs / "current", f"{epoch.number}\n")
    return epoch


def _is_begun(home: Home, epoch: Epoch) -> bool:
    """Whether it is newer than the current one: begun by somebody who did not get to the end."""
    try:
        current = current_epoch(home)
    except DamagedHomeError:
        # Any of them may be the one that is meant.
        return False
    return current is None or epoch.number > current.number


def _is_empty(epoch: Epoch) -> bool:
    return not any(epoch.path.iterdir())


def _new(home: Home) -> Epoch:
    last = _last(home)
    return _epoch(home, 1 if last is None else last.number + 1)


def _last(home: Home) -> Epoch | None:
    return max(_existing(home), key=lambda epoch: epoch.number, default=None)


def _existing(home: Home) -> list[Epoch]:
    found = home.epochs.glob("[0-9]*")
    numbers = (path.name for path in found if path.is_dir() and path.name.isdecimal())
    return [_epoch(home, int(name)) for name in numbers if name == str(int(name))]


def _epoch(home: Home, number: int) -> Epoch:
    return Epoch(number, home.epochs / str(number))


def _listed(home: Home) -> str:
    numbers = sorted(epoch.number for epoch in _existing(home))
    return ", ".join(map(str, numbers)) or "none"
