"""What every store promises, asked of each of them."""

import threading
import time
import uuid
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest
from blake3 import blake3
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from sparkpoint.storage import Store
from sparkpoint.storage.errors import (
    AlreadyExistsError,
    BadLocationError,
    ChangedError,
    NotFoundError,
    TooLargeError,
)

BAD_PATHS = [
    "",
    "/",
    "/a",
    "a/",
    "a//b",
    "./a",
    "a/./b",
    "../a",
    "a/../b",
    "..",
    ".",
    "a\0b",
    "a\\b",
    "x" * 2000,
]


def sha(data: bytes) -> str:
    return blake3(data).hexdigest()


def test_a_created_file_reads_back_with_its_size(store: Store) -> None:
    store.create("a/b.json", b"hello")

    assert store.read("a/b.json") == b"hello"
    assert store.stat("a/b.json").size == 5
    with store.open("a/b.json") as stream:
        assert stream.read() == b"hello"


def test_creating_twice_fails_and_keeps_the_first(store: Store) -> None:
    store.create("a", b"first")

    with pytest.raises(AlreadyExistsError):
        store.create("a", b"second")
    with pytest.raises(AlreadyExistsError):
        store.create("a", b"first")
    assert store.read("a") == b"first"


def test_of_many_creators_exactly_one_wins(store: Store) -> None:
    barrier = threading.Barrier(8)

    def create(number: int) -> int | None:
        barrier.wait(timeout=30)
        try:
            store.create("race", str(number).encode())
        except AlreadyExistsError:
            return None
        return number

    with ThreadPoolExecutor(8) as pool:
        winners = [each for each in pool.map(create, range(8)) if each is not None]

    assert len(winners) == 1
    assert store.read("race") == str(winners[0]).encode()


def test_replace_needs_the_stamp_of_the_current_version(store: Store) -> None:
    store.create("a", b"one")
    old = store.stat("a").stamp
    store.replace("a", b"two", stamp=old)

    with pytest.raises(ChangedError):
        store.replace("a", b"three", stamp=old)
    assert store.read("a") == b"two"


def test_replacing_a_missing_file_is_a_change_by_somebody_else(store: Store) -> None:
    with pytest.raises(ChangedError):
        store.replace("nothing", b"x", stamp="0-0")


def test_of_many_replacers_exactly_one_wins(store: Store) -> None:
    store.create("a", b"start")
    stamp = store.stat("a").stamp

    def replace(number: int) -> bool:
        try:
            store.replace("a", f"by {number}".encode(), stamp=stamp)
        except ChangedError:
            return False
        return True

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(replace, range(8))) == 1


def test_put_writes_over_what_is_there_and_counts_bytes(store: Store) -> None:
    assert store.put("a", [b"12", b"", b"345"]) == 5
    assert store.put("a", iter([b"x"])) == 1
    assert store.read("a") == b"x"


def test_a_draft_takes_the_place_of_what_is_there(store: Store) -> None:
    for content in (b"older and longer", b"new"):
        assert store.put("a/b", [content], draft=True) == len(content)
        assert store.read("a/b") == content
    assert [entry.path for entry in store.list()] == ["a/b"]


def test_a_put_whose_stream_breaks_leaves_the_old_content(store: Store) -> None:
    store.put("a", [b"old"])

    def broken() -> object:
        yield b"new"
        raise RuntimeError("source died")

    with pytest.raises(RuntimeError, match="source died"):
        store.put("a", broken())  # type: ignore[arg-type]
    assert store.read("a") == b"old"
    assert [entry.path for entry in store.list()] == ["a"]


def test_an_empty_file_is_a_file(store: Store) -> None:
    store.put("empty", [])

    assert store.read("empty") == b""
    assert store.read_range("empty", 0, 10) == b""
    assert store.stat("empty").size == 0


def test_a_large_file_travels_in_parts(store: Store, make_store: Callable[[str], Store]) -> None:
    block = bytes(range(256)) * 4096
    store.put("big", (block for _ in range(40)))
    other = make_store("other")

    other.copy("copy", store, "big", digest=sha(block * 40), size=40 * len(block))

    assert other.stat("copy").size == 40 * len(block)
    assert other.read_range("copy", 39 * len(block) - 1, 3) == b"\xff\x00\x01"
    with other.open("copy") as stream:
        assert sha(stream.read()) == sha(block * 40)


def test_missing_files_are_not_found(store: Store) -> None:
    for action in (store.stat, store.read, lambda path: store.read_range(path, 0, 1)):
        with pytest.raises(NotFoundError):
            action("nothing/here")
    with pytest.raises(NotFoundError), store.open("nothing/here"):
        pass
    assert list(store.list()) == []
    assert store.children("nothing") == ([], [])


def test_delete_is_idempotent(store: Store) -> None:
    store.create("a/b", b"x")

    store.delete("a/b")
    store.delete("a/b")

    assert list(store.list()) == []
    assert store.children()[1] == []


def test_a_file_above_the_limit_is_refused_before_it_fills_memory(store: Store) -> None:
    store.create("a", b"12345")

    with pytest.raises(TooLargeError):
        store.read("a", limit=4)
    assert store.read("a", limit=5) == b"12345"


