"""Verification reads what savepoints share once, and holds one table at a time."""

import gc
import json
import os
from collections import Counter
from pathlib import Path

import pytest

from sparkpoint.savepoint import CaptureRequest, Repository, Savepoint, catalogue, taking
from sparkpoint.savepoint.names import object_path
from sparkpoint.savepoint.table import Table
from sparkpoint.savepoint.verify import verify
from sparkpoint.storage import DirectoryStore
from tests.unit.checkpoint.synthetic import SyntheticStore, checkpoint_of
from tests.unit.savepoint.synthetic import SyntheticQuery


def _capture(repository: Repository, root: Path, name: str) -> Savepoint:
    request = CaptureRequest(job="visits", name=name)
    return repository.capture(DirectoryStore(root), request).savepoint


def _three(repository: Repository, root: Path) -> list[Savepoint]:
    query = SyntheticQuery(root, snapshot_bytes=300_000, snapshot_every=3)
    return [_capture(repository, query.run(2).root, f"s{number}") for number in range(3)]


def test_content_that_savepoints_share_is_read_once_and_the_answers_keep_their_order(
    repository: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    newest_first = _three(repository, tmp_path / "ck")[::-1]
    large = [r for s in newest_first for r in repository.files(s).files.values() if r.size > 1e5]
    opened: Counter[str] = Counter()
    real = DirectoryStore.open
    monkeypatch.setattr(
        DirectoryStore, "open", lambda self, path: (opened.update([path]), real(self, path))[1]
    )

    verified = repository.verify(newest_first)

    assert [(each.savepoint.id, each.good) for each in verified] == [
        (savepoint.id, True) for savepoint in newest_first
    ]
    assert opened == Counter({object_path(record.object) for record in large})


def test_damage_that_was_seen_once_is_told_of_every_savepoint_that_shares_it(
    repository: Repository, tmp_path: Path
) -> None:
    savepoints = _three(repository, tmp_path / "ck")
    tables = [repository.files(savepoint).files for savepoint in savepoints]
    shared = tables[0]["sources/0/0"].object
    data = repository.store.read(object_path(shared))
    repository.store.put(object_path(shared), [bytes(len(data))])

    verified = repository.verify(savepoints)

    for table, each in zip(tables, verified, strict=True):
        rotten = sorted(path for path, record in table.items() if record.object == shared)
        assert rotten
        assert sorted(problem.split(":")[0] for problem in each.problems) == rotten


def test_one_table_is_in_memory_at_a_time(repository: Repository, tmp_path: Path) -> None:
    savepoints = _three(repository, tmp_path / "ck")
    tables: list[int] = []

    class Watching:
        def start(self, what: str, total: object) -> None:
            gc.collect()
            tables.append(sum(type(each) is Table for each in gc.get_objects()))

        def advance(self, done: object) -> None:
            pass

        def note(self, text: str) -> None:
            pass

    gc.collect()  # what earlier tests left must not be counted, and then go
    before = sum(type(each) is Table for each in gc.get_objects())
    verify(repository.store, savepoints, progress=Watching())

    assert [count - before for count in tables] == [1, 1, 1]


def test_savepoint_whose_changelogs_cannot_be_read_is_verified(
    repository: Repository, tmp_path: Path
) -> None:
    # Every batch of format 2 names its ids; the savepoint keeps the last two of those commits.
    store = SyntheticStore(snapshots=frozenset({2}))
    worlds = [
        checkpoint_of([[store]], provider="rocksdb", batch=b, written=b + 1, unique=True)
        for b in range(7)
    ]
    files = worlds[-1].files | {
        f"commits/{b}": w.files[f"commits/{b}"] for b, w in enumerate(worlds)
    }
    for path, data in files.items():
        target = tmp_path / "ck" / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(_zstd(data) if path.startswith("offsets/") else data)

    savepoint = _capture(repository, tmp_path / "ck", "zstd")

    assert repository.verify([savepoint])[0].problems == ()


def _zstd(offsets: bytes) -> bytes:
    version, head, *sources = offsets.decode().split("\n")
    fields = json.loads(head)
    fields["conf"]["spark.sql.streaming.stateStore.compression.codec"] = "zstd"
    return "\n".join([version, json.dumps(fields), *sources]).encode()


def test_a_collection_meanwhile_takes_nothing_away_from_a_verification(
    repository: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    savepoint = _three(repository, tmp_path / "ck")[0]
    for path in (tmp_path / "repository" / "objects").rglob("*"):
        if path.is_file():
            os.utime(path, (1.0, 1.0))
    real = catalogue.read_table
    collected: list[int] = []

    def read_table(store: DirectoryStore, wanted: Savepoint) -> Table:
        repository.delete(savepoint)
        collected.append(repository.collect(grace=0).removed_objects)
        return real(store, wanted)

    monkeypatch.setattr(catalogue, "read_table", read_table)

    verified = verify(repository.store, [savepoint])

    assert [each.problems for each in verified] == [()]
    assert collected == [0]
    monkeypatch.undo()
    assert repository.collect(grace=0).removed_objects > 0


@pytest.mark.parametrize("large", [False, True])
def test_a_state_file_that_was_captured_truncated_is_found(
    repository: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, large: bool
) -> None:
    size = 400_000 if large else 4_000
    query = SyntheticQuery(tmp_path / "ck/visits", snapshot_bytes=size, snapshot_every=3).run(4)
    os.truncate(query.root / "state/0/1/3.snapshot", size - 10)
    monkeypatch.setattr(taking, "has_end", lambda path, conf: False)  # as older versions did

    savepoint = _capture(repository, tmp_path / "ck", "old")

    (verified,) = repository.verify([savepoint])
    assert verified.as_captured
    problems = verified.problems
    assert [problem.split(".")[0] for problem in problems] == ["visits/state/0/1/3"]
    assert "3.snapshot is truncated" in problems[0]
