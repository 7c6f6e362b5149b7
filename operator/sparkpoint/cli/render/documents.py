"""JSON shapes: a promise to scripts, kept in docs/cli.md. Times are RFC 3339, sizes in bytes."""

from datetime import UTC, datetime

from sparkpoint.checkpoint.model import Checkpoint, Operator
from sparkpoint.cli.render.text import moment
from sparkpoint.savepoint import Catalogue, MaterializeResult, Savepoint
from sparkpoint.savepoint.collect import CollectResult
from sparkpoint.savepoint.manifest import QueryInfo
from sparkpoint.savepoint.retention import RetentionPlan
from sparkpoint.savepoint.verify import Verification

__all__ = [
    "catalogue_document",
    "checkpoint_document",
    "collection_document",
    "restore_document",
    "retention_document",
    "savepoint_document",
    "unreadable_documents",
    "verification_document",
]

Document = dict[str, object]


def savepoint_document(savepoint: Savepoint) -> Document:
    """One savepoint, as every command prints it."""
    manifest = savepoint.manifest
    parent = manifest.parent
    return {
        "id": savepoint.id,
        "namespace": manifest.namespace,
        "job": manifest.job,
        "name": manifest.name,
        "created": moment(manifest.created),
        "published": moment(datetime.fromtimestamp(savepoint.published, tz=UTC)),
        "parent": parent.model_dump(mode="json") if parent else None,
        "tags": list(savepoint.tags),
        "revision": manifest.revision,
        "sparkVersion": manifest.spark_version,
        "trigger": manifest.trigger,
        "source": {"uri": manifest.source.uri, "epoch": manifest.source.epoch},
        "pending": manifest.pending,
        "queries": [_query(query) for query in manifest.queries],
        "files": manifest.files.count,
        "bytes": manifest.files.bytes,
        "newBytes": manifest.files.new_bytes,
        "seconds": manifest.timing.seconds,
        "tries": manifest.timing.tries,
    }


def _query(query: QueryInfo) -> Document:
    return {
        "name": query.prefix,
        "id": query.id,
        "batch": query.batch,
        "watermarkMs": query.watermark_ms,
        "rows": query.rows,
        "pending": query.pending,
    }


def unreadable_documents(catalogue: Catalogue) -> list[Document]:
    """Files where manifests should be."""
    return [{"path": each.path, "problem": each.problem} for each in catalogue.unreadable]


def catalogue_document(repository: str, catalogue: Catalogue) -> Document:
    """`savepoint list`."""
    return {
        "repository": repository,
        "savepoints": [savepoint_document(each) for each in catalogue.savepoints],
        "unreadable": unreadable_documents(catalogue),
    }


def verification_document(found: Verification) -> Document:
    """One savepoint of `savepoint verify`."""
    return {
        "savepoint": savepoint_document(found.savepoint),
        "good": found.good,
        "files": found.files,
        "bytes": found.bytes,
        "problems": list(found.problems),
    }


def restore_document(result: MaterializeResult, notes: tuple[str, ...]) -> Document:
    """`savepoint restore`."""
    return {
        "savepoint": savepoint_document(result.savepoint),
        "to": result.uri,
        "mode": result.mode.value,
        "files": result.files,
        "bytes": result.bytes,
        "copiedFiles": result.copied_files,
        "copiedBytes": result.copied_bytes,
        "removedFiles": result.removed_files,
        "queryIds": dict(result.query_ids),
        "sinkActions": [
            {
                "query": action.query,
                "sink": action.uri,
                "delete": list(action.delete),
                "create": [path for path, _ in action.create],
            }
            for action in result.sink_actions
        ],
        "seconds": result.seconds,
        "notes": list(notes),
    }


def retention_document(repository: str, plan: RetentionPlan, *, dry_run: bool) -> Document:
    """`retain`."""
    return {
        "repository": repository,
        "dryRun": dry_run,
        "keep": [
            {"savepoint": savepoint_document(kept.savepoint), "reasons": list(kept.reasons)}
            for kept in plan.keep
        ],
        "remove": [savepoint_document(each) for each in plan.remove],
    }


def collection_document(repository: str, result: CollectResult) -> Document:
    """`collect`."""
    plan = result.plan
    return {
        "repository": repository,
        "dryRun": result.dry_run,
        "freedBytes": result.freed_bytes,
        "removedObjects": result.removed_objects,
        "plan": {
            "objects": len(plan.objects),
            "deletedSavepoints": len(plan.records),
            "tags": len(plan.tags),
            "leases": len(plan.leases),
            "temporaries": len(plan.temporaries),
            "bytes": plan.bytes,
        },
        "keptObjects": plan.kept_objects,
        "keptBytes": plan.kept_bytes,
        "youngBytes": plan.young_bytes,
        "wastedBytes": plan.wasted_bytes,
    }


def checkpoint_document(name: str, checkpoint: Checkpoint) -> Document:
    """One query of `checkpoint show`."""
    offsets, commit = checkpoint.offsets, checkpoint.commit
    return {
        "name": name,
        "id": checkpoint.query_id,
        "batch": checkpoint.last_committed,
        "batches": list(checkpoint.batches),
        "pending": checkpoint.pending,
        "clean": checkpoint.clean,
        "watermarkMs": offsets.watermark_ms if offsets else None,
        "offsetsVersion": offsets.version if offsets else None,
        "commitsVersion": commit.version if commit else None,
        "sources": [{"key": key, "offset": value} for key, value in offsets.sources]
        if offsets
        else [],
        "conf": dict(offsets.conf) if offsets else {},
        "operators": [_operator(operator) for operator in checkpoint.operators],
        "files": checkpoint.files,
        "bytes": checkpoint.bytes,
        "hazards": list(checkpoint.hazards),
    }


def _operator(operator: Operator) -> Document:
    return {
        "id": operator.id,
        "name": operator.name,
        "provider": operator.provider,
        "partitions": operator.partitions,
        "metadataVersion": operator.metadata_version,
        "stores": [
            {
                "name": store.name,
                "partitions": store.partitions,
                "files": store.files,
                "bytes": store.bytes,
            }
            for store in operator.stores
        ],
    }
