"""Capturing an epoch directory that no driver writes."""

import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sparkpoint.runtime.capturing import Capture, Reporter
from sparkpoint.runtime.model import SavepointRequest
from sparkpoint.runtime.orders import CaptureSettings
from sparkpoint.savepoint import CaptureRequest, Repository
from sparkpoint.savepoint.manifest import SinkInfo
from sparkpoint.savepoint.sinknote import write_sink_note
from sparkpoint.savepoint.taking import QueryTaker
from sparkpoint.storage import DirectoryStore, Store
from sparkpoint.worker.exits import Exit, exit_of
from sparkpoint.worker.model import Answer
from tests.support.s3 import S3Server
from tests.unit.worker.asking import ask, capture, repository_of
from tests.unit.worker.conftest import Place


def test_all_queries_are_captured_and_the_answer_is_what_the_manifest_says(place: Place) -> None:
    place.query("clicks", 4)
    place.query("visits", 6)
    place.publish()

    answer = capture(place, "--revision", "r7", "--trigger", "Upgrade", "--tag", "keep")

    assert (answer.answer, exit_of(answer)) == ("Captured", Exit.OK)
    assert answer.batches == {"clicks": 3, "visits": 5}
    (found,) = repository_of(place).list().savepoints
    assert answer.savepoint is not None
    assert (answer.savepoint.id, answer.savepoint.bytes) == (found.id, found.manifest.files.bytes)
    assert answer.savepoint.location == f"{place.repository}/savepoints/shop/visits/first.json"
    assert found.tags == ("keep",)
    assert (found.manifest.revision, found.manifest.trigger) == ("r7", "Upgrade")
    assert (found.manifest.source.uri, found.manifest.source.epoch) == (place.epoch_dir, "3")
    assert answer.details is not None
    assert (answer.details.epoch, answer.details.revision) == ("3", "r7")
    assert answer.details.spark_version == found.manifest.spark_version is not None
    by_name = {query.name: query for query in answer.details.queries}
    assert (by_name["visits"].partitions, by_name["visits"].provider) == (2, "rocksdb")
    assert not by_name["visits"].pending


def sinks_of(place: Place, name: str) -> dict[str, SinkInfo | None]:
    """Query -> where it writes, by the manifest."""
    return {q.prefix: q.sink for q in repository_of(place).find(name).manifest.queries}


def test_where_queries_write_is_known_from_what_their_driver_noted(place: Place) -> None:
    query = place.query("visits")
    sink = SinkInfo(kind="file", uri="/data/out")
    write_sink_note(DirectoryStore(query.root), sink)
    place.query("clicks")
    place.publish()

    capture(place)

    assert sinks_of(place, "first") == {"clicks": None, "visits": sink}


def _captured_live(place: Place) -> SinkInfo:
    """The sink that a driver knew of when its running query was captured."""
    place.query("visits")
    place.publish()
    sink = SinkInfo(kind="delta", uri="s3://lake/visits")
    request = CaptureRequest(namespace="shop", job="visits", name="live", sinks={"visits": sink})
    repository = Repository.init(place.store(place.repository))
    repository.capture(place.store(place.epoch_dir), request)
    return sink


def test_a_query_writes_where_it_wrote_at_the_savepoint_that_it_goes_on_from(place: Place) -> None:
    sink = _captured_live(place)

    capture(place)

    assert sinks_of(place, "first") == {"visits": sink}


def test_another_query_of_the_same_name_does_not_inherit_a_sink(place: Place) -> None:
    _captured_live(place)
    place.store(place.epoch_dir).put("visits/metadata", [b'{"id":"another"}'])

    capture(place)

    assert sinks_of(place, "first") == {"visits": None}


def test_what_is_captured_restores(place: Place, tmp_path: Path) -> None:
    place.query()
    place.publish()

    capture(place)

    repository = repository_of(place)
    repository.materialize(repository.find("first"), DirectoryStore(tmp_path / "restored"))
    wanted = (place.local / "q/offsets/5").read_bytes()
    assert (tmp_path / "restored/q/offsets/5").read_bytes() == wanted


