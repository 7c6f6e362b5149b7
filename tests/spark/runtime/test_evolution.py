"""New versions of queries with all kinds of state, and what a rehearsal says of each of them."""

import signal
from pathlib import Path

import pytest

from sparkpoint.savepoint import CaptureRequest, Repository
from sparkpoint.storage import DirectoryStore
from tests.spark.runtime import truth
from tests.spark.runtime.driver import Setting, agent_of, agent_options, driving
from tests.spark.runtime.trying import another_query, verdicts_of
from tests.spark.workloads.inputs import write_files

SCRIPT = "evolved.py"
FILES = 2
FIRST = ("dedupe", "windows", "sessions", "join", "families", "groups", "processor")
COMPATIBLE = ("compatible", None)
OTHERWISE = ("unknown", "STATE_MEANS_OTHERWISE")
KEY = ("incompatible", "STATE_STORE_KEY_SCHEMA_NOT_COMPATIBLE")
VALUE = ("incompatible", "STATE_STORE_VALUE_SCHEMA_NOT_COMPATIBLE")
VERDICTS = {
    **dict.fromkeys(FIRST, COMPATIBLE),
    "dedupe-filtered": COMPATIBLE,
    "dedupe-swapped": OTHERWISE,
    "dedupe-other": OTHERWISE,
    "dedupe-wider": KEY,
    "windows-later": COMPATIBLE,
    "windows-first": KEY,
    "windows-least": OTHERWISE,
    "sessions-longer": COMPATIBLE,
    "sessions-other": OTHERWISE,
    "join-renamed": OTHERWISE,
    "join-wider": VALUE,
    "families-renamed": OTHERWISE,
    "groups-renamed": OTHERWISE,
    "groups-real": VALUE,
    "processor-more": COMPATIBLE,
    "processor-renamed": OTHERWISE,
    "processor-other": OTHERWISE,
    "processor-text": ("incompatible", "STATE_STORE_VALUE_SCHEMA_NOT_COMPATIBLE"),
    "processor-timed": ("incompatible", "STATE_STORE_INVALID_CONFIG_AFTER_RESTART"),
}


PROCESSORS = [name for name in VERDICTS if name.startswith("processor")]
OPERATORS = [name for name in VERDICTS if name not in PROCESSORS]


@pytest.mark.soak
# Apart: each of the processors has a Python of its own, which Spark waits for only so long.
@pytest.mark.parametrize(
    "names",
    [OPERATORS, PROCESSORS[:3], PROCESSORS[3:]],
    ids=["operators", "processor", "other-processor"],
)
def test_what_a_new_version_does_to_its_state_is_known_before_it_runs(
    tmp_path: Path, names: list[str]
) -> None:
    verdicts = {name: VERDICTS[name] for name in names}
    first = tuple(dict.fromkeys(name.partition("-")[0] for name in names))
    inputs, repository = tmp_path / "input", tmp_path / "repository"
    write_files(inputs, range(FILES))
    before = Setting(tmp_path / "first")
    with driving(before, SCRIPT, inputs, *first) as driver:
        driver.await_true(
            lambda: all(truth.committed(before.checkpoint(name)) == FILES for name in first)
        )
        driver.signal(signal.SIGTERM)
        assert driver.end().clean
    job = tmp_path / "job"
    for name in verdicts:
        another_query(before.checkpoint(name.partition("-")[0]), job / name)
    request = CaptureRequest(namespace="tests", job="job", name="all")
    Repository.init(DirectoryStore(repository)).capture(DirectoryStore(job), request)

    after = Setting(tmp_path / "second")
    options = (*agent_options(after), "--rehearse", "all", "--repository", str(repository))
    with (
        driving(after, SCRIPT, inputs, *verdicts, options=(*options, "--gated")) as driver,
        agent_of(driver) as agent,
    ):
        driver.await_true(lambda: agent.progress().phase == "gated")
        info = agent.progress().rehearsal

    assert info is not None
    assert verdicts_of(info) == verdicts
