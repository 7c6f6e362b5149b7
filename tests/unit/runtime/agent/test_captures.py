"""The real process that captures, on checkpoints in Spark's layout."""

import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from sparkpoint.checkpoint.errors import CheckpointError
from sparkpoint.runtime.capturing import Capture, Reporter
from sparkpoint.runtime.client import SyncAgentClient
from sparkpoint.runtime.explaining import explain
from sparkpoint.runtime.model import OperationState, QuerySink, SavepointRequest, StopRequest
from sparkpoint.runtime.orders import CaptureSettings, Line, folder_of
from sparkpoint.savepoint import CaptureRequest, Repository, Savepoint
from sparkpoint.savepoint.errors import NameTakenError, SavepointError
from sparkpoint.savepoint.manifest import SinkInfo
from sparkpoint.savepoint.progress import Amount
from sparkpoint.storage import DirectoryStore, open_store
from tests.support.s3 import S3Server, s3_server
from tests.unit.runtime.agent.conftest import Connect, StartAgent
from tests.unit.runtime.agent.fakes import TOKEN, FakeJob, real
from tests.unit.savepoint.synthetic import SyntheticQuery

__all__ = ["s3_server"]


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    return Repository.init(DirectoryStore(tmp_path / "repository"))


@pytest.fixture
def request_(repository: Repository) -> SavepointRequest:
    return SavepointRequest(repository=repository.store.uri, tags=("nightly",), trigger="timer")


@pytest.fixture
def query(root: Path) -> SyntheticQuery:
    return SyntheticQuery(root / "q", provider="rocksdb").run(6)


@pytest.fixture
def client(start: StartAgent, connect: Connect, root: Path) -> SyncAgentClient:
    return connect(start(real(root)))


def test_a_live_savepoint_holds_the_started_queries_and_restores(
    client: SyncAgentClient,
    job: FakeJob,
    query: SyntheticQuery,
    root: Path,
    repository: Repository,
    request_: SavepointRequest,
    tmp_path: Path,
) -> None:
    SyntheticQuery(root / "stranger").run(2)
    (root / "idle" / "offsets").mkdir(parents=True)
    (root / "idle" / "metadata").write_text('{"id":"1"}')
    job.queries = ["idle", "q"]

    found = client.savepoint("first", request_, wait=60)

    assert found.state is OperationState.DONE, found.error
    assert found.result is not None
    assert found.result.batches == {"q": 5}
    assert found.result.left_out == ("idle",)
    savepoint = repository.find("shop/visits/first")
    manifest = savepoint.manifest
    assert (found.result.id, found.result.bytes) == (savepoint.id, manifest.files.bytes)
    assert (manifest.source.epoch, manifest.revision) == ("3", "r1")
    assert (manifest.spark_version, manifest.trigger) == ("4.3.0", "timer")
    assert repository.list().savepoints[0].tags == ("nightly",)
    repository.materialize(savepoint, DirectoryStore(tmp_path / "restored"))
    wanted = (root / "q" / "offsets" / "5").read_bytes()
    assert (tmp_path / "restored" / "q" / "offsets" / "5").read_bytes() == wanted

    # The next one builds on it.
    query.batch()
    second = client.savepoint("second", request_, wait=60)
    assert second.result is not None
    assert second.result.parent == "shop/visits/first"
    assert second.result.new_bytes < second.result.bytes / 2


