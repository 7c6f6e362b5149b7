"""What belongs to a batch besides its state: logs, sources, schemas, the batch that was begun."""

import json
from collections.abc import Iterable
from typing import TypeAlias

import pytest

from sparkpoint.checkpoint.errors import (
    DamagedError,
    IncompleteError,
    NotACheckpointError,
    NothingCommittedError,
    UnknownFormatError,
)
from sparkpoint.checkpoint.model import BatchPlan, Role
from sparkpoint.checkpoint.overview import read_checkpoint
from sparkpoint.checkpoint.plan import list_checkpoint, missing_files, plan_batch
from tests.unit.checkpoint.memory import MemoryCheckpoint
from tests.unit.checkpoint.synthetic import SyntheticStore, checkpoint_of

_PROVIDER = "spark.sql.streaming.stateStore.providerClass"
_Fields: TypeAlias = list[tuple[str, object]]


def _offsets(number: int, source: str, **conf: str) -> bytes:
    head = {"batchWatermarkMs": 0, "batchTimestampMs": 0, "conf": conf}
    return f"v1\n{json.dumps(head)}\n{source}".encode()


def _stateless(last: int, *, log: Iterable[str], upto: int | None = None) -> MemoryCheckpoint:
    """A query over a file source: batch n covers the source's log up to n."""
    files = {"metadata": b'{"id":"q"}'}
    for number in range(last + 1):
        files[f"offsets/{number}"] = _offsets(number, f'{{"logOffset":{number}}}')
        files[f"commits/{number}"] = b"v1\n{}"
    if upto is not None:
        files[f"offsets/{last + 1}"] = _offsets(last + 1, f'{{"logOffset":{upto}}}')
    files |= {f"sources/0/{name}": b"v1" for name in log}
    return MemoryCheckpoint(files)


def _stateful(**options: object) -> MemoryCheckpoint:
    store = SyntheticStore(snapshots=frozenset({2}))
    return checkpoint_of([[store], [store]], provider="hdfs", batch=3, written=4)


def _paths(plan: BatchPlan, *roles: Role) -> list[str]:
    return [file.path for file in plan.files if file.role in roles]


def test_logs_come_first_and_the_oldest_of_them_first() -> None:
    plan = plan_batch(_stateful())

    assert [file.path for file in plan.files][:4] == [
        "offsets/2",
        "commits/2",
        "offsets/3",
        "commits/3",
    ]
    assert plan.files[-1].path == "metadata"
    versions = [int(p.split("/")[-1].split(".")[0]) for p in _paths(plan, Role.STATE)]
    assert versions == sorted(versions) == [2, 2, 3, 3, 4, 4]


def test_first_batch_needs_no_batch_before_it() -> None:
    plan = plan_batch(_stateless(0, log=["0"]))

    assert _paths(plan, Role.OFFSETS, Role.COMMITS) == ["offsets/0", "commits/0"]


@pytest.mark.parametrize("lost", ["offsets/2", "offsets/3", "metadata", "state/0/1/4.delta"])
def test_missing_file_is_named(lost: str) -> None:
    checkpoint = _stateful()
    del checkpoint.files[lost]

    with pytest.raises(IncompleteError, match=lost) as refused:
        plan_batch(checkpoint)

    assert refused.value.missing == (lost,)
    assert missing_files(checkpoint.entries(), checkpoint, batch=3) == (lost,)


def test_every_missing_file_is_counted_and_few_are_spelt_out() -> None:
    checkpoint = checkpoint_of(
        [[SyntheticStore(snapshots=frozenset())]] * 9, provider="hdfs", batch=0, written=1
    )
    for partition in range(9):
        del checkpoint.files[f"state/0/{partition}/1.delta"]

    with pytest.raises(IncompleteError, match="and 4 more missing") as refused:
        plan_batch(checkpoint)

    assert len(refused.value.missing) == 9


