"""The way to a cluster: what is missing, wrong or gone, in one sentence; and what is shown."""

import builtins
import io
import json
import shlex
import sys
import threading
from datetime import timedelta
from pathlib import Path
from typing import Any

import click
import pytest

from sparkpoint.cli.answer import Settings
from sparkpoint.cli.commands.job import job as group
from sparkpoint.cli.jobs import cluster as clusters
from sparkpoint.cli.jobs import errors, following
from sparkpoint.cli.jobs.awaiting import await_goal
from sparkpoint.cli.jobs.cluster import JOBS
from sparkpoint.cli.jobs.session import Place, open_cluster
from sparkpoint.cli.jobs.steps import Steps, shown_steps
from sparkpoint.cli.jobs.verdicts import running
from tests.unit.cli.jobs.apiserver import ApiServer
from tests.unit.cli.jobs.resources import job, operation
from tests.unit.cli.jobs.test_changing import settles, takes
from tests.unit.cli.running import run, run_well

REFERENCE = Path(__file__).parents[4] / "docs/cli.md"


def test_without_the_client_it_is_said_how_to_get_it(
    cluster: ApiServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = builtins.__import__

    def fake(name: str, *rest: Any, **more: Any) -> Any:
        if name == "kubernetes":
            raise ModuleNotFoundError("No module named 'kubernetes'", name="kubernetes")
        return real(name, *rest, **more)

    monkeypatch.delitem(sys.modules, "sparkpoint.cli.jobs.connection", raising=False)
    monkeypatch.setattr(builtins, "__import__", fake)

    outcome = run("job", "list")

    assert outcome.code == 1
    assert outcome.err.count("\n") == 1
    assert "pip install 'sparkpoint[kubernetes]'" in outcome.err


def test_a_context_or_file_that_is_not_there_is_a_usage_error(
    cluster: ApiServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    outcome = run("job", "list", "--context", "moon")
    assert outcome.code == 2
    assert "moon" in outcome.err
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "nothing"))
    outcome = run("job", "list")
    assert outcome.code == 2
    assert str(tmp_path / "nothing") in outcome.err


