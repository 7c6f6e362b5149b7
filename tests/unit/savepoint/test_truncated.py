"""State files that end too early are refused by name before anybody relies on the savepoint."""

import os
from collections import Counter
from pathlib import Path

import pytest

from sparkpoint.checkpoint.errors import DamagedError
from sparkpoint.checkpoint.overview import read_checkpoint
from sparkpoint.savepoint import CaptureRequest, Repository
from sparkpoint.storage import DirectoryStore
from tests.unit.savepoint.synthetic import SyntheticQuery

LARGE = 400_000


def _capture(repository: Repository, root: Path, name: str = "one") -> None:
    repository.capture(DirectoryStore(root), CaptureRequest(job="visits", name=name))


@pytest.mark.parametrize("size", [0, 10, 20])
@pytest.mark.parametrize("provider", ["hdfs", "rocksdb"])
def test_a_truncated_change_is_refused_and_a_hazard(
    repository: Repository, tmp_path: Path, provider: str, size: int
) -> None:
    query = SyntheticQuery(tmp_path / "ck", provider=provider).run(6)  # type: ignore[arg-type]
    cut = "state/0/1/5.delta" if provider == "hdfs" else "state/0/1/5.changelog"
    os.truncate(query.root / cut, size)

    with pytest.raises(DamagedError, match=cut):
        _capture(repository, query.root)

    (hazard,) = read_checkpoint(DirectoryStore(query.root)).hazards
    assert cut in hazard
    assert repository.list().savepoints == ()


@pytest.mark.parametrize("lost", [1, 21, 100, LARGE])
def test_a_truncated_snapshot_is_refused_also_if_it_is_large(
    repository: Repository, tmp_path: Path, lost: int
) -> None:
    query = SyntheticQuery(tmp_path / "ck", snapshot_bytes=LARGE, snapshot_every=3).run(4)
    os.truncate(query.root / "state/0/0/3.snapshot", LARGE - lost)

    with pytest.raises(DamagedError, match=r"state/0/0/3\.snapshot is (truncated|empty)"):
        _capture(repository, query.root)


def test_of_other_codecs_only_what_is_empty_can_be_told(
    repository: Repository, tmp_path: Path
) -> None:
    query = SyntheticQuery(tmp_path / "ck", codec="zstd").run(3)
    os.truncate(query.root / "state/0/0/2.delta", 10)
    _capture(repository, query.root, "short")
    os.truncate(query.root / "state/0/0/2.delta", 0)

    with pytest.raises(DamagedError, match=r"state/0/0/2\.delta is empty"):
        _capture(repository, query.root, "empty")


def test_only_large_files_that_are_new_are_looked_at_again(
    repository: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    query = SyntheticQuery(tmp_path / "ck", snapshot_bytes=LARGE, snapshot_every=3).run(4)
    asked: Counter[int] = Counter()
    real = DirectoryStore.read_range

    def counting(store: DirectoryStore, path: str, offset: int, length: int) -> bytes:
        asked[length] += 1
        return real(store, path, offset, length)

    monkeypatch.setattr(DirectoryStore, "read_range", counting)

    _capture(repository, query.root, "one")
    first = asked.copy()
    query.run(1)
    _capture(repository, query.root, "two")

    assert first == {21: 2}
    assert asked == first


@pytest.mark.parametrize(
    ("codec", "cut"),
    [
        (None, "offsets/5"),
        (None, "commits/5"),
        (None, "sources/0/0"),
        ("zstd", "state/0/1/5.delta"),
        ("zstd", "state/0/1/4.snapshot"),
    ],
)
def test_what_was_whole_in_the_parent_and_is_cut_off_now_is_refused(
    repository: Repository, tmp_path: Path, codec: str | None, cut: str
) -> None:
    query = SyntheticQuery(tmp_path / "ck", codec=codec, snapshot_bytes=LARGE).run(6)
    _capture(repository, query.root, "whole")
    query.run(1)
    os.truncate(query.root / cut, (query.root / cut).stat().st_size // 2)

    with pytest.raises(DamagedError, match=f"{cut} is truncated"):
        _capture(repository, query.root, "cut")


@pytest.mark.parametrize("size", [600, 3000])
def test_a_change_that_was_written_again_is_captured_anew(
    repository: Repository, tmp_path: Path, size: int
) -> None:
    """As a task that outlived its batch does."""
    query = SyntheticQuery(tmp_path / "ck", codec="zstd").run(6)
    _capture(repository, query.root, "one")
    again = query.root / "state/0/1/6.delta"
    again.write_bytes(os.urandom(size))

    _capture(repository, query.root, "two")

    table = repository.files(repository.find("two"))
    assert table.files["state/0/1/6.delta"].size == size


@pytest.mark.parametrize("name", ["1", "9.compact"])
def test_a_source_log_with_fewer_files_was_written_again(
    repository: Repository, tmp_path: Path, name: str
) -> None:
    """As after going back, with a lower maxFilesPerTrigger: it begins as before, and is whole."""
    query = SyntheticQuery(tmp_path / "ck").run(3)
    log, lines = query.root / "sources/0" / name, ["v1", '{"path":"a"}', '{"path":"b"}']
    log.write_text("\n".join(lines))
    _capture(repository, query.root, "two-files")
    log.write_text("\n".join(lines[:2]))

    _capture(repository, query.root, "one-file")

    log.write_text("\n".join(lines)[:-5])
    with pytest.raises(DamagedError, match=f"sources/0/{name} is truncated"):
        repository.capture(
            DirectoryStore(query.root),
            CaptureRequest(job="visits", name="cut", parent="two-files"),
        )