def test_gaps_of_asynchronous_progress_tracking_are_fine_without_state() -> None:
    checkpoint = _stateless(5, log=["0", "1", "2", "3", "4", "5"])
    for gone in ("offsets/4", "commits/4", "offsets/3", "commits/3"):
        del checkpoint.files[gone]

    assert _paths(plan_batch(checkpoint), Role.OFFSETS) == ["offsets/2", "offsets/5"]


def test_begun_batch_is_kept_apart_with_the_source_entries_it_replays() -> None:
    plan = plan_batch(_stateless(3, log=["0", "1", "2", "3", "4"], upto=4))

    assert _paths(plan, Role.PENDING) == ["offsets/4", "sources/0/4"]
    assert _paths(plan, Role.SOURCE) == [f"sources/0/{i}" for i in range(4)]


def test_begun_batch_whose_source_entry_is_gone_cannot_be_resumed() -> None:
    with pytest.raises(IncompleteError, match="sources/0/4"):
        plan_batch(_stateless(3, log=["0", "1", "2", "3"], upto=4))


def test_begun_batch_replays_entries_that_survive_only_in_a_compacted_one() -> None:
    plan = plan_batch(_stateless(15, log=["15", "19.compact", "20", "9.compact"], upto=20))

    assert _paths(plan, Role.SOURCE) == ["sources/0/19.compact"]
    assert _paths(plan, Role.PENDING) == ["offsets/16", "sources/0/20"]


def test_begun_batch_takes_the_compacted_entry_that_holds_what_it_replays() -> None:
    log = ["9.compact", *(str(number) for number in range(10, 17)), "19.compact"]

    plan = plan_batch(_stateless(15, log=log, upto=18))

    assert _paths(plan, Role.SOURCE) == [f"sources/0/{name}" for name in log[:-2]]
    assert _paths(plan, Role.PENDING) == ["offsets/16", "sources/0/16", "sources/0/19.compact"]


def test_begun_batch_needs_every_entry_after_the_newest_compacted_one() -> None:
    with pytest.raises(IncompleteError, match="sources/0/20, sources/0/22 missing"):
        plan_batch(_stateless(3, log=["19.compact", "21"], upto=22))


def test_begun_batch_that_claims_endless_entries_is_refused_at_once() -> None:
    with pytest.raises(IncompleteError, match="sources/0/4"):
        plan_batch(_stateless(3, log=["0", "1", "2", "3"], upto=10**17))


def test_older_batch_has_no_begun_batch() -> None:
    plan = plan_batch(_stateless(3, log=["0", "1", "2", "3"]), batch=2)

    assert _paths(plan, Role.PENDING) == []
    assert _paths(plan, Role.SOURCE) == ["sources/0/0", "sources/0/1", "sources/0/2"]


def test_file_source_starts_from_its_newest_compaction() -> None:
    log = [*map(str, range(9)), "9.compact", *map(str, range(10, 19)), "19.compact", "20"]

    plan = plan_batch(_stateless(15, log=log))

    assert _paths(plan, Role.SOURCE) == [
        "sources/0/9.compact",
        *(f"sources/0/{i}" for i in range(10, 16)),
    ]
    assert plan.rewrites == ()


def test_file_source_keeps_the_compaction_before_the_newest_which_tells_the_interval() -> None:
    log = [*map(str, range(9)), "9.compact", "19.compact", *map(str, range(20, 39)), "39.compact"]

    plan = plan_batch(_stateless(58, log=[*log, *map(str, range(40, 59))]))

    assert _paths(plan, Role.SOURCE) == [
        "sources/0/19.compact",
        "sources/0/39.compact",
        *(f"sources/0/{i}" for i in range(40, 59)),
    ]


def test_file_source_falls_back_to_a_newer_compaction_that_must_be_split() -> None:
    plan = plan_batch(_stateless(15, log=["19.compact", "20"]))

    assert _paths(plan, Role.SOURCE) == ["sources/0/19.compact"]
    (rewrite,) = plan.rewrites
    assert (rewrite.source, rewrite.last, rewrite.interval) == ("0", 15, 20)


