"""The table of named operations by itself."""

import pytest

from sparkpoint.runtime import operations
from sparkpoint.runtime.model import OperationState, StopOperation, StopRequest
from sparkpoint.runtime.operations import ConflictError, Operations

REQUEST = StopRequest()
OTHER = StopRequest(budget_seconds=1)


def answer(name: str, state: OperationState = OperationState.RUNNING) -> StopOperation:
    return StopOperation(operation=name, state=state)


@pytest.fixture
def table() -> Operations[StopRequest, StopOperation]:
    return Operations("Stop")


@pytest.mark.parametrize("state", [OperationState.RUNNING, OperationState.DONE])
def test_a_name_in_use_is_only_for_the_same_request(
    table: Operations[StopRequest, StopOperation], state: OperationState
) -> None:
    table.begin("a", REQUEST, answer("a", state))

    assert table.is_new("b", REQUEST)
    assert not table.is_new("a", REQUEST)
    with pytest.raises(ConflictError, match="Stop a") as caught:
        table.is_new("a", OTHER)
    assert (caught.value.existing, caught.value.wanted) == (REQUEST, OTHER)


def test_a_failed_one_frees_its_name(table: Operations[StopRequest, StopOperation]) -> None:
    table.begin("a", REQUEST, answer("a", OperationState.FAILED))

    assert table.is_new("a", REQUEST)
    assert table.is_new("a", OTHER)


def test_only_ended_ones_are_forgotten_the_oldest_first(
    table: Operations[StopRequest, StopOperation],
) -> None:
    table.begin("running", REQUEST, answer("running"))
    for number in range(operations._REMEMBERED + 10):
        table.begin(f"s{number}", REQUEST, answer(f"s{number}", OperationState.DONE))

    assert table.get("running") is not None
    assert table.get("s0") is None
    assert table.get(f"s{operations._REMEMBERED + 9}") is not None
    assert len(table.names(OperationState.DONE)) == operations._REMEMBERED
