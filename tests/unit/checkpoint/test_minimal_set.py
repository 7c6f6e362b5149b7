"""The planned state is complete and minimal, judged by a model of Spark's loader."""

import json
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sparkpoint.checkpoint.errors import IncompleteError
from sparkpoint.checkpoint.lineage import lineages_to_restore, rewrite_lineage
from sparkpoint.checkpoint.model import BatchPlan, Role
from sparkpoint.checkpoint.plan import missing_files, plan_batch, plan_files
from tests.unit.checkpoint.memory import MemoryCheckpoint
from tests.unit.checkpoint.synthetic import SyntheticStore, checkpoint_of, load

_JOIN = ("left-keyToNumValues", "left-keyWithIndexToValue")


class World:
    """A checkpoint, the batch to plan, and how to load a store of it."""

    def __init__(
        self, checkpoint: MemoryCheckpoint, batch: int, provider: str, *, unique: bool
    ) -> None:
        self.checkpoint, self.batch = checkpoint, batch
        self.provider, self.unique = provider, unique

    def folders(self) -> list[tuple[str, str]]:
        """(folder, tag) of every store."""
        found = set()
        for path in self.checkpoint.files:
            parts = path.split("/")
            if parts[0] == "state" and parts[2].isdigit():
                name = parts[3] if parts[3] in _JOIN else "default"
                found.add(("/".join(parts[: 4 if name != "default" else 3]), f"p{parts[2]}-{name}"))
        return sorted(found)

    def loads(self, files: dict[str, bytes]) -> bool:
        """Whether the model of Spark loads the right state of every store from these files."""
        version = self.batch + 1
        for folder, tag in self.folders():
            uid = f"u{version}-{tag}" if self.unique else None
            try:
                found = load(files, folder, version, provider=self.provider, uid=uid)
            except KeyError:
                return False
            if found != list(range(1, version + 1)):
                return False
        return True


@st.composite
def worlds(draw: st.DrawFn) -> World:
    """Any provider and format, up to three partitions, snapshots anywhere, later batches begun."""
    provider, unique = draw(
        st.sampled_from([("hdfs", False), ("rocksdb", False), ("rocksdb", True)])
    )
    batch = draw(st.integers(0, 12))
    written = batch + 1 + draw(st.integers(0, 3))
    names = draw(st.sampled_from([("default",), _JOIN]))
    changelog = provider == "hdfs" or draw(st.booleans())
    versions = st.frozensets(st.integers(1, written), max_size=4)
    store = st.builds(
        SyntheticStore, snapshots=versions, changelog=st.just(changelog), losers=versions
    )
    stores = draw(
        st.lists(st.lists(store, min_size=len(names), max_size=len(names)), min_size=1, max_size=3)
    )
    checkpoint = checkpoint_of(
        stores, provider=provider, batch=batch, written=written, unique=unique, names=names
    )
    return World(checkpoint, batch, provider, unique=unique)


def _state(plan: BatchPlan) -> list[str]:
    return [file.path for file in plan.files if file.role is Role.STATE]


def _is_needed(path: str, world: World) -> bool:
    """Files that are taken although the newest Spark could do without them."""
    if path.endswith(".crc"):
        return False
    # Older Spark opens the version's changelog even next to its snapshot.
    own = f"/{world.batch + 1}_" in path and path.endswith(".changelog")
    return not (own and path.removesuffix("changelog") + "zip" in world.checkpoint.files)


@settings(max_examples=60, deadline=None)
@given(world=worlds())
def test_planned_state_loads_and_none_of_it_can_be_spared(world: World) -> None:
    plan = plan_batch(world.checkpoint)

    taken = {path: world.checkpoint.files[path] for path in _state(plan)}
    assert world.loads(taken)
    needed = {path: data for path, data in taken.items() if _is_needed(path, world)}
    assert world.loads(needed)
    for path in needed:
        assert not world.loads({p: data for p, data in needed.items() if p != path}), path


