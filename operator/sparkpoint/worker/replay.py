"""Whether code makes of the last batch what was made of it: the batch is done again, on a copy.

Spark takes whatever has the right types, and names tell only some of what it means: the length of
a window has none, nor has the column of a sum. So the newest commit is taken off a copy of the
savepoint, the new code does that batch again with its real input, and the state that it arrives at
is compared with what the savepoint holds. Equal is evidence; a difference is shown with an example,
and is no verdict: it may be what the new code is for.
"""

import json
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

from sparkpoint.checkpoint.errors import CheckpointError
from sparkpoint.runtime.model import RehearsalInfo, RehearsedQuery, Termination
from sparkpoint.runtime.scratch import KEPT
from sparkpoint.savepoint import (
    CaptureRequest,
    MaterializeRequest,
    Mode,
    Repository,
    Savepoint,
    SinkPolicy,
)
from sparkpoint.savepoint.errors import SavepointError
from sparkpoint.savepoint.manifest import QueryInfo
from sparkpoint.state.diff import Change, DiffRequest, StoreDiff, diff_state
from sparkpoint.state.errors import StateError
from sparkpoint.state.selection import Selection
from sparkpoint.storage import DirectoryStore
from sparkpoint.storage.errors import StorageError
from sparkpoint.worker.model import Answer
from sparkpoint.worker.tasks.rehearse import Trial
from sparkpoint.worker.telling import Telling

__all__ = ["Comparison", "Perform", "compare", "obstacle", "weighed"]

_BEFORE = "before"
_LONGEST = 300
_UNORDERED = "keyWithIndexToValue"
"""What joins number by the order in which rows come, which is another one each time."""

Perform = Callable[[Trial, Telling], RehearsalInfo | Termination | None]


@dataclass(slots=True)
class Comparison:
    """What is known of each query that has state."""

    same: list[str] = field(default_factory=list)
    different: dict[str, str] = field(default_factory=dict)
    """Query -> how its state differs."""
    unknown: dict[str, str] = field(default_factory=dict)
    """Query -> why nothing could be compared."""


def compare(
    repository: Repository,
    savepoint: Savepoint,
    trial: Trial,
    perform: Perform,
    *,
    telling: Telling,
) -> Comparison:
    """Do the last batch of every query again, where that can be done."""
    found = Comparison()
    queries = [query for query in savepoint.manifest.queries if query.operators]
    for query in queries:
        if (why := obstacle(query)) is not None:
            found.unknown[query.prefix] = why
    chosen = [query for query in queries if query.prefix not in found.unknown]
    if not chosen:
        return found
    try:
        with tempfile.TemporaryDirectory(
            prefix="sparkpoint-replay-", dir=trial.scratch, ignore_cleanup_errors=True
        ) as folder:
            replay = _Replay(repository, savepoint, trial, Path(folder))
            replay.run(chosen, perform, found, telling)
    except (SavepointError, StorageError, CheckpointError, StateError) as error:
        done = {*found.same, *found.different}
        found.unknown |= {q.prefix: str(error) for q in chosen if q.prefix not in done}
    return found


def obstacle(query: QueryInfo) -> str | None:
    """Why the last batch of a query cannot be done again; None if it can."""
    if query.pending:
        return "a batch is in flight, which the trial has done"
    if query.batch == 0:
        return "it has made one batch only"
    bases = [base for op in query.operators for store in op.stores for base in store.base_versions]
    # A batch reads the version of its own number, and writes the next one.
    if any(base > query.batch for base in bases):
        return "the savepoint does not hold the state from before its last batch"
    return None


