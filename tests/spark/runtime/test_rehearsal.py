"""Rehearsals on real Spark: what they say, and that nothing else comes of them."""

import shutil
import signal
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812 - as everybody writes it

from sparkpoint.runtime.client import SyncAgentClient
from sparkpoint.runtime.model import EndReason, RehearsalInfo
from sparkpoint.savepoint import CaptureRequest, MaterializeRequest, Mode, Repository
from sparkpoint.storage import DirectoryStore
from tests.spark.runtime import truth
from tests.spark.runtime.driver import SCRIPTS, Driver, Setting, driving
from tests.spark.runtime.trying import another_query, verdicts_of
from tests.spark.workloads.inputs import SCHEMA, write_files
from tests.spark.workloads.providers import PROVIDERS
from tests.spark.workloads.session import s3_conf
from tests.support.s3 import S3Server

SCRIPT = "upgraded.py"
FILES, MORE = 3, 5
"""Input behind the savepoints, and in all."""
TOKEN = "secret"
CHANGES = {
    "same": ("compatible", None),
    "filtered": ("compatible", None),
    "updated": ("compatible", None),
    "elsewhere": ("incompatible", "SOURCE_PATH_CHANGED"),
    "key": ("incompatible", "STATE_STORE_KEY_SCHEMA_NOT_COMPATIBLE"),
    "value": ("incompatible", "STATE_STORE_VALUE_SCHEMA_NOT_COMPATIBLE"),
    "less": ("incompatible", "STATE_STORE_VALUE_SCHEMA_NOT_COMPATIBLE"),
    "real": ("incompatible", "STATE_STORE_VALUE_SCHEMA_NOT_COMPATIBLE"),
    "highest": ("unknown", "STATE_MEANS_OTHERWISE"),
    "rekeyed": ("unknown", "STATE_MEANS_OTHERWISE"),
    "plain": ("incompatible", "STREAMING_STATEFUL_OPERATOR_NOT_MATCH_IN_STATE_METADATA"),
    "deduplicated": ("incompatible", "STREAMING_STATEFUL_OPERATOR_NOT_MATCH_IN_STATE_METADATA"),
    "two": ("incompatible", "SOURCES_CHANGED"),
    "source": ("incompatible", "SOURCE_KIND_CHANGED"),
}
"""What a new version of a query does to the totals per key -> the verdict."""
NAMED = {
    "named": ("compatible", None),
    "named-elsewhere": ("incompatible", "SOURCE_PATH_CHANGED"),
    "named-otherwise": ("unknown", "SOURCES_CHANGED"),
}
"""The same of queries whose source has a name, by which the offset log knows it."""
EVOLUTION = "spark.sql.streaming.queryEvolution.enableSourceEvolution"
Contents = Mapping[str, bytes]


class Ground:
    """What all tests begin from: savepoints of a job that has read some of its input."""

    def __init__(self, root: Path, spark: SparkSession) -> None:
        self.root, self._spark = root, spark
        self.inputs, self.output = root / "input", root / "output"
        self.repository = Repository.init(DirectoryStore(root / "repository"))
        write_files(self.inputs, range(FILES))
        root.joinpath("input-elsewhere").mkdir()
        self._run("hdfs", provider="hdfs")
        self._run("rocksdb", provider="rocksdb-changelog")
        self._run("files", provider="hdfs", to_files=True)
        self._run("named", provider="hdfs", is_named=True)
        self._capture("good", same="hdfs", rocks="rocksdb", files="files")
        changed = dict.fromkeys((*CHANGES, "gone"), "hdfs")
        self._capture("mixed", **changed, **dict.fromkeys(NAMED, "named"), fails="pending")
        self._capture("value", value="rocksdb")
        self._capture("slow", slow="hdfs")

    def _run(
        self, name: str, *, provider: str, to_files: bool = False, is_named: bool = False
    ) -> None:
        for key, value in {**PROVIDERS[provider], EVOLUTION: str(is_named).lower()}.items():
            self._spark.conf.set(key, value)
        stream = self._spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1)
        events = (stream.name("events") if is_named else stream).json(str(self.inputs))
        totals = events.groupBy("k").agg(F.count("*").alias("n"), F.sum("v").alias("total"))
        if to_files:
            writer = events.select("k", "v").writeStream.format("json")
            writer = writer.option("path", str(self.output / "files"))
        else:
            writer = totals.writeStream.outputMode("complete").format("noop")
        checkpoint = self.root / "ran" / name
        writer = writer.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True)
        assert writer.start().awaitTermination(120)
        # Others share this session, and their sources have no names.
        self._spark.conf.unset(EVOLUTION)
        if name == "hdfs":
            # As if it had been stopped in the midst of its last batch.
            pending = shutil.copytree(checkpoint, checkpoint.with_name("pending"))
            for left in (pending / "commits").glob(f"*{FILES - 1}*"):
                left.unlink()

    def _capture(self, name: str, **queries: str) -> None:
        job = self.root / "jobs" / name
        for query, ran in queries.items():
            another_query(self.root / "ran" / ran, job / query)
        request = CaptureRequest(namespace="tests", job="job", name=name)
        self.repository.capture(DirectoryStore(job), request)

    def contents(self) -> Contents:
        """Every byte of the repository and of the output."""
        folders = (self.root / "repository", self.output)
        paths = [path for folder in folders for path in folder.rglob("*") if path.is_file()]
        return {str(path): path.read_bytes() for path in paths}