@settings(max_examples=50, deadline=None)
@given(world=worlds(), data=st.data())
def test_plan_is_refused_exactly_when_spark_could_not_load(
    world: World, data: st.DataObject
) -> None:
    files = world.checkpoint.files
    states = [path for path in files if path.startswith("state/") and "_metadata" not in path]
    lost = set(data.draw(st.lists(st.sampled_from(states), min_size=1, max_size=4, unique=True)))
    rest = {path: content for path, content in files.items() if path not in lost}

    missing = missing_files(
        MemoryCheckpoint(rest).entries(), MemoryCheckpoint(rest), batch=world.batch
    )

    assert bool(missing) is not world.loads(rest)
    assert not set(missing) & rest.keys()


@settings(max_examples=50, deadline=None)
@given(world=worlds())
def test_files_of_a_plan_alone_are_complete_and_plan_to_themselves(world: World) -> None:
    plan = plan_batch(world.checkpoint)
    entries = world.checkpoint.entries()
    alone = {file.path: entries[file.path] for file in plan.files}

    assert missing_files(alone, world.checkpoint, batch=world.batch) == ()
    copy = MemoryCheckpoint({path: world.checkpoint.files[path] for path in alone})
    again = plan_batch(copy)

    assert [f.path for f in again.files] == [f.path for f in plan.files]


@settings(max_examples=60, deadline=None)
@given(world=worlds(), back=st.integers(1, 12), max_chain=st.integers(0, 14), data=st.data())
def test_plan_over_a_parents_files_loads_and_reads_none_that_is_purged(
    world: World, back: int, max_chain: int, data: st.DataObject
) -> None:
    parent_batch = max(world.batch - back, 0)
    parent_world = World(
        _committed(world, parent_batch), parent_batch, world.provider, unique=world.unique
    )
    parent = plan_batch(parent_world.checkpoint, batch=parent_batch)
    held = {file.path: file.size for file in parent.files}
    stored = {path: world.checkpoint.files[path] for path in held if path.startswith("state/")}
    live = _purge(world, data)

    try:
        plan = plan_batch(live, held=held, max_chain=max_chain)
    except IncompleteError:
        # Nothing can be planned with the parent's help that could not be without it, or vice versa.
        return
    assert all(file.held == (file.path not in live.files) for file in plan.files)
    taken = {
        file.path: stored[file.path] if file.held else live.files[file.path]
        for file in plan.files
        if file.role is Role.STATE
    }
    assert world.loads(_restored(taken))
    alone = MemoryCheckpoint({f.path: live.files.get(f.path, b"") for f in plan.files} | taken)
    again = plan_files(alone.entries(), alone, max_chain=99, as_stored=True)
    assert {f.path for f in again.files} == {f.path for f in plan.files}
    assert not {file.path for file in plan.files if file.held} & set(live.read_paths)


def _restored(files: dict[str, bytes]) -> dict[str, bytes]:
    """What a restore makes of the state of a savepoint."""
    lineages = lineages_to_restore({path: len(data) for path, data in files.items()})
    changed = {path: rewrite_lineage(files[path], path, lineages[path]) for path in lineages}
    return files | changed


def _committed(world: World, batch: int) -> MemoryCheckpoint:
    files = dict(world.checkpoint.files)
    if world.unique:
        ids = files[f"commits/{world.batch}"].replace(
            f"u{world.batch + 1}-".encode(), f"u{batch + 1}-".encode()
        )
        files[f"commits/{batch}"] = ids
    return MemoryCheckpoint(files)


def _purge(world: World, data: st.DataObject) -> MemoryCheckpoint:
    """Forget old state, as maintenance does: everything below a snapshot that is kept."""
    limit = data.draw(st.integers(0, world.batch + 1))
    files = {}
    for path, content in world.checkpoint.files.items():
        name = path.rsplit("/", 1)[-1]
        digits = name.split(".")[0].split("_")[0].split("-")[0]
        if not path.startswith("state/0/") or not digits.isdigit() or int(digits) >= limit:
            files[path] = content
    return MemoryCheckpoint(files)


