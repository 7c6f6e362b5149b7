"""Captures of a checkpoint that changes under our hands."""

import shutil
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sparkpoint.checkpoint.errors import IncompleteError
from sparkpoint.savepoint import CaptureRequest, Repository
from sparkpoint.savepoint.errors import MovingTargetError
from sparkpoint.storage import DirectoryStore, Entry
from tests.unit.savepoint.synthetic import SyntheticQuery


class PurgedStore(DirectoryStore):
    """A checkpoint whose query commits, snapshots and purges between our reads."""

    def __init__(self, query: SyntheticQuery, when: set[int]) -> None:
        super().__init__(query.root)
        self._query, self._when, self._reads = query, when, 0
        self._turn = threading.Lock()

    @property
    def parallelism(self) -> int:
        """One, so that the order of reads follows from the plan."""
        return 1

    def read_stamped(self, path: str, *, limit: int = 2**26) -> tuple[bytes, str]:
        """Read, after the query may have gone on."""
        # The planner reads with threads of its own, and the query is not made for them.
        with self._turn:
            self._reads += 1
            if self._reads in self._when:
                self._query.run(3)
        return super().read_stamped(path, limit=limit)


@given(when=st.sets(st.integers(1, 80), max_size=6), provider=st.sampled_from(["hdfs", "rocksdb"]))
@settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_a_capture_that_races_the_purge_is_whole_or_says_that_it_lost(
    when: set[int], provider: str
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        query = SyntheticQuery(
            Path(folder, "ck"),
            provider=provider,  # type: ignore[arg-type]
            retain=2,
            snapshot_every=2,
            snapshot_bytes=500,
            delta_bytes=100,
        ).run(5)
        repository = Repository.init(DirectoryStore(Path(folder, "repository")))
        source = PurgedStore(query, when)
        try:
            result = repository.capture(source, CaptureRequest(job="visits", name="one", tries=4))
        except MovingTargetError:
            assert repository.list().savepoints == ()
            return
        assert repository.verify([result.savepoint])[0].problems == ()
        assert result.savepoint.manifest.timing.tries <= 4


def test_a_lost_race_is_tried_again_at_a_newer_batch(
    repository: Repository, tmp_path: Path
) -> None:
    query = SyntheticQuery(tmp_path / "ck", retain=2, snapshot_every=2).run(5)

    result = repository.capture(PurgedStore(query, {6}), CaptureRequest(job="visits", name="one"))

    assert result.savepoint.manifest.timing.tries == 2
    assert result.savepoint.manifest.queries[0].batch == 7


def test_a_race_that_is_always_lost_ends_and_leaves_no_savepoint(
    repository: Repository, tmp_path: Path
) -> None:
    query = SyntheticQuery(tmp_path / "ck", retain=1, snapshot_every=1).run(5)
    source = PurgedStore(query, set(range(1000)))

    with pytest.raises(MovingTargetError, match="minBatchesToRetain"):
        repository.capture(source, CaptureRequest(job="visits", name="one", tries=3))
    assert repository.list().savepoints == ()
    assert repository.collect(grace=0, dry_run=True).plan.kept_objects == 0


def test_a_file_that_is_missing_in_a_stopped_checkpoint_is_named(
    repository: Repository, tmp_path: Path
) -> None:
    query = SyntheticQuery(tmp_path / "ck").run(3)
    (query.root / "state/0/1/2.delta").unlink()

    with pytest.raises(IncompleteError, match=r"state/0/1/2\.delta"):
        repository.capture(DirectoryStore(query.root), CaptureRequest(job="visits", name="one"))


def test_state_that_was_lost_since_the_parent_is_named_without_ten_tries(
    repository: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    query = SyntheticQuery(tmp_path / "ck").run(3)
    source = DirectoryStore(query.root)
    repository.capture(source, CaptureRequest(job="visits", name="one"))
    shutil.rmtree(query.root / "state")
    listed: list[str] = []
    real = DirectoryStore.list

    def listing(store: DirectoryStore, prefix: str = "") -> Iterator[Entry]:
        listed.append(prefix)
        return real(store, prefix)

    monkeypatch.setattr(DirectoryStore, "list", listing)

    with pytest.raises(IncompleteError, match="state/0"):
        repository.capture(source, CaptureRequest(job="visits", name="two"))

    assert listed.count("state") == 2


def test_state_that_was_lost_is_told_also_of_a_copy_at_another_place(
    repository: Repository, tmp_path: Path
) -> None:
    query = SyntheticQuery(tmp_path / "ck").run(3)
    repository.capture(DirectoryStore(query.root), CaptureRequest(job="visits", name="one"))
    shutil.copytree(query.root, tmp_path / "copy", ignore=shutil.ignore_patterns("state"))

    with pytest.raises(IncompleteError, match="state/0"):
        repository.capture(
            DirectoryStore(tmp_path / "copy"), CaptureRequest(job="visits", name="two")
        )

    assert [each.manifest.name for each in repository.list().savepoints] == ["one"]


def test_state_that_was_lost_before_the_first_capture_is_warned_of(
    repository: Repository, tmp_path: Path
) -> None:
    query = SyntheticQuery(tmp_path / "ck").run(3)  # it has a watermark
    shutil.rmtree(query.root / "state")

    request = CaptureRequest(job="visits", name="one")
    captured = repository.capture(DirectoryStore(query.root), request).savepoint

    (warning,) = captured.manifest.queries[0].warnings
    assert "no state/: if the query has an aggregation" in warning
    assert "a watermark alone needs none" in warning
