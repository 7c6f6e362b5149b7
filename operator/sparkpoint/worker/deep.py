"""Deep verification: a copy of the savepoint is restored into a folder of this pod, and a Spark
process of its own loads every state store of it. It must find as many rows as the manifest says,
and as the files hold, as far as either is known."""

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from sparkpoint.savepoint import MaterializeRequest, Mode, Repository, Savepoint
from sparkpoint.savepoint.describe import is_shown
from sparkpoint.savepoint.progress import Amount
from sparkpoint.state import StoreSurvey, survey
from sparkpoint.storage import DirectoryStore
from sparkpoint.worker.children import run_child
from sparkpoint.worker.loading import Load, Loaded, QueryToLoad, said_of
from sparkpoint.worker.telling import Telling

__all__ = ["counted", "load_state", "miscounted"]


def load_state(repository: Repository, savepoint: Savepoint, telling: Telling) -> Loaded:
    """What came of loading; SparkError if the process ended without a word."""
    with tempfile.TemporaryDirectory(
        prefix="sparkpoint-verify-", ignore_cleanup_errors=True
    ) as scratch:
        copy = DirectoryStore(Path(scratch, "checkpoint"))
        request = MaterializeRequest(mode=Mode.RESUME)
        repository.materialize(savepoint, copy, request, progress=telling)
        telling.start("loading the state with Spark", Amount())
        order = Load(scratch=scratch, queries=tuple(_queries(savepoint, copy.uri)))
        answer = run_child("sparkpoint.worker.loading", order.model_dump_json(), Path(scratch))
        loaded = Loaded.model_validate_json(answer)
    if loaded.broken:
        return loaded  # what Spark cannot load need not be counted
    told = {q.prefix: q.rows for q in savepoint.manifest.queries if q.rows is not None}
    held = counted(survey(repository, savepoint, progress=telling))
    wrong = miscounted(loaded, told=told, held=held)
    return loaded.model_copy(update={"broken": wrong})


def counted(stores: Sequence[StoreSurvey]) -> dict[str, int]:
    """Query -> rows that Spark's reader must find; without those whose files only Spark reads."""
    unknown = {each.query for each in stores if each.tally is None}
    rows: dict[str, int] = {}
    for each in stores:
        if each.tally is not None and each.query not in unknown and is_shown(each.store):
            rows[each.query] = rows.get(each.query, 0) + each.tally.rows
    return rows


def miscounted(
    loaded: Loaded, *, told: Mapping[str, int], held: Mapping[str, int]
) -> tuple[str, ...]:
    """What Spark has loaded otherwise than the manifest tells, or the files have it."""
    return tuple(
        said_of(name, f"Spark loads {found} rows of state, and {whose} {expected[name]}")
        for expected, whose in ((told, "the manifest says"), (held, "its files hold"))
        for name, found in loaded.rows.items()
        if name in expected and found != expected[name]
    )


def _queries(savepoint: Savepoint, root: str) -> list[QueryToLoad]:
    return [
        QueryToLoad(
            name=query.prefix,
            checkpoint=f"{root}/{query.prefix}".rstrip("/"),
            batch=query.batch,
            commits_version=query.commits_version,
        )
        for query in savepoint.manifest.queries
        if query.operators
    ]
