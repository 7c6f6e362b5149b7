"""File sinks at a restore: the batch in flight, restores that were killed, sinks that go on."""

from collections.abc import Iterable
from pathlib import Path

import pytest

from sparkpoint.checkpoint.sink import SINK_LOG
from sparkpoint.savepoint import (
    CaptureRequest,
    MaterializeRequest,
    Mode,
    Repository,
    Savepoint,
    SinkPolicy,
    materialize,
)
from sparkpoint.savepoint.errors import SinkConflictError
from sparkpoint.savepoint.filling import fill
from sparkpoint.savepoint.sinks import SinkAction, apply_sink, cut_log, plan_sinks
from sparkpoint.storage import DirectoryStore, Entry
from sparkpoint.storage.errors import AccessDeniedError, StorageError, UnavailableError
from tests.unit.savepoint.synthetic import SyntheticQuery

BATCH = 5


class World:
    """A savepoint at batch 5 of a query with state, maybe with batch 6 in flight, and a sink."""

    def __init__(self, root: Path, repository: Repository, *, pending: bool = False) -> None:
        self.root, self.repository = root, repository
        self.query = SyntheticQuery(root / "ck").run(BATCH + 1)
        if pending:
            self.query.begin(BATCH + 1)
        request = CaptureRequest(job="visits", name="s")
        self.origin = DirectoryStore(self.query.root)
        self.savepoint: Savepoint = repository.capture(self.origin, request).savepoint
        self.sink = DirectoryStore(root / "sink")

    def write(self, batches: Iterable[int], *, data: bytes = b"v1\n{}") -> None:
        """Entries of the sink's log, each with the checksum that a local disk has beside it."""
        for batch in batches:
            self.sink.put(f"{SINK_LOG}/{batch}", [data])
            self.sink.put(f"{SINK_LOG}/.{batch}.crc", [b"crc"])

    def restore(
        self, mode: Mode, policy: SinkPolicy = SinkPolicy.REFUSE, *, to: str = "back"
    ) -> None:
        request = MaterializeRequest(
            mode=mode, sinks={"": self.sink}, sink_policy=policy, origin=self.origin
        )
        self.repository.materialize(self.savepoint, DirectoryStore(self.root / to), request)

    def planned_without_state(self, policy: SinkPolicy) -> list[SinkAction]:
        """What who resumes would do to the sink if the query had no state."""
        manifest = self.savepoint.manifest
        (query,) = manifest.queries
        stateless = query.model_copy(update={"operators": []})
        manifest = manifest.model_copy(update={"queries": [stateless]})
        return plan_sinks(manifest, {"": self.sink}, mode=Mode.RESUME, policy=policy)

    @property
    def log(self) -> set[str]:
        """The names in the sink's log."""
        return {entry.path.rsplit("/", 1)[-1] for entry in self.sink.children(SINK_LOG)[1]}


def log_of(batches: Iterable[int]) -> set[str]:
    """Entries with their checksums."""
    return {name for batch in batches for name in (f"{batch}", f".{batch}.crc")}


@pytest.mark.parametrize("policy", [SinkPolicy.REFUSE, SinkPolicy.TRUNCATE, SinkPolicy.SEED])
def test_the_batch_in_flight_is_cut_from_the_log_as_its_state_has_to_be_made_again(
    repository: Repository, tmp_path: Path, policy: SinkPolicy
) -> None:
    world = World(tmp_path, repository, pending=True)
    world.write(range(BATCH + 2))

    world.restore(Mode.RESUME, policy)
    world.restore(Mode.RESUME, policy)

    assert world.log == log_of(range(BATCH + 1))
    assert (tmp_path / f"back/offsets/{BATCH + 1}").exists()


def test_more_than_the_batch_in_flight_is_cut_only_if_the_policy_says_so(
    repository: Repository, tmp_path: Path
) -> None:
    world = World(tmp_path, repository, pending=True)
    world.write(range(BATCH + 5))

    with pytest.raises(SinkConflictError, match="up to batch 9, the savepoint ends at batch 5"):
        world.restore(Mode.RESUME)
    assert world.log == log_of(range(BATCH + 5))

    world.restore(Mode.RESUME, SinkPolicy.TRUNCATE)
    assert world.log == log_of(range(BATCH + 1))


def test_a_batch_that_the_query_has_committed_since_is_not_cut_unasked(
    repository: Repository, tmp_path: Path
) -> None:
    world = World(tmp_path, repository, pending=True)
    world.write(range(BATCH + 2))
    world.query.run(1)

    with pytest.raises(SinkConflictError, match=rf"batch 6, .*committed it since in {tmp_path}/ck"):
        world.restore(Mode.RESUME)
    assert world.log == log_of(range(BATCH + 2))

    world.restore(Mode.RESUME, SinkPolicy.TRUNCATE)
    assert world.log == log_of(range(BATCH + 1))