@pytest.fixture(scope="module")
def ground(tmp_path_factory: pytest.TempPathFactory, spark: SparkSession) -> Ground:
    return Ground(tmp_path_factory.mktemp("ground"), spark)


@pytest.fixture
def setting(tmp_path: Path) -> Setting:
    (tmp_path / "token").write_text(TOKEN)
    return Setting(tmp_path)


def options(ground: Ground, setting: Setting, savepoint: str, *more: str) -> tuple[str, ...]:
    agent = ("--agent-port", "0", "--token-file", str(setting.root / "token"))
    url = ("--agent-url-file", str(setting.root / "url"))
    repository = str(ground.root / "repository")
    return *agent, *url, "--rehearse", savepoint, "--repository", repository, *more


def agent_of(driver: Driver, setting: Setting) -> SyncAgentClient:
    driver.await_true((setting.root / "url").exists)
    return SyncAgentClient((setting.root / "url").read_text().strip(), TOKEN)


def rehearsed(driver: Driver, agent: SyncAgentClient) -> RehearsalInfo:
    """What the agent says once the driver stands before its gate."""
    assert agent.progress().phase in ("starting", "rehearsing", "gated")
    driver.await_true(lambda: agent.progress().phase == "gated")
    info = agent.progress().rehearsal
    assert info is not None
    return info


def left_behind(setting: Setting) -> list[str]:
    """What is beside the epoch directory under its name."""
    return [path.name for path in setting.root.glob("epoch.*")]


def test_a_driver_that_was_killed_in_it_leaves_nothing_and_the_next_one_goes_on_exactly(
    ground: Ground, setting: Setting
) -> None:
    ground.repository.materialize(
        ground.repository.find("good"),
        DirectoryStore(setting.epoch_dir),
        MaterializeRequest(mode=Mode.RESUME),
    )
    names = ("same", "rocks", "files")
    given = options(ground, setting, "good", "--gated")
    copy = setting.root / "epoch.rehearsal"
    with driving(setting, SCRIPT, ground.inputs, ground.output, *names, options=given) as driver:
        driver.await_true(lambda: any(copy.rglob("*.delta")))
        driver.kill()
    assert left_behind(setting) == ["epoch.rehearsal"]
    (setting.root / "url").unlink(missing_ok=True)
    before = ground.contents()

    with (
        driving(setting, SCRIPT, ground.inputs, ground.output, *names, options=given) as driver,
        agent_of(driver, setting) as agent,
    ):
        info = rehearsed(driver, agent)

        assert info.verdict == "compatible", info
        assert info.savepoint == "tests/job/good"
        verdicts = {name: query.verdict for name, query in info.queries.items()}
        assert verdicts == dict.fromkeys(names, "compatible")
        assert left_behind(setting) == []
        # No function was called, no sink written to, no byte of the repository is another.
        assert ground.contents() == before
        assert agent.progress().queries == []

        write_files(ground.inputs, range(FILES, MORE))
        agent.open_gate(1)
        folders = [setting.checkpoint(name) for name in names]
        driver.await_true(lambda: all(truth.committed(each) == MORE for each in folders))
        driver.signal(signal.SIGTERM)
        assert driver.end().clean

    for name in ("same", "rocks"):
        assert len(list(ground.output.glob(f"{name}-*.json"))) == MORE - FILES
        assert last(ground, name) == truth.totals(MORE)
    found = truth.files(ground.output / "files", "k", "v")
    assert found == Counter((row.k, row.v) for row in truth.rows(MORE))
    assert left_behind(setting) == []


