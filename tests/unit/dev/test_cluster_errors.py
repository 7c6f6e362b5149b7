"""A machine that cannot raise a cluster is told why, all at once, and what to do."""

import os
import shutil
from pathlib import Path

import pytest

from dev.cluster import layout, lifecycle, preflight, programs
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


def test_a_full_disk_is_found_before_the_cluster_is_begun(monkeypatch: pytest.MonkeyPatch) -> None:
    usage = shutil.disk_usage("/")._replace(free=14 * 1024**3)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage)
    monkeypatch.setattr(os, "geteuid", lambda: 0)

    with pytest.raises(Problem, match=r"needs 15 GB free"):
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
