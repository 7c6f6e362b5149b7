"""What a person does with savepoints, one thing after the other, on a directory."""

import json
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import BinaryIO

import pytest

from sparkpoint.savepoint import (
    CaptureRequest,
    MaterializeRequest,
    Mode,
    Repository,
    Savepoint,
    SinkPolicy,
)
from sparkpoint.savepoint.errors import (
    AmbiguousError,
    BadNameError,
    DamagedError,
    NameTakenError,
    NewerFormatError,
    NoQueryError,
    NoSuchSavepointError,
    NotARepositoryError,
    ProtectedError,
    SinkConflictError,
    TargetChangedError,
    TargetNotEmptyError,
)
from sparkpoint.savepoint.manifest import SinkInfo
from sparkpoint.savepoint.names import object_path
from sparkpoint.savepoint.retention import RetentionPolicy
from sparkpoint.storage import DirectoryStore, Entry
from tests.unit.savepoint.synthetic import SyntheticQuery


def capture(repository: Repository, root: Path, name: str, **more: object) -> Savepoint:
    request = CaptureRequest(job="visits", name=name, **more)  # type: ignore[arg-type]
    return repository.capture(DirectoryStore(root), request).savepoint


def visible(root: Path) -> dict[str, bytes]:
    return {
        path.relative_to(root).as_posix(): path.read_bytes()
        for path in sorted(root.rglob("*"))
        if path.is_file() and not path.relative_to(root).as_posix().startswith(".sparkpoint")
    }


def test_the_next_capture_stores_only_what_is_new(repository: Repository, tmp_path: Path) -> None:
    query = SyntheticQuery(tmp_path / "ck", snapshot_bytes=400_000, snapshot_every=5).run(6)
    first = capture(repository, query.root, "one")
    query.run(2)

    second = capture(repository, query.root, "two")

    assert second.manifest.parent is not None
    assert second.manifest.parent.id == first.id
    assert first.manifest.files.bytes > 800_000
    assert second.manifest.files.new_bytes < 20_000


def test_the_same_small_files_make_the_same_pack_whoever_captures_them(
    repository: Repository, tmp_path: Path
) -> None:
    query = SyntheticQuery(tmp_path / "ck", partitions=20, delta_bytes=300).run(6)
    for path in query.root.glob("state/0/*/5.delta"):
        path.write_bytes((query.root / "state/0/0/5.delta").read_bytes())  # the same content
    one = capture(repository, query.root, "one")

    for number in range(8):
        request = CaptureRequest(job=f"other-{number}", name="one")
        again = repository.capture(DirectoryStore(query.root), request).savepoint
        assert again.manifest.files.new_objects == 0
        assert again.manifest.files.table == one.manifest.files.table


def test_the_parents_base_is_used_again_after_a_new_snapshot_and_a_purge(
    repository: Repository, tmp_path: Path
) -> None:
    query = SyntheticQuery(tmp_path / "ck", snapshot_bytes=400_000, snapshot_every=5)
    query.run(6)
    capture(repository, query.root, "one")
    query.run(3)
    capture(repository, query.root, "two")
    query.run(2)
    for path in query.root.glob("state/0/?/[1-5].*"):
        path.unlink()  # as maintenance does once the snapshot of version 10 is old enough

    third = capture(repository, query.root, "three")
    repository.materialize(third, DirectoryStore(tmp_path / "out"))

    assert not (query.root / "state/0/0/5.snapshot").exists()
    assert (tmp_path / "out/state/0/0/5.snapshot").exists()
    assert third.manifest.files.new_bytes < 40_000
    assert all(each.good for each in repository.verify([third]))


def test_a_checkpoint_that_was_wiped_and_begun_anew_does_not_get_the_old_base(
    repository: Repository, tmp_path: Path
) -> None:
    SyntheticQuery(tmp_path / "ck", snapshot_every=4, seed="old").run(6)
    capture(repository, tmp_path / "ck", "old")
    (tmp_path / "ck").rename(tmp_path / "gone")
    SyntheticQuery(tmp_path / "ck", snapshot_every=4, seed="new").run(7)

    fresh = capture(repository, tmp_path / "ck", "new")
    repository.materialize(fresh, DirectoryStore(tmp_path / "out"))

    for path, content in visible(tmp_path / "out").items():
        assert (tmp_path / "ck" / path).read_bytes() == content


