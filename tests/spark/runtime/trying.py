"""What the tests of rehearsals share: queries to try out, and what was said of them."""

import json
import shutil
import uuid
from pathlib import Path

from sparkpoint.runtime.model import RehearsalInfo

__all__ = ["another_query", "verdicts_of"]


def another_query(checkpoint: Path, copy: Path) -> None:
    """The same state under an id of its own: Spark stops a query when one of its id is started."""
    shutil.copytree(checkpoint, copy)
    (copy / "metadata").write_text(json.dumps({"id": str(uuid.uuid4())}))


def verdicts_of(info: RehearsalInfo) -> dict[str, tuple[str | None, str | None]]:
    """Query -> its verdict, and the kind of its error."""
    return {
        name: (query.verdict, query.error.type if query.error else None)
        for name, query in info.queries.items()
    }
