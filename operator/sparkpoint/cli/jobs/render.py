"""Jobs as text: the table, and everything that a person wants to know about one."""

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any

from sparkpoint.cli.jobs.cluster import Object
from sparkpoint.cli.jobs.facts import (
    completed_at,
    condition,
    is_looked_at,
    metadata,
    moment_of,
    spec_of,
    status_of,
)
from sparkpoint.cli.render.text import age, fields, seconds, size, table, word
from sparkpoint.lifecycle.phases import PLANS, Kind

__all__ = ["list_text", "status_text"]

_NONE = "-"
_GOOD = {
    "Accepted": "True",
    "Ready": "True",
    "Progressing": "False",
    "Degraded": "False",
    "Compatible": "True",
    "SavepointHealthy": "True",
}
_QUIET = ("UnderWay", "NotTried", "NoneYet", "NoRepository", "Suspended", "Completed")
"""Reasons that are told elsewhere, or need nobody."""


def list_text(jobs: Sequence[Object], now: datetime, *, namespaces: bool) -> str:
    """The table of `job list`."""
    if not jobs:
        return "No jobs."
    header = ["NAME", "PHASE", "BATCH", "RATE", "EXECUTORS", "LAST SAVEPOINT", "TAKEN", "DEGRADED"]
    rows = [_row(body, now) for body in jobs]
    if namespaces:
        header = ["NAMESPACE", *header]
        rows = [[metadata(body)["namespace"], *row] for body, row in zip(jobs, rows, strict=True)]
    return table([*header, "AGE"], rows, right="BATCH RATE EXECUTORS")


def _row(body: Object, now: datetime) -> list[str]:
    status, degraded = status_of(body), condition(body, "Degraded")
    last = status.get("lastSavepoint") or {}
    return [
        metadata(body)["name"],
        _phase(status),
        word(status.get("batch")),
        word(status.get("rate")),
        word(status.get("executors")),
        word(last.get("name")),
        _age(last.get("completedAt"), now),
        str(degraded.get("reason")) if degraded.get("status") == "True" else _NONE,
        _age(metadata(body).get("creationTimestamp"), now),
    ]


def _phase(status: dict[str, Any]) -> str:
    operation = status.get("operation")
    phase = word(status.get("phase"))
    return f"{phase} ({operation['phase']})" if operation else phase


def _age(time: object, now: datetime) -> str:
    read = moment_of(time)
    return age(read, now) if read is not None else _NONE


def status_text(body: Object, savepoints: Sequence[Object], now: datetime) -> str:
    """What `job status` prints."""
    about, status = metadata(body), status_of(body)
    parts = [
        [f"{about['namespace']}/{about['name']}  {_headline(body)}", *_facts(body, now)],
        _operation(status, now),
        list(_conditions(body, now)),
        _queries(status, now),
        _savepoints(savepoints, now),
        _last_operation(status, now),
    ]
    return "\n\n".join("\n".join(part) for part in parts if part)


def _headline(body: Object) -> str:
    if metadata(body).get("deletionTimestamp") is not None:
        return "Deleting"
    phase = _phase(status_of(body))
    if is_looked_at(body):
        return phase
    return f"{phase} (the operator has not looked at the newest spec yet)"


def _facts(body: Object, now: datetime) -> list[str]:
    status = status_of(body)
    driver, restored = status.get("driver") or {}, status.get("restoredFrom") or {}
    return fields(
        [
            ("epoch", _epoch(status)),
            ("driver", _driver(driver, now)),
            ("batch", _joined(status.get("batch"), status.get("rate"))),
            ("executors", _executors(status)),
            ("revision", _revisions(status.get("revisions") or {})),
            ("restored", f"from {restored['name']} ({restored.get('sink')}), "
             f"{_age(restored.get('at'), now)}" if restored else ""),
            ("Spark", str(status.get("sparkVersion") or "")),
            ("suspend", "wished" if spec_of(body).get("suspend") else ""),
        ]
    )  # fmt: skip


def _joined(*values: object) -> str:
    return ", ".join(str(value) for value in values if value not in (None, ""))


def _epoch(status: dict[str, Any]) -> str:
    if status.get("epoch") is None:
        return ""
    return f"{status['epoch']}, attempt {status.get('attempt')}"


def _driver(driver: dict[str, Any], now: datetime) -> str:
    failures = driver.get("failures") or 0
    return _joined(
        driver.get("pod"),
        driver.get("phase"),
        f"on {driver['node']}" if driver.get("node") else "",
        f"started {_age(driver['startedAt'], now)}" if driver.get("startedAt") else "",
        f"failed {failures} times in a row" if failures else "",
        f"next attempt at {driver['nextAttemptAt']}" if driver.get("nextAttemptAt") else "",
    )


def _executors(status: dict[str, Any]) -> str:
    partitions = status.get("partitions")
    return _joined(status.get("executors"), f"{partitions} state partitions" if partitions else "")


