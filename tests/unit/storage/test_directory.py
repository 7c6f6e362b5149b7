"""What only a directory can do wrong: links, leftovers, full disks, odd files."""

import contextlib
import errno
import os
from collections.abc import Iterable
from pathlib import Path

import pytest

from sparkpoint.storage import DirectoryStore, _files, _linux, _root, open_store
from sparkpoint.storage.digest import digest_of
from sparkpoint.storage.errors import (
    AccessDeniedError,
    AlreadyExistsError,
    BadLocationError,
    ChangedError,
    FullError,
    NotFoundError,
    UnavailableError,
    UnsupportedError,
)


@pytest.fixture
def store(tmp_path: Path) -> DirectoryStore:
    return DirectoryStore(tmp_path / "root")


def test_a_link_that_leads_out_is_refused_everywhere(store: DirectoryStore, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("x")
    (tmp_path / "outside").mkdir()
    Path(store.uri).mkdir()
    Path(store.uri, "file").symlink_to(tmp_path / "secret")
    Path(store.uri, "folder").symlink_to(tmp_path / "outside")

    for action in (
        lambda: store.read("file"),
        lambda: store.stat("file"),
        lambda: list(store.list()),
        lambda: store.put("folder/new", [b"x"]),
        lambda: store.put("folder/new", [b"x"], draft=True),
        lambda: store.create("folder/new", b"x"),
        lambda: store.child("folder"),
    ):
        with pytest.raises(BadLocationError, match="symbolic link"):
            action()
    assert list((tmp_path / "outside").iterdir()) == []


def test_a_link_that_stays_inside_is_followed(store: DirectoryStore) -> None:
    store.put("real", [b"x"])
    Path(store.uri, "alias").symlink_to("real")

    assert store.read("alias") == b"x"
    assert [entry.path for entry in store.list()] == ["alias", "real"]


def test_a_linked_folder_is_refused_and_not_left_out(store: DirectoryStore) -> None:
    store.put("moved/0/file", [b"x"])
    Path(store.uri, "state").mkdir()
    Path(store.uri, "state/0").symlink_to("../moved/0")

    for listing in (lambda: list(store.list()), lambda: store.children("state")):
        with pytest.raises(BadLocationError, match="state/0 is a symbolic link to a folder"):
            listing()


def test_the_root_may_itself_be_a_link(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")

    DirectoryStore(tmp_path / "link").put("a", [b"x"])

    assert (tmp_path / "real/a").read_bytes() == b"x"


def test_what_a_killed_writer_left_is_shown_only_as_abandoned(store: DirectoryStore) -> None:
    store.put("a", [b"x"])
    Path(store.uri, ".sparkpoint-tmp/1234").write_bytes(b"half")

    left = list(store.abandoned())

    assert [entry.path for entry in store.list()] == ["a"]
    assert store.children()[0] == []
    assert [entry.size for entry in left] == [4]
    store.discard(left[0])
    assert list(store.abandoned()) == []
    with pytest.raises(BadLocationError):
        store.read(".sparkpoint-tmp/1234")


@pytest.mark.parametrize("chunks", [[b"x", b"y"], iter([b"x", b"y"])], ids=["a list", "a stream"])
def test_a_full_disk_is_said_plainly_and_leaves_nothing(
    store: DirectoryStore, monkeypatch: pytest.MonkeyPatch, chunks: Iterable[bytes]
) -> None:
    def full(descriptor: int, data: object) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("sparkpoint.storage._files.os.write", full)
    monkeypatch.setattr("sparkpoint.storage._files.os.writev", full)
    with pytest.raises(FullError, match="no space left"):
        store.put("a", chunks)
    monkeypatch.undo()

    assert list(store.list()) == []
    assert list(store.abandoned()) == []


def test_a_link_out_of_a_folder_that_was_used_before_is_refused(
    store: DirectoryStore, tmp_path: Path
) -> None:
    (tmp_path / "outside" / "below").mkdir(parents=True)
    (tmp_path / "outside" / "below" / "a").write_text("x")
    store.put("in/side/a", [b"y"])
    Path(store.uri, "in", "link").symlink_to(tmp_path / "outside")
    Path(store.uri, "in", "round").symlink_to(Path(store.uri, "in"))

    assert store.read("in/side/a") == b"y"
    assert store.read("in/round/side/a") == b"y"
    for path in ("in/link/a", "in/link/below/a", "in/round/link/below/a"):
        with pytest.raises(BadLocationError, match="leads out"):
            store.read(path)


@pytest.mark.parametrize("taken", [0, 1, 5, 10**9])
def test_many_parts_are_written_whole_whatever_the_kernel_takes_at_once(
    store: DirectoryStore, monkeypatch: pytest.MonkeyPatch, taken: int
) -> None:
    def writev(descriptor: int, parts: list[bytes]) -> int:
        assert len(parts) <= os.sysconf("SC_IOV_MAX")
        return os.write(descriptor, b"".join(parts)[:taken])

    monkeypatch.setattr("sparkpoint.storage._files.os.writev", writev)
    parts = [b"%d," % number for number in range(3000)]

    assert store.put("a", parts) == len(b"".join(parts))

    assert store.read("a") == b"".join(parts)


def test_a_named_pipe_does_not_hold_the_reader(store: DirectoryStore) -> None:
    store.put("a", [b"x"])
    os.mkfifo(Path(store.uri, "pipe"))

    with pytest.raises(NotFoundError):
        store.read("pipe")
    assert [entry.path for entry in store.list()] == ["a"]


def test_a_copy_that_is_not_what_was_asked_for_is_refused(
    store: DirectoryStore, tmp_path: Path
) -> None:
    source = DirectoryStore(tmp_path / "source")
    source.put("a", [b"damaged"])

    with pytest.raises(ChangedError, match="is damaged"):
        store.copy("b", source, "a", digest="0" * 64, size=7)
    assert list(store.list()) == []


def test_shared_blocks_are_read_before_they_are_trusted(
    store: DirectoryStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def share(source: int, target: int) -> bool:
        os.write(target, os.pread(source, 100, 0))
        return True

    monkeypatch.setattr(_files, "reflink", share)
    source = DirectoryStore(tmp_path / "source")
    source.put("a", [b"damaged"])

    with pytest.raises(ChangedError, match=f"{source.uri}/a is damaged"):
        store.copy("b", source, "a", digest="0" * 64, size=7, draft=True)
    assert list(store.list()) == []


def test_errors_of_a_source_name_the_source(store: DirectoryStore, tmp_path: Path) -> None:
    source = DirectoryStore(tmp_path / "source")

    with pytest.raises(NotFoundError, match=f"{source.uri}/purged does not exist"):
        store.take(source, "purged", name=lambda digest: digest)
    with pytest.raises(NotFoundError, match=f"{source.uri}/purged does not exist"):
        store.copy("b", source, "purged", digest="0" * 64, size=7)


def test_errors_half_way_name_the_side_on_which_they_happened(
    store: DirectoryStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> int:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    source = DirectoryStore(tmp_path / "source")
    source.put("a", [b"content"])

    with monkeypatch.context() as patch:
        patch.setattr("sparkpoint.storage._files.os.readv", broken)
        with pytest.raises(UnavailableError, match=f"{source.uri}/a could not be used"):
            store.take(source, "a", name=lambda digest: digest)
    with monkeypatch.context() as patch:
        patch.setattr("sparkpoint.storage._files.os.write", full)
        with pytest.raises(FullError, match=f"{store.uri} cannot be written"):
            store.take(source, "a", name=lambda digest: digest)


LONG = bytes(range(256)) * 4096


@pytest.mark.parametrize("can_allocate", [True, False])
def test_a_long_file_is_copied_whether_room_can_be_made_first_or_not(
    store: DirectoryStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, can_allocate: bool
) -> None:
    asked: list[int] = []

    def allocate(descriptor: int, size: int) -> bool:
        asked.append(size)
        return can_allocate and _linux.allocate(descriptor, size)

    monkeypatch.setattr(_files, "allocate", allocate)
    source = DirectoryStore(tmp_path / "source")
    source.put("a", [LONG])

    taken = store.take(source, "a", name=lambda digest: "b")

    assert asked == [len(LONG)]
    assert (taken.digest, taken.size) == (digest_of(LONG), len(LONG))
    assert store.read("b") == LONG


def test_room_that_was_made_for_more_than_came_is_given_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with (tmp_path / "a").open("wb+") as source, (tmp_path / "b").open("wb+") as target:
        source.write(LONG)
        source.seek(0)
        readv = os.readv

        def shrink(descriptor: int, buffers: list[memoryview]) -> int:
            os.ftruncate(descriptor, _files.CHUNK)
            return readv(descriptor, buffers)

        monkeypatch.setattr("sparkpoint.storage._files.os.readv", shrink)
        found = _files.copy_and_hash(
            source.fileno(), target.fileno(), reading=contextlib.nullcontext()
        )

    assert found == (digest_of(LONG[: _files.CHUNK]), _files.CHUNK)
    assert (tmp_path / "b").read_bytes() == LONG[: _files.CHUNK]


def test_a_disk_without_room_for_a_file_is_full_before_a_byte_is_copied(
    store: DirectoryStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(descriptor: int, size: int) -> bool:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(_files, "allocate", full)
    source = DirectoryStore(tmp_path / "source")
    source.put("a", [LONG])

    with pytest.raises(FullError, match="no space left"):
        store.copy("b", source, "a", digest=digest_of(LONG), size=len(LONG), draft=True)
    assert list(store.list()) == []


def test_what_no_file_system_has_room_for_is_refused_by_the_kernel(tmp_path: Path) -> None:
    with (tmp_path / "a").open("wb+") as target:
        assert _linux.allocate(target.fileno(), 4096)
        with pytest.raises(OSError, match=r"[Nn]o space|too large"):
            _linux.allocate(target.fileno(), 2**60)
    with (tmp_path / "a").open("rb") as reader, pytest.raises(OSError, match="descriptor"):
        _linux.allocate(reader.fileno(), 4096)


def test_a_draft_leaves_other_names_of_the_old_file_alone(
    store: DirectoryStore, tmp_path: Path
) -> None:
    store.put("linked", [b"old"])
    (tmp_path / "backup").hardlink_to(Path(store.uri, "linked"))
    (tmp_path / "outside").write_bytes(b"untouched")
    Path(store.uri, "symbolic").symlink_to(tmp_path / "outside")

    for name in ("linked", "symbolic"):
        store.put(name, [b"new"], draft=True)

        assert store.read(name) == b"new"
    assert (tmp_path / "backup").read_bytes() == b"old"
    assert (tmp_path / "outside").read_bytes() == b"untouched"


def test_file_systems_without_links_get_an_exclusive_rename(
    store: DirectoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unsupported(source: str, target: str) -> None:
        raise OSError(errno.EPERM, os.strerror(errno.EPERM))

    monkeypatch.setattr("sparkpoint.storage._root.os.link", unsupported)
    store.create("a", b"first")
    with pytest.raises(AlreadyExistsError):
        store.create("a", b"second")
    monkeypatch.setattr(_root, "rename_noreplace", lambda source, target: False)

    with pytest.raises(UnsupportedError, match="neither link nor rename"):
        store.create("b", b"x")
    assert store.read("a") == b"first"


def test_copying_works_where_the_kernel_cannot_copy_by_itself(
    store: DirectoryStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unsupported(*arguments: object) -> int:
        raise OSError(errno.EXDEV, os.strerror(errno.EXDEV))

    monkeypatch.setattr("sparkpoint.storage._files.os.copy_file_range", unsupported)
    source = DirectoryStore(tmp_path / "source")
    source.put("a", [os.urandom(3_000_000)])

    taken = store.take(source, "a", name=lambda digest: digest)

    assert store.read(taken.digest) == source.read("a")


def test_a_file_where_a_folder_should_be_is_not_found(store: DirectoryStore) -> None:
    store.put("a", [b"x"])

    with pytest.raises(NotFoundError):
        store.read("a/b")


def test_a_file_without_permission_is_denied(
    store: DirectoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    def denied(*arguments: object) -> int:
        raise OSError(errno.EACCES, os.strerror(errno.EACCES))

    store.put("a", [b"x"])
    # Tests may run as root, who may read everything.
    monkeypatch.setattr("sparkpoint.storage._root.os.open", denied)

    with pytest.raises(AccessDeniedError):
        store.read("a")


@pytest.mark.parametrize(
    ("uri", "path"),
    [
        ("file:/data/ck", "/data/ck"),
        ("file:///data/ck", "/data/ck"),
        ("file://localhost/data/a%20b", "/data/a b"),
        ("file:/data/a%20b", "/data/a%20b"),
        ("/data/with:colon", "/data/with:colon"),
    ],
)
def test_paths_and_file_uris_are_understood(uri: str, path: str) -> None:
    store = open_store(uri)

    assert store.uri == path
    assert store.hadoop_uri == f"file:{path}"


@pytest.mark.parametrize(
    "uri", ["", " ", "a\0b", "hdfs://host/ck", "file://host/ck", "file:relative", "s3://", "s3:x"]
)
def test_other_locations_are_refused_by_name(uri: str) -> None:
    with pytest.raises(BadLocationError):
        open_store(uri)
