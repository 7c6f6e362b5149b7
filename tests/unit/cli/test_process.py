"""The program as a process: how quickly it answers, signals, pipes, terminals."""

import os
import pty
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from tests.unit.cli.running import run_well

BIN = Path(sys.executable).parent
PROGRAM = BIN / "sparkpoint"
HEAVY = ("boto3", "botocore", "pydantic", "sparkpoint.savepoint", "sparkpoint.storage")
QUICK = 0.25


def loaded(*arguments: str) -> set[str]:
    """Which of the heavy modules a command line loads."""
    code = (
        "import sys\n"
        "from sparkpoint.cli.main import main\n"
        f"main({list(arguments)!r})\n"
        f"print(*[m for m in {HEAVY!r} if m in sys.modules], file=sys.stderr)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(done.stderr.split())


@pytest.mark.parametrize("arguments", ["--help", "savepoint create --help", "completion bash"])
def test_help_and_completion_load_nothing_heavy(arguments: str) -> None:
    assert loaded(*arguments.split()) == set()


def test_a_directory_does_not_need_boto3(repository: Path) -> None:
    assert not loaded("savepoint", "list") & {"boto3", "botocore"}


def test_help_comes_at_once() -> None:
    spent = []
    for _ in range(3):
        process = subprocess.Popen([PROGRAM, "--help"], stdout=subprocess.DEVNULL)
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        # Processor time: how long others keep the machine busy is not our doing.
        spent.append(used.ru_utime + used.ru_stime)

    assert process.returncode == 0
    assert min(spent) < QUICK


def test_kubectl_runs_us_as_a_plug_in() -> None:
    done = subprocess.run([BIN / "kubectl-sparkpoint", "-h"], capture_output=True, check=True)

    assert done.stdout.startswith(b"Usage: kubectl sparkpoint [OPTIONS]")


def test_the_shell_completes_commands_and_options() -> None:
    def complete(words: str) -> list[str]:
        environment = os.environ | {
            "_SPARKPOINT_COMPLETE": "bash_complete",
            "COMP_WORDS": words,
            "COMP_CWORD": str(len(words.split()) - 1),
        }
        done = subprocess.run(
            [PROGRAM], env=environment, capture_output=True, text=True, check=True
        )
        return done.stdout.split()

    assert complete("sparkpoint sav") == ["plain,savepoint"]
    assert complete("sparkpoint savepoint restore --sink-po") == ["plain,--sink-policy"]


def test_ctrl_c_ends_with_130_and_a_word_of_comfort() -> None:
    with socket.create_server(("127.0.0.1", 0)) as mute:
        url = f"http://127.0.0.1:{mute.getsockname()[1]}"
        environment = os.environ | {"AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b"}
        process = subprocess.Popen(
            [PROGRAM, "savepoint", "list", "--repository", "s3://x/y", "--endpoint-url", url],
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        mute.settimeout(60)
        connection, _ = mute.accept()  # it waits for an answer that does not come
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
        connection.close()

    assert process.returncode == 130
    assert out == ""
    assert "Nothing half-done" in err
    assert "Traceback" not in err


@pytest.mark.parametrize("shape", [[], ["--json"]])
def test_a_reader_that_goes_away_is_no_drama(repository: Path, shape: list[str]) -> None:
    reading, writing = os.pipe()
    os.close(reading)

    done = subprocess.run(
        [PROGRAM, "savepoint", "list", *shape], stdout=writing, stderr=subprocess.PIPE, check=False
    )
    os.close(writing)

    assert done.stderr == b""
    assert done.returncode == 141


def on_terminal(*arguments: str) -> str:
    """What appears on stderr if that is a terminal."""
    master, slave = pty.openpty()
    done = subprocess.run([PROGRAM, *arguments], stdout=subprocess.PIPE, stderr=slave, check=True)
    os.close(slave)
    shown = b""
    try:
        while part := os.read(master, 65536):
            shown += part
    except OSError:  # how Linux says that the other side has closed
        pass
    os.close(master)
    assert done.stdout
    return shown.decode()


def test_a_person_at_a_terminal_sees_a_bar_that_vanishes(checkpoint: Path) -> None:
    shown = on_terminal(
        "savepoint", "create", "--checkpoint", str(checkpoint), "--repository", "r", "--name", "one"
    )

    assert "batch 5  [" in shown
    assert shown.endswith("\r\x1b[K")


def test_quiet_is_quiet_even_on_a_terminal(checkpoint: Path) -> None:
    create = ("savepoint", "create", "--checkpoint", str(checkpoint), "--repository", "r")

    assert on_terminal(*create, "--quiet") == ""


def test_a_pipe_sees_no_bar(checkpoint: Path) -> None:
    outcome = run_well("savepoint", "create", "--checkpoint", checkpoint, "--repository", "r")

    assert outcome.err == ""


def test_a_terminal_that_knows_no_unicode_gets_question_marks(repository: Path) -> None:
    run_well("savepoint", "create", "--checkpoint", "checkpoints/visits", "--revision", "größer")
    environment = os.environ | {"PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"}

    done = subprocess.run([PROGRAM, "log"], env=environment, capture_output=True, check=True)

    assert b"gr??er" in done.stdout
