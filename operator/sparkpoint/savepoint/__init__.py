"""Savepoints of Structured Streaming checkpoints in a repository: a directory or an S3 bucket.

Start at `Repository`. No Spark session, no Kubernetes. The format and the order of reads and writes
that keep it safe without a server are in docs/repository-format.md.
"""

from sparkpoint.savepoint.capture import CaptureRequest, CaptureResult
from sparkpoint.savepoint.catalogue import Catalogue, Savepoint
from sparkpoint.savepoint.manifest import Manifest
from sparkpoint.savepoint.materialize import MaterializeRequest, MaterializeResult, Mode
from sparkpoint.savepoint.progress import Progress
from sparkpoint.savepoint.repository import Repository
from sparkpoint.savepoint.sinks import SinkPolicy

__all__ = [
    "CaptureRequest",
    "CaptureResult",
    "Catalogue",
    "Manifest",
    "MaterializeRequest",
    "MaterializeResult",
    "Mode",
    "Progress",
    "Repository",
    "Savepoint",
    "SinkPolicy",
]
