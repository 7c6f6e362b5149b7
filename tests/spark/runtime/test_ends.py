"""How drivers end that are waited for, stopped through their agent, hurried or refused."""

import json
import shutil
import signal
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from sparkpoint.runtime.client import AgentRefusedError
from sparkpoint.runtime.model import EndReason, SavepointRequest, StopRequest
from sparkpoint.savepoint import Repository
from sparkpoint.storage import DirectoryStore, open_store
from tests.spark.runtime import truth
from tests.spark.runtime.driver import Setting, agent_of, agent_options, driving
from tests.spark.workloads.inputs import write_files
from tests.spark.workloads.session import s3_conf
from tests.support.s3 import S3Server

FILES = 6


@pytest.fixture
def setting(tmp_path: Path) -> Setting:
    """A job with its input."""
    write_files(tmp_path / "input", range(FILES))
    (tmp_path / "output").mkdir()
    return Setting(tmp_path)


def places(setting: Setting) -> tuple[Path, Path]:
    return setting.root / "input", setting.root / "output"


def test_the_gate_holds_queries_until_it_is_opened_for_this_epoch(setting: Setting) -> None:
    options = ("--gated", "--gate-deadline", "300", *agent_options(setting))
    with driving(setting, "project_to_files.py", *places(setting), options=options) as driver:
        with agent_of(driver) as agent:
            driver.await_true(lambda: agent.progress().phase == "gated")
            with pytest.raises(AgentRefusedError):
                agent.open_gate(0)
            assert list(setting.epoch_dir.iterdir()) == []
            assert agent.progress().gate.state == "waiting"

            assert agent.open_gate(1).state == "open"

        termination = driver.end()
    assert (termination.reason, termination.exit_code) == (EndReason.SCRIPT_ENDED, 0)
    expected = Counter((row.k, row.v) for row in truth.rows(FILES) if row.v >= 500)
    assert truth.files(setting.root / "output", "k", "v") == expected


def test_nothing_starts_when_the_epoch_is_over(setting: Setting) -> None:
    options = ("--gated", *agent_options(setting))
    with driving(setting, "project_to_files.py", *places(setting), options=options) as driver:
        with agent_of(driver) as agent:
            driver.await_true(lambda: agent.progress().phase == "gated")
            with pytest.raises(AgentRefusedError):
                agent.open_gate(2)
        termination = driver.end()

    assert (termination.reason, termination.exit_code) == (EndReason.EPOCH_OVER, 82)
    assert "epoch 2 has begun" in termination.message
    assert list(setting.epoch_dir.iterdir()) == []


def test_a_gate_that_is_not_opened_in_time(setting: Setting) -> None:
    options = ("--gated", "--gate-deadline", "0.5")
    with driving(setting, "project_to_files.py", *places(setting), options=options) as driver:
        termination = driver.end()

    assert (termination.reason, termination.exit_code) == (EndReason.GATE_NOT_OPENED, 82)
    assert list(setting.epoch_dir.iterdir()) == []


def test_a_stop_through_the_agent_takes_its_savepoint_before_the_process_ends(
    setting: Setting,
) -> None:
    write_files(setting.root / "input", range(FILES, 40))
    request = StopRequest(
        savepoint_name="before-upgrade",
        savepoint=SavepointRequest(repository=str(setting.root / "repository")),
    )
    folder = setting.checkpoint("upserts")
    options = agent_options(setting)
    with driving(setting, "foreach_batch.py", *places(setting), options=options) as driver:
        driver.await_true(lambda: truth.committed(folder) >= 2)
        with agent_of(driver) as agent:
            answer = agent.stop("upgrade-1", request, wait=400)
        termination = driver.end()

    assert answer.report is not None
    assert answer.report.clean
    assert (termination.reason, termination.exit_code) == (EndReason.STOPPED, 0)
    assert (termination.operation, termination.savepoint) == ("upgrade-1", "before-upgrade")
    assert truth.is_clean(folder)
    assert answer.savepoint is not None
    assert answer.savepoint.result is not None
    batch = termination.queries["upserts"].batch
    assert answer.savepoint.result.batches == {"upserts": batch}
    assert truth.last(setting.root / "output") == truth.totals(truth.committed(folder))


def test_the_savepoint_of_a_stop_that_interrupts_a_batch_has_it_done_again(
    setting: Setting,
) -> None:
    repository = str(setting.root / "repository")
    request = StopRequest(
        savepoint_name="hurried",
        savepoint=SavepointRequest(repository=repository),
        budget_seconds=0.5,
    )
    options = agent_options(setting)
    with driving(setting, "slow_batches.py", *places(setting), 120, 1, options=options) as driver:
        driver.await_true((setting.root / "output" / "begun-1").exists)
        with agent_of(driver) as agent:
            answer = agent.stop("upgrade-1", request, wait=400)
        driver.end()

    assert answer.report is not None
    assert not answer.report.clean
    assert answer.savepoint is not None
    assert answer.savepoint.result is not None, answer.error
    assert answer.savepoint.result.batches == {"slow": 0}
    assert answer.savepoint.result.pending
    shutil.rmtree(setting.epoch_dir)
    opened = Repository.open(open_store(repository))
    opened.materialize(opened.find("hurried"), DirectoryStore(setting.epoch_dir))
    assert not truth.is_clean(setting.checkpoint("slow"))
    with driving(setting, "slow_batches.py", *places(setting), 0) as driver:
        driver.await_true(lambda: truth.committed(setting.checkpoint("slow")) == FILES)
    written = [
        json.loads(line)["id"]
        for file in (setting.root / "output").glob("[0-9]*/part-*")
        for line in file.read_text().splitlines()
    ]
    assert Counter(written) == Counter(row.id for row in truth.rows(FILES))


