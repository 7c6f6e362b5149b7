"""The worker as a process: one document on standard output, a termination message, signals."""

import json
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from sparkpoint.worker.exits import Exit
from sparkpoint.worker.model import Answer
from sparkpoint.worker.process import termination_log
from tests.support.ports import asked
from tests.unit.worker.conftest import Place

COMMAND = (sys.executable, "-m", "sparkpoint.worker")


def run(*arguments: str | Path) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [*COMMAND, *map(str, arguments)], capture_output=True, text=True, check=False, timeout=120
    )


def capture_of(disk: Place) -> list[str]:
    return [
        *("capture", "--epoch-dir", disk.epoch_dir, "--job", "shop/visits", "--epoch", "3"),
        *("--repository", disk.repository, "--name", "first"),
    ]


def test_the_answer_is_the_only_word_on_standard_output_and_the_termination_message(
    disk: Place, tmp_path: Path
) -> None:
    disk.query()
    disk.publish()
    log = tmp_path / "termination-log"
    log.write_text("from an earlier container, and much longer than the answer" * 100)

    done = run(*capture_of(disk), "--termination-log", log)

    assert done.returncode == Exit.OK
    assert json.loads(done.stdout) == json.loads(log.read_text())
    answer = Answer.model_validate_json(done.stdout)
    assert (answer.answer, answer.batches) == ("Captured", {"q": 5})
    assert "sparkpoint: capture: batch 5, " in done.stderr


def test_a_bad_command_line_is_answered_where_it_says(tmp_path: Path) -> None:
    log = tmp_path / "termination-log"

    done = run("capture", "--termination-log", log)

    assert done.returncode == Exit.REFUSED
    assert Answer.model_validate_json(log.read_text()).answer == "Refused"


def test_a_termination_log_that_cannot_be_written_does_not_change_the_answer(
    disk: Place, tmp_path: Path
) -> None:
    done = run("remove", "--root", disk.root, "--job", "a/b", "--termination-log", tmp_path)

    assert done.returncode == Exit.OK
    assert Answer.model_validate_json(done.stdout).answer == "Removed"
    assert f"cannot be written to {tmp_path}" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "wanted"),
    [
        (["a", "--termination-log", "/x"], Path("/x")),
        (["a", "--termination-log=/x"], Path("/x")),
        (["a", "--termination-log"], None),
        (["a", "--termination-log", "--name"], None),
    ],
)
def test_the_termination_log_is_found_on_any_command_line(
    arguments: list[str], wanted: Path | None
) -> None:
    assert termination_log(arguments) == wanted


def test_what_belongs_to_a_script_is_not_the_workers() -> None:
    assert termination_log(["a", "--", "--termination-log", "/x"]) == termination_log(["a"])


def test_a_fault_of_ours_is_an_answer_too_and_leaves_its_trace(disk: Place) -> None:
    code = (
        "import sys\n"
        "from sparkpoint.worker.process import run\n"
        "from sparkpoint.worker.tasks import remove\n"
        "def fail(*_): raise KeyError('what nobody foresaw')\n"
        "remove.open_store = fail\n"
        f"run(['remove', '--root', {disk.root!r}, '--job', 'a/b'])\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=120
    )

    answer = Answer.model_validate_json(done.stdout)
    assert done.returncode == Exit.INTERNAL
    assert (answer.answer, answer.unforeseen) == ("Failed", True)
    assert "what nobody foresaw" in answer.message
    assert "Traceback" in done.stderr


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_with_an_answer_although_a_server_keeps_it_waiting(
    disk: Place, number: signal.Signals
) -> None:
    environment = os.environ | {"AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b"}
    with socket.create_server(("127.0.0.1", 0)) as mute:
        url = f"http://127.0.0.1:{mute.getsockname()[1]}"
        arguments = ["--repository", "s3://x/y", "--name", "a", "--endpoint-url", url]
        process = subprocess.Popen(
            [*COMMAND, "inspect", "--job", "shop/visits", *arguments],
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        mute.settimeout(120)
        connection = asked(mute, "/x")  # it waits for an answer that does not come
        process.send_signal(number)
        out, err = process.communicate(timeout=50)  # the server would be given 5 times 60 s
        connection.close()

    answer = Answer.model_validate_json(out)
    assert process.returncode == Exit.MAY_PASS
    assert (answer.answer, answer.kind, answer.retry_helps) == ("Failed", "Interrupted", True)
    assert number.name in answer.message
    assert "Traceback" not in err


def test_a_signal_in_the_middle_of_a_capture_gives_the_lease_back(disk: Place) -> None:
    disk.query()
    disk.publish()
    code = (
        "import sys, time\n"
        "from sparkpoint.savepoint import capture\n"
        "from sparkpoint.worker.process import run\n"
        "def wait(*_, **__):\n"
        "    print('holding', flush=True)\n"
        "    time.sleep(120)\n"
        "capture._take = wait\n"
        "run(sys.argv[1:])\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code, *capture_of(disk)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr is not None
    # Whatever is printed goes to the log: standard output is for the answer.
    assert process.stderr.readline() == "holding\n"
    leases = Path(disk.repository, "leases")
    held = list(leases.iterdir())

    process.send_signal(signal.SIGTERM)
    out, _ = process.communicate(timeout=60)

    assert held
    assert process.returncode == Exit.MAY_PASS
    assert Answer.model_validate_json(out).kind == "Interrupted"
    assert not leases.exists() or not list(leases.iterdir())
