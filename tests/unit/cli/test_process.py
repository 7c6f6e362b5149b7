"""The program as a process: how quickly it answers, signals, pipes, terminals."""

import io
import json
import os
import pty
import select
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from sparkpoint.cli.answer import Settings, write_text
from sparkpoint.cli.progress import Bar, shown_progress
from sparkpoint.savepoint.progress import Amount
from tests.support.ports import asked
from tests.unit.cli.running import run_well

BIN = Path(sys.executable).parent
PROGRAM = BIN / "sparkpoint"
HEAVY = ("boto3", "botocore", "pydantic", "sparkpoint.savepoint", "sparkpoint.storage")


def loaded(*lines: str) -> set[str]:
    """Which of the heavy modules these command lines load."""
    code = (
        "import sys\n"
        "from sparkpoint.cli.main import main\n"
        f"for line in {lines!r}:\n"
        "    main(line.split())\n"
        f"print(*[m for m in {HEAVY!r} if m in sys.modules], file=sys.stderr)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(done.stderr.split())


def test_help_and_completion_load_nothing_heavy() -> None:
    assert loaded("--help", "savepoint create --help", "completion bash", "--version") == set()


def test_a_directory_does_not_need_boto3(repository: Path) -> None:
    assert not loaded("savepoint list") & {"boto3", "botocore"}


def test_kubectl_runs_us_as_a_plug_in() -> None:
    done = subprocess.run([BIN / "kubectl-sparkpoint", "-h"], capture_output=True, check=True)

    assert done.stdout.startswith(b"Usage: kubectl sparkpoint [OPTIONS]")


def complete(words: str) -> list[str]:
    """What the program answers to bash; after a space, a new word begins."""
    environment = os.environ | {
        "_SPARKPOINT_COMPLETE": "bash_complete",
        "COMP_WORDS": words,
        "COMP_CWORD": str(len(words.split()) - (not words.endswith(" "))),
    }
    done = subprocess.run([PROGRAM], env=environment, capture_output=True, text=True, check=True)
    return done.stdout.split()


def test_the_shell_completes_commands_and_options() -> None:
    assert complete("sparkpoint sav") == ["plain,savepoint"]
    assert complete("sparkpoint savepoint restore --sink-po") == ["plain,--sink-policy"]


@pytest.mark.parametrize(
    "words",
    [
        "savepoint create --checkpoint ",
        "savepoint create --repository ",
        "savepoint restore x --to ",
        "savepoint copy x --from ",
        "checkpoint show ",
    ],
)
def test_the_shell_completes_folders(words: str) -> None:
    assert complete(f"sparkpoint {words}") == ["dir,"]


def test_the_shell_completes_names_of_savepoints(repository: Path, checkpoint: Path) -> None:
    create = ("savepoint", "create", "--checkpoint", checkpoint, "--name", "twice")
    run_well(*create, "--job", "a")
    run_well(*create, "--job", "b")

    show = complete("sparkpoint savepoint show ")

    assert show == ["plain,default/a/twice", "plain,default/b/twice", "plain,before-upgrade"]
    assert complete("sparkpoint savepoint delete before-upgrade bef") == ["plain,before-upgrade"]
    assert complete("sparkpoint savepoint show --repository none ") == []


def test_the_shell_completes_no_names_without_a_repository(
    repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SPARKPOINT_REPOSITORY")
    monkeypatch.chdir(repository)

    assert complete("sparkpoint savepoint show ") == []


def test_bash_completes_paths_where_we_have_nothing_to_say(here: Path) -> None:
    (here / "precious folder").mkdir()
    (here / "a file").touch()
    # Bash completes only for a person, so one is played: two tabs list what there is.
    script = here / "rc"
    script.write_text(run_well("completion", "bash").out + f"\nPATH={BIN}:$PATH\nPS1='$ '\n")
    master, slave = pty.openpty()
    process = subprocess.Popen(
        ["bash", "--noprofile", "--rcfile", script, "-i"],
        stdin=slave,
        stdout=slave,
        stderr=slave,
        start_new_session=True,
        env=os.environ | {"TERM": "dumb", "INPUTRC": "/dev/null"},
    )
    os.close(slave)

    def typed(text: str, until: str) -> str:
        os.write(master, text.encode())
        shown = ""
        while until not in shown:
            assert select.select([master], [], [], 120)[0], shown
            shown += os.read(master, 65536).decode()
        return shown

    typed("sparkpoint savepoint create --checkpoint prec\t", "precious\\ folder/")
    typed("\x15sparkpoint savepoint create --revision a\\ f\t", "a\\ file")
    process.kill()
    process.wait()
    os.close(master)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_while_modules_are_loaded_ends_it_without_a_word(number: signal.Signals) -> None:
    code = (
        "import os, sys\n"
        "from sparkpoint.cli.__main__ import main\n"
        "class Loading:\n"
        "    def find_spec(self, name, *_):\n"
        f"        if name == 'click': os.kill(os.getpid(), {int(number)})\n"
        "sys.meta_path.insert(0, Loading())\n"
        "sys.argv = ['sparkpoint', '--version']\n"
        "sys.exit(main())\n"
    )

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False)

    assert (done.returncode, done.stdout, done.stderr) == (128 + number, b"", b"")


def test_sigterm_ends_a_capture_with_143_and_leaves_no_lease(checkpoint: Path) -> None:
    code = (
        "import os, signal, sys\n"
        "from sparkpoint.cli.__main__ import main\n"
        "from sparkpoint.storage import DirectoryStore\n"
        "create = DirectoryStore.create\n"
        "def told(store, path, data):\n"
        "    if path.startswith('savepoints/'):\n"
        "        assert list(store.list('leases'))\n"
        "        os.kill(os.getpid(), signal.SIGTERM)\n"
        "    create(store, path, data)\n"
        "DirectoryStore.create = told\n"
        f"sys.argv[1:] = ['savepoint', 'create', '--checkpoint', {str(checkpoint)!r}]\n"
        "sys.argv += ['--repository', 'r']\n"
        "sys.exit(main())\n"
    )

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)

    assert done.returncode == 143
    assert "Terminated. Nothing half-done" in done.stderr
    assert "Traceback" not in done.stderr
    assert not any(path.is_file() for path in Path("r/leases").rglob("*"))
    assert [path.name for path in Path("r/.sparkpoint-tmp").glob("*") if path.name != "lock"] == []


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
        connection = asked(mute, "/x")  # it waits for an answer that does not come
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
        connection.close()

    assert process.returncode == 130
    assert out == ""
    assert "Nothing half-done" in err
    assert "Traceback" not in err