def test_a_savepoint_outlives_its_checkpoint_and_its_parent(
    repository: Repository, tmp_path: Path
) -> None:
    query = SyntheticQuery(tmp_path / "ck", provider="rocksdb", operator_version=2).run(5)
    first = capture(repository, query.root, "one")
    query.run(1)
    second = capture(repository, query.root, "two")
    query.root.rename(tmp_path / "moved")
    repository.delete(first)
    repository.collect(grace=0)

    repository.materialize(second, DirectoryStore(tmp_path / "out"))

    metadata = (tmp_path / "out/state/0/_metadata/v2/0").read_text()
    assert f"file:{tmp_path}/out/state/0/_stateSchema/default/" in metadata
    assert f"{tmp_path}/ck" not in metadata


def test_resume_keeps_the_batch_in_flight_and_rewind_and_fork_drop_it(
    repository: Repository, tmp_path: Path
) -> None:
    query = SyntheticQuery(tmp_path / "ck").run(3)
    query.begin(3)
    savepoint = capture(repository, query.root, "one")
    assert savepoint.manifest.pending

    ids = {}
    for mode in Mode:
        target = DirectoryStore(tmp_path / mode.value)
        repository.materialize(savepoint, target, MaterializeRequest(mode=mode))
        assert (tmp_path / mode.value / "offsets/3").exists() == (mode is Mode.RESUME)
        ids[mode] = json.loads((tmp_path / mode.value / "metadata").read_text())["id"]

    assert ids[Mode.RESUME] == ids[Mode.REWIND] == savepoint.manifest.queries[0].id
    assert ids[Mode.FORK] != ids[Mode.RESUME]


def test_a_restored_directory_becomes_a_later_savepoint_by_the_difference_only(
    repository: Repository, tmp_path: Path
) -> None:
    query = SyntheticQuery(tmp_path / "ck", snapshot_bytes=300_000, snapshot_every=5).run(6)
    first = capture(repository, query.root, "one")
    target = DirectoryStore(tmp_path / "out")
    repository.materialize(first, target)
    query.run(1)
    second = capture(repository, query.root, "two")

    result = repository.materialize(second, target)
    fresh = DirectoryStore(tmp_path / "fresh")
    repository.materialize(second, fresh)

    assert result.copied_bytes < 10_000
    assert result.removed_files > 0
    assert visible(tmp_path / "out") == visible(tmp_path / "fresh")


def test_a_capture_of_a_restored_directory_reads_only_what_changed(
    repository: Repository, tmp_path: Path
) -> None:
    query = SyntheticQuery(tmp_path / "ck", snapshot_bytes=300_000, snapshot_every=5).run(6)
    first = capture(repository, query.root, "one")
    repository.materialize(first, DirectoryStore(tmp_path / "out"))
    moved = SyntheticQuery(tmp_path / "elsewhere", seed="x")
    moved.root, moved.committed, moved.base = tmp_path / "out", 5, {0: 5, 1: 5}
    moved.batch()

    result = repository.capture(
        DirectoryStore(tmp_path / "out"), CaptureRequest(job="visits", name="two")
    )

    assert result.read_bytes < 10_000
    assert all(each.good for each in repository.verify([result.savepoint]))


def test_a_directory_in_which_spark_has_run_is_not_restored_over(
    repository: Repository, tmp_path: Path
) -> None:
    savepoint = capture(repository, SyntheticQuery(tmp_path / "ck").run(2).root, "one")
    target = DirectoryStore(tmp_path / "out")
    repository.materialize(savepoint, target)
    target.put("offsets/2", [b"v1"])

    with pytest.raises(TargetChangedError, match="a query has run there"):
        repository.materialize(savepoint, target)