@pytest.mark.parametrize("provider", ["hdfs", "rocksdb"])
def test_parents_base_is_preferred_until_the_chain_is_too_long(provider: str) -> None:
    store = SyntheticStore(snapshots=frozenset({2, 6}))
    world = checkpoint_of([[store]], provider=provider, batch=6, written=7)
    held = {f.path: f.size for f in plan_batch(world, batch=3).files}

    reused = plan_batch(world, held=held, max_chain=5)
    fresh = plan_batch(world, held=held, max_chain=4)

    assert reused.operators[0].stores[0].base_versions == (2,)
    assert fresh.operators[0].stores[0].base_versions == (6,)


def test_parents_base_of_another_size_is_not_used_again() -> None:
    store = SyntheticStore(snapshots=frozenset({2, 6}))
    world = checkpoint_of([[store]], provider="hdfs", batch=6, written=7)
    held = {f.path: f.size for f in plan_batch(world, batch=3).files}
    world.files["state/0/0/2.snapshot"] += b" "

    assert plan_batch(world, held=held).operators[0].stores[0].base_versions == (6,)


def _after_two_snapshots() -> tuple[MemoryCheckpoint, dict[str, int]]:
    """A world in format 2 with snapshots of 2, 5 and 8, and a parent that starts from 2."""
    store = SyntheticStore(snapshots=frozenset({2, 5, 8}))
    before = checkpoint_of([[store]], provider="rocksdb", batch=3, written=4, unique=True)
    world = checkpoint_of([[store]], provider="rocksdb", batch=9, written=10, unique=True)
    return world, {file.path: file.size for file in plan_batch(before).files}


def test_parents_base_in_format_2_is_used_again_although_changelogs_name_it_no_more() -> None:
    # The changelog of 10 names 8 and 9, that of 8 names 5 to 7, that of 5 names 2 to 4.
    world, held = _after_two_snapshots()

    plan = plan_batch(world, held=held)

    assert plan.operators[0].stores[0].base_versions == (2,)
    taken = {path: world.files[path] for path in _state(plan)}
    uid = "u10-p0-default"
    with pytest.raises(KeyError):
        load(taken, "state/0/0", 10, provider="rocksdb", uid=uid)
    loaded = load(_restored(taken), "state/0/0", 10, provider="rocksdb", uid=uid)
    assert loaded == list(range(1, 11))


def test_both_batches_that_a_restored_commit_log_names_can_be_loaded() -> None:
    world, held = _after_two_snapshots()

    taken = {path: world.files[path] for path in _state(plan_batch(world, held=held))}

    loaded = load(_restored(taken), "state/0/0", 9, provider="rocksdb", uid="u9-p0-default")
    assert loaded == list(range(1, 10))


def test_purged_changelogs_are_not_read_because_the_parent_tells_their_lineage() -> None:
    world, held = _after_two_snapshots()
    between = _committed(World(world, 9, "rocksdb", unique=True), 8)
    held = {file.path: file.size for file in plan_batch(between, batch=8, held=held).files}
    numbers = {p: p.rsplit("/", 1)[-1].split("_")[0] for p in world.files if p.count("_u") == 1}
    gone = {path for path, number in numbers.items() if int(number) < 9}
    world.files = {path: data for path, data in world.files.items() if path not in gone}

    plan = plan_batch(world, held=held)

    assert plan.operators[0].stores[0].base_versions == (2,)
    assert {f"{v}_u{v}-p0-default.changelog" for v in range(3, 11)} <= {
        path.rsplit("/", 1)[-1] for path in _state(plan)
    }
    assert not gone & set(world.read_paths)


