"""JSON shapes of `sparkpoint job`: a promise to scripts, kept in docs/cli.md.

What the operator says is passed on in its own words, but for `record`, which is its own business.
"""

from sparkpoint.cli.jobs.awaiting import Waited
from sparkpoint.cli.jobs.cluster import Object
from sparkpoint.cli.jobs.facts import condition, job_of, metadata, spec_of, status_of

__all__ = ["job_line", "operation_document", "savepoint_document", "status_document"]

Document = dict[str, object]


def job_line(body: Object) -> Document:
    """One job of `job list`."""
    about, status = metadata(body), status_of(body)
    degraded = condition(body, "Degraded")
    operation = status.get("operation")
    return {
        "namespace": about.get("namespace"),
        "name": about.get("name"),
        "phase": status.get("phase"),
        "ready": _truth(condition(body, "Ready").get("status")),
        "batch": status.get("batch"),
        "rate": status.get("rate"),
        "executors": status.get("executors"),
        "partitions": status.get("partitions"),
        "lastSavepoint": status.get("lastSavepoint"),
        "restoredFrom": status.get("restoredFrom"),
        "operation": {"kind": operation["kind"], "phase": operation["phase"]}
        if operation
        else None,
        "degraded": {"reason": degraded.get("reason"), "message": degraded.get("message")}
        if degraded.get("status") == "True"
        else None,
        "created": about.get("creationTimestamp"),
    }


def _truth(word: object) -> bool | None:
    return {"True": True, "False": False}.get(str(word))


def status_document(body: Object, savepoints: list[Object]) -> Document:
    """`job status`."""
    about = metadata(body)
    said = {name: value for name, value in status_of(body).items() if name != "record"}
    return {
        "namespace": about.get("namespace"),
        "name": about.get("name"),
        "generation": about.get("generation"),
        "suspend": bool(spec_of(body).get("suspend")),
        "deleting": about.get("deletionTimestamp") is not None,
        "status": said,
        "savepoints": [savepoint_document(each) for each in savepoints],
    }


def savepoint_document(body: Object) -> Document:
    """One SparkSavepoint."""
    about, spec, status = metadata(body), spec_of(body), status_of(body)
    names = ("phase", "id", "parent", "revision", "epoch", "batch", "clean", "files", "bytes")
    more = ("newBytes", "repository", "completedAt", "verified", "message")
    return {
        "namespace": about.get("namespace"),
        "name": about.get("name"),
        "job": job_of(body),
        "trigger": spec.get("trigger", "Manual"),
        "tags": spec.get("tags") or [],
        **{name: status.get(name) for name in (*names, *more)},
    }


def operation_document(name: str, waited: Waited) -> Document:
    """What was asked of a job, and how it went."""
    status = status_of(waited.body)
    return {
        "namespace": metadata(waited.body).get("namespace"),
        "job": name,
        "result": waited.result,
        "message": waited.message,
        "seconds": round(waited.seconds, 3),
        "phase": status.get("phase"),
        "operation": status.get("operation"),
        "lastOperation": status.get("lastOperation"),
        "lastSavepoint": status.get("lastSavepoint"),
    }