class _Replay:
    """One go at it, in a folder of its own."""

    def __init__(
        self, repository: Repository, savepoint: Savepoint, trial: Trial, folder: Path
    ) -> None:
        self._repository, self._savepoint = repository, savepoint
        self._trial, self._folder = trial, folder
        self._namespace, self._job = savepoint.manifest.namespace, savepoint.manifest.job

    def run(
        self, queries: list[QueryInfo], perform: Perform, found: Comparison, telling: Telling
    ) -> None:
        """Rehearse on a copy without the last commits, and compare what came of it."""
        local = Repository.init(DirectoryStore(self._folder / "repository"))
        self._take_back(local, queries, telling)
        uri = local.store.uri
        trial = replace(
            self._trial, savepoint=_BEFORE, repository=uri, endpoint_url=None, keep=uri, order=None
        )
        info = perform(trial, telling)
        seen = info.queries if isinstance(info, RehearsalInfo) else {}
        made = None
        for query in queries:
            why = _not_done(seen.get(query.prefix))
            if why is None:
                made = made or local.find(KEPT, namespace=self._namespace, job=self._job)
                why = self._compared(query, local, made, found)
            if why is not None:
                found.unknown[query.prefix] = why

    def _take_back(self, local: Repository, queries: list[QueryInfo], telling: Telling) -> None:
        """A savepoint of the moment before the last commits, as if a stop had come between."""
        copy = DirectoryStore(self._folder / _BEFORE)
        whole = MaterializeRequest(mode=Mode.RESUME, sink_policy=SinkPolicy.IGNORE)
        self._repository.materialize(self._savepoint, copy, whole, progress=telling)
        for query in queries:
            copy.child(query.prefix).delete(f"commits/{query.batch}")
        request = CaptureRequest(namespace=self._namespace, job=self._job, name=_BEFORE)
        local.capture(copy, request)

    def _compared(
        self, query: QueryInfo, local: Repository, made: Savepoint, found: Comparison
    ) -> str | None:
        """Note what differs; why nothing could be compared, if so."""
        after = next((q for q in made.manifest.queries if q.prefix == query.prefix), None)
        if after is None or after.batch != query.batch:
            return "the batch was not committed again"
        request = DiffRequest(
            selection=Selection(query=query.prefix), samples=1, work_folder=self._folder
        )
        stores = diff_state(self._repository, self._savepoint, made, request, of_after=local)
        differing = list(_differences(stores))
        if differing:
            found.different[query.prefix] = "; ".join(differing)
        else:
            found.same.append(query.prefix)
        return None


def _not_done(query: RehearsedQuery | None) -> str | None:
    if query is None or query.verdict is None:
        return "its last batch was not done again in time"
    if query.verdict != "compatible":
        said = query.error.message if query.error else query.verdict
        return f"its last batch could not be done again: {said[:_LONGEST]}"
    return None if query.input_rows else "its last batch had no rows"


def _differences(stores: list[StoreDiff]) -> Iterator[str]:
    for store in stores:
        totals = store.totals
        if store.store.endswith(_UNORDERED) or not (
            totals.added or totals.removed or totals.changed
        ):
            continue
        counts = f"{totals.changed} keys changed, {totals.added} more, {totals.removed} less"
        example = f", such as {_example(store.samples[0])}" if store.samples else ""
        yield f"operator {store.operator}, {store.store}: {counts}{example}"


def _example(change: Change) -> str:
    words = [_shown(each) for each in (change.key, change.before, change.after)]
    return f"{words[0]}: {words[1]} in the savepoint, {words[2]} by this code"


def _shown(value: object) -> str:
    return "nothing" if value is None else json.dumps(value, ensure_ascii=False)[:_LONGEST]


def weighed(answer: Answer, found: Comparison) -> Answer:
    """An answer that was `Compatible`, with what the comparison adds."""
    notes = [f"{name}: its last batch, done again, made the same state." for name in found.same]
    notes += [f"{name}: not compared, as {why}." for name, why in found.unknown.items()]
    if not found.different:
        return answer.model_copy(update={"notes": tuple(notes)})
    problems = tuple(
        f"query {name}: STATE_DIFFERS: Spark takes the state, but this code makes other state of "
        f"the last batch than was made of it: {how}. If that is what the change is for, or if the "
        "query does not always compute the same, go on; else change it back."
        for name, how in found.different.items()
    )
    return answer.model_copy(
        update={
            "answer": "Unknown",
            "message": problems[0],
            "problems": problems,
            "notes": tuple(notes),
        }
    )