def test_listing_comes_in_path_order_and_only_below_the_prefix(store: Store) -> None:
    paths = ["a", "a-b/c", "a.b", "a/b", "a/b.c", "a/b/c", "ab", "b/a"]
    for path in reversed(paths):
        store.put(path, [b"x"]) if path not in ("a", "a/b") else None
    expected = [path for path in paths if path not in ("a", "a/b")]

    assert [entry.path for entry in store.list()] == sorted(expected)
    assert [entry.path for entry in store.list("a")] == ["a/b.c", "a/b/c"]


def test_children_tells_folders_from_files(store: Store) -> None:
    for path in ("top", "f/one", "f/sub/two", "f/sub/three"):
        store.put(path, [b"x"])

    folders, files = store.children("f")

    assert folders == ["sub"]
    assert [entry.path for entry in files] == ["f/one"]
    assert store.children()[0] == ["f"]


def test_a_child_store_sees_only_its_folder(store: Store) -> None:
    store.put("f/one", [b"x"])
    child = store.child("f")

    child.put("two", [b"y"])

    assert [entry.path for entry in child.list()] == ["one", "two"]
    assert store.read("f/two") == b"y"
    assert child.uri == f"{store.uri}/f"
    assert store.child("") is store


def test_the_stamp_tells_one_version_from_another(store: Store) -> None:
    store.put("a", [b"one"])
    first = store.stat("a").stamp
    store.put("a", [b"two"])

    data, stamp = store.read_stamped("a")

    assert data == b"two"
    assert stamp == store.stat("a").stamp != first
    assert next(iter(store.list())).stamp == stamp
    with store.open_stamped("a") as (_, entry):
        assert entry.stamp == stamp


def test_ranges_end_where_the_file_ends(store: Store) -> None:
    store.put("a", [b"0123456789"])

    assert store.read_range("a", 3, 4) == b"3456"
    assert store.read_range("a", 8, 10) == b"89"
    assert store.read_range("a", 20, 5) == b""
    assert store.read_range("a", 2, 0) == b""


def test_take_names_the_content_by_its_digest(
    store: Store, make_store: Callable[[str], Store]
) -> None:
    source = make_store("source")
    source.put("state/1.delta", [b"content"])

    taken = store.take(source, "state/1.delta", name=lambda digest: f"objects/{digest}")

    assert taken.digest == sha(b"content")
    assert (taken.size, taken.existed) == (7, False)
    assert taken.stamp == source.stat("state/1.delta").stamp
    assert store.read(f"objects/{taken.digest}") == b"content"


def test_take_refreshes_what_exists_and_skips_what_is_not_wanted(
    store: Store, make_store: Callable[[str], Store]
) -> None:
    source = make_store("source")
    source.put("a", [b"content"])
    store.take(source, "a", name=lambda digest: digest)

    again = store.take(source, "a", name=lambda digest: digest)
    unwanted = store.take(source, "a", name=lambda digest: None)

    assert again.existed
    assert (unwanted.path, unwanted.digest) == (None, again.digest)
    assert [entry.path for entry in store.list()] == [again.digest]


def test_take_of_a_missing_file_is_not_found_and_leaves_nothing(
    store: Store, make_store: Callable[[str], Store]
) -> None:
    with pytest.raises(NotFoundError):
        store.take(make_store("source"), "purged", name=lambda digest: digest)
    assert list(store.list()) == []


def test_touch_makes_a_file_young_again(store: Store) -> None:
    store.put("a", [b"x"])
    before = store.stat("a").modified
    time.sleep(1.1)  # S3 counts in whole seconds

    assert store.touch("a")

    assert store.stat("a").modified > before
    assert store.read("a") == b"x"
    assert not store.touch("nothing")


def test_sync_of_an_empty_store_is_harmless(store: Store) -> None:
    store.sync()

    assert list(store.abandoned()) == []


@pytest.mark.parametrize("path", BAD_PATHS)
def test_bad_paths_are_refused_before_anything_happens(store: Store, path: str) -> None:
    for action in (
        lambda: store.stat(path),
        lambda: store.read(path),
        lambda: store.create(path, b""),
        lambda: store.put(path, [b""]),
        lambda: store.delete(path),
        lambda: store.touch(path),
    ):
        with pytest.raises(BadLocationError):
            action()
    assert list(store.list()) == []


NAMES = st.text(
    st.characters(codec="utf-8", exclude_categories=("Cc", "Cs"), exclude_characters="/\\"),
    min_size=1,
    max_size=20,
).filter(lambda name: name not in (".", ".."))


@given(name=NAMES, data=st.binary(max_size=100))
@settings(
    max_examples=12,
    deadline=None,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
def test_any_decent_name_round_trips(store: Store, name: str, data: bytes) -> None:
    folder = uuid.uuid4().hex
    path = f"{folder}/{name}"
    store.put(path, [data])

    assert store.read(path) == data
    assert [entry.path for entry in store.list(folder)] == [path]


def test_sizes_are_told_of_those_that_exist(store: Store) -> None:
    store.put("a/1", [b"one"])
    store.put("a/b/2", [b""])
    store.put("c/3", [b"three"])

    assert store.sizes("a", ["a/1", "a/b/2", "a/none"]) == {"a/1": 3, "a/b/2": 0, "a/none": None}
    assert store.sizes("none", ["none/1"]) == {"none/1": None}