def _revisions(revisions: dict[str, Any]) -> str:
    current, stable = revisions.get("current"), revisions.get("stable")
    if not current:
        return ""
    proven = "stable" if current == stable else f"on trial; stable is {stable}"
    held = revisions.get("failed")
    return f"{current} ({proven})" + (f"; held back: {held}" if held else "")


def _operation(status: dict[str, Any], now: datetime) -> list[str]:
    operation = status.get("operation")
    if not operation:
        return []
    lines = fields(
        [
            ("phases", _plan(str(operation["kind"]), str(operation["phase"]))),
            ("since", f"{_age(operation.get('startedAt'), now)}; this phase "
             f"{_age(operation.get('phaseStartedAt'), now)}"),
            ("leads to", _target(operation)),
            ("savepoint", str(operation.get("savepoint") or "")),
            ("says", str(operation.get("message") or "")),
        ]
    )  # fmt: skip
    return [f"Under way: {operation['kind']} {operation['id']}", *lines]


def _plan(kind: str, present: str) -> str:
    """All phases of the operation, the present one in brackets."""
    known = {each.value: PLANS[each] for each in Kind}
    names = [phase.value for phase in known.get(kind, ())]
    if present not in names:
        return present
    return " > ".join(f"[{name}]" if name == present else name for name in names)


def _target(operation: dict[str, Any]) -> str:
    epoch, attempt = operation.get("epoch"), operation.get("attempt")
    revision = operation.get("targetRevision")
    return _joined(
        f"epoch {epoch}" if epoch is not None else "",
        f"attempt {attempt}" if attempt is not None else "",
        f"revision {revision}" if revision else "",
    )


def _conditions(body: Object, now: datetime) -> Iterator[str]:
    """Those that are not as they should be; their messages say what to do."""
    under_way = status_of(body).get("operation") is not None
    for each in status_of(body).get("conditions") or []:
        good = _GOOD.get(each.get("type"), each.get("status"))
        expected = under_way and each.get("type") in ("Ready", "Compatible")
        if each.get("status") == good or each.get("reason") in _QUIET or expected:
            continue
        since = _age(each.get("lastTransitionTime"), now)
        yield f"{each.get('type')} is {each.get('status')}: {each.get('reason')}, {since}"
        yield from (f"  {line}" for line in str(each.get("message") or "").splitlines())


def _queries(status: dict[str, Any], now: datetime) -> list[str]:
    queries = status.get("queries") or []
    if not queries:
        return []
    header = ("QUERY", "RUNS", "BATCH", "IN/S", "OUT/S", "BATCH TIME", "STATE ROWS", "WATERMARK",
              "COMMITTED")  # fmt: skip
    rows = [
        (
            str(query.get("name")),
            "yes" if query.get("active") else "no",
            word(query.get("batch")),
            word(query.get("inputRowsPerSecond")),
            word(query.get("processedRowsPerSecond")),
            seconds(query["batchSeconds"]) if query.get("batchSeconds") is not None else _NONE,
            word(query.get("stateRows")),
            word(query.get("watermark")),
            _age(query.get("lastCommitTime"), now),
        )
        for query in queries
    ]
    return table(header, rows, right="BATCH IN/S OUT/S").splitlines()


def _savepoints(savepoints: Sequence[Object], now: datetime) -> list[str]:
    if not savepoints:
        return []
    header = ("SAVEPOINT", "PHASE", "BATCH", "SIZE", "NEW", "BY", "CHECKED", "TAKEN")
    rows = [_savepoint_row(body, now) for body in savepoints]
    return table(header, rows, right="BATCH SIZE NEW").splitlines()


def _savepoint_row(body: Object, now: datetime) -> tuple[str, ...]:
    status = status_of(body)
    taken = completed_at(body) or moment_of(metadata(body).get("creationTimestamp"))
    return (
        metadata(body)["name"],
        word(status.get("phase")),
        word(status.get("batch")),
        size(status["bytes"]) if status.get("bytes") is not None else _NONE,
        size(status["newBytes"]) if status.get("newBytes") is not None else _NONE,
        str(spec_of(body).get("trigger", "Manual")),
        word((status.get("verified") or {}).get("verdict")),
        age(taken, now) if taken is not None else _NONE,
    )


def _last_operation(status: dict[str, Any], now: datetime) -> list[str]:
    last = status.get("lastOperation")
    if not last:
        return []
    begun, ended = moment_of(last.get("startedAt")), moment_of(last.get("finishedAt"))
    took = f"took {seconds((ended - begun).total_seconds())}" if begun and ended else ""
    down = last.get("downtimeSeconds")
    head = f"Last: {last.get('kind')} {last.get('id')} {last.get('result')}"
    about = _joined(
        _age(last.get("finishedAt"), now), took, f"{seconds(down)} down" if down is not None else ""
    )
    return [
        f"{head}, {about}",
        *(f"  {line}" for line in str(last.get("message") or "").splitlines()),
    ]