def test_a_second_ctrl_c_does_not_wait_for_what_the_first_one_tidies_up() -> None:
    code = (
        "import sys, time\n"
        "from sparkpoint.cli.main import main\n"
        "from sparkpoint.savepoint import Repository\n"
        "def tidy(_):\n"
        "    for word in ('begun', 'tidying', 'still'):\n"
        "        try:\n"
        "            print(word, flush=True)\n"
        "            time.sleep(60)\n"
        "        except KeyboardInterrupt:\n"
        "            pass\n"
        "Repository.open = tidy\n"
        "sys.argv = ['sparkpoint', 'savepoint', 'list', '--repository', 'r']\n"
        "sys.exit(main())\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout is not None

    for word in ("begun", "tidying"):
        assert process.stdout.readline() == f"{word}\n"
        process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)

    assert (process.returncode, out) == (130, "")
    assert "Nothing half-done" in err


def test_a_reader_that_goes_away_is_no_drama(repository: Path) -> None:
    reading, writing = os.pipe()
    os.close(reading)

    done = subprocess.run(
        [PROGRAM, "savepoint", "list"], stdout=writing, stderr=subprocess.PIPE, check=False
    )
    os.close(writing)

    assert done.stderr == b""
    assert done.returncode == 141


@pytest.mark.parametrize("closed", [">&-", "> /dev/full"])
@pytest.mark.parametrize("shape", ["", "--json"])
def test_an_answer_that_cannot_be_printed_is_one_sentence(
    repository: Path, closed: str, shape: str
) -> None:
    line = f"{PROGRAM} savepoint list {shape} {closed}"

    done = subprocess.run(["bash", "-c", line], capture_output=True, text=True, check=False)

    assert done.returncode == 1
    assert done.stderr.startswith("Error: The answer cannot be printed: ")
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("asked", ["--help", "savepoint copy --help", "--version"])
def test_help_that_cannot_be_printed_is_one_sentence(asked: str) -> None:
    line = f"{PROGRAM} {asked} > /dev/full"
    # As it is for people: what could not be written is tried again at the end.
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}

    done = subprocess.run(
        ["bash", "-c", line], capture_output=True, text=True, check=False, env=environment
    )

    assert done.stderr == "Error: The answer cannot be printed: No space left on device.\n"
    assert done.returncode == 1


