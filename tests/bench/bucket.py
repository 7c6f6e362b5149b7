"""Figures on a real S3 server (SeaweedFS on this machine, its data on the same disk).

The state is the one that Spark made on disk, uploaded as it is: on S3 Spark writes the same files,
and Hadoop's connector sends each in one piece, streams only up to 64 MiB. So does the upload here:
then the server knows their MD5. What came in parts is read; that is measured, too.

Every run gets a bucket of its own, because the server frees space only with the whole bucket.
"""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from boto3.s3.transfer import TransferConfig

from sparkpoint.checkpoint.plan import plan_batch
from sparkpoint.storage import DirectoryStore
from tests.bench.directory import incremental_materialize, next_captures
from tests.bench.ground import real_state
from tests.bench.machine import MIB
from tests.bench.measure import Figure, Sample, Series, bound_of, run_ours
from tests.bench.s3peer import CONCURRENCY
from tests.bench.stages import STAGES
from tests.bench.table import Section
from tests.support.s3 import S3Server, running_s3_server

__all__ = ["measure_bucket"]

CAPTURE_S3 = 1.1
_SOURCE, _PREFIX = "checkpoint", "loaded"
_LATER = tuple(stage for stage in STAGES if stage != "loaded")
_AS_HADOOP = TransferConfig(multipart_threshold=64 * 1024 * 1024, max_concurrency=1)
"""`fs.s3a.multipart.size`: what is shorter is one request, and its ETag the MD5."""
_PEERS = {
    "peer: copy on the server": "peer-server-copy",
    "peer: download, upload": "peer-stream",
}


def measure_bucket(folder: Path, *, scale: float, repetitions: int) -> Section:
    """Start a server and run everything on it."""
    state = real_state(scale)
    with running_s3_server(folder / "s3") as server:
        bench = _Bucket(server, state)
        rounds = [dict(bench.round(number)) for number in range(repetitions)]
    series = {name: Series(name, [each[name] for each in rounds]) for name in rounds[0]}
    size = series["capture loaded"].number("bytes")
    return Section(
        "S3",
        f"The same state, {size / MIB:.0f} MiB, checkpoint and repository on one S3 server",
        list(_figures(series, bench.difference())),
        list(series.values()),
    )


