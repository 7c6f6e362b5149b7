"""Deep verification: a copy of the savepoint is restored into a folder of this pod, and a Spark
process of its own loads every state store of it."""

import tempfile
from pathlib import Path

from sparkpoint.savepoint import MaterializeRequest, Mode, Repository, Savepoint
from sparkpoint.savepoint.progress import Amount
from sparkpoint.storage import DirectoryStore
from sparkpoint.worker.children import run_child
from sparkpoint.worker.loading import Load, Loaded, QueryToLoad
from sparkpoint.worker.telling import Telling

__all__ = ["load_state"]


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
        return Loaded.model_validate_json(answer)


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