@pytest.mark.parametrize("closed", [">&-", "> /dev/full"])
@pytest.mark.parametrize("shape", ["", "--json"])
def test_damage_is_told_also_if_the_answer_cannot_be_printed(
    repository: Path, closed: str, shape: str
) -> None:
    next(path for path in (repository / "objects").rglob("*") if path.is_file()).unlink()
    line = f"{PROGRAM} savepoint verify --all {shape} {closed}"

    done = subprocess.run(["bash", "-c", line], capture_output=True, text=True, check=False)

    assert done.returncode == 5
    assert "1 of 1 savepoints" in done.stderr
    assert "The answer cannot be printed" in done.stderr


def test_a_failure_is_told_also_if_its_document_cannot_be(here: Path) -> None:
    line = f"{PROGRAM} savepoint list --repository none --json"

    mute = subprocess.run(
        ["bash", "-c", f"{line} >&-"], capture_output=True, text=True, check=False
    )
    deaf = subprocess.run(["bash", "-c", f"{line} 2>&-"], capture_output=True, check=False)

    assert (mute.returncode, deaf.returncode) == (4, 4)
    assert mute.stderr.count("\n") == 1
    assert json.loads(deaf.stdout)["error"]["exitCode"] == 4


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


class Terminal(io.StringIO):
    """Something that takes itself for a terminal."""

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(("quiet", "drawn"), [(True, False), (False, True)])
def test_quiet_is_quiet_even_on_a_terminal(
    monkeypatch: pytest.MonkeyPatch, quiet: bool, drawn: bool
) -> None:
    monkeypatch.setattr(sys, "stderr", terminal := Terminal())
    monkeypatch.setenv("TERM", "xterm")

    with shown_progress(Settings(quiet=quiet)) as progress:
        progress.start("batch 5", Amount(2, 20))
        progress.advance(Amount(1, 10))

    assert bool(terminal.getvalue()) is drawn
    assert (progress.files, progress.bytes) == (1, 10)


def test_a_dumb_terminal_gets_no_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", terminal := Terminal())
    monkeypatch.setenv("TERM", "dumb")

    with shown_progress(Settings()) as progress:
        progress.start("batch 5", Amount(2, 20))

    assert terminal.getvalue() == ""


def test_the_bar_is_not_drawn_more_often_than_it_can_be_seen() -> None:
    times = iter([0.0, 0.0, 0.05, 0.2])
    terminal = Terminal()
    bar = Bar(terminal, clock=lambda: next(times))

    bar.start("batch 5", Amount(2, 20))
    bar.advance(Amount(1, 10))
    bar.advance(Amount(1, 10))

    assert terminal.getvalue().count("\r") == 2
    assert "100%" in terminal.getvalue()


def test_a_pipe_sees_no_bar(checkpoint: Path) -> None:
    outcome = run_well("savepoint", "create", "--checkpoint", checkpoint, "--repository", "r")

    assert outcome.err == ""


def test_a_terminal_that_knows_no_unicode_gets_question_marks(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    output = io.TextIOWrapper(io.BytesIO(), encoding="ascii", write_through=True)
    monkeypatch.setattr(sys, "stdout", output)

    write_text("größer\n")

    assert output.buffer.getvalue() == b"gr??er\n"