def test_a_target_with_other_files_is_refused(repository: Repository, tmp_path: Path) -> None:
    savepoint = capture(repository, SyntheticQuery(tmp_path / "ck").run(2).root, "one")
    target = DirectoryStore(tmp_path / "out")
    target.put("mine.txt", [b"precious"])

    with pytest.raises(TargetNotEmptyError, match=r"mine\.txt"):
        repository.materialize(savepoint, target)
    assert target.read("mine.txt") == b"precious"


def test_a_job_with_several_queries_is_one_savepoint(
    repository: Repository, tmp_path: Path
) -> None:
    SyntheticQuery(tmp_path / "ck/visits", seed="a").run(3)
    SyntheticQuery(tmp_path / "ck/errors", seed="b", provider="rocksdb").run(5)

    savepoint = capture(repository, tmp_path / "ck", "one")
    repository.materialize(savepoint, DirectoryStore(tmp_path / "out"))

    batches = {query.prefix: query.batch for query in savepoint.manifest.queries}
    assert batches == {"errors": 4, "visits": 2}
    assert (tmp_path / "out/visits/commits/2").exists()
    assert all(each.good for each in repository.verify([savepoint]))


def test_savepoints_are_found_by_name_path_id_and_start_of_id(
    repository: Repository, tmp_path: Path
) -> None:
    one = capture(repository, SyntheticQuery(tmp_path / "ck").run(2).root, "one")

    for reference in ("one", "visits/one", "default/visits/one", one.id, one.id[:8]):
        assert repository.find(reference).id == one.id
    with pytest.raises(NoSuchSavepointError, match="savepoint list"):
        repository.find("two")
    repository.capture(
        DirectoryStore(tmp_path / "ck"), CaptureRequest(job="other", name="one", parent="none")
    )
    with pytest.raises(AmbiguousError, match="default/other/one"):
        repository.find("one")
    assert repository.find("one", namespace="default", job="visits").id == one.id


def test_a_name_is_taken_once(repository: Repository, tmp_path: Path) -> None:
    one = capture(repository, SyntheticQuery(tmp_path / "ck").run(2).root, "one")

    with pytest.raises(NameTakenError) as caught:
        capture(repository, tmp_path / "ck", "one")
    assert caught.value.existing is not None
    assert caught.value.existing.id == one.id
    with pytest.raises(BadNameError):
        capture(repository, tmp_path / "ck", "../one")


def test_tags_come_and_go_without_changing_the_id(repository: Repository, tmp_path: Path) -> None:
    one = capture(repository, SyntheticQuery(tmp_path / "ck").run(2).root, "one", tags=("gold",))

    repository.tag(one, ["release", "gold"])
    repository.untag(one, ["nothing"])

    assert repository.list().savepoints[0].tags == ("gold", "release")
    assert repository.find("one").id == one.id
    repository.untag(one, ["gold"])
    assert repository.list().savepoints[0].tags == ("release",)


def test_deleting_frees_bytes_only_after_the_grace_period(
    repository: Repository, tmp_path: Path
) -> None:
    one = capture(repository, SyntheticQuery(tmp_path / "ck").run(5).root, "one", tags=("gold",))

    repository.delete(one)
    kept = repository.collect(grace=3600)
    plan = repository.collect(grace=0, dry_run=True)
    freed = repository.collect(grace=0)

    assert repository.list().savepoints == ()
    assert kept.removed_objects == 0
    assert plan.plan.bytes == freed.freed_bytes > 0
    assert [e.path for e in repository.store.list()] == ["repository.json", "reserve"]


def test_a_savepoint_in_use_is_not_deleted(repository: Repository, tmp_path: Path) -> None:
    one = capture(repository, SyntheticQuery(tmp_path / "ck").run(2).root, "one")

    with pytest.raises(ProtectedError, match="job visits"):
        repository.delete(one, protected={one.id: "job visits"})
    assert repository.find("one").id == one.id