def test_no_secret_of_the_driver_comes_into_the_repository(
    start: StartAgent,
    connect: Connect,
    query: SyntheticQuery,
    root: Path,
    repository: Repository,
    request_: SavepointRequest,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    for name in ("AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "DB_PASSWORD", "HARMLESS"):
        monkeypatch.setenv(name, f"CANARY-{name}")

    found = connect(start(real(root))).savepoint("first", request_, wait=60)

    assert found.state is OperationState.DONE, found.error
    written = [file for file in (tmp_path / "repository").rglob("*") if file.is_file()]
    assert any(file.name == "first.json" for file in written)
    leaks = [file for file in written if b"CANARY" in file.read_bytes()]
    assert leaks == []
    # Neither in the table of files, which is compressed, nor the token.
    table = repository.files(repository.find("shop/visits/first"))
    assert "CANARY" not in str(table)
    assert not [file for file in written if TOKEN.encode() in file.read_bytes()]


def test_a_savepoint_knows_the_sinks_of_its_queries(
    client: SyncAgentClient,
    job: FakeJob,
    query: SyntheticQuery,
    root: Path,
    repository: Repository,
    request_: SavepointRequest,
) -> None:
    job.queries = ["a", "b", "c", "q"]
    for name in job.queries[:-1]:
        SyntheticQuery(root / name).run(1)
    job.sinks = {
        "a": QuerySink(kind="file", uri="file:/data/a b"),
        "b": QuerySink(kind="file", uri="hdfs://cluster/data"),
        "c": QuerySink(kind="foreachBatch"),
        "gone": QuerySink(kind="kafka"),
    }

    found = client.savepoint("first", request_, wait=60)

    assert found.state is OperationState.DONE, found.error
    queries = repository.find("shop/visits/first").manifest.queries
    assert {query.prefix: query.sink for query in queries} == {
        # Spelled as every place of a manifest; what no store of ours can be is kept as it is.
        "a": SinkInfo(kind="file", uri=DirectoryStore("/data/a b").uri),
        "b": SinkInfo(kind="file", uri="hdfs://cluster/data"),
        "c": SinkInfo(kind="foreachBatch"),
        "q": None,
    }


def test_a_savepoint_tells_the_rows_that_spark_counted_in_its_batch(
    client: SyncAgentClient,
    query: SyntheticQuery,
    repository: Repository,
    request_: SavepointRequest,
) -> None:
    query.run(1)
    client.savepoint("behind", request_, wait=60)
    query.run(1)
    client.savepoint("level", request_, wait=60)

    told = {name: repository.find(f"shop/visits/{name}").manifest for name in ("behind", "level")}
    counted = {name: (each.queries[0].batch, each.queries[0].rows) for name, each in told.items()}
    assert counted == {"behind": (6, None), "level": (7, 12)}


def make(repository: Repository, root: Path, epoch: str = "3") -> Savepoint:
    """What an agent before this one has made."""
    made = CaptureRequest(
        namespace="shop", job="visits", name="a", epoch=epoch, revision="r1", trigger="timer"
    )
    return repository.capture(DirectoryStore(root), made).savepoint


def test_a_restarted_agent_answers_with_the_savepoint_that_is_there(
    client: SyncAgentClient,
    query: SyntheticQuery,
    root: Path,
    repository: Repository,
    request_: SavepointRequest,
) -> None:
    made = make(repository, root)
    query.batch()

    again = client.savepoint("a", request_, wait=60)

    assert again.result is not None
    assert (again.result.id, again.result.batches) == (made.id, {"q": 5})
    (only,) = repository.list().savepoints
    assert only.tags == ("nightly",)


def test_a_savepoint_of_another_epoch_keeps_its_name(
    query: SyntheticQuery, root: Path, repository: Repository, request_: SavepointRequest
) -> None:
    make(repository, root, epoch="2")

    with pytest.raises(NameTakenError, match="of epoch 2; this one is of 3") as caught:
        Capture(real(root).order("a", request_)).prepare()

    # The agent makes a 409 of this type.
    assert explain(caught.value).type == "NameTaken"


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"trigger": "user"}, "of trigger timer; this one is of user"),
        ({"revision": "r2"}, "of revision r1; this one is of r2"),
    ],
)
def test_another_request_does_not_get_the_savepoint_that_is_there(
    query: SyntheticQuery,
    root: Path,
    repository: Repository,
    request_: SavepointRequest,
    change: dict[str, str],
    sentence: str,
) -> None:
    make(repository, root)
    order = real(root).order("a", request_.model_copy(update=change))

    with pytest.raises(NameTakenError, match=sentence):
        Capture(order).prepare()


def test_a_stop_refuses_the_name_of_an_older_savepoint_before_it_stops(
    query: SyntheticQuery, root: Path, repository: Repository, request_: SavepointRequest
) -> None:
    make(repository, root)
    order = real(root).order("a", request_, stops=True)
    Capture(order).prepare()
    query.batch()

    with pytest.raises(NameTakenError, match="gone on since"):
        Capture(order).prepare()


@pytest.mark.parametrize(
    ("checkpoints", "kind", "sentence", "retry_helps"),
    [
        ({"q": "/elsewhere/q"}, "NoQuery", "/elsewhere/q", False),
        ({}, "NothingCommitted", "Ask again", True),
        ({"new": "{root}/new"}, "NothingCommitted", "Ask again", True),
    ],
)
def test_queries_that_cannot_be_taken_are_errors_with_a_sentence(
    query: SyntheticQuery,
    root: Path,
    request_: SavepointRequest,
    checkpoints: dict[str, str],
    kind: str,
    sentence: str,
    retry_helps: bool,
) -> None:
    capture = Capture(real(root).order("a", request_))
    given = {name: uri.format(root=root) for name, uri in checkpoints.items()}

    with pytest.raises((SavepointError, CheckpointError)) as caught:
        capture.take(given, Reporter(lambda line: None))

    info = explain(caught.value)
    assert (info.type, info.retry_helps) == (kind, retry_helps)
    assert sentence in info.message


def test_a_query_whose_first_batch_runs_is_an_error_that_says_which(
    root: Path, request_: SavepointRequest
) -> None:
    SyntheticQuery(root / "q").begin(0)
    capture = Capture(real(root).order("a", request_))

    with pytest.raises(CheckpointError) as caught:
        capture.take({"q": f"{root}/q"}, Reporter(lambda line: None))

    info = explain(caught.value)
    assert info.message.startswith(f"{root}/q: ")
    assert (info.type, info.retry_helps) == ("NothingCommitted", True)


