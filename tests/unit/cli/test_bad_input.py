"""Bad input: a sentence with path and way out; after the fix, the same command works."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from sparkpoint.storage import DirectoryStore
from tests.unit.cli.running import Outcome, make_checkpoint, names, run, run_well
from tests.unit.savepoint.synthetic import SyntheticQuery

CREATE = ("savepoint", "create", "--checkpoint", "ck", "--repository", "r", "--name", "one")


def refused(outcome: Outcome, code: int, *words: str) -> None:
    """It failed as it should: the code, one sentence, nothing on stdout."""
    assert outcome.code == code, outcome.err
    assert outcome.out == ""
    assert outcome.err.startswith("Error: ")
    assert "Traceback" not in outcome.err
    for word in words:
        assert word in outcome.err


def whole_afterwards() -> None:
    """The same command works now, and the repository is whole."""
    run_well(*CREATE)
    run_well("savepoint", "verify", "--all", "--repository", "r")
    assert names("savepoint", "list", "--repository", "r") == ["one"]


def test_a_place_without_checkpoint(here: Path) -> None:
    (here / "ck").mkdir()

    refused(run(*CREATE), 4, str(here / "ck"), "Check the path")
    refused(run("checkpoint", "show", "ck"), 4, str(here / "ck"), "Check the path")

    assert not (here / "r").exists()
    make_checkpoint(here / "ck")
    whole_afterwards()


def test_a_checkpoint_without_a_committed_batch(here: Path) -> None:
    query = SyntheticQuery(here / "ck")
    query.begin(0)

    refused(run(*CREATE), 4, str(here / "ck"), "Let it finish its first batch")

    query.batch()
    whole_afterwards()


@pytest.mark.parametrize(
    ("option", "value", "word"),
    [
        ("--parent", "", "empty"),
        ("--revision", "a\nb", "line breaks"),
        ("--revision", "\x1b[31m", "control"),
        ("--revision", "a\u2028b", "line breaks"),
        ("--revision", "a\u202eb", "direction"),
        ("--revision", "a\u2066b", "direction"),
        ("--revision", "\udcff", "bytes"),
    ],
)
def test_words_that_would_mislead(here: Path, option: str, value: str, word: str) -> None:
    make_checkpoint(here / "ck")

    outcome = run(*CREATE, option, value)

    assert outcome.code == 2
    assert word in outcome.err
    assert not (here / "r").exists()
    whole_afterwards()


@pytest.mark.parametrize(
    "revision",
    [
        "1\N{NO-BREAK SPACE}000",
        "版\N{IDEOGRAPHIC SPACE}2",
        "a\N{SOFT HYPHEN}b",
        "👩\N{ZERO WIDTH JOINER}💻",
    ],
)
def test_a_revision_is_any_text_of_one_line(here: Path, revision: str) -> None:
    make_checkpoint(here / "ck")

    made = run_well(*CREATE, "--revision", revision, "--json").document

    assert made["savepoint"]["revision"] == revision


def test_a_query_that_is_not_there(here: Path) -> None:
    make_checkpoint(here / "ck/clicks")
    make_checkpoint(here / "ck/visits")

    refused(run(*CREATE, "--query", "visit"), 4, str(here / "ck"), "'visit'", "clicks, visits")

    run_well(*CREATE, "--query", "visits")


@pytest.mark.parametrize(
    ("path", "code", "words"),
    [
        ("state/0/0/6.changelog", 5, ["state/0/0/6.changelog", "restore an older savepoint"]),
        ("offsets/5", 5, ["offsets/5"]),
        ("metadata", 5, ["metadata"]),
    ],
)
def test_a_file_that_is_missing(here: Path, path: str, code: int, words: list[str]) -> None:
    make_checkpoint(here / "ck")
    content = (here / "ck" / path).read_bytes()
    (here / "ck" / path).unlink()

    outcome = run(*CREATE)
    refused(outcome, code, str(here / "ck"), *words)
    assert "plan again" not in outcome.err

    (here / "ck" / path).write_bytes(content)
    whole_afterwards()


@pytest.mark.parametrize("path", ["offsets/5", "commits/5", "state/0/1/4.zip", "metadata"])
@pytest.mark.parametrize("kept", [0, 20])
def test_a_file_that_is_truncated(here: Path, path: str, kept: int) -> None:
    make_checkpoint(here / "ck")
    file = here / "ck" / path
    content = file.read_bytes()
    file.write_bytes(content[:kept])

    refused(run(*CREATE), 5, str(here / "ck"), path)
    assert path in run_well("checkpoint", "show", "ck").out

    file.write_bytes(content)
    whole_afterwards()


@pytest.mark.parametrize("path", ["offsets/5", "commits/5"])
def test_a_log_of_an_unknown_version(here: Path, path: str) -> None:
    make_checkpoint(here / "ck")
    file = here / "ck" / path
    content = file.read_bytes()
    file.write_bytes(b"v9" + content[2:])

    refused(run(*CREATE), 3, str(here / "ck"), path, "v9", "newer Sparkpoint")

    file.write_bytes(content)
    whole_afterwards()


def test_a_repository_of_a_newer_format(here: Path) -> None:
    make_checkpoint(here / "ck")
    (here / "r").mkdir()
    (here / "r/repository.json").write_text('{"format": 3, "id": "x"}')

    refused(run(*CREATE), 3, str(here / "r/repository.json"), "Update Sparkpoint")
    refused(run("savepoint", "list", "--repository", "r"), 3, "Update Sparkpoint")

    (here / "r/repository.json").unlink()
    whole_afterwards()


def test_a_place_that_is_no_repository(here: Path) -> None:
    make_checkpoint(here / "ck")
    make_checkpoint(here / "r")

    refused(run("savepoint", "list", "--repository", "r"), 4, str(here / "r"), "Check the location")
    refused(run(*CREATE), 3, str(here / "r"), "Choose an empty place")
    refused(run("savepoint", "list", "--repository", "none"), 4, str(here / "none"))
    refused(run("savepoint", "list", "--repository", "ftp://x/y"), 2, "ftp://x/y", "s3://")


def test_a_target_that_is_not_empty(repository: Path, here: Path) -> None:
    (here / "back").mkdir()
    (here / "back/precious").write_text("mine")
    restore = ("savepoint", "restore", "before-upgrade", "--to", "back")

    refused(run(*restore), 3, str(here / "back"), "precious", "Restore into a new place")

    assert (here / "back/precious").read_text() == "mine"
    (here / "back/precious").unlink()
    run_well(*restore)


@pytest.mark.parametrize(
    "inside", ["savepoints/objects/restored", "savepoints/savepoints/x", "checkpoints/visits/a/b"]
)
def test_a_place_inside_a_repository_or_a_checkpoint(
    repository: Path, checkpoint: Path, here: Path, inside: str
) -> None:
    whole = sorted(here.rglob("*"))
    outer = "checkpoints/visits" if inside.startswith("checkpoints") else "savepoints"
    words = (f"{here}/{inside} is inside {here}/{outer}", "Choose a place outside")

    refused(run("savepoint", "restore", "before-upgrade", "--to", inside), 3, *words)
    create = ("savepoint", "create", "--checkpoint", checkpoint, "--name", "two")
    refused(run(*create, "--repository", inside), 3, *words)
    refused(run("savepoint", "copy", "before-upgrade", "--to", inside), 3, *words)

    assert [path for path in sorted(here.rglob("*")) if path not in whole] == []
    assert names("savepoint", "list") == ["before-upgrade"]


@pytest.mark.parametrize("name", ["metadata", "repository.json"])
def test_a_place_below_a_link_with_one_of_our_names(
    repository: Path, here: Path, name: str
) -> None:
    (here / "above").mkdir()
    (here / "above" / name).symlink_to("/")

    run_well("savepoint", "restore", "before-upgrade", "--to", "above/target")


def test_a_place_beside_checkpoints_and_files_of_others_with_our_names(
    repository: Path, here: Path
) -> None:
    (here / "repository.json").write_text('{"name": "of something else"}')
    (here / "metadata").write_text("of something else")

    for target in ("checkpoints/other", "checkpoints/epoch-2/visits", "checkpoints/epoch-2/clicks"):
        run_well("savepoint", "restore", "before-upgrade", "--to", target)


def test_a_target_where_a_query_has_run_since(repository: Path, here: Path) -> None:
    restore = ("savepoint", "restore", "before-upgrade", "--to", "back")
    run_well(*restore)
    (here / "back/offsets/6").write_text("v1\n{}")

    refused(run(*restore), 3, str(here / "back"), "offsets/6", "new place")


def test_a_name_that_is_taken(repository: Path, checkpoint: Path) -> None:
    create = ("savepoint", "create", "--checkpoint", checkpoint, "--name", "before-upgrade")

    refused(run(*create), 3, str(repository), "before-upgrade.json", "Choose another name")

    run_well("savepoint", "delete", "before-upgrade")
    run_well(*create)
    run_well("savepoint", "verify", "--all")


@pytest.mark.parametrize("name", ["Upper", "", "-x", "a/b", "..", "ü", "x" * 200, "a\x1b[31m"])
def test_a_name_that_cannot_be_one(checkpoint: Path, name: str) -> None:
    create = ("savepoint", "create", "--checkpoint", checkpoint, "--repository", "r")

    refused(run(*create, "--name", name), 2, "name of a savepoint")

    assert "\x1b" not in run(*create, "--name", name).err


@pytest.mark.parametrize("name", ["latest", "none", "continued"])
def test_a_name_that_stands_for_something_else(repository: Path, name: str) -> None:
    create = run("savepoint", "create", "--checkpoint", "checkpoints/visits", "--name", name)
    moved = run("state", "repartition", "before-upgrade", "--partitions", "3", "--name", name)

    assert (create.code, moved.code) == (2, 2)
    assert f"{name!r} cannot be the name of a savepoint" in create.err


def test_a_place_with_a_nul_in_it(here: Path) -> None:
    refused(run("savepoint", "list", "--repository", "file:///tmp/a%00b"), 2, "a%00b", "NUL")


def test_a_repository_that_is_not_given(here: Path) -> None:
    outcome = run("savepoint", "list")

    assert outcome.code == 2
    assert "Missing option '--repository'. Give it, or set SPARKPOINT_REPOSITORY." in outcome.err


@pytest.mark.parametrize(
    ("url", "code", "words"),
    [
        ("localhost:8333", 2, ["'localhost:8333'", "http://localhost:8333"]),
        ("http://127.0.0.1:1", 1, ["s3://x/y", "Check the endpoint URL and that the server is up"]),
    ],
)
def test_a_server_that_is_not_there(
    monkeypatch: pytest.MonkeyPatch, url: str, code: int, words: list[str]
) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "a")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "b")
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "1")

    outcome = run("savepoint", "list", "--repository", "s3://x/y", "--endpoint-url", url)

    refused(outcome, code, *words)


@pytest.mark.parametrize("place", ["afile", "afile/below"])
def test_a_place_that_is_a_file(repository: Path, here: Path, place: str) -> None:
    (here / "afile").write_text("mine")
    create = ("savepoint", "create", "--checkpoint", "checkpoints/visits", "--repository")

    refused(run(*create, place), 2, repr(place), "is a file", "Name a folder")
    refused(run("savepoint", "list", "--repository", place), 2, repr(place), "is a file")
    restore = ("savepoint", "restore", "before-upgrade", "--to")
    refused(run(*restore, place), 2, repr(place), "is a file")


@pytest.fixture
def small_disk(here: Path) -> Iterator[Callable[[str], None]]:
    """`small`, a file system of its own that is too small until it is resized."""
    mount = here / "small"
    mount.mkdir()

    def resize(size: str) -> None:
        options = f"remount,size={size}" if mount.is_mount() else f"size={size}"
        subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", mount], check=True)

    resize("96k")
    yield resize
    subprocess.run(["umount", mount], check=True)


needs_mount = pytest.mark.skipif(
    os.geteuid() != 0, reason="only root may mount; the file limit below covers the rest"
)


@needs_mount
def test_a_disk_that_is_full_in_the_middle_of_a_capture(
    checkpoint: Path, small_disk: Callable[[str], None]
) -> None:
    create = ("savepoint", "create", "--checkpoint", checkpoint, "--repository", "small/r")

    refused(run(*create), 1, "small/r", "no space left", "Free some first")

    small_disk("8m")
    run_well(*create)
    run_well("savepoint", "verify", "--all", "--repository", "small/r")


@needs_mount
def test_a_disk_that_is_full_in_the_middle_of_a_restore(
    repository: Path, small_disk: Callable[[str], None]
) -> None:
    restore = ("savepoint", "restore", "before-upgrade", "--to", "small/back")

    refused(run(*restore), 1, "small/back", "no space left", "Free some first")

    small_disk("8m")
    run_well(*restore)
    assert (
        run_well("checkpoint", "show", "small/back", "--json").document["queries"][0]["batch"] == 5
    )


def test_a_disk_that_refuses_to_write_on(checkpoint: Path, here: Path) -> None:
    create = ("savepoint", "create", "--checkpoint", checkpoint, "--repository", "r")
    program = "import resource, sys; from sparkpoint.cli.main import main; " + (
        "resource.setrlimit(resource.RLIMIT_FSIZE, (30000, 30000)); sys.exit(main(sys.argv[1:]))"
    )

    limited = subprocess.run(
        [sys.executable, "-c", program, *map(str, create)],
        capture_output=True,
        text=True,
        check=False,
    )

    refused(Outcome(limited.returncode, limited.stdout, limited.stderr), 1, str(here / "r"))
    run_well(*create)
    run_well("savepoint", "verify", "--all", "--repository", "r")


def test_ctrl_c_just_before_the_savepoint_appears(
    checkpoint: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    create = (
        "savepoint",
        "create",
        "--checkpoint",
        checkpoint,
        "--repository",
        "r",
        "--name",
        "one",
    )
    original = DirectoryStore.create

    def interrupt(store: DirectoryStore, path: str, data: bytes) -> None:
        if path.startswith("savepoints/"):
            raise KeyboardInterrupt
        original(store, path, data)

    with monkeypatch.context() as patch:
        patch.setattr(DirectoryStore, "create", interrupt)
        outcome = run(*create)

    assert outcome.code == 130
    assert "Nothing half-done" in outcome.err
    assert names("savepoint", "list", "--repository", "r") == []
    run_well(*create)
    run_well("savepoint", "verify", "--all", "--repository", "r")
