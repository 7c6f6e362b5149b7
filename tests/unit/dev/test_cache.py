"""Caches appear whole or not at all."""

from pathlib import Path

import pytest

from dev import cache
from dev.console import Problem


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPARKPOINT_CACHE", str(tmp_path))


def test_an_entry_is_built_once() -> None:
    built: list[Path] = []

    first = cache.cached("kind", "key", built.append)
    second = cache.cached("kind", "key", built.append)

    assert first == second
    assert len(built) == 1


def test_a_build_that_fails_half_way_is_not_taken_for_a_finished_one(tmp_path: Path) -> None:
    def fail(folder: Path) -> None:
        (folder / "half").write_text("…")
        raise OSError("disk full")

    with pytest.raises(OSError, match="disk full"):
        cache.cached("kind", "key", fail)
    entry = cache.cached("kind", "key", lambda folder: (folder / "whole").touch())

    assert [file.name for file in entry.iterdir()] == ["whole"]


def test_only_the_newest_entries_are_kept(tmp_path: Path) -> None:
    for number in range(5):
        cache.cached("kind", f"key-{number}", lambda _: None, keep=2)

    assert len(list((tmp_path / "kind").iterdir())) == 2


def test_too_little_space_is_said_before_anything_is_built(tmp_path: Path) -> None:
    with pytest.raises(Problem, match=r"needs 1000000 GB free.*\n.*SPARKPOINT_CACHE"):
        cache.require_free_space(tmp_path, gib=1_000_000, purpose="The test")


def test_a_digest_follows_names_and_contents_but_not_compiled_files(tmp_path: Path) -> None:
    folder = tmp_path / "source"
    (folder / "__pycache__").mkdir(parents=True)
    (folder / "a.py").write_text("1")
    before = cache.digest_of([folder])

    (folder / "__pycache__" / "a.pyc").write_text("compiled")
    assert cache.digest_of([folder]) == before
    (folder / "a.py").rename(folder / "b.py")
    assert cache.digest_of([folder]) != before
