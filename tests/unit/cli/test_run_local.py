"""`run --local` and `local …` without Spark: the home, its lock, its epochs, its agent."""

import importlib.util
import itertools
import json
import os
import re
import resource
import shlex
import shutil
import signal
import socket
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import NoReturn

import click
import pytest

from sparkpoint.cli.commands.local import local
from sparkpoint.cli.commands.run import run as run_command
from sparkpoint.cli.work import localreach
from sparkpoint.cli.work.localhome import AgentNote, Home, write_durably, write_whole
from sparkpoint.cli.work.locallock import holder, locked
from sparkpoint.runtime.agent import CaptureSettings, start_agent
from sparkpoint.runtime.client import AgentUnreachableError, SyncAgentClient
from sparkpoint.runtime.model import (
    EndReason,
    ErrorInfo,
    GateInfo,
    Progress,
    QueryEnd,
    QueryProgress,
    StopOperation,
    StopReport,
    StopRequest,
    Termination,
)
from sparkpoint.runtime.options import Options, parse_options
from tests.support.waiting import await_true
from tests.unit.cli.running import Outcome, make_checkpoint, run, run_well

PROGRAM = Path(sys.executable).parent / "sparkpoint"


class Became(BaseException):
    """The process would be the runtime now."""

    def __init__(self, command: Sequence[str], environment: dict[str, str]) -> None:
        super().__init__()
        self.command, self.environment = list(command), environment

    @property
    def options(self) -> Options:
        """As the runtime understands them."""
        assert self.command[:3] == [sys.executable, "-m", "sparkpoint.runtime"]
        return parse_options(self.command[3:])


Start = Callable[..., Became]


@pytest.fixture(autouse=True)
def stays_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    """This process must not become the runtime."""

    def become(_: str, command: Sequence[str], environment: dict[str, str]) -> NoReturn:
        raise Became(command, environment)

    monkeypatch.setattr(os, "execve", become)


@pytest.fixture
def start(here: Path) -> Start:
    """Run a command line up to the moment when it becomes the runtime, which then ends."""
    (here / "visits.py").write_text("")

    def act(*arguments: str | Path) -> Became:
        try:
            outcome = run("run", "--local", *arguments)
        except Became as became:
            return became
        raise AssertionError(f"it did not begin: {outcome}")

    return act


def home_at(path: str = ".sparkpoint/visits") -> Home:
    return Home(Path(path).absolute())


def refused(*arguments: str | Path) -> Outcome:
    """A run that must not begin."""
    outcome = run("run", *arguments)
    assert outcome.code not in (0, 1)
    assert "Traceback" not in outcome.err
    return outcome


# --- the command line ----------------------------------------------------------------------------


def test_a_run_becomes_the_runtime_with_everything_in_the_home(here: Path, start: Start) -> None:
    became = start("visits.py")

    options, home = became.options, home_at()
    assert (options.job, options.epoch, options.expect) == ("default/visits", 1, "empty")
    assert options.epoch_dir == str(here / ".sparkpoint/visits/epochs/1")
    assert options.agent is not None
    assert options.agent.host == "127.0.0.1"
    assert options.agent.token_file.read_text().strip()
    assert options.termination_log == home.termination
    note = AgentNote.model_validate_json(home.agent.read_bytes())
    assert (note.pid, note.epoch, note.job) == (os.getpid(), 1, "default/visits")
    assert note.url == f"http://127.0.0.1:{options.agent.port}"
    assert note.repository == str(here / ".sparkpoint/visits/repository")
    assert (here / ".sparkpoint/.gitignore").read_text() == "*\n"


def test_everything_after_the_script_is_the_scripts(start: Start) -> None:
    arguments = ("--local", "--fresh", "--json", "--", "-h", "a b", "")

    became = start("--quiet", "visits.py", *arguments)

    assert became.options.script == "visits.py"
    assert became.options.arguments == arguments


def test_only_this_user_may_read_the_token_and_each_run_has_another(start: Start) -> None:
    home = home_at()
    tokens = []
    for _ in range(2):
        start("visits.py")
        tokens.append(home.token.read_text())

    assert tokens[0] != tokens[1]
    for path in (home.token, home.agent):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600