def test_a_query_that_has_gone_on_keeps_nobody_from_beginning_another_sink(
    repository: Repository, tmp_path: Path
) -> None:
    world = World(tmp_path, repository, pending=True)
    world.query.run(1)

    world.restore(Mode.RESUME, SinkPolicy.SEED)

    assert world.log == {f"{batch}" for batch in range(BATCH + 1)}


def test_a_query_that_has_gone_on_loses_nothing_with_checksums_that_were_left_behind(
    repository: Repository, tmp_path: Path
) -> None:
    world = World(tmp_path, repository, pending=True)
    world.write(range(BATCH + 1))
    world.sink.put(f"{SINK_LOG}/.{BATCH + 1}.crc", [b"crc"])
    world.query.run(1)

    world.restore(Mode.RESUME)

    assert world.log == log_of(range(BATCH + 1))


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (AccessDeniedError("It is not yours."), SinkConflictError),
        # Worth another try.
        (UnavailableError("It is not yours yet."), UnavailableError),
    ],
)
def test_nothing_is_cut_while_nobody_can_see_whether_the_query_has_gone_on(
    repository: Repository,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    error: StorageError,
    told: type[Exception],
) -> None:
    world = World(tmp_path, repository, pending=True)
    world.write(range(BATCH + 2))
    stat = DirectoryStore.stat

    def refuse(self: DirectoryStore, path: str) -> Entry:
        if path.startswith("commits/"):
            raise error
        return stat(self, path)

    monkeypatch.setattr(DirectoryStore, "stat", refuse)

    with pytest.raises(told, match=r"cannot be seen: .*not yours.*truncate"):
        world.restore(Mode.RESUME)
    assert world.log == log_of(range(BATCH + 2))

    world.restore(Mode.RESUME, SinkPolicy.TRUNCATE)
    assert world.log == log_of(range(BATCH + 1))


@pytest.mark.parametrize("origin", ["another query", "nothing"])
def test_what_lies_where_the_query_was_decides_nothing_if_it_is_not_that_query(
    repository: Repository, tmp_path: Path, origin: str
) -> None:
    world = World(tmp_path, repository, pending=True)
    world.write(range(BATCH + 2))
    world.query.root.rename(tmp_path / "moved")
    if origin == "another query":
        SyntheticQuery(world.query.root, seed="other").run(BATCH + 3)

    world.restore(Mode.RESUME)

    assert world.log == log_of(range(BATCH + 1))


def test_a_batch_that_was_not_in_flight_is_not_cut_unasked(
    repository: Repository, tmp_path: Path
) -> None:
    world = World(tmp_path, repository)
    world.write(range(BATCH + 2))

    with pytest.raises(SinkConflictError, match="up to batch 6"):
        world.restore(Mode.RESUME)

    assert world.log == log_of(range(BATCH + 2))


def test_nothing_is_cut_for_who_takes_care_of_the_sink(
    repository: Repository, tmp_path: Path
) -> None:
    world = World(tmp_path, repository, pending=True)
    world.write(range(BATCH + 2))

    world.restore(Mode.RESUME, SinkPolicy.IGNORE)

    assert world.log == log_of(range(BATCH + 2))


@pytest.mark.parametrize("policy", [SinkPolicy.REFUSE, SinkPolicy.TRUNCATE])
def test_output_of_the_batch_in_flight_may_stay_if_the_query_has_no_state(
    repository: Repository, tmp_path: Path, policy: SinkPolicy
) -> None:
    world = World(tmp_path, repository, pending=True)
    world.write(range(BATCH + 2))

    assert world.planned_without_state(policy) == []


def test_a_checksum_of_the_batch_in_flight_alone_goes_also_if_the_query_has_no_state(
    repository: Repository, tmp_path: Path
) -> None:
    """Left there, Spark could not write the entry when it does that batch."""
    world = World(tmp_path, repository, pending=True)
    world.write(range(BATCH + 1))
    world.sink.put(f"{SINK_LOG}/.{BATCH + 1}.crc", [b"crc"])

    (action,) = world.planned_without_state(SinkPolicy.REFUSE)

    assert action.delete == (f"{SINK_LOG}/.{BATCH + 1}.crc",)


def test_a_log_that_has_the_batch_in_flight_and_not_the_one_before_is_behind(
    repository: Repository, tmp_path: Path
) -> None:
    world = World(tmp_path, repository, pending=True)
    world.write([0, 1, 2, BATCH + 1])

    with pytest.raises(SinkConflictError, match="up to batch 2 only"):
        world.restore(Mode.RESUME, SinkPolicy.TRUNCATE)

    assert world.log == log_of([0, 1, 2, BATCH + 1])