def test_changelog_that_a_restore_has_rewritten_does_not_get_the_parents_sidecar() -> None:
    world, held = _after_two_snapshots()
    rewritten = "state/0/0/4_u4-p0-default.changelog"
    world.files[rewritten] += b" longer, and without a sidecar"
    del world.files[f"{rewritten}.crc"]

    plan = plan_batch(world, held=held)

    assert f"{rewritten}.crc" in held
    assert plan.operators[0].stores[0].base_versions == (2,)
    assert rewritten in _state(plan)
    assert f"{rewritten}.crc" not in _state(plan)


def test_parents_base_is_not_used_again_if_a_changelog_between_is_gone() -> None:
    world, held = _after_two_snapshots()
    del world.files["state/0/0/5_u5-p0-default.changelog"]

    assert plan_batch(world, held=held).operators[0].stores[0].base_versions == (8,)


def test_parents_base_is_not_used_again_across_a_changelog_too_large_to_rewrite(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world, held = _after_two_snapshots()
    monkeypatch.setattr("sparkpoint.checkpoint.stateplan.REWRITABLE", 50)

    assert plan_batch(world, held=held).operators[0].stores[0].base_versions == (8,)


def test_snapshot_that_got_lost_is_not_made_up_for_silently_in_a_live_checkpoint() -> None:
    world, _ = _after_two_snapshots()
    del world.files["state/0/0/8_u8-p0-default.zip"]

    with pytest.raises(IncompleteError):
        plan_batch(world)


def test_snapshot_older_than_its_change_is_avoided_and_named() -> None:
    store = SyntheticStore(snapshots=frozenset({2, 5}))
    world = checkpoint_of([[store]], provider="hdfs", batch=6, written=7)
    world.modified = {"state/0/0/5.snapshot": 100.0, "state/0/0/5.delta": 200.0}

    plan = plan_batch(world)

    assert plan.operators[0].stores[0].base_versions == (2,)
    assert ["5.snapshot is older than 5.delta" in w for w in plan.warnings] == [True]
    assert plan.doubts == ()


def test_empty_store_stands_in_for_a_doubtful_snapshot_and_the_doubt_is_told() -> None:
    world = checkpoint_of(
        [[SyntheticStore(snapshots=frozenset({5}))]], provider="hdfs", batch=6, written=7
    )
    world.modified = {"state/0/0/5.snapshot": 100.0, "state/0/0/5.delta": 200.0}

    plan = plan_batch(world)

    assert plan.operators[0].stores[0].base_versions == (0,)
    assert "left from before a rewind" in plan.warnings[0]


def test_doubtful_snapshot_without_alternative_is_planned_and_named_as_a_doubt() -> None:
    store = SyntheticStore(snapshots=frozenset({5}))
    world = checkpoint_of([[replace(store)]], provider="hdfs", batch=6, written=7)
    del world.files["state/0/0/3.delta"]
    world.modified = {"state/0/0/5.snapshot": 100.0, "state/0/0/5.delta": 200.0}

    plan = plan_batch(world)

    assert plan.operators[0].stores[0].base_versions == (5,)
    assert "left from before a rewind" in plan.warnings[0]
    assert plan.doubts == plan.warnings


def test_rocksdb_snapshot_as_old_as_its_changelog_is_no_leftover() -> None:
    store = SyntheticStore(snapshots=frozenset({2, 5}))
    world = checkpoint_of([[store]], provider="rocksdb", batch=6, written=7)
    world.modified = {"state/0/0/5.zip": 1000.0, "state/0/0/5.changelog": 1001.5}

    plan = plan_batch(world)

    assert (plan.operators[0].stores[0].base_versions, plan.warnings) == ((5,), ())


def test_rocksdb_snapshot_left_from_a_rewind_minutes_ago_is_avoided_and_named() -> None:
    # 5.zip is of the old run; the new one wrote the changelogs of 4 to 7 again.
    store = SyntheticStore(snapshots=frozenset({2, 5}))
    world = checkpoint_of([[store]], provider="rocksdb", batch=6, written=7)
    rewritten = {f"state/0/0/{version}.changelog": 1300.0 + version for version in range(4, 8)}
    world.modified = {"state/0/0/5.zip": 1000.0, **rewritten}

    plan = plan_batch(world)

    assert plan.operators[0].stores[0].base_versions == (2,)
    assert "5.zip is older than 5.changelog" in plan.warnings[0]


def test_age_of_a_snapshot_means_nothing_where_unique_ids_decide() -> None:
    store = SyntheticStore(snapshots=frozenset({2, 5}))
    world = checkpoint_of([[store]], provider="rocksdb", batch=6, written=7, unique=True)
    world.modified = {
        "state/0/0/5_u5-p0-default.zip": 1000.0,
        "state/0/0/5_u5-p0-default.changelog": 9000.0,
    }

    plan = plan_batch(world)

    assert (plan.operators[0].stores[0].base_versions, plan.warnings) == ((5,), ())


def _with_families(world: MemoryCheckpoint, *starts: int) -> MemoryCheckpoint:
    del world.files["state/0/_metadata/metadata"]
    store = {"storeName": "default", "numPartitions": 1, "stateSchemaFilePaths": []}
    info = {"operatorId": 0, "operatorName": "transformWithStateExec"}
    body = json.dumps({"operatorInfo": info, "stateStoreInfo": [store]}).encode()
    world.files |= {f"state/0/_metadata/v2/{batch}": b"v2\n" + body for batch in starts}
    return world


def test_store_with_column_families_cannot_start_from_empty() -> None:
    # Its first snapshot alone says which families there are.
    store = SyntheticStore(snapshots=frozenset())
    world = checkpoint_of([[store]], provider="rocksdb", batch=3, written=4)

    with pytest.raises(IncompleteError, match=r"state/0/0/1\.zip"):
        plan_batch(_with_families(world, 0))


@pytest.mark.parametrize(("seconds", "doubts"), [(50.0, 0), (300.0, 1)])
def test_snapshot_that_families_forced_may_be_a_little_older_than_its_changelog(
    seconds: float, doubts: int
) -> None:
    store = SyntheticStore(snapshots=frozenset({1, 5}))
    world = checkpoint_of([[store]], provider="rocksdb", batch=6, written=7)
    world.modified = {"state/0/0/5.zip": 1000.0, "state/0/0/5.changelog": 1000.0 + seconds}

    plan = plan_batch(_with_families(world, 0, 4))

    # Only a snapshot says which families there are, so nothing older can stand in for this one.
    assert plan.operators[0].stores[0].base_versions == (5,)
    assert len(plan.warnings) == len(plan.doubts) == doubts


def test_older_snapshot_of_the_same_families_stands_in_for_a_doubtful_one() -> None:
    store = SyntheticStore(snapshots=frozenset({1, 5}))
    world = checkpoint_of([[store]], provider="rocksdb", batch=6, written=7)
    world.modified = {"state/0/0/5.zip": 1000.0, "state/0/0/5.changelog": 1300.0}

    plan = plan_batch(_with_families(world, 0))

    assert plan.operators[0].stores[0].base_versions == (1,)
    assert (len(plan.warnings), plan.doubts) == (1, ())


def test_parents_base_is_not_used_again_across_a_start_that_may_add_families() -> None:
    store = SyntheticStore(snapshots=frozenset({1, 6}))
    world = _with_families(checkpoint_of([[store]], provider="rocksdb", batch=6, written=7), 0)
    held = {f.path: f.size for f in plan_batch(world, batch=2).files}

    same = plan_batch(world, held=held)
    world.files["state/0/_metadata/metadata"] = b""
    restarted = plan_batch(_with_families(world, 0, 5), held=held)

    assert same.operators[0].stores[0].base_versions == (1,)
    assert restarted.operators[0].stores[0].base_versions == (6,)
