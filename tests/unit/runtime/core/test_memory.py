"""Kills for want of memory are seen in the files of either version of cgroups."""

from pathlib import Path

from sparkpoint.runtime.memory import MemoryWatch


def test_only_kills_that_come_later_count(tmp_path: Path) -> None:
    second, first = tmp_path / "memory.events", tmp_path / "memory.oom_control"
    second.write_text("low 0\nhigh 0\nmax 3\noom 1\noom_kill 1\noom_group_kill 0\n")
    watch = MemoryWatch((second, tmp_path / "missing", first))
    assert not watch.has_killed()

    second.write_text("low 0\nhigh 0\nmax 9\noom 2\noom_kill 2\noom_group_kill 0\n")
    assert watch.has_killed()


def test_cgroups_of_the_first_version(tmp_path: Path) -> None:
    control = tmp_path / "memory.oom_control"
    control.write_text("oom_kill_disable 0\nunder_oom 0\noom_kill 0\n")
    watch = MemoryWatch((control,))

    control.write_text("oom_kill_disable 0\nunder_oom 0\noom_kill 1\n")

    assert watch.has_killed()