@pytest.mark.parametrize("done", range(BATCH + 2))
def test_a_seed_that_was_cut_short_is_finished_by_the_same_restore(
    repository: Repository, tmp_path: Path, done: int
) -> None:
    world = World(tmp_path, repository)
    for batch in range(done):
        world.sink.put(f"{SINK_LOG}/{batch}", [b"v1"])

    world.restore(Mode.FORK, SinkPolicy.SEED)

    assert world.log == {str(batch) for batch in range(BATCH + 1)}
    assert world.sink.read(f"{SINK_LOG}/{BATCH}") == b"v1"


def test_a_log_with_rows_is_not_taken_for_a_seed_that_was_cut_short(
    repository: Repository, tmp_path: Path
) -> None:
    world = World(tmp_path, repository)
    world.write(range(2), data=b"v1")
    world.write([2])

    with pytest.raises(SinkConflictError, match="up to batch 2 only"):
        world.restore(Mode.FORK, SinkPolicy.SEED)

    assert world.log == log_of(range(3))


class KilledError(Exception):
    """Stands for SIGKILL: nothing runs after it."""


class Dying(DirectoryStore):
    """A sink at which the process dies after so many deletions."""

    left = 0

    def delete(self, path: str) -> None:
        if not self.left:
            raise KilledError
        self.left -= 1
        super().delete(path)


@pytest.mark.parametrize("done", range(6))
def test_a_truncation_that_was_cut_short_leaves_no_checksum_that_stands_in_the_way(
    repository: Repository, tmp_path: Path, done: int
) -> None:
    world = World(tmp_path, repository)
    world.write(range(BATCH + 4))
    dying = Dying(tmp_path / "sink")
    dying.left = done
    request = MaterializeRequest(
        mode=Mode.REWIND, sinks={"": dying}, sink_policy=SinkPolicy.TRUNCATE
    )

    with pytest.raises(KilledError):
        repository.materialize(world.savepoint, DirectoryStore(tmp_path / "back"), request)
    entries = {name for name in world.log if not name.startswith(".")}
    assert {name[1:-4] for name in world.log if name.startswith(".")} <= entries

    world.restore(Mode.REWIND, SinkPolicy.TRUNCATE)
    assert world.log == log_of(range(BATCH + 1))


@pytest.mark.parametrize("mode", [Mode.RESUME, Mode.REWIND])
def test_checksums_of_entries_that_are_to_come_are_removed_with_any_policy(
    repository: Repository, tmp_path: Path, mode: Mode
) -> None:
    world = World(tmp_path, repository)
    world.write(range(BATCH + 1))
    for name in (".7.crc", ".9.compact.crc", ".notes.crc", ".7.tmp"):
        world.sink.put(f"{SINK_LOG}/{name}", [b"crc"])

    world.restore(mode)

    assert world.log == log_of(range(BATCH + 1)) | {".notes.crc", ".7.tmp"}


def test_a_checksum_that_was_left_behind_is_removed_once_whatever_else_is_there() -> None:
    action = cut_log("q", "/sink", ["0", "15", "25", ".5", ".5.crc"], batch=3, committed=3)

    assert action is not None
    assert action.delete == tuple(f"{SINK_LOG}/{name}" for name in (".5.crc", "25", "15"))


@pytest.mark.parametrize("policy", [SinkPolicy.REFUSE, SinkPolicy.TRUNCATE])
def test_a_sink_that_goes_on_during_a_restore_is_not_cut(
    repository: Repository,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    policy: SinkPolicy,
) -> None:
    world = World(tmp_path, repository)
    world.write(range(BATCH + 1 if policy is SinkPolicy.REFUSE else BATCH + 3))

    def and_goes_on(*args: object, **options: object) -> None:
        fill(*args, **options)  # type: ignore[arg-type]
        world.write([BATCH + 4])

    monkeypatch.setattr(materialize, "fill", and_goes_on)
    before = world.log

    with pytest.raises(SinkConflictError, match=r"batch 9|since"):
        world.restore(Mode.REWIND, policy)

    assert world.log == before | log_of([BATCH + 4])


def test_a_sink_that_goes_on_after_it_was_cut_makes_no_restore_complete(
    repository: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = World(tmp_path, repository)
    world.write(range(BATCH + 3))

    def and_goes_on(*args: object) -> None:
        apply_sink(*args)  # type: ignore[arg-type]
        world.write([BATCH + 1])

    with monkeypatch.context() as patched:
        patched.setattr(materialize, "apply_sink", and_goes_on)
        with pytest.raises(SinkConflictError, match="since"):
            world.restore(Mode.REWIND, SinkPolicy.TRUNCATE)
    assert '"state":"filling"' in (tmp_path / "back/.sparkpoint/restored.json").read_text()

    world.restore(Mode.REWIND, SinkPolicy.TRUNCATE)
    assert world.log == log_of(range(BATCH + 1))