def test_state_that_a_batch_without_input_betrays_is_missed() -> None:
    checkpoint = _stateless(2, log=["0", "1", "2"])
    quiet = plan_batch(checkpoint)
    checkpoint.files["offsets/2"] = checkpoint.files["offsets/1"]

    plan = plan_batch(checkpoint)

    assert quiet.warnings == ()
    assert ["batch 2 has no new input" in warning for warning in plan.warnings] == [True]
    assert "it seems to be lost" in " ".join(read_checkpoint(checkpoint).hazards)


def test_pending_batch_without_input_betrays_lost_state_too() -> None:
    checkpoint = _stateless(1, log=["0", "1"], upto=1)

    assert "batch 2 has no new input" in plan_batch(checkpoint).warnings[0]


def test_no_file_is_planned_twice() -> None:
    plan = plan_batch(_stateless(18, log=["19.compact"], upto=19))

    paths = [file.path for file in plan.files]
    assert sorted(paths) == sorted(set(paths))


def _reading(*logs: int, folders: Iterable[str]) -> MemoryCheckpoint:
    """A query over file sources whose logs end so; these folders hold what their names say."""
    lines = "\n".join(f'{{"logOffset":{last}}}' for last in logs)
    files = {"metadata": b'{"id":"q"}', "offsets/0": _offsets(0, lines), "commits/0": b"v1\n{}"}
    for folder in folders:
        name, _, last = folder.partition(":")
        files |= {f"sources/{name}/{n}": b"v1" for n in range(int(last) + 1)}
    return MemoryCheckpoint(files)


@pytest.mark.parametrize(
    ("logs", "folders"),
    [
        ((4, 4), ["0:4"]),
        ((4, 4, 4), ["0:4"]),
        ((4, 4, 2), ["0:4", "1:2"]),
        ((4, 2, 4), ["0:4", "1:2"]),
        ((4, 4, 2, 2), ["0:4", "1:2"]),
        ((4, 4, 4), ["0:4", "1:4"]),
    ],
)
def test_a_source_that_is_read_twice_has_one_log(logs: tuple[int, ...], folders: list[str]) -> None:
    plan = plan_batch(_reading(*logs, folders=folders))

    needed = {f"sources/{f[0]}/{n}" for f in folders for n in range(int(f[2:]) + 1)}
    assert sorted(_paths(plan, Role.SOURCE)) == sorted(needed)
    assert any("reads" in warning for warning in plan.warnings)


@pytest.mark.parametrize(
    ("logs", "folders", "missing"),
    [((4, 3), ["0:4"], "sources/1/3"), ((4, 4), [], "sources/0/4"), ((4, 4), ["1:4"], "sources/0")],
)
def test_a_log_that_is_lost_is_no_log_that_is_shared(
    logs: tuple[int, ...], folders: list[str], missing: str
) -> None:
    with pytest.raises(IncompleteError, match=missing):
        plan_batch(_reading(*logs, folders=folders))


def test_a_shared_log_that_could_be_one_of_two_is_refused() -> None:
    with pytest.raises(UnknownFormatError, match="read more than once"):
        plan_batch(_reading(4, 4, 2, 2, folders=["0:4", "1:4", "2:4"]))


def test_other_sources_are_taken_whole_without_hidden_files() -> None:
    checkpoint = _stateless(1, log=["0", ".0.crc", "deep/1", "2.tmp"])
    for number in (0, 1):
        checkpoint.files[f"offsets/{number}"] = _offsets(number, '{"topic":{"0":5}}')

    assert _paths(plan_batch(checkpoint), Role.SOURCE) == ["sources/0/0", "sources/0/deep/1"]


def test_hidden_and_temporary_files_are_no_state() -> None:
    checkpoint = _stateful()
    for junk in (".4.delta.crc", "4.snapshot.tmp", ".5.delta.x.tmp", "notes.txt", "5.delta"):
        checkpoint.files[f"state/0/0/{junk}"] = b""

    names = {path.rsplit("/", 1)[-1] for path in _paths(plan_batch(checkpoint), Role.STATE)}

    assert names == {"2.snapshot", "3.delta", "4.delta"}


