"""What is refused before the script is touched, and how that is said. In this process: no Spark."""

import socket
from pathlib import Path
from types import SimpleNamespace

import pytest

from sparkpoint.runtime import launch
from sparkpoint.runtime.errors import RefusedError
from sparkpoint.runtime.model import EndReason, Termination
from sparkpoint.runtime.options import Options, RehearsalOptions

LEAST = ["--epoch", "1", "--job", "tests/job", "--termination-log", "last"]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a script that must not run."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(launch, "_log_to_stderr", lambda: None)
    (tmp_path / "script.py").write_text("raise AssertionError('it ran')")
    return tmp_path


def refused(*options: str, epoch_dir: str = "epoch") -> str:
    """The sentence with which it is refused."""
    code = launch.main([*LEAST, "--epoch-dir", epoch_dir, *options, "--", "script.py"])
    termination = Termination.model_validate_json(Path("last").read_text())
    assert (code, termination.exit_code) == (83, 83)
    assert termination.reason is EndReason.REFUSED
    return termination.message


def test_a_command_line_that_makes_no_sense() -> None:
    assert "--expect is 'much'" in refused("--expect", "much")


def test_the_last_word_is_written_wherever_the_command_line_says_so() -> None:
    assert launch.main(["--termination-log=there", "--colour", "--", "script.py"]) == 83

    told = Termination.model_validate_json(Path("there").read_text())
    assert "'--colour' is not an option" in told.message


def test_an_epoch_directory_that_should_be_empty(folder: Path) -> None:
    (folder / "epoch" / "visits").mkdir(parents=True)
    (folder / "epoch" / "visits" / "metadata").write_text("{}")

    assert "should be empty, but holds visits" in refused("--expect", "empty")


def test_an_epoch_directory_that_should_be_restored(folder: Path) -> None:
    (folder / "epoch" / "visits").mkdir(parents=True)
    (folder / "epoch" / "visits" / "other").write_text("{}")

    assert "should hold restored checkpoints" in refused("--expect", "restored")


def test_an_epoch_directory_that_cannot_be_one(folder: Path) -> None:
    (folder / "file").write_text("")

    assert "file/epoch cannot be used" in refused(epoch_dir="file/epoch")
    assert "unknown scheme" in refused(epoch_dir="gopher://x/y")


def test_an_agent_that_cannot_listen_or_has_no_token(folder: Path) -> None:
    (folder / "token").write_text("secret\n")
    (folder / "empty").write_text("\n")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        agent = ["--agent-port", port, "--token-file"]

        assert f"cannot listen on 127.0.0.1:{port}" in refused(*agent, "token")
        assert "token is empty" in refused(*agent, "empty")
        assert "token cannot be read from absent" in refused(*agent, "absent")


def test_a_file_for_the_agents_url_that_cannot_be_written(folder: Path) -> None:
    (folder / "token").write_text("secret\n")
    agent = ["--agent-port", "0", "--token-file", "token", "--agent-url-file", "absent/url"]

    assert "URL cannot be written to absent/url" in refused(*agent)


def test_an_epoch_directory_that_a_rehearsal_cannot_be_beside() -> None:
    rehearsal = RehearsalOptions(savepoint="nightly", repository="/r")
    options = Options(epoch_dir="s3://b", epoch=1, job="a/b", script="s", rehearsal=rehearsal)

    with pytest.raises(RefusedError, match="no place for a rehearsal beside"):
        launch._scratch(SimpleNamespace(uri="s3://b"), options)
