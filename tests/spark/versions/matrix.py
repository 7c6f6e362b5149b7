"""The runs of the table: the first half on each version, the second from each on each."""

import base64
import json
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import pyspark

from dev.console import say
from dev.sparks import other_spark
from sparkpoint.savepoint import CaptureRequest, MaterializeRequest, Mode, Repository, Savepoint
from sparkpoint.state.querystate import schema_path
from sparkpoint.state.survey import SavepointFiles
from sparkpoint.storage import DirectoryStore
from sparkpoint.storage.errors import NotFoundError
from tests.spark.versions.queries import CASES, QUERIES, SECOND_FORMAT
from tests.spark.versions.rows import FIRST, SECOND, write_half

__all__ = ["SPARKS", "Case", "Measured", "checkpoint_key", "measure", "minor"]

SPARKS = ("3.5.9", "4.0.5", "4.1.4", "4.2.1", "4.3.0")
"""The newest release of each line."""
Case = tuple[str, str]
_Key = TypeVar("_Key", bound=tuple[str, ...])
_ROOT = Path(__file__).resolve().parents[3]
_SECONDS = 3600


@dataclass(frozen=True, slots=True)
class Measured:
    """What came of it."""

    results: Mapping[tuple[str, str, str, str], str]
    """(query, provider, from, to) -> `exact`, `wrong: …` or `refused: …`."""
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
    """Run the cases from each of the first versions to each of the second."""
    chosen = tuple(cases)
    repository = Repository.init(DirectoryStore(folder / "repository"))
    write_half(FIRST, folder / "input")
    begun = {spark: _first_half(folder, repository, spark, chosen) for spark in before}
    write_half(SECOND, folder / "input")
    results: dict[tuple[str, str, str, str], str] = {}
    for spark in after:
        results |= _second_half(folder, repository, spark, begun, chosen)
    checkpoints = {
        key: told
        for spark, each in begun.items()
        for key, told in _told(repository, each.savepoint, spark, chosen).items()
    }
    return Measured(results, checkpoints)


@dataclass(frozen=True, slots=True)
class _Begun:
    savepoint: Savepoint
    rows: Mapping[Case, list[tuple[Any, ...]]]


def _first_half(
    folder: Path, repository: Repository, spark: str, cases: tuple[Case, ...]
) -> _Begun:
    place = folder / f"on-{spark}"
    answers = _run(folder, place, spark, {case: _name(cases, case) for case in cases})
    for case, answer in answers.items():
        if "died" in answer:
            # A library of today may be too new for a Spark of yesterday.
            say(f"Spark {spark} does not run {case}: {answer['of'][-500:]}")
            shutil.rmtree(place / _name(cases, case))
    request = CaptureRequest(job="versions", name=f"on-{spark}", spark_version=spark)
    savepoint = repository.capture(DirectoryStore(place), request).savepoint
    done = {case: _rows(answer) for case, answer in answers.items() if "rows" in answer}
    return _Begun(savepoint, done)


def _second_half(
    folder: Path,
    repository: Repository,
    spark: str,
    begun: Mapping[str, _Begun],
    cases: tuple[Case, ...],
) -> dict[tuple[str, str, str, str], str]:
    place = folder / f"to-{spark}"
    for before, each in begun.items():
        target = DirectoryStore(place / before)
        repository.materialize(each.savepoint, target, MaterializeRequest(mode=Mode.RESUME))
    wanted = {
        (*case, before): f"{before}/{_name(cases, case)}"
        for before, each in begun.items()
        for case in each.rows
    }
    answers = _run(folder, place, spark, wanted)
    return {
        (query, provider, minor(before), minor(spark)): _judged(
            query, begun[before].rows[query, provider], answer
        )
        for (query, provider, before), answer in answers.items()
    }


def _judged(query: str, first: list[tuple[Any, ...]], answer: Mapping[str, Any]) -> str:
    if "died" in answer:
        return f"refused: {answer['died']}"
    kind = QUERIES[query]
    expected, found = kind.expected(), kind.shown([*first, *_rows(answer)])
    if found == expected:
        return "exact"
    lost, added = Counter(expected - found).total(), Counter(found - expected).total()
    return f"wrong: {lost} rows are missing, {added} should not be there, of {expected.total()}"


def _run(
    folder: Path, place: Path, spark: str, wanted: Mapping[_Key, str]
) -> dict[_Key, Mapping[str, Any]]:
    """Run what is wanted, (query, provider, …) -> its folder, with that version."""
    second = {key: path for key, path in wanted.items() if key[1] == SECOND_FORMAT}
    first = {key: path for key, path in wanted.items() if key not in second}
    found: dict[_Key, Mapping[str, Any]] = {}
    for together in (first, second):
        if together:
            found |= _run_together(folder, place, spark, together)
    return found


def _run_together(
    folder: Path, place: Path, spark: str, wanted: Mapping[_Key, str]
) -> dict[_Key, Mapping[str, Any]]:
    """In one process."""
    orders = [
        {
            "query": key[0],
            "provider": key[1],
            "checkpoint": str(place / path),
            "input": str(folder / "input"),
        }
        for key, path in wanted.items()
    ]
    order, answer, log = (folder / f"{place.name}.{kind}" for kind in ("order", "answer", "log"))
    order.write_text(json.dumps(orders))
    environment = None if spark == pyspark.__version__ else other_spark(spark)
    with log.open("w") as output:
        done = subprocess.run(
            [sys.executable, "-m", "tests.spark.versions.run", str(order), str(answer)],
            cwd=_ROOT,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            timeout=_SECONDS,
            check=False,
        )
    assert done.returncode == 0, log.read_text()[-4000:]
    said = json.loads(answer.read_text())
    assert said["spark"] == spark, f"Spark {said['spark']} ran in place of {spark}"
    return dict(zip(wanted, said["answers"], strict=True))


def _told(
    repository: Repository, savepoint: Savepoint, spark: str, cases: tuple[Case, ...]
) -> dict[str, Mapping[str, Any]]:
    """What a check without Spark goes by."""
    records = repository.files(savepoint).files
    names = {_name(cases, case): case for case in cases}
    told: dict[str, Mapping[str, Any]] = {}
    for query in savepoint.manifest.queries:
        files = SavepointFiles(repository.store, records, prefix=query.prefix)
        schemas: dict[str, str] = {}
        for operator in query.operators:
            for store in operator.stores:
                path = schema_path(operator.id, store.name)
                try:
                    schemas[path] = base64.b64encode(files.read(path)).decode()
                except NotFoundError:
                    continue
        info = query.model_dump(mode="json", include=_STEADY)
        told[checkpoint_key(names[query.prefix], minor(spark))] = {
            "query": {**info, "operators": [_operator(each) for each in info["operators"]]},
            "schemas": schemas,
        }
    return told


_STEADY = {"conf", "operators", "offsets_version", "commits_version", "batch"}
"""What is the same whenever it is measured."""


def _operator(info: Mapping[str, Any]) -> dict[str, Any]:
    stores = [{**store, "files": 0, "bytes": 0} for store in info["stores"]]
    return {**info, "stores": stores}


def _rows(answer: Mapping[str, Any]) -> list[tuple[Any, ...]]:
    return [tuple(row) for row in answer["rows"]]


def _name(cases: tuple[Case, ...], case: Case) -> str:
    return f"case-{cases.index(case)}"