def test_a_cluster_that_does_not_answer_is_named(
    cluster: ApiServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    text = (tmp_path / "kubeconfig").read_text()
    address = text.split('"server": "')[1].split('"')[0]
    gone = tmp_path / "gone"
    gone.write_text(text.replace(address, "http://127.0.0.1:1"))
    monkeypatch.setenv("KUBECONFIG", str(gone))

    outcome = run("job", "list", "--json")

    assert (outcome.code, outcome.document["error"]["retryHelps"]) == (1, True)
    assert "http://127.0.0.1:1" in outcome.err


def test_a_token_that_is_refused_is_not_shown(shop: ApiServer) -> None:
    secret, shop.token = shop.token, "another"

    outcome = run("job", "status", "visits")

    assert outcome.code == 1
    assert "Log in again" in outcome.err
    assert secret not in outcome.err


def test_a_cluster_without_our_crds_is_told_so(shop: ApiServer) -> None:
    del shop.kinds["statefulsparkjobs"]

    for arguments in (("list",), ("status", "visits"), ("suspend", "visits")):
        outcome = run("job", *arguments)
        assert outcome.code == 4
        assert "CRDs" in outcome.err


def test_a_job_that_is_not_there_is_answered_with_the_nearest(shop: ApiServer) -> None:
    assert "Did you mean visits?" in run("job", "status", "visit").err
    outcome = run("job", "suspend", "clicks", "-n", "empty")
    assert outcome.code == 4
    assert "No job clicks in namespace empty. There is no job in it" in outcome.err


def test_every_error_has_an_exit_code(shop: ApiServer) -> None:
    from sparkpoint.cli.failures import explain

    for kind in errors.ClusterError.__subclasses__():
        error = kind() if kind is errors.ClientMissingError else kind("x")
        assert explain(error).foreseen


def test_a_watch_that_is_cut_off_is_begun_anew(
    shop: ApiServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop.put_status("StatefulSparkJob", "visits", {"operation": operation("Resume", "Launch")})
    watches = iter([[b'{"type":"ERROR","object":{"code":410}}\n'], []])
    events = shop.events

    def cut(path: str) -> Any:
        short = next(watches, None)
        if short is None:
            shop.put_status("StatefulSparkJob", "visits", {"operation": None})
            return events(path)
        return iter(short)

    monkeypatch.setattr(shop, "events", cut)
    monkeypatch.setattr(following, "_BREATH", 0.0)

    run_well("job", "wait", "visits", "--for", "running", "--timeout", "20s")

    assert sum("watch=true" in path for _, path, _ in shop.asked) == 3


def test_watches_that_end_at_once_are_not_begun_over_and_over(
    shop: ApiServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop.put_status("StatefulSparkJob", "visits", {"operation": operation("Resume", "Launch")})
    monkeypatch.setattr(shop, "events", lambda _: iter([]))
    monkeypatch.setattr(following, "_BREATH", 60.0)

    outcome = run("job", "wait", "visits", "--for", "running", "--timeout", "3s")

    assert outcome.code == 8
    assert sum("watch=true" in path for _, path, _ in shop.asked) == 1


def test_a_connection_that_is_dead_is_noticed_and_made_anew(
    shop: ApiServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop.put_status("StatefulSparkJob", "visits", {"operation": operation("Resume", "Launch")})
    over, events, watches = threading.Event(), shop.events, iter([True])

    def silent_at_first(path: str) -> Any:
        if next(watches, False):
            shop.put_status("StatefulSparkJob", "visits", {"operation": None})
            over.wait(30)
            return iter([])
        return events(path)

    monkeypatch.setattr(shop, "events", silent_at_first)
    monkeypatch.setattr(clusters, "_WATCH", 0)
    monkeypatch.setattr(clusters, "_GRACE", 0.2)
    monkeypatch.setattr(following, "_PAUSES", (0.0,) * 6)
    monkeypatch.setattr(following, "_BREATH", 0.0)

    try:
        run_well("job", "wait", "visits", "--for", "running", "--timeout", "10s")
    finally:
        over.set()


def test_only_a_log_that_is_followed_may_be_silent_for_ever() -> None:
    asked: list[tuple[str, float | None]] = []

    class Recording:
        namespace = "shop"

        def stream(self, path: str, *, query: Any, silence: float | None) -> Any:
            asked.append((path.split("/")[-1], silence))

    cluster = clusters.Cluster(Recording())  # type: ignore[arg-type]
    cluster.watch(JOBS, "visits", "1")
    cluster.log("pod", follow="true")
    cluster.log("pod", tailLines="1")

    assert asked == [("statefulsparkjobs", 270.0), ("log", None), ("log", 60.0)]


def test_a_log_that_is_cut_off_is_not_taken_for_the_whole(
    shop: ApiServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    def breaks() -> Any:
        yield b"half"
        raise ConnectionResetError

    monkeypatch.setattr("tests.unit.cli.jobs.apiserver.iter", lambda _: breaks(), raising=False)

    outcome = run("job", "logs", "visits")

    assert (outcome.code, outcome.out) == (1, "half")
    assert "was cut off" in outcome.err


@pytest.mark.parametrize("line", [b"<html>\n", b'{"type":\n', b"[]\n", b'{"kind":"Status"}\n'])
def test_a_watch_that_tells_no_events_is_an_error_of_the_connection(
    shop: ApiServer, monkeypatch: pytest.MonkeyPatch, line: bytes
) -> None:
    shop.put_status("StatefulSparkJob", "visits", {"operation": operation("Resume", "Launch")})
    monkeypatch.setattr(shop, "events", lambda _: iter([line]))
    monkeypatch.setattr(following, "_PAUSES", (0.0,))

    outcome = run("job", "wait", "visits", "--timeout", "20s", "--json")

    assert (outcome.code, outcome.document["error"]["kind"]) == (1, "Unavailable")
    assert sum("watch=true" in path for _, path, _ in shop.asked) == 2


def test_an_answer_that_is_no_json_is_an_error_of_the_connection(
    shop: ApiServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Page:
        @staticmethod
        def dumps(_: object) -> str:
            return "<html>Log in</html>"

        loads = staticmethod(json.loads)

    monkeypatch.setattr("tests.unit.cli.jobs.apiserver.json", Page)

    outcome = run("job", "list", "--json")

    assert (outcome.code, outcome.document["error"]["kind"]) == (1, "Unavailable")
    assert "Log in" in outcome.err


def test_whatever_ends_the_reader_reaches_whoever_waits(
    shop: ApiServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> Any:
        raise RuntimeError("a fault of ours")

    monkeypatch.setattr(clusters.Cluster, "watch", broken)
    shop.put_status("StatefulSparkJob", "visits", {"operation": operation("Resume", "Launch")})

    outcome = run("job", "wait", "visits", "--timeout", "20s")

    assert outcome.code == 1
    assert "a fault of ours" in outcome.err


class Terminal(io.StringIO):
    """Something that takes itself for a terminal."""

    def isatty(self) -> bool:
        return True


def test_phases_appear_one_after_the_other_with_their_times() -> None:
    times = iter([0.0, 0.0, 0.0, 4.0, 4.0, 4.0, 5.0, 6.0])
    terminal = Terminal()
    steps = Steps(terminal, clock=lambda: next(times))

    steps.show(job(operation=operation("Upgrade", "Stop", "Batch 42 runs.")))
    steps.show(job(operation=operation("Upgrade", "Launch")))
    steps.show(None)
    steps.end()

    lines = terminal.getvalue().split("\n")
    assert "> Upgrade: Stop" in lines[0]
    assert "Batch 42 runs." in lines[0]
    assert lines[0].endswith("  Upgrade: Stop             4.00 s")
    assert lines[1].endswith("  Upgrade: Launch           2.00 s")


@pytest.mark.parametrize(("quiet", "shown"), [(True, False), (False, True)])
def test_progress_is_for_terminals(
    monkeypatch: pytest.MonkeyPatch, quiet: bool, shown: bool
) -> None:
    monkeypatch.setattr(sys, "stderr", Terminal())

    with shown_steps(Settings(quiet=quiet)) as steps:
        assert (steps is not None) is shown


def test_a_person_at_a_terminal_sees_the_phases_as_they_happen(
    shop: ApiServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stderr", terminal := Terminal())
    shop.put_status("StatefulSparkJob", "visits", {"operation": operation("Resume", "Launch")})

    def end() -> None:
        shop.put_status("StatefulSparkJob", "visits", {"operation": operation("Resume", "Observe")})
        shop.put_status("StatefulSparkJob", "visits", {"operation": None})

    shop.on_watch = end

    waited = await_goal(
        Settings(), open_cluster(Place()), JOBS, "visits", running, timedelta(seconds=20)
    )

    assert waited.result == "Succeeded"
    closed = [line.split("\r")[-1] for line in terminal.getvalue().split("\n")[:-1]]
    assert [line.split("  ")[1] for line in closed] == ["Resume: Launch", "Resume: Observe"]


def test_ctrl_c_ends_the_wait_and_not_the_operation(
    shop: ApiServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(_: object) -> Any:
        raise KeyboardInterrupt

    waited = await_goal(
        Settings(), open_cluster(Place()), JOBS, "visits", interrupted, timedelta(seconds=20)
    )

    assert (waited.result, int(waited.exit)) == ("Interrupted", 130)
    assert "It goes on by itself" in waited.message


def examples() -> list[str]:
    """Of the help pages and of the reference."""
    pages = [
        line.strip()
        for command in group.commands.values()
        for line in (command.epilog or "").splitlines()
        if line.startswith("  ")
    ]
    lines = REFERENCE.read_text().splitlines()
    return [*pages, *(line for line in lines if line.startswith("sparkpoint job "))]


@pytest.mark.parametrize("line", examples())
def test_every_example_works(shop: ApiServer, line: str) -> None:
    def react(body: dict[str, Any]) -> Any:
        if body["kind"] == "SparkSavepoint":
            return takes(verified={"good": True, "verdict": "Content"})(body)
        return settles("Suspended" if body["spec"].get("suspend") else "Running")(body)

    shop.reacts = react
    for name in ("trial-a", "trial-b"):
        shop.put(job(name))

    outcome = run(*shlex.split(line)[1:])

    assert (outcome.code, line) == (0, line), outcome.err


def test_the_shell_completes_names_of_jobs(
    shop: ApiServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    from click.shell_completion import ShellComplete

    from sparkpoint.cli.main import root

    def complete(arguments: list[str], incomplete: str) -> list[str]:
        found = ShellComplete(root, {}, "sparkpoint", "_X").get_completions(arguments, incomplete)
        return [each.value for each in found]

    assert complete(["job", "status"], "vi") == ["visits"]
    assert complete(["job", "restore", "visits", "--sink"], "re") == ["resume", "rewind"]
    monkeypatch.setenv("KUBECONFIG", "/nowhere")
    assert complete(["job", "status"], "") == []
    assert isinstance(group, click.Group)
