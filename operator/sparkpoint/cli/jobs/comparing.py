"""`job compare`: two jobs side by side, such as two forks of one savepoint.

What differs in their specs, where each began, how far each is. What their state differs in, two
savepoints tell: the command for that is printed.
"""

import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime

from sparkpoint.api.validation import validate
from sparkpoint.cli.answer import Answer, Settings
from sparkpoint.cli.jobs.cluster import Object
from sparkpoint.cli.jobs.documents import status_document
from sparkpoint.cli.jobs.facts import metadata, moment_of, spec_of, status_of
from sparkpoint.cli.jobs.finding import find_job
from sparkpoint.cli.jobs.session import Place, open_cluster
from sparkpoint.cli.jobs.specs import (
    Difference,
    differences,
    differences_as_written,
    patch_between,
)
from sparkpoint.cli.render.text import age, repository_options, size, table, word

__all__ = ["Comparison", "compare_jobs"]

_NONE = "-"
_SHOWN_ID = 12


def compare_jobs(settings: Settings, place: Place, first: str, second: str) -> Answer:
    """Both, once."""
    cluster = open_cluster(place)
    compared = Comparison(find_job(cluster, first), find_job(cluster, second))
    text = compared.text(datetime.now(UTC))
    return Answer(document=compared.document(), text=text, notes=compared.notes)


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two jobs as the API server tells them."""

    first: Object
    second: Object

    def document(self) -> dict[str, object]:
        """For programs."""
        return {
            "jobs": [status_document(body, []) for body in self._both],
            "changes": [each.document() for each in self._changes()],
            "sameOrigin": self.same_origin,
            "diff": self.diff_command,
            "notes": list(self.notes),
        }

    def text(self, now: datetime) -> str:
        """For people."""
        header = ["", *(metadata(body)["name"] for body in self._both)]
        parts = [table(header, self._rows(now)), self._about_origin()]
        if changes := self._changes():
            parts.append("\n".join(["What differs in their specs:", *(f"  {c}" for c in changes)]))
        if self.diff_command:
            parts.append(f"What differs in their state:\n  {self.diff_command}")
        return "\n\n".join(part for part in parts if part)

    @property
    def notes(self) -> tuple[str, ...]:
        """Which specs cannot be read, such as those for a newer version."""
        mistakes = {metadata(body)["name"]: validate(spec_of(body)) for body in self._both}
        return tuple(
            f"{name}: this version of sparkpoint cannot read {', '.join(e.path for e in found)}; "
            "the two specs are compared as they are written, without defaults."
            for name, found in mistakes.items()
            if found
        )

    @property
    def same_origin(self) -> bool | None:
        """Whether both epochs began with one savepoint; None if one of them began with none."""
        origins = [(status_of(body).get("restoredFrom") or {}).get("id") for body in self._both]
        return None if None in origins else origins[0] == origins[1]

    @property
    def diff_command(self) -> str | None:
        """That compares the state of their last savepoints; None without two in one repository."""
        place, other = (_repository(spec_of(body)) for body in self._both)
        savepoints = [(status_of(b).get("lastSavepoint") or {}).get("id") for b in self._both]
        if not place or place != other or None in savepoints:
            return None
        words = [str(each)[:_SHOWN_ID] for each in savepoints]
        return shlex.join(["sparkpoint", "state", "diff", *words, *place])

    @property
    def _both(self) -> tuple[Object, Object]:
        return self.first, self.second

    def _changes(self) -> list[Difference]:
        current, other = spec_of(self.first), spec_of(self.second)
        if self.notes:
            return differences_as_written(current, other)
        return differences(current, patch_between(current, other))

    def _about_origin(self) -> str:
        match self.same_origin:
            case True:
                return "Their present epochs began with the same savepoint."
            case False:
                return (
                    "Their present epochs began with different savepoints: what differs now may "
                    "have differed then."
                )
            case None:
                return ""

    def _rows(self, now: datetime) -> Iterator[list[str]]:
        facts = [_facts(body, now) for body in self._both]
        for name in dict.fromkeys([*facts[0], *facts[1]]):
            values = [each.get(name, _NONE) for each in facts]
            if values != [_NONE, _NONE]:
                yield [name, *values]


def _repository(spec: Object) -> list[str]:
    """The options that name it; none if the job has none."""
    savepoints, storage = spec.get("savepoints") or {}, spec.get("storage") or {}
    uri = str(savepoints.get("repository") or "").rstrip("/")
    endpoint = savepoints.get("endpointUrl") or storage.get("endpointUrl")
    return repository_options(uri, endpoint) if uri else []


def _facts(body: Object, now: datetime) -> dict[str, str]:
    status = status_of(body)
    restored, last = status.get("restoredFrom") or {}, status.get("lastSavepoint") or {}
    facts = {
        "phase": word(status.get("phase")),
        "revision": word((status.get("revisions") or {}).get("current")),
        "Spark": word(status.get("sparkVersion")),
        "executors": word(status.get("executors")),
        "partitions": word(status.get("partitions")),
        "began with": _named(restored),
        "last savepoint": _named(last),
    }
    for query in status.get("queries") or []:
        facts |= {f"{query.get('name')}: {name}": value for name, value in _progress(query, now)}
    return facts


def _named(savepoint: Object) -> str:
    if not savepoint:
        return _NONE
    name, full = str(savepoint.get("name")), savepoint.get("id")
    return f"{name} ({str(full)[:_SHOWN_ID]})" if full else name


def _progress(query: Object, now: datetime) -> Iterator[tuple[str, str]]:
    committed, memory = moment_of(query.get("lastCommitTime")), query.get("stateBytes")
    yield "batch", word(query.get("batch"))
    yield "rows in per second", word(query.get("inputRowsPerSecond"))
    yield "rows done per second", word(query.get("processedRowsPerSecond"))
    yield "state rows", word(query.get("stateRows"))
    yield "state in memory", _NONE if memory is None else size(memory)
    yield "watermark", word(query.get("watermark"))
    yield "committed", _NONE if committed is None else age(committed, now)
