"""Whether code makes of the last batch what was made of it: the batch is done again, on a copy.

Spark takes whatever has the right types, and names tell only some of what it means: the length of
a window has none, nor has the column of a sum. So the newest commit is taken off a copy of the
savepoint, the new code does that batch again with its real input, and the state that it arrives at
is compared with what the savepoint holds. Equal is evidence; a difference is shown with an example,
and is no verdict: it may be what the new code is for. Code that dies of rows which the job has
taken is none that fits, either. And what could not be compared is not known to mean the same.
"""

import json
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

from sparkpoint.checkpoint.errors import CheckpointError
from sparkpoint.runtime.identity import folder_of_name
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
from sparkpoint.storage import DirectoryStore, Store
from sparkpoint.storage.errors import StorageError
from sparkpoint.worker.model import Answer
from sparkpoint.worker.tasks.rehearse import Trial, called
from sparkpoint.worker.telling import Telling

__all__ = ["Comparison", "Perform", "compare", "obstacle", "weighed"]

_BEFORE = "before"
_LONGEST = 300
_OF_THE_COPY = ("CANNOT_LOAD_STATE_STORE", "STATE_STORE_", "STREAMING_", "CHECKPOINT_FILE_")
"""Errors that may be about the state from before the batch, which only this trial needs."""
_FORESEEN = (SavepointError, StorageError, CheckpointError, StateError)

Perform = Callable[[Trial, Telling], RehearsalInfo | Termination | None]


@dataclass(slots=True)
class Comparison:
    """What is known of each query that has state."""

    same: list[str] = field(default_factory=list)
    different: dict[str, str] = field(default_factory=dict)
    """Query -> how its state differs."""
    failed: dict[str, str] = field(default_factory=dict)
    """Query -> what the code died of when it did the batch again."""
    unknown: dict[str, str] = field(default_factory=dict)
    """Query -> why nothing could be compared."""
    passing: set[str] = field(default_factory=set)
    """Those of them that another try may be able to compare."""

    @property
    def retry_helps(self) -> bool:
        """Whether another try may find nothing but what is the same."""
        return self.passing >= self.unknown.keys() and not (self.different or self.failed)

    def leave_out(self, query: QueryInfo, why: str, *, passes: bool) -> None:
        """It could not be compared; if that passes, another try may."""
        self.unknown[query.prefix] = why
        if passes:
            self.passing.add(query.prefix)


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
    except _FORESEEN as error:
        for query in chosen:
            found.leave_out(query, str(error), passes=error.retry_helps)
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
        seen = _by_folder(info) if isinstance(info, RehearsalInfo) else {}
        for query in queries:
            again = seen.get(query.prefix) if query.prefix else _only(seen)
            if (died := _died(again)) is not None:
                found.failed[query.prefix] = died
            elif (why := _not_done(again)) is not None:
                found.leave_out(query, why, passes=_may_be_done(again))
            else:
                self._compare(query, local, found)

    def _take_back(self, local: Repository, queries: list[QueryInfo], telling: Telling) -> None:
        """A savepoint of the moment before the last commits, as if a stop had come between."""
        copy = DirectoryStore(self._folder / _BEFORE)
        whole = MaterializeRequest(mode=Mode.RESUME, sink_policy=SinkPolicy.IGNORE)
        self._repository.materialize(self._savepoint, copy, whole, progress=telling)
        for query in queries:
            place = copy.child(query.prefix)
            place.delete(f"commits/{query.batch}")
            _stand_in(place, query.batch - 2)
        request = CaptureRequest(namespace=self._namespace, job=self._job, name=_BEFORE)
        local.capture(copy, request)

    def _compare(self, query: QueryInfo, local: Repository, found: Comparison) -> None:
        """Note what differs, or why nothing could be compared."""
        try:
            self._note_differing(query, local, found)
        except _FORESEEN as error:
            # Others may still be compared, or have died.
            found.leave_out(query, str(error), passes=error.retry_helps)

    def _note_differing(self, query: QueryInfo, local: Repository, found: Comparison) -> None:
        made = local.find(KEPT, namespace=self._namespace, job=self._job)
        after = next((q for q in made.manifest.queries if q.prefix == query.prefix), None)
        if after is None or after.batch != query.batch:
            found.leave_out(query, "the batch was not committed again", passes=False)
            return
        request = DiffRequest(
            selection=Selection(query=query.prefix),
            samples=1,
            work_folder=self._folder,
            unnumbered=True,
        )
        stores = diff_state(self._repository, self._savepoint, made, request, of_after=local)
        differing = list(_differences(stores))
        if differing:
            found.different[query.prefix] = "; ".join(differing)
        else:
            found.same.append(query.prefix)