def test_retention_removes_what_no_rule_keeps(repository: Repository, tmp_path: Path) -> None:
    query = SyntheticQuery(tmp_path / "ck")
    for name in ("a", "b", "c"):
        capture(repository, query.run(1).root, name, tags=("gold",) if name == "a" else ())

    plan = repository.retain(RetentionPolicy(last=1, tagged=True), now=datetime.now(UTC))
    repository.apply(plan)

    assert [each.manifest.name for each in repository.list().savepoints] == ["a", "c"]
    assert all(each.good for each in repository.verify(repository.list().savepoints))


def test_a_copy_in_another_repository_has_the_same_id(
    repository: Repository, tmp_path: Path
) -> None:
    query = SyntheticQuery(tmp_path / "ck", snapshot_bytes=300_000).run(5)
    one = capture(repository, query.root, "one")
    query.run(1)
    two = capture(repository, query.root, "two")
    other = Repository.init(DirectoryStore(tmp_path / "other"))

    assert repository.copy(one, other).savepoint.id == one.id
    copied = repository.copy(two, other).savepoint
    again = repository.copy(two, other).savepoint

    assert copied.id == two.id == again.id
    assert all(each.good for each in other.verify(other.list().savepoints))


def test_a_copy_keeps_its_tags_however_the_savepoint_was_found(
    repository: Repository, tmp_path: Path
) -> None:
    query = SyntheticQuery(tmp_path / "ck").run(2)
    one = capture(repository, query.root, "one")
    repository.tag(one, ["release"])
    other = Repository.init(DirectoryStore(tmp_path / "other"))

    repository.copy(repository.find("one"), other)

    assert other.list().savepoints[0].tags == ("release",)


def test_verify_names_a_damaged_and_a_missing_object(
    repository: Repository, tmp_path: Path
) -> None:
    query = SyntheticQuery(tmp_path / "ck", snapshot_bytes=300_000, snapshot_every=3).run(4)
    one = capture(repository, query.root, "one")
    records = repository.files(one).files
    large = records["state/0/0/3.snapshot"]
    small = records["offsets/3"]

    repository.store.put(object_path(large.object), [b"x" * large.size])
    damaged = repository.verify([one])[0]
    with pytest.raises(DamagedError, match="is damaged"):
        repository.materialize(one, DirectoryStore(tmp_path / "bad"))
    repository.store.delete(object_path(small.object))
    missing = repository.verify([one])[0]

    assert [problem.split(":")[0] for problem in damaged.problems] == ["state/0/0/3.snapshot"]
    assert any("is missing" in problem for problem in missing.problems)


def test_a_file_sink_that_is_ahead_is_refused_truncated_or_ignored(
    repository: Repository, tmp_path: Path
) -> None:
    savepoint = capture(repository, SyntheticQuery(tmp_path / "ck").run(3).root, "one")
    sink = DirectoryStore(tmp_path / "sink")
    for batch in range(6):
        sink.put(f"_spark_metadata/{batch}", [b"v1"])

    def restore(name: str, policy: SinkPolicy) -> None:
        request = MaterializeRequest(mode=Mode.REWIND, sinks={"": sink}, sink_policy=policy)
        repository.materialize(savepoint, DirectoryStore(tmp_path / name), request)

    with pytest.raises(SinkConflictError, match="up to batch 5"):
        restore("refused", SinkPolicy.REFUSE)
    restore("ignored", SinkPolicy.IGNORE)
    assert len(list(sink.list())) == 6
    restore("truncated", SinkPolicy.TRUNCATE)
    assert [e.path for e in sink.list()] == [f"_spark_metadata/{n}" for n in range(3)]
    assert not (tmp_path / "refused").exists()


