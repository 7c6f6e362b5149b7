"""A machine that cannot raise a cluster is told why, all at once, and what to do."""

import os
import shutil
from pathlib import Path

import pytest

from dev.cache import cached
from dev.cluster import __main__ as commands
from dev.cluster import layout, lifecycle, node, preflight, programs
from dev.console import Problem, run_command


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPARKPOINT_CACHE", str(tmp_path))


def test_everything_that_is_missing_is_listed_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    monkeypatch.setattr(shutil, "which", lambda _: None)

    with pytest.raises(Problem) as caught:
        preflight.check_machine()

    assert "you are not root" in str(caught.value)
    assert "`unshare` is missing" in str(caught.value)
    assert "--context" in str(caught.value)


def test_a_machine_without_go_is_told_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda _: None)

    with pytest.raises(Problem, match=r"Go is not on PATH[\s\S]*install Go"):
        programs.kubernetes_binaries()


def _give(monkeypatch: pytest.MonkeyPatch, *, free_gib: int, without: str | None = None) -> None:
    """A machine where root has every program but one, and so much space."""
    usage = shutil.disk_usage("/")._replace(free=free_gib * 1024**3)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage)
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(shutil, "which", lambda name: None if name == without else f"/bin/{name}")


def _build_everything(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(programs, "_build_kubernetes", lambda _: None)
    programs.kubernetes_binaries()
    cached("layers", "base", lambda _: None)


def test_go_is_missed_before_anything_is_begun_that_takes_long(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    _give(monkeypatch, free_gib=100, without="go")

    with pytest.raises(Problem, match=r"Go is not on PATH[\s\S]*install Go 1\.26"):
        preflight.check_machine()


def test_go_is_not_missed_where_kubernetes_was_built_before(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    _give(monkeypatch, free_gib=100, without="go")
    _build_everything(monkeypatch)

    preflight.check_machine()


def test_a_full_disk_is_found_before_the_cluster_is_begun(monkeypatch: pytest.MonkeyPatch) -> None:
    _give(monkeypatch, free_gib=14)

    with pytest.raises(Problem, match=r"needs 15 GB free"):
        preflight.check_machine()


def test_a_first_build_that_was_interrupted_needs_as_much_space_as_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _give(monkeypatch, free_gib=14)
    for kind in ("kubernetes", "layers"):
        (tmp_path / kind / ".partial-key-1").mkdir(parents=True)

    with pytest.raises(Problem, match=r"needs 15 GB free"):
        preflight.check_machine()


def test_less_space_is_enough_once_the_caches_are_filled(monkeypatch: pytest.MonkeyPatch) -> None:
    _give(monkeypatch, free_gib=5)
    _build_everything(monkeypatch)

    preflight.check_machine()


@pytest.mark.parametrize("name", ["", "../demo", "a b", "x" * 41, "dé mo"])
def test_a_name_that_cannot_be_a_folder_or_a_cgroup_is_refused(name: str) -> None:
    with pytest.raises(Problem, match="cannot be a cluster's name"):
        layout.take_layout(name)


def test_two_clusters_get_different_networks() -> None:
    first, second = layout.take_layout("one"), layout.take_layout("two")

    assert first.node_address != second.node_address
    assert first.pod_range != second.pod_range
    assert layout.take_layout("one") == first


def _put(monkeypatch: pytest.MonkeyPatch, folder: Path, name: str, script: str) -> None:
    """A program of that name, before all others on PATH."""
    folder.mkdir(exist_ok=True)
    (folder / name).write_text(f"#!/bin/sh\n{script}\n")
    (folder / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")


@pytest.fixture
def ip(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """What `ip route` prints on this machine, as a file to write to."""
    routes = tmp_path / "routes"
    _put(monkeypatch, tmp_path / "bin", "ip", f'[ "$*" = "-o route" ] && cat {routes}')
    # Not those of the cache, which bring an `ip` of their own.
    monkeypatch.setattr(node, "tool_environment", lambda: dict(os.environ))
    return routes


@pytest.mark.parametrize(
    "route",
    [
        "10.231.7.0/24 dev docker0 proto kernel scope link src 10.231.7.1",
        "10.232.7.128/25 via 192.168.0.9 dev tun0",
        "10.233.7.5 via 192.168.0.9 dev tun0",
    ],
)
def test_addresses_that_the_machine_uses_are_refused_with_the_route(ip: Path, route: str) -> None:
    ip.write_text(f"default via 192.168.0.1 dev eth0 \n{route} \n")

    with pytest.raises(Problem) as caught:
        node._refuse_used_network(layout.Layout("demo", 7))

    assert f"uses the addresses of cluster demo: {route}\n" in str(caught.value)
    assert "remove that route" in str(caught.value)


def test_neighbouring_addresses_are_nobodys_business(ip: Path) -> None:
    ip.write_text("default via 10.231.70.1 dev eth0\n10.231.70.0/24 dev eth0\n10.23.1.0/24 dev a\n")

    node._refuse_used_network(layout.Layout("demo", 7))


def test_a_named_context_is_used_and_nothing_is_raised(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = tmp_path / "said"
    _put(monkeypatch, tmp_path / "bin", "kubectl", f'echo "$@" >> {said}; echo fine')
    # A machine that could not raise one is good enough.
    monkeypatch.setattr(os, "geteuid", lambda: 1000)

    cluster = lifecycle.raise_cluster("demo", context="theirs")

    assert (cluster.layout, cluster.kubeconfig) == (None, None)
    assert cluster.kubectl("get", "pods") == "fine\n"
    assert said.read_text() == "--context=theirs version\n--context=theirs get pods\n"
    assert cluster.kubectl_hint == "kubectl --context=theirs"
    assert layout.all_layouts() == []


def test_a_context_that_kubectl_does_not_know_ends_with_what_it_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    refusal = 'error: context "typo" does not exist'
    _put(monkeypatch, tmp_path / "bin", "kubectl", f"echo '{refusal}' >&2; exit 1")

    with pytest.raises(Problem, match=refusal):
        lifecycle.raise_cluster("demo", context="typo")


def test_a_context_needs_a_kubectl(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda _: None)

    with pytest.raises(Problem, match=r"kubectl is not on PATH[\s\S]*leave --context out"):
        lifecycle.raise_cluster("demo", context="theirs")


def test_a_cluster_of_a_context_is_not_ours_to_end(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["dev.cluster", "down", "--context", "theirs"])

    with pytest.raises(SystemExit):
        run_command(commands.main)

    assert "The cluster of context theirs is not ours to end." in capsys.readouterr().err


def test_a_cluster_that_does_not_run_is_said_so_with_the_command_that_raises_it() -> None:
    with pytest.raises(Problem, match=r"not running[\s\S]*make cluster-up CLUSTER=demo"):
        lifecycle.find_cluster("demo")


def test_a_problem_ends_the_command_with_one_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    def main() -> None:
        raise Problem("The port is taken.", remedy="free it.")

    with pytest.raises(SystemExit) as ended:
        run_command(main)

    assert ended.value.code == 1
    assert capsys.readouterr().err == "error: The port is taken.\n  What to do: free it.\n"
