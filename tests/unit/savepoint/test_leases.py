"""Leases that are hard to renew, and processes of which it is hard to say whether they live."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from sparkpoint.savepoint import leases
from sparkpoint.savepoint.leases import hold, owner_is_gone, read_leases
from sparkpoint.storage import DirectoryStore
from sparkpoint.storage.errors import ChangedError, UnavailableError


class Forgetful(DirectoryStore):
    """A store whose answer to one replacement gets lost on the way."""

    lose = False

    def replace(self, path: str, data: bytes, *, stamp: str) -> None:
        """Write, and fail afterwards if told to."""
        super().replace(path, data, stamp=stamp)
        if self.lose:
            self.lose = False
            raise UnavailableError("the answer got lost")


@pytest.fixture
def store(tmp_path: Path) -> Forgetful:
    return Forgetful(tmp_path / "store")


def test_a_renewal_whose_answer_got_lost_is_no_reason_to_lose_the_lease(store: Forgetful) -> None:
    with hold(store, "test") as lease:
        store.lose = True
        with pytest.raises(UnavailableError):
            lease._renew()

        lease._renew()

        assert [each.document.renewals for each in read_leases(store)] == [2]
    assert read_leases(store) == []


def test_a_lease_is_removed_though_the_answer_to_its_last_renewal_got_lost(
    store: Forgetful,
) -> None:
    with hold(store, "test") as lease:
        store.lose = True
        with pytest.raises(UnavailableError):
            lease._renew()

    assert read_leases(store) == []


def test_a_lease_that_somebody_else_holds_now_is_not_renewed(store: Forgetful) -> None:
    with hold(store, "test") as lease:
        over = store.stat(lease.path).stamp
        with hold(store, "test", path=lease.path, over=over), pytest.raises(ChangedError):
            lease._renew()


def test_a_process_that_ended_is_gone_and_one_that_runs_is_not() -> None:
    code = "from sparkpoint.savepoint import leases; print(leases.this_process())"
    ended = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)

    assert owner_is_gone(ended.stdout.strip())
    assert not owner_is_gone(leases.this_process())


def test_a_process_of_the_same_number_that_started_later_is_another_one() -> None:
    machine = leases._machine()

    assert owner_is_gone(f"{machine} {os.getpid()} 1")


@pytest.mark.parametrize("number", ["1", "9" * 30])
def test_a_process_that_cannot_be_looked_at_counts_as_alive(
    number: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = Path.read_text

    def hidden(path: Path) -> str:
        if path.match("/proc/*/stat"):
            raise FileNotFoundError(2, "hidepid")
        return real(path)

    mine = leases.this_process()
    monkeypatch.setattr(Path, "read_text", hidden)

    assert not owner_is_gone(mine)
    assert not owner_is_gone(f"{leases._machine()} {number} 17")
