"""Scripts as people write them run as they are, and their results are exact.

Several queries and `awaitAnyTermination` are in test_stops.py.
"""

import ast
import json
import signal
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from sparkpoint.runtime.model import EndReason, Termination
from tests.spark.runtime import truth
from tests.spark.runtime.driver import QUICK_FILES, Driver, Setting, driving
from tests.spark.workloads import WORKLOADS
from tests.spark.workloads.inputs import write_files
from tests.spark.workloads.judge import position, truth_at

FILES = 6


@pytest.fixture
def setting(tmp_path: Path) -> Setting:
    """A job with its input."""
    write_files(tmp_path / "input", range(FILES))
    (tmp_path / "output").mkdir()
    return Setting(tmp_path, confs=QUICK_FILES)


def run(setting: Setting, script: str, **options: tuple[str, ...]) -> tuple[Termination, str]:
    """Run a script that ends by itself."""
    with driving(setting, script, *_places(setting), **options) as driver:
        return driver.end(), driver.log


def run_until(
    setting: Setting, script: str, done: Callable[[], bool]
) -> tuple[Termination, Driver]:
    """Run a script that never ends, and stop it once it is done."""
    with driving(setting, script, *_places(setting)) as driver:
        driver.await_true(done)
        driver.signal(signal.SIGTERM)
        return driver.end(), driver


def _places(setting: Setting) -> tuple[Path, Path]:
    return setting.root / "input", setting.root / "output"


def assert_ended_well(termination: Termination) -> None:
    """The script came to its end, and every query stands at a boundary."""
    assert (termination.reason, termination.clean) == (EndReason.SCRIPT_ENDED, True), termination


def assert_stopped_well(termination: Termination) -> None:
    """SIGTERM was obeyed at a boundary."""
    assert termination.reason is EndReason.TERMINATED, termination
    assert (termination.clean, termination.exit_code) == (True, 0), termination


def test_one_unnamed_query_with_a_checkpoint_and_a_trigger_of_its_own(setting: Setting) -> None:
    termination, log = run(setting, "project_to_files.py", options=("--trigger-interval", "3600"))

    assert_ended_well(termination)
    expected = Counter((row.k, row.v) for row in truth.rows(FILES) if row.v >= 500)
    assert truth.files(setting.root / "output", "k", "v") == expected
    assert truth.is_clean(setting.checkpoint("query"))
    assert log.count("/tmp/nobody-looks-here is not used") == 1
    assert "awaitTermination" not in log
    assert not Path("/tmp/nobody-looks-here").exists()
    kept = "Query query: the script's own trigger is kept, and the interval of 3600 s is not used"
    assert log.count(kept) == 1


def test_to_table_with_a_name_that_is_no_folder(setting: Setting) -> None:
    termination, log = run(setting, "to_table.py")

    assert_ended_well(termination)
    expected = sorted((key, total) for key, (_, total) in truth.totals(FILES).items())
    assert _printed(log, "TOTALS") == expected
    assert list(termination.queries) == ["append events"]
    assert [path.name for path in setting.epoch_dir.iterdir()] == ["append-events-08dc07cf"]
    assert not (setting.root / "output" / "_checkpoints").exists()


def test_foreach_batch_with_a_side_table_goes_on_where_it_was(setting: Setting) -> None:
    folder = setting.checkpoint("upserts")
    first, _ = run_until(setting, "foreach_batch.py", lambda: truth.committed(folder) >= 2)
    second, _ = run_until(setting, "foreach_batch.py", lambda: truth.committed(folder) == FILES)

    assert_stopped_well(first)
    assert_stopped_well(second)
    assert truth.last(setting.root / "output") == truth.totals(FILES)
    assert sorted(truth.batches(setting.root / "output")) == list(range(FILES))
    side = {int(path.name) for path in (setting.root / "output" / "side").iterdir()}
    assert side == set(range(FILES))


def test_process_all_available_and_an_exit_code_of_its_own(setting: Setting) -> None:
    with driving(setting, "process_all.py", *_places(setting)) as driver:
        termination = driver.end()

    assert termination.reason is EndReason.SCRIPT_FAILED
    assert (termination.exit_code, termination.clean) == (3, True)
    distinct = {(row.id, row.ts) for row in truth.rows(FILES)}
    found = truth.files(setting.root / "output", "id", "ts")
    assert len(found) == len(distinct)
    assert set(found.values()) == {1}