def _with_schema(key: _Fields, value: _Fields, *, name: str | None) -> MemoryCheckpoint:
    """Of an operator over these columns; None as its name for one of Spark 3.5."""
    checkpoint = _stateful()

    metadata = checkpoint.files.pop("state/0/_metadata/metadata")
    if name is not None:
        checkpoint.files["state/0/_metadata/metadata"] = metadata.replace(
            b'"op"', f'"{name}"'.encode()
        )
    chunks = b""
    for fields in (key, value):
        text = json.dumps({"fields": [{"name": n, "type": t} for n, t in fields]}).encode()
        chunks += b"\0\0\0\1" + len(text).to_bytes(2, "big") + text
    checkpoint.files["state/0/0/_metadata/schema"] = b"\0\2v2" + chunks
    return checkpoint


_LIMIT: tuple[_Fields, _Fields] = ([("key", "void")], [("value", "long")])
_WINDOW = {"fields": [{"name": n, "type": "timestamp"} for n in ("start", "end")]}
_SESSION_START = ("sessionStartTime", "timestamp")


@pytest.mark.parametrize(
    ("name", "key", "value"),
    [
        ("op", [], [("sum", "long")]),
        (None, [], [("sum", "long")]),
        ("globalLimit", *_LIMIT),
        (None, *_LIMIT),
    ],
)
def test_operator_without_keys_has_one_partition_whatever_the_conf_says(
    name: str | None, key: _Fields, value: _Fields
) -> None:
    checkpoint = _with_schema(key, value, name=name)
    checkpoint.files = {p: d for p, d in checkpoint.files.items() if not p.startswith("state/0/1/")}

    plan = plan_batch(checkpoint)

    assert plan.operators[0].partitions == 1
    assert "state/0/0/_metadata/schema" in _paths(plan, Role.OPERATOR)


@pytest.mark.parametrize(
    ("name", "key", "value"),
    [
        # Spark hashes a column of no type like any other.
        ("dedupe", [("key", "void")], [("__dummy__", "void")]),
        ("stateStoreSave", *_LIMIT),
        (None, [("key", "void")], [("__dummy__", "void")]),
        (None, [("k", "void")], [("value", "long")]),
        # Spark has no sessions of nobody: this is a column that is called so.
        (None, [_SESSION_START], [("count", "long")]),
        (None, [_SESSION_START], [("w", _WINDOW), ("count", "long")]),
        ("sessionWindowStateStoreSaveExec", [("k", "void"), _SESSION_START], [("w", _WINDOW)]),
    ],
)
def test_no_partition_of_an_operator_with_keys_is_left_out(
    name: str | None, key: _Fields, value: _Fields
) -> None:
    checkpoint = _with_schema(key, value, name=name)

    plan = plan_batch(checkpoint)

    assert plan.operators[0].partitions == 2
    assert "state/0/1/4.delta" in _paths(plan, Role.STATE)


def test_lost_partition_of_a_keyed_operator_is_missed() -> None:
    checkpoint = _stateful()
    checkpoint.files = {p: d for p, d in checkpoint.files.items() if not p.startswith("state/0/1/")}

    with pytest.raises(IncompleteError, match=r"state/0/1/4\.delta"):
        plan_batch(checkpoint)


def test_lost_operator_before_another_one_is_missed() -> None:
    checkpoint = _stateful()
    checkpoint.files = {p.replace("state/0", "state/1"): d for p, d in checkpoint.files.items()}

    with pytest.raises(IncompleteError, match="state/0 missing"):
        plan_batch(checkpoint)


def test_query_that_lost_all_the_state_its_parent_savepoint_has_is_refused() -> None:
    checkpoint = _stateful()
    held = {file.path: file.size for file in plan_batch(checkpoint).files}
    checkpoint.files = {p: d for p, d in checkpoint.files.items() if not p.startswith("state/")}

    with pytest.raises(IncompleteError, match="state/0"):
        plan_batch(checkpoint, held=held)