def test_the_same_request_again_is_the_same_savepoint(place: Place) -> None:
    query = place.query()
    place.publish()
    first = capture(place)
    query.batch()
    place.publish()

    again = capture(place, "--tag", "late")

    assert first.savepoint is not None
    assert again.savepoint is not None
    assert (again.answer, again.savepoint.id) == ("Captured", first.savepoint.id)
    assert again.savepoint.model_copy(update={"left_out": ()}) == first.savepoint
    assert again.details == first.details
    (only,) = repository_of(place).list().savepoints
    assert only.tags == ("late",)


def test_a_savepoint_that_is_made_counts_even_when_its_directory_is_gone(place: Place) -> None:
    place.query()
    place.publish()
    first = capture(place)
    place.store(place.root).remove_folder("checkpoints", removed=lambda _: None)

    again = capture(place)

    assert first.savepoint is not None
    assert again.savepoint is not None
    assert (again.answer, again.savepoint.id) == ("Captured", first.savepoint.id)


def test_what_the_agent_has_made_is_what_the_worker_answers(disk: Place) -> None:
    disk.query()
    disk.publish()
    settings = CaptureSettings(namespace="shop", job="visits", epoch=3, epoch_dir=disk.epoch_dir)
    request = SavepointRequest(repository=disk.repository, trigger="Upgrade", revision="r7")
    agent = Capture(settings.order("first", request))
    made = agent.take({"q": f"file:{disk.epoch_dir}/q"}, Reporter(lambda line: None))

    answer = capture(disk, "--revision", "r7", "--trigger", "Upgrade")

    assert answer.savepoint == made


@pytest.mark.parametrize(
    ("more", "sentence"),
    [
        (("--epoch", "4"), "of epoch 3; this one is of 4"),
        (("--revision", "r2"), "of revision None; this one is of r2"),
        (("--trigger", "Final"), "of trigger agent; this one is of Final"),
    ],
)
def test_another_savepoint_of_that_name_is_a_clear_failure(
    disk: Place, more: tuple[str, str], sentence: str
) -> None:
    disk.query()
    disk.publish()
    capture(disk)
    options = {"--epoch": "3"} | dict([more])

    answer = ask(
        "capture",
        *("--epoch-dir", disk.epoch_dir, "--job", "shop/visits", "--name", "first"),
        *("--repository", disk.repository),
        *(word for option in options.items() for word in option),
    )

    assert (answer.answer, answer.kind) == ("Failed", "NameTaken")
    assert sentence in answer.message
    assert exit_of(answer) == Exit.WILL_NOT_PASS


def empty(place: Place) -> None:
    place.store(place.epoch_dir).put("notes.txt", [b"no query"])


def only_started(place: Place) -> None:
    place.query(batches=0)
    place.publish()


def first_batch_begun(place: Place) -> None:
    place.query(batches=0).begin(0)
    place.publish()


@pytest.mark.parametrize("arrange", [empty, only_started, first_batch_begun])
def test_nothing_committed_is_an_answer_and_makes_no_repository(
    place: Place, arrange: Callable[[Place], None]
) -> None:
    arrange(place)

    answer = capture(place)

    assert (answer.answer, exit_of(answer)) == ("NothingCommitted", Exit.OK)
    assert place.epoch_dir in answer.message
    assert not list(place.store(place.repository).list())


def test_commits_that_were_lost_are_not_taken_for_nothing_committed(place: Place) -> None:
    place.query()
    place.publish()
    place.store(place.epoch_dir).remove_folder("q/commits", removed=lambda _: None)

    answer = capture(place)

    assert (answer.answer, answer.kind) == ("Failed", "LostCommits")
    assert f"{place.epoch_dir}/q has offsets up to batch 5" in answer.message
    assert exit_of(answer) == Exit.WILL_NOT_PASS


def test_a_query_without_a_batch_is_left_out_and_named(place: Place) -> None:
    place.query("idle", 0)
    place.query()
    place.publish()

    answer = capture(place)

    assert answer.savepoint is not None
    assert (answer.batches, answer.savepoint.left_out) == ({"q": 5}, ("idle",))


def test_a_first_batch_beside_another_query_fails_until_it_is_committed(disk: Place) -> None:
    """Without its offsets the batch would be repeated with others, and sinks would drop rows."""
    late = disk.query("late", 0)
    late.begin(0)
    disk.query()
    disk.publish()

    answer = capture(disk)
    late.batch()
    disk.publish()
    later = capture(disk)

    assert (answer.answer, exit_of(answer)) == ("Failed", Exit.MAY_PASS)
    assert answer.message.startswith(f"{disk.epoch_dir}/late: ")
    assert later.batches == {"late": 0, "q": 5}


