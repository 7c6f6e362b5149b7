"""Several workloads side by side in one checkpoint, so that one savepoint holds all of them."""

from collections.abc import Mapping
from pathlib import Path

from pyspark.sql import SparkSession

from sparkpoint.savepoint import (
    CaptureRequest,
    MaterializeRequest,
    Mode,
    Repository,
    Savepoint,
    SinkPolicy,
)
from sparkpoint.storage import DirectoryStore
from tests.spark.places import Place, assert_state_at, position_at
from tests.spark.workloads import WORKLOADS
from tests.spark.workloads.base import Workload
from tests.spark.workloads.inputs import write_files
from tests.spark.workloads.judge import Position, assert_output, finish

__all__ = ["Several"]

_PARTITIONS = "spark.sql.shuffle.partitions"


class Several:
    """Queries that read the same input and write next to each other."""

    def __init__(
        self,
        spark: SparkSession,
        folder: Path,
        providers: Mapping[str, str],
        *,
        partitions: int = 3,
        more: Mapping[str, Workload] | None = None,
    ) -> None:
        self.spark, self.folder, self.providers = spark, folder, providers
        self._partitions = partitions
        self._workloads = {**WORKLOADS, **(more or {})}
        self.repository = Repository.init(DirectoryStore(folder / "repo"))

    def run(self, root: str, *, files: int, seconds: float = 600) -> dict[str, Position]:
        """Let all of them process so much input in all; how far they came."""
        write_files(self.folder / "in", range(files))
        started = {}
        for name, provider in self.providers.items():
            started[name] = self._workloads[name].start(
                self.spark,
                provider=provider,
                inputs=self.folder / "in",
                checkpoint=str(self.folder / root / name),
                sink=self.folder / "out" / name,
                confs={_PARTITIONS: str(self._partitions)},
            )
        for name, query in started.items():
            checkpoint = self.folder / root / name
            finish(query, self._workloads[name], checkpoint, files=files, timeout=seconds)
        return {name: self._position(root, name) for name in self.providers}

    def capture(self, root: str, name: str) -> Savepoint:
        """A savepoint of all of them."""
        source = DirectoryStore(self.folder / root)
        return self.repository.capture(source, CaptureRequest(job="job", name=name)).savepoint

    def resume(self, savepoint: Savepoint, root: str) -> None:
        """Put it to where the same queries go on, with sinks that must agree with it."""
        sinks = {
            name: DirectoryStore(self.folder / "out" / name)
            for name in self.providers
            if self._workloads[name].file_sink
        }
        request = MaterializeRequest(mode=Mode.RESUME, sink_policy=SinkPolicy.REFUSE, sinks=sinks)
        self.repository.materialize(savepoint, DirectoryStore(self.folder / root), request)

    def assert_exact(self, root: str, at: Mapping[str, Position], *, output: bool = True) -> None:
        """State, and all output since the first batch, are the truth."""
        for name, position in at.items():
            workload = self._workloads[name]
            assert_state_at(
                self.spark, workload, Place(str(self.folder)), f"{root}/{name}", position
            )
            if output:
                assert_output(workload, self.folder / "out" / name, position)

    def _position(self, root: str, name: str) -> Position:
        at = position_at(DirectoryStore(self.folder / root / name))
        assert at is not None
        return at