@pytest.mark.parametrize(
    ("script", "given", "job"),
    [
        ("visits.py", (), "default/visits"),
        ("My Visits_2.py", (), "default/my-visits-2"),
        ("__init__.py", (), "default/init"),
        (f"{'x' * 100}.py", (), f"default/{'x' * 63}"),
        ("visits.py", ("--job", "shop/orders"), "shop/orders"),
        ("visits.py", ("--job", "orders"), "default/orders"),
        ("ю.py", ("--job", "orders"), "default/orders"),
    ],
)
def test_a_job_goes_by_the_name_given_or_that_of_its_script(
    here: Path, start: Start, script: str, given: tuple[str, ...], job: str
) -> None:
    (here / script).write_text("")

    became = start(*given, script)

    assert became.options.job == job
    assert Path(became.options.epoch_dir).parts[-4:-2] == (".sparkpoint", job.split("/")[1])


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("visits.py",), "StatefulSparkJob"),
        (("--local",), "SCRIPT"),
        (("--local", "--mode", "fork", "visits.py"), "give --restore"),
        (("--local", "--sink-policy", "ignore", "visits.py"), "give --restore"),
        (("--local", "--restore", "x", "--fresh", "visits.py"), "give one"),
        (("--local", "--job", "Shop/Visits", "visits.py"), "'Shop/Visits' cannot be a job's name"),
        (("--local", "--job", "a_b", "visits.py"), "'default/a_b' cannot be a job's name"),
        (("--local", "ю.py"), "'ю.py' cannot be a job's name: give --job"),
        (("--local", "--port", "0", "visits.py"), "--port"),
        (("--local", "--repository", "ftp://x/y", "visits.py"), "ftp://x/y"),
    ],
)
def test_a_wrong_command_line_makes_nothing(
    here: Path, arguments: tuple[str, ...], said: str
) -> None:
    for name in ("visits.py", "ю.py"):
        (here / name).write_text("")

    outcome = refused(*arguments)

    assert outcome.code == 2
    assert said in outcome.err
    assert not (here / ".sparkpoint").exists()


def test_what_is_missing_is_said_with_the_way_to_get_it(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    missing = run("run", "--local", "nowhere.py", "--json")
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    packages = run("run", "--local", "nowhere.py")
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: name)
    monkeypatch.setenv("JAVA_HOME", "/nowhere")
    java = run("run", "--local", "nowhere.py")

    # Everything after the script is its own, so this is not our --json.
    assert (missing.code, missing.out) == (4, "")
    assert "There is no script nowhere.py" in missing.err
    assert packages.code == java.code == 1
    assert "pyspark and aiohttp" in packages.err
    assert "pip install 'sparkpoint[runtime]'" in packages.err
    assert "JAVA_HOME is /nowhere" in java.err
    assert not (here / ".sparkpoint").exists()


def test_a_port_that_is_taken_is_refused_before_anything_is_begun(here: Path, start: Start) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        outcome = refused("--local", "--json", "--port", port, "visits.py")
    became = start("--port", port, "visits.py")

    assert outcome.code == outcome.document["error"]["exitCode"] == 3
    assert f"Port {port}" in outcome.document["error"]["message"]
    assert became.options.agent is not None
    assert became.options.agent.port == int(port)


