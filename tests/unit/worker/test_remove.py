"""Removing a job's epoch directories, and nothing else."""

import os
from pathlib import Path

import pytest

from sparkpoint.storage import Store
from sparkpoint.worker.exits import Exit, exit_of
from sparkpoint.worker.model import Answer
from sparkpoint.worker.tasks.remove import plan
from tests.support.s3 import S3Server
from tests.unit.worker.asking import ask
from tests.unit.worker.conftest import Place


def remove(place: Place, *more: str) -> Answer:
    root = f"{place.root}/checkpoints"
    return ask("remove", "--root", root, "--job", "shop/visits", *place.options, *more)


def paths(store: Store) -> list[str]:
    return [entry.path for entry in store.list()]


OTHERS = [
    "shop/visits-2/epoch-1/q/metadata",
    "shop/visits/epoch-1x/q/metadata",
    "shop/visits/epoch-01/q/metadata",
    "shop/visits/notes.txt",
    "other/visits/epoch-1/q/metadata",
    "epoch-1/q/metadata",
]


@pytest.fixture
def store(place: Place) -> Store:
    """A checkpoint location with three epochs of the job, and what is not its own."""
    store = place.store(f"{place.root}/checkpoints")
    ours = [f"shop/visits/epoch-{n}/q/{each}" for n in (1, 2, 10) for each in ("metadata", "a/b/c")]
    for path in [*ours, "shop/visits/epoch-2.rehearsal/q/metadata", *OTHERS]:
        store.put(path, [b"x"])
    return store


def test_all_epochs_are_removed_and_nothing_else(place: Place, store: Store) -> None:
    answer = remove(place)

    assert (answer.answer, exit_of(answer)) == ("Removed", Exit.OK)
    assert answer.removed == ("epoch-1", "epoch-2", "epoch-2.rehearsal", "epoch-10")
    assert paths(store) == sorted(OTHERS)
    for name in ("epoch-01", "epoch-1x", "notes.txt"):
        assert name in answer.message


LIVES = [
    "shop/visits/epoch-1/q/metadata",
    "shop/visits/epoch-1-3f9a2c7b/q/metadata",
    "shop/visits/epoch-2-3f9a2c7b/q/metadata",
    "shop/visits/epoch-2-3f9a2c7b.rehearsal/q/metadata",
    "shop/visits/epoch-1-0badcafe/q/metadata",
    "shop/visits/epoch-1-3f9a2c7b0/q/metadata",
]


def test_only_epochs_of_this_life_of_the_job_are_removed(place: Place) -> None:
    store = place.store(f"{place.root}/checkpoints")
    for path in LIVES:
        store.put(path, [b"x"])

    answer = remove(place, "--life", "3f9a2c7b")

    assert answer.removed == (
        "epoch-1-3f9a2c7b",
        "epoch-2-3f9a2c7b",
        "epoch-2-3f9a2c7b.rehearsal",
    )
    assert paths(store) == sorted([LIVES[0], *LIVES[4:]])
    assert "epoch-1-0badcafe" in answer.message


def test_a_removal_without_a_life_spares_those_that_have_one(place: Place) -> None:
    store = place.store(f"{place.root}/checkpoints")
    for path in LIVES:
        store.put(path, [b"x"])

    assert remove(place).removed == ("epoch-1",)
    assert paths(store) == sorted(LIVES[1:])


def test_a_life_that_cannot_be_one_is_refused(place: Place) -> None:
    answer = remove(place, "--life", ".*")

    assert answer.answer == "Refused"
    assert "--life is '.*'" in answer.message + " ".join(answer.problems)


def test_removing_again_is_fine(place: Place, store: Store) -> None:
    remove(place)

    again = remove(place)

    assert (again.answer, exit_of(again)) == ("Removed", Exit.OK)
    assert paths(store) == sorted(OTHERS)


def test_epochs_can_be_kept(place: Place, store: Store) -> None:
    answer = remove(place, "--keep-epoch", "10", "--keep-epoch", "2")

    assert answer.removed == ("epoch-1",)
    assert {
        path.split("/")[2] for path in paths(store) if path.startswith("shop/visits/epoch-")
    } == {
        "epoch-01",
        "epoch-1x",
        "epoch-2",
        "epoch-2.rehearsal",
        "epoch-10",
    }


def test_a_job_that_never_wrote_has_nothing_to_remove(disk: Place) -> None:
    answer = remove(disk)

    assert (answer.answer, answer.removed) == ("Removed", ())
    assert "there was none" in answer.message
    assert not Path(disk.root).exists()