class _Bucket:
    """A checkpoint in one bucket, and fresh buckets for what is measured."""

    def __init__(self, server: S3Server, state: Path) -> None:
        self._server = server
        self._client = server.client()
        self._state = state
        server.make_bucket(_SOURCE)
        self._there: set[str] = set()
        self._enter("loaded")

    def round(self, number: int) -> Iterator[tuple[str, Sample]]:
        """Every measurement once, peers and ours in turns."""
        for name, operation in _PEERS.items():
            bucket = self._fresh(f"peer-{number}")
            yield name, self._run(operation, source=[_SOURCE, "loaded"], target=bucket)
            self._drop(bucket)
        repository = self._fresh(f"repository-{number}")
        yield "capture loaded", self._capture(repository, "loaded")
        yield "capture loaded, all read", self._capture_reading(number)
        for stage in _LATER:
            self._enter(stage)
            yield f"capture {stage}", self._capture(repository, stage)
        self._run("verify", repository=f"s3://{repository}/r", at_least=len(STAGES))
        target = self._fresh(f"target-{number}")
        yield "materialize loaded", self._restore(repository, "loaded", target)
        yield "materialize changed onto it", self._restore(repository, "changed", target)
        self._drop(target)
        self._drop(repository)
        self._return()

    def difference(self) -> int:
        """Bytes of the files that `changed` has and `loaded` has not."""
        new = self._planned("changed") - self._planned("loaded")
        return sum((self._state / "changed" / name).stat().st_size for name in new)

    def _restore(self, repository: str, name: str, target: str) -> Sample:
        return self._run(
            "materialize",
            repository=f"s3://{repository}/r",
            name=name,
            target=f"s3://{target}/t",
        )

    def _capture_reading(self, number: int) -> Sample:
        repository = self._fresh(f"reading-{number}")
        sample = self._capture(repository, "loaded", read_all=True)
        self._drop(repository)
        return sample

    def _capture(self, repository: str, name: str, *, read_all: bool = False) -> Sample:
        return self._run(
            "capture",
            repository=f"s3://{repository}/r",
            checkpoint=f"s3://{_SOURCE}/{_PREFIX}",
            name=name,
            read_all=read_all,
        )

    def _run(self, operation: str, **task: object) -> Sample:
        return run_ours(
            operation,
            self._server.environment(),
            endpoint=self._server.endpoint_url,
            warm=str(self._state / "loaded"),
            **task,
        )

    def _fresh(self, name: str) -> str:
        """A bucket that has taken its first object: the server makes its volumes then."""
        self._server.make_bucket(name)
        self._client.put_object(Bucket=name, Key="warm", Body=b"x")
        return name

    def _drop(self, bucket: str) -> None:
        self._client.delete_bucket(Bucket=bucket)

    def _planned(self, stage: str) -> set[str]:
        return {file.path for file in plan_batch(DirectoryStore(self._state / stage)).files}

    def _added(self, stage: str) -> set[str]:
        """Files that the query has made up to that stage: also changelogs that a newer snapshot
        has made needless for Spark, as it leaves them there for a hundred batches."""
        return _files(self._state / stage) - _files(self._state / "loaded")

    def _enter(self, stage: str) -> None:
        """Let the checkpoint be that of the stage: what is new is added to what was there."""

        def upload(name: str) -> None:
            path = str(self._state / stage / name)
            self._client.upload_file(path, _SOURCE, f"{_PREFIX}/{name}", Config=_AS_HADOOP)

        wanted = self._planned(stage)
        new = (wanted if stage == "loaded" else wanted | self._added(stage)) - self._there
        with ThreadPoolExecutor(CONCURRENCY) as pool:
            list(pool.map(upload, sorted(new)))
        self._there |= new

    def _return(self) -> None:
        """Let it be that of the first stage again."""
        for name in self._there - self._planned("loaded"):
            self._client.delete_object(Bucket=_SOURCE, Key=f"{_PREFIX}/{name}")
            self._there.remove(name)


def _files(root: Path) -> set[str]:
    return {str(each.relative_to(root)) for each in root.rglob("*") if each.is_file()}


def _figures(series: dict[str, Series], difference: int) -> Iterator[Figure]:
    best = min((series[name] for name in _PEERS), key=lambda each: each.seconds)
    first = series["capture loaded"]
    reading = series["capture loaded, all read"]
    for peer in (series[name] for name in _PEERS):
        yield Figure(
            title="First capture",
            peer=peer.name.removeprefix("peer: ") + (" (the best)" if peer is best else ""),
            peer_value=peer.seconds,
            ours=first.seconds,
            target=CAPTURE_S3 if peer is best else None,
            bound=f"{_bound(first)}; the server copies, samples of its MD5s are checked",
        )
    yield Figure(
        title="First capture with --read-all, or of objects in parts",
        peer=best.name.removeprefix("peer: "),
        peer_value=best.seconds,
        ours=reading.seconds,
        bound=f"{_bound(reading)}; every byte is read for its digest, a copy reads none",
    )
    yield from next_captures(series, _bound)
    restore = series["materialize loaded"]
    yield Figure(
        title="Materialize",
        peer=best.name.removeprefix("peer: "),
        peer_value=best.seconds,
        ours=restore.seconds,
        bound=_bound(restore),
    )
    yield from incremental_materialize(series, difference, _bound)


def _bound(series: Series) -> str:
    """The server shares the machine, so what is not our processor time is mostly the server's."""
    return f"{bound_of(series)}; {series.number('requests'):.0f} requests; server on the same cores"
