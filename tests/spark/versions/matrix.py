"""The runs of the table: the first half on each version, the second from each on each."""

import base64
import shutil
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from dev.console import say
from sparkpoint.checkpoint.errors import CheckpointError
from sparkpoint.savepoint import CaptureRequest, MaterializeRequest, Mode, Repository, Savepoint
from sparkpoint.savepoint.errors import NoSuchSavepointError, SavepointError
from sparkpoint.state.querystate import schema_path
from sparkpoint.state.survey import SavepointFiles
from sparkpoint.storage import DirectoryStore
from sparkpoint.storage.errors import NotFoundError
from tests.spark.versions.attempts import FAILED, Answer, Order, answered
from tests.spark.versions.queries import CASES, QUERIES, SECOND_FORMAT, SINCE
from tests.spark.versions.rows import FIRST, SECOND, write_half

__all__ = ["SPARKS", "Case", "Measured", "checkpoint_key", "measure", "minor"]

SPARKS = ("3.5.9", "4.0.5", "4.1.4", "4.2.1", "4.3.0")
"""The newest release of each line."""
Case = tuple[str, str]
Cell = tuple[str, str, str]
"""Query, provider, and the version that the first half ran on."""
_Key = TypeVar("_Key", bound=tuple[str, ...])


@dataclass(frozen=True, slots=True)
class Measured:
    """What came of it."""

    results: Mapping[tuple[str, str, str, str], str]
    """(query, provider, from, to) -> `exact`, `wrong: …`, `refused: …` or `failed: …`."""
    checkpoints: Mapping[str, Mapping[str, Any]]
    """`checkpoint_key` -> what the savepoint tells about that query, and the schemas of its
    state."""


def minor(version: str) -> str:
    """`4.3` of `4.3.0`."""
    return version.rpartition(".")[0]


def checkpoint_key(case: Case, spark: str) -> str:
    """A name for the checkpoint of one query on one version."""
    return f"{case[0]} / {case[1]} / {spark}"


def measure(
    folder: Path, *, before: Sequence[str], after: Sequence[str], cases: Iterable[Case] = CASES
) -> Measured:
    """Run the cases from each of the first versions to each of the second.

    What the folder has of an earlier call with the same arguments is not run again.
    """
    chosen = tuple(cases)
    folder.mkdir(parents=True, exist_ok=True)
    repository = Repository.init(DirectoryStore(folder / "repository"))
    write_half(FIRST, folder / "input")
    halves: dict[Cell, _Begun | str] = {}
    for spark in before:
        known = tuple(case for case in chosen if _is_known(case, spark))
        halves |= _first_half(folder, repository, spark, known)
    begun = {cell: each for cell, each in halves.items() if isinstance(each, _Begun)}
    write_half(SECOND, folder / "input")
    results = {
        (query, provider, minor(spark), minor(other)): each
        for (query, provider, spark), each in halves.items()
        if isinstance(each, str)
        for other in after
    }
    for spark in after:
        results |= _second_half(folder, spark, begun)
    checkpoints = {
        checkpoint_key((query, provider), minor(spark)): _told(repository, each.savepoint)
        for (query, provider, spark), each in begun.items()
    }
    return Measured(results, checkpoints)


def _is_known(case: Case, spark: str) -> bool:
    return all(minor(spark) >= SINCE.get(name, "") for name in case)


@dataclass(frozen=True, slots=True)
class _Begun:
    savepoint: Savepoint
    restored: Path
    """As it is before the second half."""
    rows: list[tuple[Any, ...]]


def _first_half(
    folder: Path, repository: Repository, spark: str, cases: tuple[Case, ...]
) -> dict[Cell, _Begun | str]:
    """Without those that cannot run there: a line tells of each. `failed: …` is what came of others
    that there can be no second half of."""
    place = folder / f"on-{spark}"
    orders = {
        case: Order(
            *case,
            checkpoint=place / f"case-{number}",
            input=folder / "input",
            lay=partial(_clear, place / f"case-{number}"),
        )
        for number, case in enumerate(cases)
    }
    found: dict[Cell, _Begun | str] = {}
    for case, answer in _answers(folder, f"on-{spark}", spark, orders).items():
        if "died" in answer and answer["died"] not in FAILED:
            # A library of today may be too new for a Spark of yesterday.
            say(f"Spark {spark} does not run {case}: {answer['of'][-500:]}")
            continue
        kept = folder / f"from-{spark}" / orders[case].checkpoint.name
        found[*case, spark] = _begun(repository, orders[case].checkpoint, kept, spark, answer)
    return found


