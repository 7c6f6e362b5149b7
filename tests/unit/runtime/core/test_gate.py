"""The gate: opened for its epoch, closed by a later one, and no wait without an end."""

import threading

import pytest

from sparkpoint.runtime.gate import Gate, Passage


class Waiter:
    """A query's start in a thread of its own."""

    def __init__(self, gate: Gate) -> None:
        self.passage: Passage | None = None
        self._gate = gate
        self._thread = threading.Thread(target=self._wait)
        self._thread.start()
        while not gate.is_waiting and self._thread.is_alive():
            self._thread.join(0.001)

    def _wait(self) -> None:
        self.passage = self._gate.wait()

    def end(self) -> Passage | None:
        self._thread.join(10)
        return self.passage


def test_a_driver_without_a_gate_passes() -> None:
    gate = Gate(3, gated=False)

    assert gate.wait() is Passage.OPEN
    assert gate.info().state == "none"


def test_opening_it_lets_who_waits_through_and_all_who_come_later() -> None:
    gate = Gate(3, gated=True, deadline=60)
    waiter = Waiter(gate)
    assert gate.info().waiting_since is not None

    assert gate.open(3).state == "open"

    assert waiter.end() is Passage.OPEN
    assert gate.wait() is Passage.OPEN
    assert gate.info().waiting_since is None


def test_it_may_be_opened_before_anybody_stands_there_and_again() -> None:
    gate = Gate(3, gated=True)

    assert [gate.open(3).state, gate.open(3).state] == ["open", "open"]
    assert gate.wait() is Passage.OPEN


@pytest.mark.parametrize("gated", [True, False])
def test_a_later_epoch_closes_it_for_good(gated: bool) -> None:
    gate = Gate(3, gated=gated)

    assert (gate.open(4).state, gate.open(4).epoch) == ("closed", 3)
    assert gate.open(3).state == "closed"
    assert gate.wait() is Passage.CLOSED


def test_an_earlier_epoch_changes_nothing() -> None:
    gate = Gate(3, gated=True)

    assert (gate.open(2).state, gate.open(2).epoch) == ("waiting", 3)


def test_who_waits_goes_when_it_is_closed() -> None:
    gate = Gate(3, gated=True)
    waiter = Waiter(gate)

    gate.close()

    assert waiter.end() is Passage.CLOSED


def test_the_deadline_counts_from_the_first_who_waits() -> None:
    times = iter([100.0, 105.0, 111.0])
    gate = Gate(3, gated=True, deadline=10, monotonic=lambda: next(times))
    gate._changed.wait = lambda timeout=None: True  # type: ignore[method-assign]

    assert gate.wait() is Passage.TOO_LATE
    assert gate.info().state == "closed"
    assert gate.open(3).state == "closed"