def test_a_batch_that_exceeds_the_budget_is_interrupted_and_repeated_later(
    setting: Setting,
) -> None:
    begun = setting.root / "output" / "begun-0"
    options = ("--stop-budget", "1")
    with driving(setting, "slow_batches.py", *places(setting), 120, options=options) as driver:
        driver.await_true(begun.exists)
        driver.signal(signal.SIGTERM)
        termination = driver.end(60)
    assert (termination.reason, termination.exit_code) == (EndReason.TERMINATED, 81)
    assert not termination.clean
    assert termination.queries["slow"].clean is False
    assert not truth.is_clean(setting.checkpoint("slow"))

    with driving(setting, "slow_batches.py", *places(setting), 0) as driver:
        driver.await_true(lambda: truth.committed(setting.checkpoint("slow")) == FILES)
        driver.signal(signal.SIGTERM)
        assert driver.end().clean


def test_a_second_interrupt_ends_at_once(setting: Setting) -> None:
    begun = setting.root / "output" / "begun-0"
    with driving(setting, "slow_batches.py", *places(setting), 120) as driver:
        driver.await_true(begun.exists)
        driver.signal(signal.SIGINT)
        driver.await_true(lambda: "SIGINT was received" in driver.log)
        driver.signal(signal.SIGINT)
        termination = driver.end(60)

    assert (termination.reason, termination.exit_code) == (EndReason.TERMINATED, 81)


def test_a_jvm_that_is_gone_ends_the_driver(setting: Setting) -> None:
    with driving(setting, "slow_batches.py", *places(setting), 120) as driver:
        driver.await_true((setting.root / "output" / "begun-0").exists)
        driver.kill_jvm()
        termination = driver.end(60)

    assert termination.reason is EndReason.QUERY_FAILED
    assert termination.exit_code != 0
    assert "'slow' died" in termination.message


def test_the_epoch_directory_may_be_in_s3(setting: Setting, s3_server: S3Server) -> None:
    bucket = s3_server.make_bucket("runtime")
    endpoint = s3_server.endpoint_url
    in_s3 = replace(
        setting,
        confs=s3_conf(endpoint, s3_server.access_key, s3_server.secret_key),
        variables={**s3_server.environment(), "AWS_ENDPOINT_URL": endpoint},
        epoch_uri=f"s3://{bucket}/jobs/visits/epoch-1",
    )
    options = ("--expect", "empty")
    with driving(in_s3, "project_to_files.py", *places(setting), options=options) as driver:
        termination = driver.end()
    with driving(in_s3, "project_to_files.py", *places(setting), options=options) as driver:
        refusal = driver.end()
    lost = replace(in_s3, epoch_uri="s3://no-such-bucket/epoch-1")
    with driving(lost, "project_to_files.py", *places(setting)) as driver:
        missing = driver.end()

    assert (termination.exit_code, termination.clean) == (0, True), driver.log
    listed = s3_server.client().list_objects_v2(Bucket=bucket, Prefix="jobs/visits/epoch-1/")
    names = {entry["Key"].split("epoch-1/")[1] for entry in listed["Contents"]}
    assert {"query/metadata", "query/offsets/0", "query/commits/0"} <= names
    assert (refusal.reason, refusal.exit_code) == (EndReason.REFUSED, 83)
    assert "should be empty, but holds query" in refusal.message
    assert (missing.reason, missing.exit_code) == (EndReason.REFUSED, 83)


def test_two_queries_without_names_are_refused_with_their_lines(setting: Setting) -> None:
    with driving(setting, "two_unnamed.py", *places(setting)) as driver:
        termination = driver.end()

    assert (termination.reason, termination.exit_code) == (EndReason.SCRIPT_FAILED, 1)
    assert "two_unnamed.py:9: first = events" in termination.message
    assert "two_unnamed.py:10: second = events" in termination.message
    assert "sparkpoint/runtime/hooks.py" not in driver.log
    assert truth.is_clean(setting.checkpoint("query"))


def test_a_dead_query_may_be_left_to_the_script(setting: Setting) -> None:
    options = ("--on-query-failure", "ignore")
    with driving(setting, "swallows.py", *places(setting), options=options) as driver:
        driver.await_true(lambda: driver.log.count("never mind") >= 2)
        driver.await_true(lambda: truth.committed(setting.checkpoint("good")) == FILES)
        driver.signal(signal.SIGTERM)
        termination = driver.end()

    assert termination.reason is EndReason.TERMINATED
    assert termination.queries["good"].clean