def test_folder_with_the_metadata_of_another_operator_is_called_damaged() -> None:
    checkpoint = _stateful()
    checkpoint.files |= {p.replace("state/0", "state/1"): d for p, d in checkpoint.files.items()}

    with pytest.raises(DamagedError, match="state/1/_metadata/metadata is of operator 0"):
        plan_batch(checkpoint)


def test_operator_metadata_that_the_parent_savepoint_has_may_not_be_gone() -> None:
    checkpoint = _stateful()
    held = {file.path: file.size for file in plan_batch(checkpoint).files}
    del checkpoint.files["state/0/_metadata/metadata"]

    with pytest.raises(IncompleteError, match="state/0/_metadata/metadata missing"):
        plan_batch(checkpoint, held=held)


def test_stores_are_told_by_their_folders_where_spark_recorded_no_operator() -> None:
    names = ("left-keyToNumValues", "right-keyToNumValues")
    store = SyntheticStore(snapshots=frozenset())
    checkpoint = checkpoint_of([[store, store]], provider="hdfs", batch=1, written=2, names=names)
    del checkpoint.files["state/0/_metadata/metadata"]

    (operator,) = plan_batch(checkpoint).operators

    assert operator.name is None
    assert tuple(s.name for s in operator.stores) == names


def test_newest_operator_metadata_up_to_the_batch_is_taken_with_its_schemas() -> None:
    checkpoint = _stateful()
    del checkpoint.files["state/0/_metadata/metadata"]
    for batch in (0, 2, 4):
        uri = f"file:/elsewhere/state/0/_stateSchema/default/{batch}_a"
        store = {"storeName": "default", "numPartitions": 2, "stateSchemaFilePaths": [uri]}
        info = {"operatorId": 0, "operatorName": "transformWithStateExec"}
        body = json.dumps({"operatorInfo": info, "stateStoreInfo": [store]})
        checkpoint.files[f"state/0/_metadata/v2/{batch}"] = b"v2\n" + body.encode()
        checkpoint.files[f"state/0/_stateSchema/default/{batch}_a"] = b"x"

    assert _paths(plan_batch(checkpoint), Role.OPERATOR) == [
        "state/0/_metadata/v2/2",
        "state/0/_stateSchema/default/0_a",
        "state/0/_stateSchema/default/2_a",
    ]
    del checkpoint.files["state/0/_stateSchema/default/2_a"]
    with pytest.raises(IncompleteError, match="_stateSchema/default/2_a"):
        plan_batch(checkpoint)


def test_truncated_sst_is_called_damaged() -> None:
    store = SyntheticStore(snapshots=frozenset({2}))
    checkpoint = checkpoint_of([[store]], provider="rocksdb", batch=1, written=2)
    checkpoint.files["state/0/0/SSTs/000002-y.sst"] += b"!"

    with pytest.raises(DamagedError, match=r"000002-y\.sst has 7 bytes"):
        plan_batch(checkpoint)


@pytest.mark.parametrize(
    ("key", "value", "named"),
    [
        (_PROVIDER, "com.databricks.sql.streaming.state.RocksDBStateStoreProvider", "databricks"),
        ("spark.sql.streaming.stateStore.compression.codec", "brotli", "brotli"),
    ],
)
def test_unknown_provider_or_codec_is_refused_by_name(key: str, value: str, named: str) -> None:
    checkpoint = _stateful()
    text = checkpoint.files["offsets/3"].decode().splitlines()
    head = json.loads(text[1])
    head["conf"][key] = value
    checkpoint.files["offsets/3"] = "\n".join([text[0], json.dumps(head), text[2]]).encode()

    with pytest.raises(UnknownFormatError, match=named):
        plan_batch(checkpoint)