def last(ground: Ground, name: str) -> dict[str, tuple[int, int]]:
    """All totals after the last batch of a query."""
    folder = ground.output / f"all-{name}"
    folder.mkdir()
    for path in ground.output.glob(f"{name}-*.json"):
        path.rename(folder / path.name.removeprefix(f"{name}-"))
    return truth.last(folder)


def test_every_query_gets_the_verdict_that_spark_has_about_it(
    ground: Ground, setting: Setting
) -> None:
    names = (*CHANGES, *NAMED, "fails", "new", "by-hand")
    given = options(ground, setting, "mixed", "--gated")
    before = ground.contents()
    with (
        driving(setting, SCRIPT, ground.inputs, ground.output, *names, options=given) as driver,
        agent_of(driver, setting) as agent,
    ):
        info = rehearsed(driver, agent)

    assert info.verdict == "incompatible"
    assert verdicts_of(info) == {
        **CHANGES,
        **NAMED,
        "fails": ("incompatible", "USER_CODE"),
        "gone": ("incompatible", "QUERY_REMOVED"),
        "new": ("compatible", None),
    }
    key, fails = info.queries["key"].error, info.queries["fails"].error
    assert key is not None
    assert key.message.startswith("Provided key schema does not match existing state key schema.")
    assert key.remedy is not None
    assert fails is not None
    assert fails.message.startswith("ValueError: cannot take k")
    lines = (SCRIPTS / SCRIPT).read_text().splitlines()
    number = next(at for at, line in enumerate(lines, 1) if "raise ValueError" in line)
    assert fails.where == f"{SCRIPT}:{number}"
    assert info.queries["same"].input_rows == 0
    highest, rekeyed = info.queries["highest"].error, info.queries["rekeyed"].error
    assert highest is not None
    assert "the value of operator 0 was count, sum, and is count, max in this code" in str(highest)
    assert rekeyed is not None
    assert "the key of operator 0 was k, and is side in this code" in str(rekeyed)
    assert "without state" in str(info.queries["new"].note)
    assert ground.contents() == before
    assert left_behind(setting) == []
    assert list(setting.epoch_dir.iterdir()) == []


def test_without_a_gate_a_script_that_does_not_fit_is_not_started(
    ground: Ground, setting: Setting, s3_server: S3Server
) -> None:
    bucket = s3_server.make_bucket("rehearsal")
    endpoint = s3_server.endpoint_url
    in_s3 = replace(
        setting,
        confs=s3_conf(endpoint, s3_server.access_key, s3_server.secret_key),
        variables=s3_server.environment(),
        epoch_uri=f"s3://{bucket}/jobs/epoch-1",
    )
    given = options(ground, setting, "value", "--endpoint-url", endpoint)
    arguments = (ground.inputs, ground.output, "value", "sleep")
    with driving(in_s3, SCRIPT, *arguments, options=given) as driver:
        termination = driver.end()

    assert (termination.reason, termination.exit_code) == (EndReason.INCOMPATIBLE, 85), driver.log
    assert "from savepoint tests/job/value: query 'value': STATE_STORE_" in termination.message
    assert termination.error is not None
    assert termination.error.type == "STATE_STORE_VALUE_SCHEMA_NOT_COMPATIBLE"
    assert termination.queries == {}
    listed = s3_server.client().list_objects_v2(Bucket=bucket)
    assert listed.get("Contents", []) == []


def test_a_signal_in_the_midst_of_it_ends_the_driver_and_leaves_nothing(
    ground: Ground, setting: Setting
) -> None:
    given = options(ground, setting, "slow", "--rehearse-functions")
    called = ground.output / f"slow-{FILES:06d}.json"
    with driving(setting, SCRIPT, ground.inputs, ground.output, "slow", options=given) as driver:
        driver.await_true(called.exists)
        driver.signal(signal.SIGTERM)
        termination = driver.end()

    assert (termination.reason, termination.exit_code) == (EndReason.TERMINATED, 0), driver.log
    assert left_behind(setting) == []
    assert list(setting.epoch_dir.iterdir()) == []
    called.unlink()
