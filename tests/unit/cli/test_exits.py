"""Which error ends with which exit code; nothing foreseeable shows a traceback."""

import importlib
import json
from collections.abc import Iterator

import pytest

from sparkpoint.checkpoint import errors as checkpoint
from sparkpoint.cli import failures
from sparkpoint.cli.failures import as_document, explain
from sparkpoint.savepoint import Repository
from sparkpoint.savepoint import errors as savepoint
from sparkpoint.savepoint.catalogue import AmbiguousReferenceError
from sparkpoint.state import errors as state
from sparkpoint.storage import errors as storage
from tests.unit.cli.running import run
from tests.unit.cli.values import savepoint as make_savepoint

EXITS: dict[int, list[type[Exception]]] = {
    1: [
        storage.StorageError,
        storage.AccessDeniedError,
        storage.FullError,
        storage.UnavailableError,
        checkpoint.CheckpointError,
        savepoint.SavepointError,
        savepoint.MovingTargetError,
        savepoint.LeaseLostError,
        state.StateError,
        state.MissingLibraryError,
        state.SparkFailedError,
        state.WorkFolderError,
        state.UnfaithfulError,
    ],
    2: [storage.BadLocationError, savepoint.BadNameError, state.BadQueryError],
    3: [
        storage.AlreadyExistsError,
        storage.ChangedError,
        storage.UnsupportedError,
        checkpoint.UnknownFormatError,
        checkpoint.CannotRewindError,
        savepoint.NewerFormatError,
        savepoint.NameTakenError,
        savepoint.AmbiguousError,
        savepoint.UnsafeStoreError,
        savepoint.CollectorBusyError,
        savepoint.ProtectedError,
        savepoint.MisplacedError,
        savepoint.TargetNotEmptyError,
        savepoint.TargetBusyError,
        savepoint.TargetChangedError,
        savepoint.SinkConflictError,
        savepoint.DoubtfulStateError,
        state.UnsupportedStateError,
        state.MisplacedStateError,
        state.NothingToDoError,
        state.PendingBatchError,
        state.AmbiguousStateError,
    ],
    4: [
        storage.NotFoundError,
        checkpoint.NotACheckpointError,
        checkpoint.NothingCommittedError,
        savepoint.NotARepositoryError,
        savepoint.NoSuchSavepointError,
        savepoint.NoQueryError,
        state.NoSuchStateError,
    ],
    5: [
        storage.TooLargeError,
        checkpoint.DamagedError,
        checkpoint.IncompleteError,
        savepoint.DamagedError,
    ],
}
CASES = [(kind, code) for code, kinds in EXITS.items() for kind in kinds]


def make(kind: type[Exception]) -> Exception:
    if kind is checkpoint.IncompleteError:
        return checkpoint.IncompleteError(["state/0/0/6.delta"], batch=5)
    if kind is state.AmbiguousStateError:
        return state.AmbiguousStateError("/data/x is not as it should be. Look at it.", ())
    return kind("/data/x is not as it should be. Look at it.")


def tree(kind: type[Exception]) -> Iterator[type[Exception]]:
    yield kind
    for each in kind.__subclasses__():
        yield from tree(each)


def test_every_error_of_the_four_trees_has_an_exit_code() -> None:
    roots = (
        storage.StorageError,
        checkpoint.CheckpointError,
        savepoint.SavepointError,
        state.StateError,
    )
    foreseen = {kind for root in roots for kind in tree(root)}

    missing = foreseen - {kind for kind, _ in CASES} - {AmbiguousReferenceError}

    assert not missing


def test_the_table_names_only_errors_that_there_are() -> None:
    for module, codes in failures._EXITS.items():
        for name in codes:
            assert issubclass(getattr(importlib.import_module(module), name), Exception)


@pytest.mark.parametrize(
    ("kind", "code"), CASES, ids=lambda value: getattr(value, "__name__", value)
)
def test_an_error_becomes_one_sentence_and_its_exit_code(
    monkeypatch: pytest.MonkeyPatch, kind: type[Exception], code: int
) -> None:
    def fail(*_: object) -> None:
        raise make(kind)

    monkeypatch.setattr(Repository, "open", fail)

    outcome = run("savepoint", "list", "--repository", "r", "--json")

    sentence = str(make(kind))
    error = outcome.document["error"]
    assert outcome.code == error["exitCode"] == code
    start = sentence[0].upper() if kind is checkpoint.IncompleteError else sentence[0]
    assert outcome.err == f"Error: {start}{sentence[1:]}\n"
    assert error["kind"] == kind.__name__.removesuffix("Error")
    assert error["retryHelps"] == getattr(kind, "retry_helps", False)


def test_something_unforeseen_is_a_short_message(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise ZeroDivisionError("division by zero")

    monkeypatch.setattr(Repository, "open", fail)

    outcome = run("savepoint", "list", "--repository", "r")

    assert outcome.code == 1
    assert "Traceback" not in outcome.err
    assert "SPARKPOINT_DEBUG=1" in outcome.err
    assert outcome.out == ""


def test_the_traceback_is_there_for_who_asks(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise ZeroDivisionError("division by zero")

    monkeypatch.setattr(Repository, "open", fail)
    monkeypatch.setenv("SPARKPOINT_DEBUG", "1")

    outcome = run("savepoint", "list", "--repository", "r")

    assert "Traceback" in outcome.err
    assert 'in fail\n    raise ZeroDivisionError("division by zero")' in outcome.err


@pytest.mark.parametrize(
    "arguments",
    [
        ("savepoint", "create", "--repository", "r"),
        ("savepoint", "list"),
        ("savepoint", "restore", "x", "--repository", "r", "--to", "y", "--mode", "sideways"),
        ("nonsense",),
        ("savepoint", "create", "--checkpoint", "c", "--repository", "r", "--job", "a/b/c"),
        ("collect", "--repository", "r", "--grace", "1e9d"),
        ("collect", "--repository", "r", "--grace", "99999999999999999999w"),
        ("completion", "csh"),
    ],
)
def test_a_wrong_command_line_ends_with_2_and_says_why(arguments: tuple[str, ...]) -> None:
    outcome = run(*arguments, "--json")

    assert outcome.code == 2
    assert json.loads(outcome.out)["error"]["kind"] == "Usage"
    assert "Error: " in outcome.err


def test_a_uri_at_the_start_of_a_sentence_stays_as_it_is() -> None:
    assert explain(storage.FullError("s3://lake/x is full.")).message == "s3://lake/x is full."


def test_candidates_are_part_of_the_document() -> None:
    error = AmbiguousReferenceError("x", [make_savepoint("one"), make_savepoint("two")])

    document = as_document(explain(error))

    assert document["error"] == {
        "kind": "AmbiguousReference",
        "message": str(error),
        "exitCode": 3,
        "retryHelps": False,
        "candidates": ["shop/visits/one", "shop/visits/two"],
    }