def test_lineage_comes_from_the_commit_log_where_changelogs_cannot_be_read() -> None:
    checkpoint = _zstd(commits=range(4))

    plan = plan_batch(checkpoint)

    assert plan.operators[0].stores[0].base_versions == (2,)


def test_versions_that_were_written_once_need_no_commit_to_tell_their_lineage() -> None:
    plan = plan_batch(_zstd(commits=[3]))

    assert plan.operators[0].stores[0].base_versions == (2,)


def test_files_of_a_plan_with_an_unreadable_lineage_plan_to_themselves() -> None:
    checkpoint = _zstd(commits=range(4), losers=frozenset({3}))
    planned = [file.path for file in plan_batch(checkpoint).files]

    alone = MemoryCheckpoint({path: checkpoint.files[path] for path in planned})

    assert [file.path for file in plan_batch(alone).files] == planned


def test_parents_base_is_not_used_again_where_a_cut_lineage_could_not_be_rewritten() -> None:
    parent = _zstd(commits=range(3), batch=2)
    held = {file.path: file.size for file in plan_batch(parent).files}
    snapshot = "state/0/0/3_u3-p0-default.zip"
    checkpoint = _zstd(commits=range(4))

    same = plan_batch(checkpoint, held=held)
    checkpoint.files[snapshot] = checkpoint.files["state/0/0/2_u2-p0-default.zip"]
    newer = plan_batch(checkpoint, held=held)

    assert same.operators[0].stores[0].base_versions == (2,)
    assert newer.operators[0].stores[0].base_versions == (3,)


def test_unreadable_lineage_of_a_version_written_twice_is_refused() -> None:
    with pytest.raises(UnknownFormatError, match="zstd"):
        plan_batch(_zstd(commits=[3], losers=frozenset({3})))


def _zstd(
    commits: Iterable[int], *, losers: frozenset[int] = frozenset(), batch: int = 3
) -> MemoryCheckpoint:
    store = SyntheticStore(snapshots=frozenset({2}), losers=losers)
    checkpoint = checkpoint_of(
        [[store]], provider="rocksdb", batch=batch, written=batch + 1, unique=True
    )
    for path in [p for p in checkpoint.files if p.startswith("commits/")]:
        del checkpoint.files[path]
    for number in commits:
        ids = {"0": [[f"u{number + 1}-p0-default"]]}
        body = json.dumps({"stateUniqueIds": ids})
        checkpoint.files[f"commits/{number}"] = b"v2\n" + body.encode()
    text = checkpoint.files[f"offsets/{batch}"].decode()
    codec = '"conf": {"spark.sql.streaming.stateStore.compression.codec": "zstd", '
    checkpoint.files[f"offsets/{batch}"] = text.replace('"conf": {', codec).encode()
    return checkpoint


def test_folder_without_logs_is_no_checkpoint() -> None:
    with pytest.raises(NotACheckpointError, match="Give the folder"):
        plan_batch(MemoryCheckpoint({"README": b"hi"}))


def test_query_that_never_committed_has_nothing_to_take() -> None:
    checkpoint = MemoryCheckpoint({"metadata": b'{"id":"q"}', "offsets/0": _offsets(0, "1")})

    with pytest.raises(NothingCommittedError, match="first batch"):
        plan_batch(checkpoint)


def test_batch_that_is_not_committed_is_refused_with_those_that_are() -> None:
    with pytest.raises(NothingCommittedError, match="holds 0 to 3"):
        plan_batch(_stateful(), batch=9)


def test_commits_are_listed_before_anything_that_they_promise() -> None:
    listed: list[str] = []

    class Watched(MemoryCheckpoint):
        def children(self, prefix: str = "") -> object:  # type: ignore[override]
            listed.append(prefix)
            return super().children(prefix)

        def list(self, prefix: str = "") -> object:  # type: ignore[override]
            listed.append(prefix)
            return super().list(prefix)

    list_checkpoint(Watched(_stateful().files))  # type: ignore[arg-type]

    assert listed[0] == "commits"
    assert sorted(listed) == ["", "commits", "offsets", "sources", "state"]
