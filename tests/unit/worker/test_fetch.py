"""Fetching a script: whole or not at all."""

import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

import pytest

from sparkpoint.storage import DirectoryStore, Entry
from sparkpoint.worker.exits import Exit, exit_of
from sparkpoint.worker.model import Answer
from tests.unit.worker.asking import ask
from tests.unit.worker.conftest import Place

SCRIPT = b"print('visits')\n" * 1000


def fetch(place: Place, to: Path, *more: str) -> Answer:
    uri = f"{place.root}/scripts/visits.py"
    return ask("fetch", "--uri", uri, "--to", to, *place.options, *more)


@pytest.fixture
def to(place: Place, tmp_path: Path) -> Path:
    place.store(f"{place.root}/scripts").put("visits.py", [SCRIPT])
    return tmp_path / "work/deep/job.py"


def test_a_script_is_put_where_it_should_be(place: Place, to: Path) -> None:
    answer = fetch(place, to)

    assert (answer.answer, exit_of(answer)) == ("Fetched", Exit.OK)
    assert to.read_bytes() == SCRIPT
    assert stat.S_IMODE(to.stat().st_mode) == 0o644
    assert [path.name for path in to.parent.iterdir()] == ["job.py"]


def test_an_older_one_is_replaced(disk: Place, tmp_path: Path) -> None:
    disk.store(f"{disk.root}/scripts").put("visits.py", [SCRIPT])
    (tmp_path / "job.py").write_text("old")

    assert fetch(disk, tmp_path / "job.py").answer == "Fetched"

    assert (tmp_path / "job.py").read_bytes() == SCRIPT


def test_what_is_too_large_is_not_fetched(place: Place, to: Path) -> None:
    answer = fetch(place, to, "--max-bytes", str(len(SCRIPT) - 1))

    assert (answer.answer, answer.kind) == ("Failed", "TooLarge")
    assert f"{place.root}/scripts/visits.py has {len(SCRIPT)} bytes" in answer.message
    assert not to.exists()
    assert fetch(place, to, "--max-bytes", str(len(SCRIPT))).answer == "Fetched"


def test_a_file_that_grows_meanwhile_is_bounded_too(
    disk: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scripts = disk.store(f"{disk.root}/scripts")
    scripts.put("visits.py", [SCRIPT])
    opened = DirectoryStore.open_stamped

    @contextmanager
    def grow(self: DirectoryStore, path: str) -> Iterator[tuple[BinaryIO, Entry]]:
        with opened(self, path) as (stream, entry):
            with Path(self.uri, path).open("ab") as file:
                file.write(SCRIPT)
            yield stream, entry

    monkeypatch.setattr(DirectoryStore, "open_stamped", grow)

    answer = fetch(disk, tmp_path / "job.py", "--max-bytes", str(len(SCRIPT)))

    assert answer.kind == "TooLarge"
    assert "grew" in answer.message
    assert not (tmp_path / "job.py").exists()


def test_a_script_that_is_not_there_is_a_failure(place: Place, tmp_path: Path) -> None:
    answer = fetch(place, tmp_path / "job.py")

    assert (answer.answer, answer.kind) == ("Failed", "NotFound")
    assert exit_of(answer) == Exit.WILL_NOT_PASS


def test_a_target_that_cannot_be_written_is_a_failure(disk: Place, tmp_path: Path) -> None:
    disk.store(f"{disk.root}/scripts").put("visits.py", [SCRIPT])
    (tmp_path / "file").write_text("")

    answer = fetch(disk, tmp_path / "file/job.py")

    assert (answer.answer, answer.kind) == ("Failed", "Fetch")
    assert str(tmp_path / "file/job.py") in answer.message


@pytest.mark.parametrize("uri", ["s3://bucket", "s3://bucket/", "/scripts/"])
def test_a_place_that_names_no_file_is_refused(tmp_path: Path, uri: str) -> None:
    answer = ask("fetch", "--uri", uri, "--to", tmp_path / "job.py")

    assert answer.answer == "Refused"
    assert any("names no file" in problem for problem in answer.problems)