def _begun(
    repository: Repository, source: Path, kept: Path, spark: str, answer: Answer
) -> _Begun | str:
    if "died" in answer:
        return f"failed: {answer['died']} in the first half"
    try:
        savepoint = _captured(repository, source, spark)
        return _Begun(savepoint, _restored(repository, savepoint, kept), _rows(answer))
    except (CheckpointError, SavepointError) as error:
        say(f"{source} of Spark {spark} cannot be captured or restored: {error}")
        return f"failed: {type(error).__name__} between the halves"


def _captured(repository: Repository, source: Path, spark: str) -> Savepoint:
    name = f"on-{spark}"
    try:
        return repository.find(name, job=source.name)
    except NoSuchSavepointError:
        request = CaptureRequest(job=source.name, name=name, spark_version=spark, parent="none")
        return repository.capture(DirectoryStore(source), request).savepoint


def _restored(repository: Repository, savepoint: Savepoint, target: Path) -> Path:
    _clear(target)
    request = MaterializeRequest(mode=Mode.RESUME)
    repository.materialize(savepoint, DirectoryStore(target), request)
    return target


def _second_half(
    folder: Path, spark: str, begun: Mapping[Cell, _Begun]
) -> dict[tuple[str, str, str, str], str]:
    place = folder / f"to-{spark}"
    orders: dict[Cell, Order] = {}
    for cell, each in begun.items():
        checkpoint = place / each.restored.parent.name / each.restored.name
        lay = partial(_copy, each.restored, checkpoint)
        orders[cell] = Order(*cell[:2], checkpoint=checkpoint, input=folder / "input", lay=lay)
    answers = _answers(folder, f"to-{spark}", spark, orders)
    return {
        (query, provider, minor(before), minor(spark)): _judged(
            query, begun[query, provider, before].rows, answer
        )
        for (query, provider, before), answer in answers.items()
    }


def _answers(
    folder: Path, name: str, spark: str, orders: Mapping[_Key, Order]
) -> dict[_Key, Answer]:
    """Of all of them, in two processes: queries of the second format have their own."""
    second = {key: each for key, each in orders.items() if each.provider == SECOND_FORMAT}
    first = {key: each for key, each in orders.items() if key not in second}
    found: dict[_Key, Answer] = {}
    for kind, together in (("", first), ("-v2", second)):
        if together:
            answers = answered(folder, f"{name}{kind}", spark, list(together.values()))
            found |= dict(zip(together, answers, strict=True))
    return found


def _clear(path: Path) -> None:
    shutil.rmtree(path, ignore_errors=True)


def _copy(source: Path, target: Path) -> None:
    _clear(target)
    shutil.copytree(source, target)


def _judged(query: str, first: list[tuple[Any, ...]], answer: Answer) -> str:
    if "died" in answer:
        # Spark refuses; a process that breaks down, or does not end, refuses nothing.
        kind = "failed" if answer["died"] in FAILED else "refused"
        return f"{kind}: {answer['died']}"
    whole = QUERIES[query]
    expected, found = whole.expected(), whole.shown([*first, *_rows(answer)])
    if found == expected:
        return "exact"
    lost, added = Counter(expected - found).total(), Counter(found - expected).total()
    return f"wrong: {lost} rows are missing, {added} should not be there, of {expected.total()}"


def _told(repository: Repository, savepoint: Savepoint) -> Mapping[str, Any]:
    """What a check without Spark goes by."""
    [query] = savepoint.manifest.queries
    files = SavepointFiles(repository.store, repository.files(savepoint).files, prefix=query.prefix)
    schemas: dict[str, str] = {}
    for operator in query.operators:
        for store in operator.stores:
            path = schema_path(operator.id, store.name)
            try:
                schemas[path] = base64.b64encode(files.read(path)).decode()
            except NotFoundError:
                continue
    info = query.model_dump(mode="json", include=_STEADY)
    return {
        "query": {**info, "operators": [_operator(each) for each in info["operators"]]},
        "schemas": schemas,
    }


_STEADY = {"conf", "operators", "offsets_version", "commits_version", "batch"}
"""What is the same whenever it is measured."""


def _operator(info: Mapping[str, Any]) -> dict[str, Any]:
    stores = [{**store, "files": 0, "bytes": 0} for store in info["stores"]]
    return {**info, "stores": stores}


def _rows(answer: Answer) -> list[tuple[Any, ...]]:
    return [tuple(row) for row in answer["rows"]]
