"""Write nginx access logs whose content follows from the file's number alone.

usage: make_log.py DIR [--first N] [--files N] [--lines N] [--seconds-between S]

Because the lines are a function of the number, anybody can compute what the counts must be: see
`expected_visits`. A file appears whole: it is written under a hidden name and renamed.
"""

import argparse
import collections
import random
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

PAGES = ["/", "/about", "/cart", "/checkout", "/login", *(f"/product/{n}" for n in range(200))]


def log_lines(number: int, count: int) -> Iterator[str]:
    """The lines of file `number`."""
    dice = random.Random(number)
    for second in range(count):
        # Squaring makes some pages popular, as in life.
        page = PAGES[int(dice.random() ** 2 * len(PAGES))]
        moment = time.strftime("%d/%b/%Y:%H:%M:%S +0000", time.gmtime(number * 3600 + second))
        client = f"10.{number % 256}.{dice.randrange(256)}.{dice.randrange(256)}"
        yield f'{client} - - [{moment}] "GET {page}?r={second} HTTP/1.1" 200 {dice.randrange(9000)}'


def expected_visits(numbers: Iterable[int], count: int) -> dict[str, int]:
    """What the job must have counted after reading these files."""
    visits: collections.Counter[str] = collections.Counter()
    for number in numbers:
        visits.update(line.split('"GET ')[1].split("?")[0] for line in log_lines(number, count))
    return dict(visits)


def write_log(folder: Path, number: int, count: int) -> None:
    """Write file `number`, atomically; writing it again changes nothing."""
    folder.mkdir(parents=True, exist_ok=True)
    draft = folder / f".access-{number:06d}.log"
    draft.write_text("\n".join(log_lines(number, count)) + "\n")
    draft.rename(folder / f"access-{number:06d}.log")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--files", type=int, default=10)
    parser.add_argument("--lines", type=int, default=1000)
    parser.add_argument("--seconds-between", type=float, default=0)
    arguments = parser.parse_args()
    for number in range(arguments.first, arguments.first + arguments.files):
        write_log(arguments.folder, number, arguments.lines)
        time.sleep(arguments.seconds_between)


if __name__ == "__main__":
    main()