def test_a_directory_that_is_not_there_is_unreachable(disk: Place) -> None:
    answer = capture(disk)

    assert (answer.answer, answer.kind, answer.retry_helps) == ("Failed", "Unreachable", True)
    assert f"{disk.epoch_dir} cannot be looked at here: No such file" in answer.message
    assert exit_of(answer) == Exit.MAY_PASS
    assert not Path(disk.repository).exists()


def capture_elsewhere(disk: Place, endpoint_url: str) -> Answer:
    return ask(
        "capture",
        *("--epoch-dir", "s3://nowhere/epoch-3", "--job", "shop/visits", "--epoch", "3"),
        *("--repository", disk.repository, "--name", "first"),
        *("--source-endpoint-url", endpoint_url),
    )


def test_a_server_that_does_not_answer_is_unreachable(
    disk: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "any")
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # and nobody listens

        answer = capture_elsewhere(disk, f"http://127.0.0.1:{taken.getsockname()[1]}")

    assert (answer.answer, answer.kind, answer.retry_helps) == ("Failed", "Unreachable", True)
    assert answer.message.startswith("s3://nowhere/epoch-3 did not answer")


@pytest.mark.s3
def test_a_bucket_that_is_not_there_is_unreachable(
    disk: Place, s3_server: S3Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in s3_server.environment().items():
        monkeypatch.setenv(name, value)

    answer = capture_elsewhere(disk, s3_server.endpoint_url)

    assert (answer.answer, answer.kind, answer.retry_helps) == ("Failed", "Unreachable", True)
    assert "bucket does not exist" in answer.message


def test_a_single_checkpoint_is_no_epoch_directory(disk: Place) -> None:
    disk.query("offsets-and-all").run(1)
    single = f"{disk.local}/offsets-and-all"

    answer = ask(
        "capture",
        *("--epoch-dir", single, "--job", "shop/visits", "--epoch", "3"),
        *("--repository", disk.repository, "--name", "first"),
    )

    assert (answer.answer, answer.kind) == ("Failed", "NoQuery")
    assert "adopt" in answer.message


def test_a_driver_that_lives_on_and_purges_does_not_spoil_the_savepoint(
    disk: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A zombie on a lost node commits and purges while the worker copies."""
    query = disk.query("q", 6)
    query.retain = 2
    disk.publish()
    query.root = Path(disk.epoch_dir) / "q"
    taken: list[int] = []
    plan = QueryTaker._take_files

    def go_on(self: Any, planned: Any) -> Any:
        if len(taken) < 2:
            taken.append(planned.batch)
            query.run(5)
        return plan(self, planned)

    monkeypatch.setattr(QueryTaker, "_take_files", go_on)

    answer = capture(disk)

    assert taken == [5, 10]
    assert answer.batches == {"q": 15}
    (verified,) = repository_of(disk).verify(repository_of(disk).list().savepoints)
    assert verified.good


def test_the_parent_can_be_named(place: Place) -> None:
    query = place.query()
    place.publish()
    capture(place)
    query.batch()
    place.publish()

    second = capture(place, name="second")
    alone = capture(place, "--parent", "none", name="alone")

    assert second.savepoint is not None
    assert alone.savepoint is not None
    assert (second.savepoint.parent, alone.savepoint.parent) == ("shop/visits/first", None)
    assert second.savepoint.new_bytes < second.savepoint.bytes / 2


def test_the_answer_does_not_need_the_savepoint_to_stay(
    disk: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Somebody may delete it between its making and the answer."""
    disk.query()
    disk.publish()
    take = Capture.take

    def take_and_lose(self: Capture, *arguments: Any) -> Any:
        summary = take(self, *arguments)
        store: Store = disk.store(disk.repository)
        store.delete("savepoints/shop/visits/first.json")
        return summary

    monkeypatch.setattr(Capture, "take", take_and_lose)

    answer = capture(disk)

    assert (answer.answer, answer.batches, answer.details) == ("Captured", {"q": 5}, None)


def test_a_repository_json_that_was_lost_is_told(
    disk: Place, caplog: pytest.LogCaptureFixture
) -> None:
    disk.query("visits", 3)
    disk.publish()
    capture(disk)
    disk.store(disk.repository).delete("repository.json")

    capture(disk, name="second")

    assert "had lost its repository.json" in caplog.text