@pytest.mark.parametrize("written", [range(6), [*range(6), 12]], ids=["cut", "with a hole"])
@pytest.mark.parametrize("policy", [each for each in SinkPolicy if each is not SinkPolicy.IGNORE])
def test_a_file_sink_that_is_behind_is_refused_unless_it_is_to_be_ignored(
    repository: Repository, tmp_path: Path, written: Iterable[int], policy: SinkPolicy
) -> None:
    savepoint = capture(repository, SyntheticQuery(tmp_path / "ck").run(10).root, "one")
    sink = DirectoryStore(tmp_path / "sink")
    for batch in written:
        sink.put(f"_spark_metadata/{batch}", [b"v1"])
    before = list(sink.list())

    for mode in Mode:
        request = MaterializeRequest(mode=mode, sinks={"": sink}, sink_policy=policy)
        with pytest.raises(SinkConflictError, match="up to batch 5 only"):
            repository.materialize(savepoint, DirectoryStore(tmp_path / "no"), request)
    request = MaterializeRequest(sinks={"": sink}, sink_policy=SinkPolicy.IGNORE)
    repository.materialize(savepoint, DirectoryStore(tmp_path / "yes"), request)

    assert list(sink.list()) == before


@pytest.mark.parametrize("policy", [SinkPolicy.REFUSE, SinkPolicy.TRUNCATE])
def test_a_file_sink_without_a_log_is_refused_unless_it_is_to_be_seeded_or_ignored(
    repository: Repository, tmp_path: Path, policy: SinkPolicy
) -> None:
    savepoint = capture(repository, SyntheticQuery(tmp_path / "ck").run(3).root, "one")
    (tmp_path / "empty").mkdir()

    def restore(mode: Mode, sink: str, policy: SinkPolicy, target: str) -> None:
        sinks = {"": DirectoryStore(tmp_path / sink)}
        request = MaterializeRequest(mode=mode, sinks=sinks, sink_policy=policy)
        repository.materialize(savepoint, DirectoryStore(tmp_path / target), request)

    for mode in (Mode.RESUME, Mode.REWIND):
        for sink in ("empty", "typo"):
            with pytest.raises(SinkConflictError, match=f"{sink} has no _spark_metadata"):
                restore(mode, sink, policy, "no")
        restore(mode, "typo", SinkPolicy.IGNORE, f"ignored-{mode.value}")
        restore(mode, f"new-{mode.value}", SinkPolicy.SEED, f"seeded-{mode.value}")

        assert (tmp_path / f"new-{mode.value}/_spark_metadata/2").exists()
    assert not (tmp_path / "no").exists()
    assert not (tmp_path / "typo").exists()


def test_a_fork_seeds_a_new_file_sink_when_told_to(repository: Repository, tmp_path: Path) -> None:
    savepoint = capture(repository, SyntheticQuery(tmp_path / "ck").run(3).root, "one")
    sink = DirectoryStore(tmp_path / "sink")
    request = MaterializeRequest(mode=Mode.FORK, sinks={"": sink})

    with pytest.raises(SinkConflictError, match="--sink-policy seed"):
        repository.materialize(savepoint, DirectoryStore(tmp_path / "no"), request)
    repository.materialize(
        savepoint,
        DirectoryStore(tmp_path / "yes"),
        MaterializeRequest(mode=Mode.FORK, sinks={"": sink}, sink_policy=SinkPolicy.SEED),
    )

    assert {e.path for e in sink.list()} == {f"_spark_metadata/{n}" for n in range(3)}


def test_a_table_sink_is_not_rewound_unasked(repository: Repository, tmp_path: Path) -> None:
    root = SyntheticQuery(tmp_path / "ck").run(3).root
    savepoint = capture(repository, root, "one", sinks={"": SinkInfo(kind="delta")})

    with pytest.raises(SinkConflictError, match="delta table"):
        repository.materialize(
            savepoint, DirectoryStore(tmp_path / "out"), MaterializeRequest(mode=Mode.REWIND)
        )


def test_places_that_are_no_repository_are_named(tmp_path: Path) -> None:
    for name in ("nothing", "empty", "volume/lost+found"):
        if name != "nothing":
            (tmp_path / name).mkdir(parents=True)
        place = DirectoryStore(tmp_path / name.split("/")[0])
        with pytest.raises(NotARepositoryError, match="is empty or does not exist"):
            Repository.open(place)
    (tmp_path / "full").mkdir()
    (tmp_path / "full/file").write_text("x")
    with pytest.raises(NotARepositoryError, match=r"it has no repository\.json"):
        Repository.open(DirectoryStore(tmp_path / "full"))
    with pytest.raises(TargetNotEmptyError, match="not empty"):
        Repository.init(DirectoryStore(tmp_path / "full"))


