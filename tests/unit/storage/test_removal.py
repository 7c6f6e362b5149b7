"""Removing a whole folder: all of it, and nothing beside it."""

from pathlib import Path

import pytest

from sparkpoint.storage import DirectoryStore, Store
from sparkpoint.storage.errors import BadLocationError, StorageError


def test_a_folder_is_removed_with_everything_below(store: Store) -> None:
    for path in ("a/epoch-1/x", "a/epoch-1/y/z", "a/epoch-10/x", "a/epoch-1x", "b"):
        store.put(path, [b"12345"])
    sizes: list[int] = []

    store.remove_folder("a/epoch-1", removed=sizes.append)

    assert [entry.path for entry in store.list()] == ["a/epoch-10/x", "a/epoch-1x", "b"]
    assert sizes == [5, 5]


def test_a_folder_that_is_not_there_is_fine(store: Store) -> None:
    store.put("a/b", [b"x"])

    store.remove_folder("a/c", removed=lambda _: None)
    store.remove_folder("c/d", removed=lambda _: None)

    assert [entry.path for entry in store.list()] == ["a/b"]


def test_the_folder_can_be_written_again(store: Store) -> None:
    store.put("a/b/c", [b"old"])

    store.remove_folder("a", removed=lambda _: None)
    store.put("a/b/c", [b"new"])

    assert store.read("a/b/c") == b"new"


@pytest.mark.parametrize("folder", ["", "/", ".", "..", "a/..", "a/../b", "a//b"])
def test_nothing_but_a_folder_inside_can_be_named(store: Store, folder: str) -> None:
    store.put("a/b", [b"x"])

    with pytest.raises(BadLocationError):
        store.remove_folder(folder, removed=lambda _: None)

    assert [entry.path for entry in store.list()] == ["a/b"]


def test_nothing_is_removed_through_a_link_even_inside_of_the_root(tmp_path: Path) -> None:
    (tmp_path / "b").mkdir()
    (tmp_path / "b/file").write_text("precious")
    (tmp_path / "a").symlink_to(tmp_path / "b")

    with pytest.raises(BadLocationError, match="symbolic link"):
        DirectoryStore(tmp_path).remove_folder("a", removed=lambda _: None)

    assert (tmp_path / "b/file").read_text() == "precious"


def test_a_file_is_not_a_folder(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("precious")

    with pytest.raises(StorageError):
        DirectoryStore(tmp_path).remove_folder("a", removed=lambda _: None)

    assert (tmp_path / "a").read_text() == "precious"