def test_a_helper_module_and_functions_of_main(setting: Setting) -> None:
    termination, _ = run(setting, "with_helpers/job.py")

    assert_ended_well(termination)
    expected = Counter((f"{row.k.upper()}!", row.v * 10) for row in truth.rows(FILES))
    assert truth.files(setting.root / "output", "k", "v") == expected
    assert list(termination.queries) == ["clean up!"]


def test_a_join_of_two_streams(setting: Setting) -> None:
    termination, _ = run(setting, "join_streams.py")

    assert_ended_well(termination)
    at = position(setting.checkpoint("joined"))
    found = truth.files(setting.root / "output", "k", "lv", "lts", "rv", "rts")
    assert found == truth_at(WORKLOADS["join"], at).output


def test_apply_in_pandas_with_state(setting: Setting) -> None:
    termination, _ = run(setting, "pandas_with_state.py")

    assert_ended_well(termination)
    assert truth.last(setting.root / "output") == truth.totals(FILES)


def test_transform_with_state_in_pandas(setting: Setting) -> None:
    folder = setting.checkpoint("counter")
    done = run_until(setting, "transform_with_state.py", lambda: truth.committed(folder) == FILES)

    assert_stopped_well(done[0])
    assert truth.last(setting.root / "output") == truth.totals(FILES)


def test_a_dead_query_ends_a_driver_whose_script_swallows_everything(setting: Setting) -> None:
    termination, log = run(setting, "swallows.py")

    assert termination.reason is EndReason.QUERY_FAILED
    assert termination.exit_code == 80
    assert "'bad'" in termination.message
    assert "cannot take" in termination.message
    assert "Traceback" not in termination.message
    assert termination.error is not None
    assert str(termination.error.where).endswith("swallows.py:16")
    assert "never mind: StreamingQueryException" in log
    good, bad = termination.queries["good"], termination.queries["bad"]
    assert (good.clean, good.error) == (True, None)
    assert (bad.clean, termination.clean) == (False, False)
    assert truth.is_clean(setting.checkpoint("good"))


def test_a_script_that_sleeps_and_handles_sigterm_itself(setting: Setting) -> None:
    folder = setting.checkpoint("counts")
    done = run_until(setting, "sleeps_forever.py", lambda: truth.committed(folder) == FILES)

    assert_stopped_well(done[0])
    assert truth.is_clean(folder)
    assert f"HANDLER {signal.SIGTERM.value}" in done[1].log
    expected = sorted((key, n) for key, (n, _) in truth.totals(FILES).items())
    assert _printed(done[1].log, "FINALLY") == expected


def test_rounds_of_one_unnamed_query(setting: Setting) -> None:
    termination, log = run(setting, "rounds.py")

    assert_ended_well(termination)
    assert log.count("ROUND query None") == 3
    expected = Counter((row.k, row.v) for row in truth.rows(FILES))
    assert truth.files(setting.root / "output", "k", "v") == expected


def test_queries_in_threads_after_the_main_one_is_done(setting: Setting) -> None:
    termination, _ = run(setting, "threads.py")

    assert_ended_well(termination)
    for side in "LR":
        expected = Counter((row.k, row.v) for row in truth.rows(FILES) if row.side == side)
        assert truth.files(setting.root / "output" / side, "k", "v") == expected


def test_a_script_that_forgets_to_wait_ends_at_a_boundary(setting: Setting) -> None:
    write_files(setting.root / "input", range(FILES, 60))

    termination, log = run(setting, "never_waits.py")

    assert_ended_well(termination)
    assert "ended while queries were running" in log
    assert truth.is_clean(setting.checkpoint("hasty"))
    done = truth.committed(setting.checkpoint("hasty"))
    expected = Counter((row.k, row.v) for row in truth.rows(done))
    assert truth.files(setting.root / "output", "k", "v") == expected


def _printed(log: str, word: str) -> object:
    line = next(line for line in log.splitlines() if line.startswith(f"{word} "))
    found: object = ast.literal_eval(line.removeprefix(f"{word} "))
    return found


def test_the_corpus_is_run_whole() -> None:
    scripts = Path(__file__).parent / "scripts"
    text = "".join(path.read_text() for path in Path(__file__).parent.glob("test_*.py"))
    unused = [path.name for path in scripts.glob("*.py") if json.dumps(path.name) not in text]
    assert unused == []