def test_an_unforeseen_error_is_told_and_leaves_its_trace_in_the_log() -> None:
    command = CaptureSettings(job="j", epoch=1, epoch_dir="/e").command

    done = subprocess.run(command, input=b"[]\n", capture_output=True, timeout=60, check=False)

    error = Line.model_validate_json(done.stdout).error
    assert error is not None
    assert (error.type, done.returncode) == ("Validation", 1)
    assert error.message.startswith("Unexpected Validation: ")
    assert b"Traceback (most recent call last)" in done.stderr


def test_a_long_message_is_cut() -> None:
    assert len(explain(KeyError("x" * 10_000)).message) == 4000


def test_progress_is_told_a_few_times_a_second() -> None:
    now = 0.0
    lines: list[Line] = []
    reporter = Reporter(lines.append, clock=lambda: now)

    reporter.start("batch 7", Amount(files=100, bytes=1000))
    for _ in range(100):
        now += 0.01
        reporter.advance(Amount(files=1, bytes=10))

    assert 4 <= len(lines) <= 6
    assert (lines[-1].stage, lines[-1].total_bytes) == ("batch 7", 1000)
    assert lines[-1].done_bytes > 500


@pytest.mark.s3
def test_checkpoint_and_repository_may_be_in_a_bucket_of_any_server(
    start: StartAgent,
    connect: Connect,
    job: FakeJob,
    query: SyntheticQuery,
    root: Path,
    s3_server: S3Server,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for key, value in s3_server.environment().items():
        monkeypatch.setenv(key, value)
    monkeypatch.delenv("AWS_ENDPOINT_URL", raising=False)
    bucket = s3_server.make_bucket("agent")
    store = open_store(f"s3://{bucket}/epoch-3", s3_server.endpoint_url)
    local = DirectoryStore(root)
    for entry in local.list():
        store.put(entry.path, [local.read(entry.path)])
    job.checkpoints = lambda: {"q": f"s3a://{bucket}/epoch-3/q"}  # type: ignore[method-assign]
    settings = replace(
        real(root),
        epoch_dir=f"s3a://{bucket}/epoch-3",
        endpoint_url=s3_server.endpoint_url,
    )
    request = SavepointRequest(repository=f"s3://{bucket}/repository")

    found = connect(start(settings)).savepoint("a", request, wait=60)

    assert found.result is not None, found.error
    assert found.result.batches == {"q": 5}
    assert found.result.location == f"s3://{bucket}/repository/savepoints/shop/visits/a.json"


def test_a_stop_checks_the_repository_before_and_captures_after(
    client: SyncAgentClient,
    job: FakeJob,
    query: SyntheticQuery,
    repository: Repository,
    request_: SavepointRequest,
) -> None:
    # The batch that was running commits on the way to the boundary.
    job.before_stop = query.batch
    stop = StopRequest(savepoint_name="last", savepoint=request_)

    done = client.stop("s1", stop, wait=60)

    assert done.state is OperationState.DONE, done.error
    assert done.savepoint is not None
    assert done.savepoint.result is not None
    assert done.savepoint.result.batches == {"q": 6}
    assert not done.savepoint.result.pending
    assert repository.find("last").manifest.queries[0].batch == 6


def test_a_stop_that_interrupts_a_batch_has_its_savepoint_with_the_batch_to_be_done_again(
    client: SyncAgentClient,
    job: FakeJob,
    query: SyntheticQuery,
    root: Path,
    request_: SavepointRequest,
) -> None:
    job.before_stop = lambda: query.begin(6)
    stop = StopRequest(savepoint_name="last", savepoint=request_)

    done = client.stop("s1", stop, wait=60)

    assert done.state is OperationState.DONE, done.error
    assert done.savepoint is not None
    assert done.savepoint.result is not None
    assert done.savepoint.result.batches == {"q": 5}
    assert done.savepoint.result.pending
    # An agent that comes after it finds what it would make.
    order = real(root).order("last", request_, stops=True)
    Capture(order).prepare()
    query.batch()
    with pytest.raises(NameTakenError, match="gone on since"):
        Capture(order).prepare()


def test_the_process_ends_when_its_driver_is_gone(root: Path, request_: SavepointRequest) -> None:
    order = real(root).order("a", request_)
    with subprocess.Popen(
        real(root).command, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(order.model_dump_json().encode() + b"\n")
        process.stdin.flush()
        assert Line.model_validate_json(process.stdout.readline()).ready

        process.stdin.close()

        assert process.wait(20) == 1


@pytest.mark.parametrize(
    ("epoch_dir", "checkpoint", "folder"),
    [
        ("/data/e3", "/data/e3/q", "q"),
        ("/data/e3/", "file:/data/e3/q", "q"),
        ("file:///data/a%20b", "file:/data/a b/q/", "q"),
        ("s3a://bucket/e3", "s3://bucket/e3/q", "q"),
        ("/data/e3", "/data/e33/q", None),
        ("/data/e3", "/data/e3/q/deep", None),
        ("/data/e3", "/data/e3", None),
        ("s3://bucket/e3", "/bucket/e3/q", None),
    ],
)
def test_a_query_is_a_folder_right_below_the_epoch_directory(
    epoch_dir: str, checkpoint: str, folder: str | None
) -> None:
    assert folder_of(epoch_dir, checkpoint) == folder