def test_empty_folders_hidden_files_and_pipes_go_too(disk: Place) -> None:
    epoch = Path(disk.epoch_dir)
    (epoch / "q/state/0/0").mkdir(parents=True)
    (epoch / ".sparkpoint-tmp").mkdir()
    (epoch / ".sparkpoint-tmp/left").write_text("half")
    os.mkfifo(epoch / "q/pipe")

    answer = remove(disk)

    assert answer.removed == ("epoch-3",)
    assert not epoch.exists()


@pytest.mark.s3
def test_marks_of_folders_and_unfinished_uploads_go_too(bucket: Place, s3_server: S3Server) -> None:
    client = s3_server.client()
    name, _, prefix = bucket.epoch_dir.removeprefix("s3://").partition("/")
    client.put_object(Bucket=name, Key=f"{prefix}/q/commits/", Body=b"")
    client.put_object(Bucket=name, Key=f"{prefix}/q/metadata", Body=b"x")
    client.create_multipart_upload(Bucket=name, Key=f"{prefix}/q/state/0/0/1.zip")

    remove(bucket)

    assert "Contents" not in client.list_objects_v2(Bucket=name, Prefix=f"{prefix}/")
    assert "Uploads" not in client.list_multipart_uploads(Bucket=name, Prefix=f"{prefix}/")


@pytest.mark.parametrize("linked", ["shop", "shop/visits", "shop/visits/epoch-3"])
def test_what_a_link_leads_to_stays(disk: Place, tmp_path: Path, linked: str) -> None:
    precious = tmp_path / "elsewhere"
    target = precious / Path("shop/visits/epoch-3").relative_to(linked)
    target.mkdir(parents=True)
    (target / "metadata").write_text("precious")
    link = Path(disk.root) / "checkpoints" / linked
    link.parent.mkdir(parents=True)
    link.symlink_to(precious)

    answer = remove(disk)

    assert (answer.answer, answer.kind) == ("Failed", "BadLocation")
    assert "link" in answer.message
    assert (target / "metadata").read_text() == "precious"


def test_links_inside_of_an_epoch_are_removed_and_not_followed(disk: Place, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere/file").write_text("precious")
    epoch = Path(disk.epoch_dir)
    epoch.mkdir(parents=True)
    (epoch / "folder").symlink_to(tmp_path / "elsewhere")
    (epoch / "file").symlink_to(tmp_path / "elsewhere/file")

    answer = remove(disk)

    assert answer.answer == "Removed"
    assert not epoch.exists()
    assert (tmp_path / "elsewhere/file").read_text() == "precious"


def test_the_root_of_the_file_system_is_refused_also_behind_a_link(tmp_path: Path) -> None:
    (tmp_path / "all").symlink_to("/")

    for root in ("/", str(tmp_path / "all")):
        answer = ask("remove", "--root", root, "--job", "no-such/no-such")

        assert (answer.answer, answer.kind) == ("Failed", "Outside")
        assert exit_of(answer) == Exit.WILL_NOT_PASS


@pytest.mark.parametrize(
    "job", ["..", "../visits", "shop/..", "shop/a/b", "shop", "/visits", "*/*"]
)
def test_a_job_that_would_lead_elsewhere_is_refused(disk: Place, job: str) -> None:
    answer = ask("remove", "--root", disk.root, "--job", job)

    assert answer.answer == "Refused"
    assert any(problem.startswith("--job is") for problem in answer.problems)


def test_a_file_that_is_named_like_an_epoch_is_not_one() -> None:
    found = plan(["epoch-1", "epoch-2"], folders=frozenset({"epoch-2"}), keep=frozenset())

    assert (found.remove, found.strange) == (("epoch-2",), ("epoch-1",))


def test_somebody_who_keeps_writing_makes_it_fail_for_now(
    disk: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A zombie may write into the folder that was just emptied."""
    epoch = Path(disk.epoch_dir)
    (epoch / "q").mkdir(parents=True)
    (epoch / "q/0").write_text("x")
    rmdir = os.rmdir

    def rmdir_too_late(name: str, *, dir_fd: int | None = None) -> None:
        (epoch / "q/late").write_text("x")
        rmdir(name, dir_fd=dir_fd)

    monkeypatch.setattr(os, "rmdir", rmdir_too_late)
    answer = remove(disk)
    monkeypatch.undo()
    again = remove(disk)

    assert (answer.answer, exit_of(answer)) == ("Failed", Exit.MAY_PASS)
    assert again.removed == ("epoch-3",)
    assert not epoch.exists()