def test_spark_takes_its_own_defaults_unless_a_master_is_given(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("PYSPARK_PYTHON", "PYSPARK_SUBMIT_ARGS"):
        monkeypatch.delenv(name, raising=False)
    plain = start("visits.py").environment
    given = start("--master", "local[2]", "visits.py").environment
    monkeypatch.setenv("PYSPARK_PYTHON", "/usr/bin/python9")
    monkeypatch.setenv("PYSPARK_SUBMIT_ARGS", "--packages a:b:1 pyspark-shell")
    both = start("--master", "local[2]", "visits.py").environment

    assert plain["PYSPARK_PYTHON"] == sys.executable
    assert "PYSPARK_SUBMIT_ARGS" not in plain
    assert given["PYSPARK_SUBMIT_ARGS"] == "--master 'local[2]' pyspark-shell"
    assert both["PYSPARK_SUBMIT_ARGS"] == "--master 'local[2]' --packages a:b:1 pyspark-shell"
    assert both["PYSPARK_PYTHON"] == "/usr/bin/python9"


def test_the_start_says_where_things_are_and_what_to_type_next(
    start: Start, capsys: pytest.CaptureFixture[str]
) -> None:
    def said(*arguments: str) -> str:
        with pytest.raises(Became):
            localrun_main("run", "--local", *arguments)
        return capsys.readouterr().err

    start("visits.py")
    first = said("visits.py")
    start("--job", "other", "visits.py")
    second = said("--home", "else where", "visits.py")

    assert "default/visits, epoch 1: goes on\n  state       .sparkpoint/visits/epochs/1" in first
    assert "\n  sparkpoint local savepoint --name NAME\n" in first
    assert "\n  sparkpoint local stop --home 'else where'\n" in second
    assert said("-q", "--home", "third", "visits.py") == ""


def localrun_main(*arguments: str) -> None:
    """Without the redirection that would swallow what is said before the process is another."""
    from sparkpoint.cli.main import main

    main(list(arguments))


def examples_of(command: click.Command) -> list[list[str]]:
    lines = (command.epilog or "").splitlines()
    return [shlex.split(line)[1:] for line in lines if line.startswith("  ")]


@pytest.mark.parametrize("example", examples_of(run_command))
def test_every_example_of_the_help_page_begins_a_run(
    start: Start, savepoint: str, example: list[str]
) -> None:
    assert example[:2] == ["run", "--local"]

    start(*example[2:])


# --- the home and its epochs ---------------------------------------------------------------------


@pytest.fixture
def savepoint(here: Path) -> str:
    """A savepoint `before-change` in the repository of the home that will be."""
    make_checkpoint(here / "checkpoints/visits", batches=2)
    repository = ".sparkpoint/visits/repository"
    # A home may hold its repository before it is run for the first time.
    home_at().root.mkdir(parents=True)
    home_at().note.write_text('{"format": 1, "job": "default/visits"}')
    run_well(
        *("savepoint", "create", "--checkpoint", "checkpoints", "--repository", repository),
        *("--job", "default/visits", "--name", "before-change"),
    )
    return "before-change"


def test_each_run_goes_on_where_the_last_one_was(start: Start, savepoint: str) -> None:
    def epoch(*arguments: str) -> tuple[int, str]:
        options = start(*arguments, "visits.py").options
        return options.epoch, options.expect

    assert epoch() == (1, "empty")
    assert epoch() == (1, "any")
    assert epoch("--restore", savepoint) == (2, "restored")
    assert epoch() == (2, "any")
    assert epoch("--restore", savepoint, "--mode", "fork") == (3, "restored")
    assert epoch("--fresh") == (4, "empty")
    assert epoch() == (4, "any")
    # Nothing was deleted: one number brings an old epoch back, and no other is overwritten.
    Path(".sparkpoint/visits/epochs/4/query").mkdir()
    Path(".sparkpoint/visits/epochs/current").write_text("2\n")
    assert epoch() == (2, "any")
    assert epoch("--fresh") == (5, "empty")


def test_a_restored_epoch_is_the_savepoint_and_the_log_knows_of_it(
    here: Path, start: Start, savepoint: str
) -> None:
    restored = start("--restore", savepoint, "--mode", "fork", "visits.py").options.epoch_dir

    shown = run_well("checkpoint", "show", restored, "--json").document
    log = run_well("log", "--repository", home_at().repository, "--json").document
    assert [(query["name"], query["batch"]) for query in shown["queries"]] == [("visits", 1)]
    assert [use["target"] for use in log["savepoints"][0]["restoredTo"]] == [restored]


def test_a_savepoint_that_is_not_there_changes_nothing(start: Start, savepoint: str) -> None:
    start("visits.py")

    outcome = refused("--local", "--restore", "before-chang", "visits.py")

    assert outcome.code == 4
    assert "before-change" in outcome.err
    assert start("visits.py").options.epoch == 1
    assert sorted(path.name for path in home_at().epochs.iterdir()) == ["1", "current"]


def test_a_home_of_another_job_or_of_somebody_else_is_refused(here: Path, start: Start) -> None:
    (here / "orders.py").write_text("")
    (here / "data").mkdir()
    (here / "data/precious").write_text("")
    start("--home", "home", "visits.py")

    other = refused("--local", "--home", "home", "orders.py")
    foreign = refused("--local", "--home", "data", "visits.py")
    renamed = start("--home", "home", "--job", "default/visits", "orders.py")

    assert other.code == foreign.code == 3
    assert "is the home of job default/visits, and this is default/orders" in other.err
    assert "it has precious" in foreign.err
    assert renamed.options.epoch == 1


@pytest.mark.parametrize(
    ("current", "said"),
    [("two\n", "holds 'two'"), ("7\n", "says 7"), ("-1\n", "holds '-1'"), (None, "was lost")],
)
def test_notes_that_contradict_what_is_there_stop_a_run(
    start: Start, current: str | None, said: str
) -> None:
    start("visits.py")
    epochs = home_at().epochs
    (epochs / "1/query").mkdir()
    if current is None:
        (epochs / "current").unlink()
    else:
        (epochs / "current").write_text(current)

    outcome = refused("--local", "visits.py")

    assert outcome.code == 5
    assert said in outcome.err
    assert "--fresh" in outcome.err
    assert start("--fresh", "visits.py").options.epoch == 2


def test_a_home_that_cannot_be_written_to_is_one_sentence(here: Path) -> None:
    (here / "visits.py").write_text("")
    (here / "file").write_text("")

    below = run("run", "--local", "--home", "file/home", "visits.py")

    assert below.code == 1
    assert re.match(r"Error: .*/file/home cannot be used: Not a directory\.", below.err)


# Runs `run --local …` in a forked child whenever it reads the number of a step, and kills the child
# at that access to a file of the home. Answers how the child ended: 0 if it became the runtime.
KILLER = """
import os, signal, sys
from sparkpoint.cli.main import main
from sparkpoint.cli.work import localrun
from sparkpoint.storage import _unsynced
# What the kernel was given survives a kill: no need to wait for the disk.
os.fsync = _unsynced.sync_file_system = lambda descriptor: None
home, arguments = sys.argv[1], sys.argv[2:]

def act(step):
    seen = 0
    def watch(event, values):
        nonlocal seen
        if event == "os.exec":
            os._exit(0)
        if event in ("open", "os.rename", "os.mkdir", "os.link", "os.remove", "os.truncate"):
            # What a kill does to single files of a restore, the tests of the repository show.
            paths = [os.fspath(v) for v in values if isinstance(v, (str, os.PathLike))]
            if any(path.startswith(home) and "/visits/" not in path[len(home):]
                   and "/repository" not in path for path in paths):
                seen += 1
                if seen == step:
                    os.kill(os.getpid(), signal.SIGKILL)
    sys.addaudithook(watch)
    main(["run", "--local", "-q", *arguments])
    os._exit(9)

for line in sys.stdin:
    if (child := os.fork()) == 0:
        act(int(line))
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""


@pytest.mark.kills
@pytest.mark.parametrize(
    ("before", "arguments", "new"),
    [
        ("nothing", (), 1),
        ("epoch", ("--fresh",), 2),
        ("nothing", ("--restore", "before-change"), 1),
        ("epoch", ("--restore", "before-change", "--mode", "rewind"), 2),
    ],
)
def test_a_kill_at_any_step_leaves_the_old_epoch_or_the_whole_new_one(
    here: Path,
    start: Start,
    savepoint: str,
    before: str,
    arguments: tuple[str, ...],
    new: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)
    monkeypatch.setattr("sparkpoint.storage._unsynced.sync_file_system", lambda descriptor: None)
    home, kept = home_at(), here / "kept"
    if before == "epoch":
        start("visits.py")
        (home.epochs / "1/query").mkdir()
    home.root.rename(kept)
    command = [sys.executable, "-c", KILLER, str(home.root), *arguments, "visits.py"]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) as killer:
        assert killer.stdin is not None
        assert killer.stdout is not None
        for step in itertools.count(1):
            shutil.copytree(kept, home.root)
            print(step, file=killer.stdin, flush=True)
            code = int(killer.stdout.readline())
            assert code in (0, -signal.SIGKILL)
            _assert_old_or_new(home, start, arguments, new)
            shutil.rmtree(home.root)
            if code == 0:
                break
        killer.stdin.close()

    assert step > 10


def _assert_old_or_new(home: Home, start: Start, arguments: tuple[str, ...], new: int) -> None:
    current = home.epochs / "current"
    number = int(current.read_text()) if current.exists() else 0
    assert number in (new - 1, new)
    if number == new:
        assert start("visits.py").options.epoch == new
        if "--restore" in arguments:
            marker = home.epochs / f"{new}/.sparkpoint/restored.json"
            assert json.loads(marker.read_text())["state"] == "complete"
    elif number:
        assert start("visits.py").options.epoch == number
    # The same command again succeeds, and uses what was begun.
    again = start(*arguments, "visits.py").options
    assert again.epoch == (number + 1 if arguments else new)
    if "--restore" in arguments:
        run_well("checkpoint", "show", again.epoch_dir)


@pytest.mark.parametrize("write", [write_durably, write_whole])
def test_a_note_that_cannot_be_written_leaves_the_old_one(
    tmp_path: Path, write: Callable[[Path, str], None]
) -> None:
    note = tmp_path / "current"
    write(note, "1\n")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)

    # As on a full disk: the file can be opened, but takes nothing.
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, hard))
    try:
        with pytest.raises(OSError, match="too large"):
            write(note, "2\n")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))

    assert note.read_text() == "1\n"
    write(note, "2\n")
    assert note.read_text() == "2\n"


# --- the lock ------------------------------------------------------------------------------------


def test_a_home_is_held_until_the_process_that_became_the_runtime_ends(here: Path) -> None:
    """The real runtime with a script that needs no Spark, and its real agent."""
    (here / "visits.py").write_text("import time\nprint('READY', flush=True)\ntime.sleep(600)\n")
    with (here / "log").open("wb") as log:
        process = subprocess.Popen([PROGRAM, "run", "--local", "visits.py"], stdout=log, stderr=log)
    try:
        await_true(lambda: "READY" in (here / "log").read_text(), "a runtime that is ready")
        second = run("run", "--local", "visits.py")
        status = run_well("local", "status", "--json").document
        empty = run("local", "savepoint")
        process.send_signal(signal.SIGINT)
        code = process.wait(60)
    finally:
        process.kill()
        process.wait()
    after = run("local", "status")

    assert second.code == 3
    assert f"Process {process.pid} runs in" in second.err
    assert (status["pid"], status["queries"]) == (process.pid, [])
    assert empty.code == 4
    assert "has begun a batch" in empty.err
    assert code == 0
    assert after.code == 4
    assert "SIGINT was received" in after.err


def test_who_only_looks_does_not_hold_the_lock(here: Path) -> None:
    home = Home(here)
    assert holder(home) is None

    with locked(home):
        assert holder(home) == holder(home) == os.getpid()
    assert holder(home) is None
    with locked(home):
        pass


# --- the agent -----------------------------------------------------------------------------------


@dataclass
class Pretended:
    """A job without Spark; `finish` ends the run by giving back its lock."""

    lock: ExitStack
    queries: list[QueryProgress]
    ends: dict[str, QueryEnd]
    finished: list[str] = field(default_factory=list)

    def progress(self) -> Progress:
        gate = GateInfo(epoch=1, state="none")
        return Progress(
            job="default/visits", epoch=1, phase="running", gate=gate, queries=self.queries
        )

    def stop(self, operation: str, budget_seconds: float | None) -> StopReport:
        clean = all(end.clean for end in self.ends.values())
        return StopReport(clean=clean, queries=self.ends, seconds=1.5)

    def finish(self, operation: str, savepoint: str | None) -> None:
        self.finished.append(operation)
        self.lock.close()

    def open_gate(self, epoch: int) -> GateInfo:
        raise NotImplementedError

    def checkpoints(self) -> dict[str, str]:
        return {query.name: query.checkpoint for query in self.queries}


@pytest.fixture
def job(here: Path, start: Start, monkeypatch: pytest.MonkeyPatch) -> Iterator[Pretended]:
    """A run with a real agent, of a query that stands at batch 5."""
    # Behind the other tests on a busy machine a capture would wait for minutes.
    monkeypatch.setattr("sparkpoint.runtime.agent.child.stand_back", lambda pid: None)
    start("visits.py")
    home = home_at()
    make_checkpoint(home.epochs / "1/visits")
    note = AgentNote.model_validate_json(home.agent.read_bytes())
    query = QueryProgress.model_validate(
        {
            "name": "visits",
            "id": "i",
            "run_id": "r",
            "active": True,
            "batch": 5,
            "input_rows_per_second": 96.94,
            "state_rows": 6,
            "watermark": "2026-11-16T11:35:12.357Z",
            "last_commit": "2026-11-16T11:35:48.631Z",
            "checkpoint": f"file:{home.epochs}/1/visits",
        }
    )
    lock = ExitStack()
    lock.enter_context(locked(home))
    pretended = Pretended(lock, [query], {"visits": QueryEnd(batch=5, clean=True)})
    settings = CaptureSettings(job="visits", epoch=1, epoch_dir=str(home.epochs / "1"))
    agent = start_agent(
        pretended,
        host="127.0.0.1",
        port=0,
        token=home.token.read_text().strip(),
        savepoints=settings,
    )
    # Somebody else may have taken the port that was chosen for it.
    home.agent.write_text(note.model_copy(update={"url": agent.url}).model_dump_json())
    yield pretended
    agent.close()
    pretended.lock.close()


def test_status_is_a_table(job: Pretended) -> None:
    text = run_well("local", "status").out
    document = run_well("local", "status", "--json").document

    lines = text.splitlines()
    assert lines[0] == f"default/visits, epoch 1, running, process {os.getpid()}"
    assert lines[1].split() == [
        *("QUERY", "STATUS", "BATCH", "ROWS/S", "STATE-ROWS", "WATERMARK", "COMMITTED")
    ]
    assert lines[2].split()[:6] == [
        *("visits", "running", "5", "96.9", "6", "2026-11-16T11:35:12.357Z")
    ]
    assert set(document) == {
        *("home", "job", "epoch", "phase", "pid", "agent", "repository", "queries")
    }
    assert document["queries"][0]["lastCommit"] == "2026-11-16T11:35:48.631Z"
    assert document["queries"][0]["batch"] == 5


def test_a_query_that_died_is_told(job: Pretended) -> None:
    error = ErrorInfo(type="X", message="out of luck")
    job.queries[0] = job.queries[0].model_copy(update={"active": False, "error": error})

    outcome = run_well("local", "status")

    assert outcome.out.splitlines()[2].split()[:2] == ["visits", "failed"]
    assert "Query visits died: out of luck" in outcome.err


def test_a_savepoint_lands_in_the_homes_repository_where_all_commands_find_it(
    job: Pretended,
) -> None:
    text = run_well("local", "savepoint", "--name", "one", "--tag", "keep").out
    document = run_well("local", "savepoint", "--json").document

    assert text.startswith("Created default/visits/one\n")
    for line in ("batches    visits 5", "new bytes", "seconds", "parent     none"):
        assert f"\n  {line}" in text
    assert document["batches"] == {"visits": 5}
    assert document["parent"] == "default/visits/one"
    assert re.fullmatch(r"\d{8}t\d{6}-[0-9a-f]{6}", document["name"])
    listed = run_well("savepoint", "list", "--repository", document["repository"], "--json")
    found = {each["name"]: each for each in listed.document["savepoints"]}
    assert set(found) == {"one", document["name"]}
    assert (found["one"]["tags"], found["one"]["trigger"]) == (["keep"], "local")
    run_well("savepoint", "verify", "--all", "--repository", document["repository"])


def test_a_name_that_is_taken_is_refused_even_if_the_agent_remembers_making_it(
    job: Pretended,
) -> None:
    run_well("local", "savepoint", "--name", "one")

    again = run("local", "savepoint", "--name", "one", "--json")
    bad = run("local", "savepoint", "--name", "One")

    assert again.code == again.document["error"]["exitCode"] == 3
    assert "exists already" in again.err
    assert bad.code == 2


def test_stop_waits_for_the_end_and_tells_how_each_query_stands(job: Pretended) -> None:
    outcome = run_well("local", "stop", "--savepoint", "last")

    assert outcome.out.startswith(
        "Stopped default/visits, epoch 1, in 1.50 s\n  visits  batch 5  clean\nCreated"
    )
    assert len(job.finished) == 1
    assert holder(home_at()) is None
    assert run("local", "stop").code == 4


def test_a_stop_in_json_has_its_savepoint(job: Pretended) -> None:
    document = run_well("local", "stop", "--savepoint", "last", "--json").document

    assert set(document) == {*("home", "job", "epoch", "clean", "queries", "seconds", "savepoint")}
    assert document["queries"] == {"visits": {"batch": 5, "clean": True, "error": None}}
    assert document["savepoint"]["name"] == "last"


def test_a_run_that_ends_before_it_answers_is_known_by_what_it_wrote_down(
    job: Pretended, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = SyncAgentClient.stop

    def stop(
        client: SyncAgentClient, name: str, request: StopRequest, *, wait: float
    ) -> StopOperation:
        real(client, name, request, wait=20)
        word = Termination(
            reason=EndReason.STOPPED,
            message="Stopped.",
            exit_code=0,
            clean=True,
            epoch=1,
            operation=name,
            savepoint=request.savepoint_name,
            queries=job.ends,
        )
        home_at().termination.write_text(word.model_dump_json())
        raise AgentUnreachableError("No answer.")

    monkeypatch.setattr(SyncAgentClient, "stop", stop)

    document = run_well("local", "stop", "--savepoint", "last", "--json").document

    assert document["queries"] == {"visits": {"batch": 5, "clean": True, "error": None}}
    assert document["savepoint"]["batches"] == {"visits": 5}


def test_a_stop_that_is_not_clean_fails_and_comforts(job: Pretended) -> None:
    job.ends["visits"] = QueryEnd(batch=5, clean=False)

    outcome = run("local", "stop", "--json")

    assert outcome.code == 1
    assert outcome.document["clean"] is False
    assert "Nothing is lost" in outcome.err


def test_a_stop_whose_savepoint_cannot_be_made_lets_the_job_run_on(job: Pretended) -> None:
    home_at().repository.write_text("not a directory")

    outcome = run("local", "stop", "--savepoint", "last")

    assert outcome.code != 0
    assert "The job runs on." in outcome.err
    assert job.finished == []
    run_well("local", "status")


def test_a_token_is_shown_to_nobody_but_the_process_that_holds_the_home(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The port may be another program's by now."""
    (here / "home").mkdir()
    home = Home(here / "home")
    home.note.write_text('{"format": 1, "job": "default/visits"}')
    home.token.write_text("secret\n")
    with socket.create_server(("127.0.0.1", 0)) as stranger:
        stranger.settimeout(0.2)
        note = AgentNote(
            url=f"http://127.0.0.1:{stranger.getsockname()[1]}",
            token_file=str(home.token),
            pid=1,
            job="default/visits",
            epoch=1,
            repository="r",
        )
        home.agent.write_text(note.model_dump_json())
        stale = run("local", "status", "--home", "home")
        # The next run has begun, and has not said yet where its agent will be.
        with locked(home):
            monkeypatch.setattr(localreach, "_START_SECONDS", 0)
            early = run("local", "status", "--home", "home")
        with pytest.raises(TimeoutError):
            stranger.accept()

    assert (stale.code, early.code) == (4, 1)
    assert "was killed" in stale.err
    assert f"Process {os.getpid()} prepares a run" in early.err


@pytest.mark.parametrize(
    "example", [each for command in local.commands.values() for each in examples_of(command)]
)
def test_every_example_of_a_help_page_works_beside_a_run(
    job: Pretended, example: list[str]
) -> None:
    run_well(*example)


@pytest.mark.parametrize("command", ["status", "savepoint", "stop"])
def test_without_a_home_or_with_several_it_says_what_there_is(
    start: Start, here: Path, command: str
) -> None:
    none = run("local", command, "--json")
    start("visits.py")
    one = run("local", command)
    start("--job", "other", "visits.py")
    several = run("local", command, "--json")
    wrong = run("local", command, "--home", "nowhere")

    assert none.code == one.code == wrong.code == 4
    assert "Nothing was run in" in none.document["error"]["message"]
    assert "Nothing runs in" in one.err
    assert several.code == 3
    assert several.document["error"]["candidates"] == [".sparkpoint/other", ".sparkpoint/visits"]
    assert "nowhere is no home" in wrong.err


def test_without_aiohttp_the_way_to_get_it_is_said(here: Path, start: Start) -> None:
    start("visits.py")
    code = (
        "import sys; sys.modules['aiohttp'] = None\n"
        "from sparkpoint.cli.main import main\n"
        "sys.exit(main(['local', 'status', '--json']))\n"
    )

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)

    assert done.returncode == 1
    assert "pip install 'sparkpoint[runtime]'" in json.loads(done.stdout)["error"]["message"]
