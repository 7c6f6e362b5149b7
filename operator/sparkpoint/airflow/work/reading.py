"""Looking at jobs and savepoints: of some namespaces, or of the whole cluster."""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from sparkpoint.airflow.decisions.drills import DRILL_OF
from sparkpoint.airflow.decisions.errors import SelectorError
from sparkpoint.cli.jobs.cluster import SAVEPOINTS, Cluster
from sparkpoint.cli.jobs.facts import job_of, metadata
from sparkpoint.cli.jobs.finding import list_jobs

__all__ = ["Clusters", "Sight", "chosen", "look"]

Object = dict[str, Any]
Clusters = Callable[[str | None], Cluster]
"""A namespace -> the cluster, in it; None: in the connection's own."""
_WORD: Final = r"[A-Za-z0-9._/-]+"
_WISH: Final = re.compile(rf"({_WORD})\s*(==?|!=)\s*((?:{_WORD})?)")
_ANY: Final = re.compile(rf"(!?)\s*({_WORD})")


@dataclass(frozen=True, slots=True)
class Sight:
    """One namespace, as it was just now."""

    namespace: str
    jobs: tuple[Object, ...]
    savepoints: tuple[Object, ...]

    def savepoints_of(self, job: Object) -> list[Object]:
        """Those that name it."""
        return [body for body in self.savepoints if job_of(body) == metadata(job)["name"]]


def look(clusters: Clusters, namespaces: Sequence[str], *, everywhere: bool) -> list[Sight]:
    """At all of it at once, so that nothing is decided by half of what there is.

    Without namespaces: the connection's own, or `everywhere`.
    """
    if namespaces or not everywhere:
        meant: Sequence[str | None] = list(dict.fromkeys(namespaces)) or [None]
        return [_one(clusters(name)) for name in meant]
    cluster = clusters(None)
    # Savepoints after jobs: a savepoint that a job names is then there, too.
    jobs = list_jobs(cluster, everywhere=True)
    savepoints = cluster.list(SAVEPOINTS, everywhere=True)
    return [
        Sight(name, _within(name, jobs), _within(name, savepoints))
        for name in sorted({str(metadata(body)["namespace"]) for body in jobs})
    ]


def _one(cluster: Cluster) -> Sight:
    jobs = tuple(list_jobs(cluster))
    return Sight(cluster.namespace, jobs, tuple(cluster.list(SAVEPOINTS)))


def _within(namespace: str, bodies: Iterable[Object]) -> tuple[Object, ...]:
    return tuple(body for body in bodies if metadata(body)["namespace"] == namespace)


def chosen(sights: Iterable[Sight], *, names: Sequence[str], selector: str) -> list[Object]:
    """Jobs by name (`NAME` or `NAMESPACE/NAME`) and by label (`team=shop,tier!=gold`); no drills.

    LookupError names those that are not there: a typing error must not look like success. For the
    same reason a selector that is not understood, or fits no job, is a SelectorError.
    """
    jobs = [job for sight in sights for job in sight.jobs if not _label(job, DRILL_OF)]
    missing = [name for name in names if not any(_is_named(job, name) for job in jobs)]
    if missing:
        raise LookupError(f"There is no job {', '.join(missing)}.")
    wanted = [_Wish.read(part) for part in selector.split(",")] if selector else []
    found = [
        job
        for job in jobs
        if (not names or any(_is_named(job, name) for name in names))
        and all(wish.is_met(_label(job, wish.key)) for wish in wanted)
    ]
    if selector and not found:
        raise SelectorError(f"No job that was looked at fits the selector {selector}.")
    return found


@dataclass(frozen=True, slots=True)
class _Wish:
    """One part of a selector."""

    key: str
    value: str | None
    """None: whether there is such a label at all."""
    equal: bool

    @classmethod
    def read(cls, part: str) -> "_Wish":
        text = part.strip()
        if found := _WISH.fullmatch(text):
            key, sign, value = found.groups()
            return cls(key, value, sign != "!=")
        if found := _ANY.fullmatch(text):
            sign, key = found.groups()
            return cls(key, None, sign != "!")
        raise SelectorError(
            f"The selector has {text!r} in it, which is not understood: write team=shop, "
            "team!=shop, team or !team."
        )

    def is_met(self, label: str | None) -> bool:
        holds = label is not None if self.value is None else label == self.value
        return holds is self.equal


def _is_named(job: Object, name: str) -> bool:
    about = metadata(job)
    return name in (about["name"], f"{about['namespace']}/{about['name']}")


def _label(job: Object, key: str) -> str | None:
    found: str | None = (metadata(job).get("labels") or {}).get(key)
    return found
