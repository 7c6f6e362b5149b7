"""Figures with twenty thousand small files: a join with four stores in each of 200 partitions.

The checkpoint is synthetic, in Spark's real layout (tests/unit/checkpoint/synthetic.py): Spark
would take very long to make it, and files would not differ in number and size.

Nothing is removed between the runs. ext4 does not use an inode again within seconds of its removal
and searches past it, so that whoever creates files after a large `rm -r` is many times slower. For
the same reason the measurement begins with a pause, and tests that run beside it spoil it.
"""

import random
import time
from collections.abc import Iterator
from pathlib import Path

from tests.bench.directory import against_cp, copy_plainly, copy_synced
from tests.bench.ground import check_same, copy_planned, warm
from tests.bench.measure import Sample, Series, remove, run_ours, settle
from tests.bench.table import Section
from tests.unit.checkpoint.synthetic import SyntheticStore, checkpoint_of

__all__ = ["measure_many_files"]

CAPTURE_MANY = 3.0
_PARTITIONS = 200
_STORES = (
    "left-keyToNumValues",
    "left-keyWithIndexToValue",
    "right-keyToNumValues",
    "right-keyWithIndexToValue",
)
_VERSIONS = 25
"""A snapshot, its SST file and 23 changelogs make 25 files in each of the 800 stores."""
_CHANGELOG_BYTES = 4096
_PAUSE = 60.0
"""Seconds; ext4 avoids an inode for up to 35 of them after its removal."""


def measure_many_files(folder: Path, *, scale: float, repetitions: int) -> Section:
    """Run everything."""
    checkpoint, wanted = folder / "join", folder / "wanted-join"
    _write_join(checkpoint, partitions=max(2, int(_PARTITIONS * scale)))
    copy_planned(checkpoint, wanted)
    warm(checkpoint, wanted)
    settle()
    time.sleep(_PAUSE)
    rounds = [
        dict(_round(folder / str(number), checkpoint, wanted)) for number in range(repetitions)
    ]
    series = {name: Series(name, [each[name] for each in rounds]) for name in rounds[0]}
    remove(folder)
    count = series["capture"].number("files")
    return Section(
        "many files",
        f"{count:.0f} small files of a join (synthetic, in Spark's layout), on one disk",
        [
            *against_cp("Capture", series["capture"], series, CAPTURE_MANY),
            *against_cp("Materialize", series["materialize"], series, None),
        ],
        list(series.values()),
    )


def _round(folder: Path, checkpoint: Path, wanted: Path) -> Iterator[tuple[str, Sample]]:
    folder.mkdir()
    for name, copy in (("cp -r", copy_plainly), ("cp -r; sync -f", copy_synced)):
        settle()
        yield name, copy(wanted, folder / name)
    settle()
    where = {"repository": str(folder / "repository"), "name": "join"}
    yield "capture", run_ours("capture", checkpoint=str(checkpoint), **where)
    run_ours("verify", repository=where["repository"])
    settle()
    yield "materialize", run_ours("materialize", target=str(folder / "target"), **where)
    check_same(folder / "target", wanted)


def _write_join(folder: Path, *, partitions: int) -> None:
    store = SyntheticStore(snapshots=frozenset({2}))
    made = checkpoint_of(
        [[store] * len(_STORES)] * partitions,
        provider="rocksdb",
        batch=_VERSIONS - 1,
        written=_VERSIONS,
        names=_STORES,
    )
    rng = random.Random("join")
    for path, content in made.files.items():
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        noise = rng.randbytes(_CHANGELOG_BYTES) if path.endswith(".changelog") else b""
        # The last bytes are those that end a stream.
        target.write_bytes(noise + content[-21:] if noise else content)