def _stand_in(place: Store, batch: int) -> None:
    """A savepoint has the offsets of the batch before its own, for whoever gives up the one in
    flight. Nobody does so here, and Spark reads no further than the two last: any will do."""
    if batch >= 0:
        place.put(f"offsets/{batch}", [place.read(f"offsets/{batch + 1}")])


def _by_folder(info: RehearsalInfo) -> dict[str, RehearsedQuery]:
    """A rehearsal knows queries by the names that they have in the script."""
    return {folder_of_name(name): query for name, query in info.queries.items()}


def _only(seen: dict[str, RehearsedQuery]) -> RehearsedQuery | None:
    """The one that a savepoint without folders can mean."""
    return next(iter(seen.values())) if len(seen) == 1 else None


def _died(query: RehearsedQuery | None) -> str | None:
    """What the code itself, or the rows that it was given, made the batch die of."""
    if query is None or query.verdict != "incompatible" or query.error is None:
        return None
    error = query.error
    if error.type.startswith(_OF_THE_COPY):
        return None
    where = f" ({error.where})" if error.where else ""
    return f"{error.type}: {error.message[:_LONGEST]}{where} {error.remedy or ''}".rstrip()


def _not_done(query: RehearsedQuery | None) -> str | None:
    if query is None or query.verdict is None:
        return "its last batch was not done again in time"
    if query.verdict != "compatible":
        said = query.error.message if query.error else query.verdict
        return f"its last batch could not be done again: {said[:_LONGEST]}"
    return None if query.input_rows else "its last batch had no rows"


def _may_be_done(query: RehearsedQuery | None) -> bool:
    """Whether it was for want of time, or of something else that passes."""
    if query is None or query.verdict is None:
        return True
    return query.error is not None and query.error.retry_helps


def _differences(stores: list[StoreDiff]) -> Iterator[str]:
    for store in stores:
        totals = store.totals
        if not (totals.added or totals.removed or totals.changed):
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
    same = found.same
    notes = [f"{called(each)}: its last batch, done again, made the same state." for each in same]
    problems = (*_told(found),)
    if not problems:
        return answer.model_copy(update={"notes": tuple(notes)})
    return answer.model_copy(
        update={
            "answer": "Unknown",
            "message": problems[0],
            "problems": problems,
            "notes": tuple(notes),
            "retry_helps": found.retry_helps,
        }
    )


def _told(found: Comparison) -> Iterator[str]:
    """A sentence for each query that does otherwise than before."""
    for name, how in found.different.items():
        yield (
            f"query {called(name)}: STATE_DIFFERS: Spark takes the state, but this code makes "
            f"other state of the last batch than was made of it: {how}. If that is what the change "
            "is for, or if the query does not always compute the same, go on; else change it back."
        )
    for name, how in found.failed.items():
        yield (
            f"query {called(name)}: BATCH_FAILS: Spark takes the state, but this code cannot do "
            f"the last batch again, which the job has done: {how}"
        )
    for name, why in found.unknown.items():
        yield (
            f"query {called(name)}: NOT_COMPARED: Spark takes the state, but whether this code "
            f"means the same by it was not seen, as {why}. Try a savepoint of a later batch, or "
            "leave this question out (--no-replay)."
        )
