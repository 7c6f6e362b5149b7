"""The input, its truth, and what the job has made of it: read from the disk of the volume.

Not through the cluster: it is to be known also while that stands still, and at no cost to it.

Every file visits every page, and is a batch of its own. So the output of a batch is all of the
state at its end, and batch N must hold the visits of the files 0 to N.
"""

import collections
import functools
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
        return self.fed > 0 and self._read(self.fed - 1) == _truth(self.fed)

    def mistakes(self) -> list[str]:
        """Of all batches there ever were."""
        found = sorted(int(folder.name.partition("=")[2]) for folder in self._folders())
        wrong = [f"batch {n} is wrong" for n in found if self._read(n) != _truth(n + 1)]
        if found == list(range(self.fed)):
            return wrong
        return [f"{self.fed} files have become the batches {found}", *wrong]

    def _folders(self) -> list[Path]:
        return list(self._output.glob("batch=*"))

    def _read(self, batch: int) -> dict[str, int]:
        counts: dict[str, int] = {}
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
