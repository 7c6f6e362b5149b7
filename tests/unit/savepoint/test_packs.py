"""Packs that are full are written while the next one is filled."""

import gc
import threading
from collections.abc import Iterable
from pathlib import Path

import pytest

from sparkpoint.savepoint import objects
from sparkpoint.savepoint.garbage import seldom_searched
from sparkpoint.savepoint.names import object_path
from sparkpoint.savepoint.objects import ObjectWriter
from sparkpoint.storage import DirectoryStore
from sparkpoint.storage.digest import digest_of
from sparkpoint.storage.errors import FullError

_PATIENCE = 10.0


class SlowStore(DirectoryStore):
    """Writes nothing before it is let on."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.go_on = threading.Event()

    def put(self, path: str, chunks: Iterable[bytes], *, draft: bool = False) -> int:
        """Wait first."""
        assert self.go_on.wait(_PATIENCE)
        return super().put(path, chunks, draft=draft)


class FullStore(DirectoryStore):
    """Has no room for what is given."""

    def put(self, path: str, chunks: Iterable[bytes], *, draft: bool = False) -> int:
        """Refuse what begins with an a."""
        parts = list(chunks)
        if parts[0].startswith(b"a"):
            raise FullError("no space left")
        return super().put(path, parts, draft=draft)


@pytest.fixture(autouse=True)
def small_packs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(objects, "PACK_SIZE", 4)


def test_the_next_pack_is_filled_while_one_is_written(tmp_path: Path) -> None:
    store = SlowStore(tmp_path)

    with ObjectWriter(store, {}) as writer:
        digests = [writer.add(data, called=name) for name, data in _files(b"aa", b"bb", b"cc")]
        # The same content again, of which nobody knows yet where it will be.
        assert writer.add(b"aa", called="again") == digests[0]
        store.go_on.set()
        writer.flush()

    for digest, data in zip(digests, (b"aa", b"bb", b"cc"), strict=True):
        place = writer.locate(digest)
        assert store.read_range(object_path(place.object), place.offset, 2) == data
    assert writer.locate(digests[0]).object == digest_of(b"aabb")
    assert writer.new_objects == 2


def test_nobody_gets_more_than_one_pack_ahead(tmp_path: Path) -> None:
    store = SlowStore(tmp_path)
    ahead = threading.Event()

    with ObjectWriter(store, {}) as writer:

        def fill() -> None:
            for name, data in _files(b"aaaa", b"bbbb"):
                writer.add(data, called=name)
            ahead.set()

        thread = threading.Thread(target=fill)
        thread.start()
        assert not ahead.wait(0.05)
        store.go_on.set()
        thread.join(_PATIENCE)
        writer.flush()

    assert ahead.is_set()
    assert writer.new_objects == 2


def test_a_pack_that_could_not_be_written_is_never_passed_over(tmp_path: Path) -> None:
    with ObjectWriter(FullStore(tmp_path), {}) as writer:
        writer.add(b"aaaa", called="1")
        with pytest.raises(FullError):
            writer.add(b"bbbb", called="2")

        # Whoever was told may have failed for another reason at the same time, and try again.
        with pytest.raises(FullError):
            writer.flush()


def test_garbage_is_searched_for_as_often_as_before_once_all_have_ended() -> None:
    usual = gc.get_threshold()

    with seldom_searched():
        seldom = gc.get_threshold()
        with seldom_searched():
            assert gc.get_threshold() == seldom
        assert gc.get_threshold() == seldom

    assert seldom[0] > usual[0]
    assert gc.get_threshold() == usual


def test_who_has_turned_the_search_off_is_left_alone() -> None:
    usual = gc.get_threshold()
    gc.set_threshold(0)
    try:
        with seldom_searched():
            assert gc.get_threshold()[0] == 0
    finally:
        gc.set_threshold(*usual)


def _files(*contents: bytes) -> list[tuple[str, bytes]]:
    return [(str(number), data) for number, data in enumerate(contents)]
