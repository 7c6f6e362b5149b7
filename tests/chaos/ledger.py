"""The input, its truth, and what the job has made of it: read from the disk of the volume.

Not through the cluster: it is to be known also while that stands still, and at no cost to it.

Every file visits every page. So the output of a batch is all of the state at its end, which must be
the visits of the first files, one more in each batch. Or two more: a driver that is killed when it
has written down a file that it has found, and not yet that the batch is to read it, leaves it to
the next driver, which takes the next file with it.
"""

import collections
import contextlib
import functools
import itertools
import json
import random
from pathlib import Path

__all__ = ["SCRIPT", "Ledger", "script"]

SCRIPT = "url_visits.py"
_PAGES = tuple(f"/page/{number}" for number in range(50))
_OPTION = '    parser.add_argument("--files-per-batch", type=int, default=1)\n'
_WRITE = "    def write(batch: DataFrame, number: int) -> None:\n"


def script(example: str) -> str:
    """The example's, with an option that lets every batch fail."""
    assert example.count(_OPTION) == example.count(_WRITE) == 1
    crash = '        if arguments.crash:\n            raise RuntimeError("as it was asked to")\n'
    option = '    parser.add_argument("--crash", action="store_true")\n'
    return example.replace(_OPTION, _OPTION + option).replace(_WRITE, _WRITE + crash)


class Ledger:
    """Of one job."""

    def __init__(self, volume: Path) -> None:
        self._input, self._output = volume / "input", volume / "output"
        self._input.mkdir(parents=True, exist_ok=True)
        # Pods write as another user.
        self._input.chmod(0o777)
        self.fed = 0

    def feed(self) -> None:
        """One more file; it appears whole."""
        visits = _visits(self.fed)
        lines = (f'- "GET {page} HTTP/1.1" 200' for page in _PAGES for _ in range(visits[page]))
        draft = self._input / f".access-{self.fed:06d}.log"
        draft.write_text("\n".join(lines) + "\n")
        draft.rename(self._input / f"access-{self.fed:06d}.log")
        self.fed += 1

    def is_exact(self) -> bool:
        """Whether the newest state and output are those of all that was fed."""
        # Asked twice in a second: only this is looked for, and in the newest batch first.
        wanted, newest_first = _truth(self.fed), reversed(self._numbers())
        return self.fed > 0 and any(self._read(number) == wanted for number in newest_first)

    def mistakes(self) -> list[str]:
        """Of all batches there ever were."""
        numbers = self._numbers()
        known = {number: self._files_in(number) for number in numbers}
        wrong = [f"batch {number} is wrong" for number, files in known.items() if files is None]
        held = [files for files in known.values() if files is not None]
        # What is behind the batch that holds all is of before a rewind, and older than the last
        # file.
        end = held.index(self.fed) + 1 if self.fed in held else len(held)
        grow = all(one < next_ for one, next_ in itertools.pairwise(held[:end]))
        if grow and self.fed in held and self.fed not in held[end:]:
            return wrong if numbers == list(range(len(numbers))) else [f"batches {numbers}", *wrong]
        return [f"{self.fed} files have become batches of the first {held}", *wrong]

    def _numbers(self) -> list[int]:
        found = self._output.glob("batch=*")
        return sorted(int(folder.name.partition("=")[2]) for folder in found)

    def _files_in(self, batch: int) -> int | None:
        """Of how many files it has exactly the visits; None if of no number of them."""
        counts = self._read(batch)
        # One more in each batch, if nothing came in between: that is where to look first.
        likely = (batch + 1, *range(batch + 2, self.fed + 1), *range(batch, 0, -1))
        return next((n for n in likely if n <= self.fed and counts == _truth(n)), None)

    def _read(self, batch: int) -> dict[str, int]:
        counts: dict[str, int] = {}
        # What was listed is gone if the batch is done again just now.
        with contextlib.suppress(FileNotFoundError):
            for file in (self._output / f"batch={batch:08d}").glob("part-*.json"):
                rows = [json.loads(line) for line in file.read_text().splitlines()]
                counts.update((row["url"], row["count"]) for row in rows)
        return counts


def _visits(number: int) -> dict[str, int]:
    """Follows from the file's number alone."""
    dice = random.Random(number)
    return {page: 1 + dice.randrange(3) for page in _PAGES}


@functools.cache
def _truth(files: int) -> dict[str, int]:
    counts: collections.Counter[str] = collections.Counter()
    for number in range(files):
        counts.update(_visits(number))
    return dict(counts)
