"""What a capture asks of an S3 server; figures are counted here, not timed."""

import uuid
from collections import Counter
from pathlib import Path

import pytest

from sparkpoint.savepoint import CaptureRequest, Repository
from sparkpoint.storage.s3 import S3Store
from tests.support.s3requests import Request, recorded
from tests.unit.savepoint.synthetic import SyntheticQuery

pytestmark = pytest.mark.s3

LARGE = 300_000
UNCHANGED = 33
"""Requests of a capture that finds nothing new, whatever the size of the state."""


class Bench:
    """A query on disk whose checkpoint is carried to S3, and a repository there."""

    def __init__(self, bucket: S3Store, folder: Path, *, partitions: int = 3) -> None:
        self.place = bucket.child(uuid.uuid4().hex)
        self.source = self.place.child("checkpoint")
        self.query = SyntheticQuery(
            folder,
            provider="rocksdb",
            partitions=partitions,
            snapshot_bytes=LARGE,
            snapshot_every=2,
        )
        self.repository = Repository.init(self.place.child("repository"))
        self._carried: set[Path] = set()

    def run(self, batches: int) -> None:
        """Let the query commit, and carry over what is new."""
        self.query.run(batches)
        for path in sorted(self.query.root.rglob("*")):
            if path.is_file() and path not in self._carried:
                self._carried.add(path)
                self.source.put(str(path.relative_to(self.query.root)), [path.read_bytes()])

    def capture(self, name: str, *, read_all: bool = False) -> list[Request]:
        """The requests of one capture."""
        request = CaptureRequest(job="visits", name=name, read_all=read_all)
        with recorded(self.place) as requests:
            self.repository.capture(self.source, request)
        return requests

    def reads(self, requests: list[Request]) -> Counter[str]:
        """How often each file of the checkpoint was read."""
        start = self.source._key("x").removesuffix("x")
        keys = (each.key for each in requests if each.operation == "GetObject")
        return Counter(key.removeprefix(start) for key in keys if key.startswith(start))


def test_a_capture_reads_no_file_of_the_checkpoint_twice(
    s3_bucket: S3Store, tmp_path: Path
) -> None:
    bench = Bench(s3_bucket, tmp_path / "ck")
    bench.run(3)

    reads = bench.reads(bench.capture("one"))

    assert {path for path in reads if path.endswith(".zip")}
    assert max(reads.values()) == 1


def test_of_large_files_that_the_server_vouches_for_one_is_read_to_see_whether_it_is_right(
    s3_bucket: S3Store, tmp_path: Path
) -> None:
    bench = Bench(S3Store(s3_bucket._client, bucket="tests"), tmp_path / "ck", partitions=10)
    bench.run(2)
    first = bench.reads(bench.capture("one"))
    bench.run(2)

    second = bench.reads(bench.capture("two"))

    assert sum(path.endswith(".sst") for path in first) == 1
    assert sum(path.endswith(".sst") for path in second) == 0


@pytest.mark.parametrize("read_all", [True, False])
def test_a_large_file_costs_two_requests(
    s3_bucket: S3Store, tmp_path: Path, read_all: bool
) -> None:
    counts = []
    # The first one finds out whether the server refuses copies over others, and whether it vouches.
    for partitions in (1, 2, 10):
        bench = Bench(s3_bucket, tmp_path / str(partitions), partitions=partitions)
        bench.run(2)
        requests = bench.capture("one", read_all=read_all)
        seen = [each.operation for each in requests if each.key.endswith(".sst")]
        stored = sum("/repository/objects/" in each.key for each in requests)
        counts.append((Counter(seen), stored))

    _, (few_seen, few_stored), (many_seen, many_stored) = counts
    assert many_seen - few_seen == {"GetObject" if read_all else "HeadObject": 16}
    assert many_stored - few_stored == 16


def test_a_capture_that_finds_nothing_new_sends_few_requests(
    s3_bucket: S3Store, tmp_path: Path
) -> None:
    counts = []
    for partitions in (2, 10):
        bench = Bench(s3_bucket, tmp_path / str(partitions), partitions=partitions)
        bench.run(3)
        bench.capture("one")
        counts.append(len(bench.capture("two")))

    assert counts[0] == counts[1]
    assert counts[0] <= UNCHANGED


def test_the_next_capture_reads_what_is_new_and_what_the_planner_must_see(
    s3_bucket: S3Store, tmp_path: Path
) -> None:
    bench = Bench(s3_bucket, tmp_path / "ck")
    bench.run(2)
    bench.capture("one")
    bench.run(1)

    reads = bench.reads(bench.capture("two"))

    operator = {"state/0/_metadata/metadata", "state/0/0/_metadata/schema"}
    changes = {f"state/0/{partition}/3.changelog" for partition in range(3)}
    notes = {".sparkpoint/restored.json", ".sparkpoint/sink.json"}
    assert set(reads) == {"metadata", "offsets/2", "commits/2"} | notes | operator | changes
    assert max(reads.values()) == 1