def test_a_place_with_a_link_to_a_folder_is_no_repository(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "place").mkdir()
    (tmp_path / "place/link").symlink_to(tmp_path / "elsewhere")

    with pytest.raises(NotARepositoryError, match="is not a savepoint repository"):
        Repository.open(DirectoryStore(tmp_path / "place"))


def test_what_an_empty_repository_without_its_file_leaves_is_not_called_lost(
    repository: Repository,
) -> None:
    repository.store.delete("repository.json")

    with pytest.raises(NotARepositoryError, match="no savepoint") as told:
        Repository.open(repository.store)
    assert "lost" not in str(told.value)
    again = Repository.init(repository.store)

    assert not again.written_anew


@pytest.mark.parametrize("damage", [b"", b'{"format":', b"{}", None])
def test_a_lost_repository_json_is_written_anew_and_every_savepoint_is_there(
    repository: Repository, tmp_path: Path, damage: bytes | None
) -> None:
    query = SyntheticQuery(tmp_path / "ck").run(2)
    one = capture(repository, query.root, "one")
    store = repository.store
    store.delete("repository.json")
    if damage is not None:
        store.put("repository.json", [damage])
        for open_it in (Repository.open, Repository.init):
            with pytest.raises(DamagedError, match=r"remove it: `sparkpoint savepoint create`"):
                open_it(store)
        store.delete("repository.json")
    with pytest.raises(NotARepositoryError, match=r"lost\. `sparkpoint savepoint create`"):
        Repository.open(store)

    again = Repository.init(store)

    assert again.written_anew
    assert (again.format, again.id != repository.id) == (1, True)
    assert not Repository.init(store).written_anew
    assert again.find("one").id == one.id
    assert again.verify([one])[0].good


def test_savepoints_are_read_once_to_write_a_lost_repository_json_anew(
    repository: Repository, tmp_path: Path
) -> None:
    capture(repository, SyntheticQuery(tmp_path / "ck").run(2).root, "one")
    repository.store.delete("repository.json")
    read: list[str] = []

    class Noting(DirectoryStore):
        @contextmanager
        def open_stamped(self, path: str) -> Iterator[tuple[BinaryIO, Entry]]:
            read.append(path)
            with super().open_stamped(path) as opened:
                yield opened

    assert Repository.init(Noting(tmp_path / "repository")).written_anew

    assert [path for path in read if path.startswith("savepoints/")] == [
        "savepoints/default/visits/one.json"
    ]


def test_a_lost_repository_json_is_not_written_anew_over_newer_savepoints(
    repository: Repository,
) -> None:
    repository.store.put("savepoints/default/visits/one.json", [b'{"format": 9}'])
    repository.store.put("objects/00/x", [b""])
    repository.store.delete("repository.json")

    with pytest.raises(NewerFormatError, match="Update"):
        Repository.init(repository.store)


def test_objects_without_a_savepoint_are_no_repository(repository: Repository) -> None:
    repository.store.put("objects/00/x", [b""])
    repository.store.put("savepoints/default/visits/one.json", [b"nonsense"])
    repository.store.delete("repository.json")

    with pytest.raises(TargetNotEmptyError, match="not empty"):
        Repository.init(repository.store)


def test_a_repository_of_a_newer_format_is_refused_by_name(tmp_path: Path) -> None:
    store = DirectoryStore(tmp_path / "newer")
    store.create("repository.json", b'{"format": 7, "id": "x", "extra": true}')

    with pytest.raises(NewerFormatError, match="has format 7"):
        Repository.init(store)


def test_something_that_is_no_checkpoint_is_refused(repository: Repository, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()

    with pytest.raises(NoQueryError, match="holds no checkpoint"):
        capture(repository, tmp_path / "empty", "one")
    SyntheticQuery(tmp_path / "ck/visits").run(1)
    with pytest.raises(NoQueryError, match="it has visits"):
        capture(repository, tmp_path / "ck", "one", queries=("other",))
