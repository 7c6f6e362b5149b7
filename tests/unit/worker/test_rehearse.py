"""What a rehearsal's outcome is in the words of an answer; the trial itself needs Spark."""

import shlex
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from sparkpoint.runtime.model import (
    EndReason,
    ErrorInfo,
    Hindrance,
    RehearsalInfo,
    RehearsedQuery,
    Termination,
)
from sparkpoint.runtime.verdict import removed
from sparkpoint.savepoint import CaptureRequest, Repository
from sparkpoint.storage import DirectoryStore
from sparkpoint.worker.exits import Exit, exit_of
from sparkpoint.worker.tasks.rehearse import Trial, ended, judged
from sparkpoint.worker.trial import submit_arguments
from tests.unit.state.writing import schema_of
from tests.unit.worker.asking import ask, capture, repository_of
from tests.unit.worker.conftest import Place

KEY_ORDER = "spark.sql.dropDuplicates.deterministicKeyOrder.enabled"
TRIAL = Trial(
    savepoint="first",
    repository="/r",
    endpoint_url=None,
    job="shop/visits",
    deadline=60,
    master="local[1]",
    conf=("spark.sql.shuffle.partitions=7",),
    scratch=None,
    functions=False,
    command=("script.py",),
)
GOOD = RehearsedQuery(verdict="compatible", input_rows=3, seconds=1.5)
CHANGED = RehearsedQuery(
    verdict="incompatible",
    error=ErrorInfo(
        type="STATE_STORE_KEY_SCHEMA_NOT_COMPATIBLE",
        message="The key has changed.",
        where="script.py:12",
        remedy="Leave the keys as they were.",
    ),
)
LATE = RehearsedQuery(
    verdict="unknown",
    error=ErrorInfo(type="DEADLINE", message="Its batch was not done.", retry_helps=True),
)


def info(verdict: str, **queries: RehearsedQuery) -> RehearsalInfo:
    content = {"savepoint": "shop/visits/first", "state": "done", "verdict": verdict}
    return RehearsalInfo.model_validate({**content, "queries": queries})


def test_a_good_trial_is_compatible_and_passes_notes_on() -> None:
    new = RehearsedQuery(verdict="compatible", note="It will start without state.")

    answer = judged(info("compatible", a=GOOD, b=new))

    assert (answer.answer, answer.problems, exit_of(answer)) == ("Compatible", (), Exit.OK)
    assert "2 queries have made a batch" in answer.message
    assert "b: It will start without state." in answer.message


def test_an_incompatible_query_is_named_with_what_is_wrong_and_what_to_do() -> None:
    answer = judged(info("incompatible", a=GOOD, b=CHANGED))

    assert (answer.answer, answer.retry_helps, exit_of(answer)) == ("Incompatible", False, Exit.OK)
    assert answer.problems == (
        "query b: STATE_STORE_KEY_SCHEMA_NOT_COMPATIBLE: The key has changed. (script.py:12) "
        "Leave the keys as they were.",
    )
    assert answer.problems[0] in answer.message


def test_a_query_without_a_folder_is_called_the_only_one() -> None:
    answer = judged(info("incompatible", **{"": removed("")}))

    assert answer.problems[0].startswith("query (the only one): QUERY_REMOVED: The savepoint has")


def test_what_was_not_found_out_is_unknown() -> None:
    nowhere = ErrorInfo(type="NoSuchSavepoint", message="There is no savepoint first.")

    late = judged(info("unknown", a=GOOD, b=LATE))
    missing = judged(info("unknown").model_copy(update={"error": nowhere}))

    assert (late.answer, late.retry_helps, exit_of(late)) == ("Unknown", True, Exit.OK)
    assert (missing.answer, missing.retry_helps) == ("Unknown", False)
    assert missing.problems == ("NoSuchSavepoint: There is no savepoint first.",)


def test_another_try_is_of_use_only_if_nothing_that_is_in_the_way_stays() -> None:
    stays = RehearsedQuery(
        verdict="unknown", error=ErrorInfo(type="STATE_MEANS_OTHERWISE", message="sum is max")
    )

    both = judged(info("unknown", a=stays, b=LATE))
    alone = judged(info("unknown", a=GOOD, b=LATE, c=LATE))

    assert (both.answer, both.retry_helps) == ("Unknown", False)
    assert (alone.answer, alone.retry_helps) == ("Unknown", True)


def test_a_driver_that_ends_before_its_verdict_is_unknown() -> None:
    last = Termination(
        reason=EndReason.SCRIPT_FAILED, message="boom", exit_code=1, clean=True, epoch=0
    )

    said, silent = ended(last), ended(None)

    assert (said.answer, said.kind) == ("Unknown", "ScriptFailed")
    assert "boom" in said.message
    assert (silent.answer, silent.retry_helps) == ("Unknown", True)
    assert not said.retry_helps


@pytest.mark.parametrize(
    "facts",
    [
        {"reason": EndReason.TERMINATED},
        {"reason": EndReason.REFUSED, "error": ErrorInfo(type="X", message="", retry_helps=True)},
    ],
)
def test_a_driver_whom_somebody_else_has_ended_may_come_to_a_verdict_the_next_time(
    facts: dict[str, Any],
) -> None:
    last = Termination(message="ended", exit_code=1, clean=True, epoch=0, **facts)

    assert ended(last).retry_helps


@pytest.mark.parametrize(
    ("hindrance", "kind"), [("savepoint", "SavepointUnreadable"), ("script", "ScriptRaises")]
)
def test_what_is_certain_without_a_verdict_is_said_in_a_word(
    hindrance: Hindrance, kind: str
) -> None:
    error = ErrorInfo(type="NameError", message="name 'x' is not defined", where="script.py:3")
    seen = info("unknown").model_copy(update={"error": error, "hindrance": hindrance})
    last = Termination(
        reason=EndReason.SCRIPT_FAILED,
        message="boom",
        exit_code=1,
        clean=True,
        epoch=0,
        hindrance=hindrance,
    )

    asked, ended_before = judged(seen), ended(last)

    assert (asked.answer, asked.kind) == ("Unknown", kind)
    assert "NameError: name 'x' is not defined (script.py:3)" in asked.message
    assert (ended_before.answer, ended_before.kind) == ("Unknown", kind)


def test_our_master_and_conf_win_over_what_the_pod_says() -> None:
    words = shlex.split(submit_arguments("--master k8s://x --conf 'a=b c' pyspark-shell", TRIAL))

    assert words[:4] == ["--master", "k8s://x", "--conf", "a=b c"]
    assert words[4:8] == ["--master", "local[1]", "--deploy-mode", "client"]
    assert words[-3:] == ["--conf", "spark.sql.shuffle.partitions=7", "pyspark-shell"]
    assert words.count("pyspark-shell") == 1


def test_without_any_arguments_before_there_are_only_ours() -> None:
    words = shlex.split(submit_arguments("", replace(TRIAL, master="local[4]")))

    assert words[:2] == ["--master", "local[4]"]


@pytest.mark.parametrize(
    ("more", "problem"),
    [
        (("--master", "k8s://x", "--", "a.py"), "--master is 'k8s://x'"),
        (("--conf", "a", "--", "a.py"), "--conf is 'a': give spark.key=value"),
        (("--deadline", "soon", "--", "a.py"), "--deadline is 'soon'"),
        ((), "there is no script"),
        (("--",), "there is no script"),
    ],
)
def test_bad_options_are_refused(more: tuple[str, ...], problem: str) -> None:
    answer = ask(
        "rehearse", "--savepoint", "a", "--repository", "/r", "--job", "shop/visits", *more
    )

    assert [each[: len(problem)] for each in answer.problems] == [problem]


def test_a_runtime_that_refuses_leaves_the_question_open(disk: Place, tmp_path: Path) -> None:
    """It does not take an underscore in a job's name, which a repository does."""
    answer = ask(
        *("rehearse", "--savepoint", "a", "--repository", disk.repository),
        *("--job", "shop/a_b", "--scratch", tmp_path, "--", "no-script.py"),
    )

    assert (answer.answer, answer.kind) == ("Unknown", "Refused")
    assert "--job is 'shop/a_b'" in answer.message
    assert list(tmp_path.iterdir()) == []


def test_where_there_is_no_savepoint_one_is_taken_and_goes_with_the_verdict(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    place.query("visits", 6)
    place.publish()
    seen: list[list[str]] = []

    def perform(trial: Trial, _: object) -> RehearsalInfo:
        seen.append([each.key for each in repository_of(place).list().savepoints])
        assert trial.savepoint == "before"
        return info("compatible", visits=GOOD)

    monkeypatch.setattr("sparkpoint.worker.trial.perform", perform)
    options = ("--epoch-dir", place.epoch_dir, "--epoch", "3", "--savepoint", "before")
    where = ("--repository", place.repository, "--job", "shop/visits", *place.options)

    answer = ask("rehearse", *options, *where, "--", "script.py")

    assert answer.answer == "Compatible"
    assert seen == [["shop/visits/before"]]
    assert not repository_of(place).list().savepoints


@pytest.mark.parametrize(("spark", "refused"), [("4.2.1", True), ("4.3.0", False), (None, False)])
def test_what_spark_would_do_wrongly_without_an_error_is_refused_before_any_trial(
    disk: Place, monkeypatch: pytest.MonkeyPatch, spark: str | None, refused: bool
) -> None:
    """The columns of a wide key, which a Spark before 4.3 takes for each other."""
    root = disk.query("visits", 6).root
    operator, offsets = root / "state/0/_metadata/metadata", root / "offsets/5"
    operator.write_text(operator.read_text().replace("stateStoreSave", "dedupe"))
    offsets.write_text(
        offsets.read_text().replace('"conf": {', f'"conf": {{"{KEY_ORDER}": "true", ')
    )
    wide = schema_of([(f"c{number}", "long") for number in range(7)], [("v", "long")])
    (root / "state/0/0/_metadata/schema").write_bytes(wide)
    disk.publish()
    capture(disk)
    tried: list[Trial] = []

    def perform(trial: Trial, _: object) -> RehearsalInfo:
        tried.append(trial)
        return info("compatible", visits=GOOD)

    monkeypatch.setattr("sparkpoint.worker.trial.perform", perform)
    monkeypatch.setattr("sparkpoint.worker.tasks.rehearse.installed_spark", lambda: spark)
    where = ("--repository", disk.repository, "--job", "shop/visits", *disk.options)

    answer = ask("rehearse", "--savepoint", "first", *where, "--", "script.py")

    assert answer.answer == ("Incompatible" if refused else "Compatible")
    assert ("let duplicates through without a word" in answer.message) == refused
    assert bool(tried) != refused


@pytest.mark.parametrize("single", [True, False])
def test_a_savepoint_that_no_driver_begins_from_is_refused_before_any_trial(
    disk: Place, monkeypatch: pytest.MonkeyPatch, single: bool
) -> None:
    """Of a single query's checkpoint; whoever begins nothing from it may ask about the code."""
    disk.query("visits", 6)
    source = DirectoryStore(disk.local / "visits")
    repository = Repository.init(disk.store(disk.repository))
    repository.capture(source, CaptureRequest(namespace="shop", job="visits", name="first"))
    tried: list[Trial] = []

    def perform(trial: Trial, _: object) -> RehearsalInfo:
        tried.append(trial)
        return info("compatible", visits=GOOD)

    monkeypatch.setattr("sparkpoint.worker.trial.perform", perform)
    where = ("--repository", disk.repository, "--job", "shop/visits", *disk.options)
    asked = ("rehearse", "--savepoint", "first", *where, *(("--single",) if single else ()))

    answer = ask(*asked, "--", "script.py")

    assert bool(tried) == single
    if single:
        assert (answer.answer, answer.kind) == ("Compatible", None)
    else:
        assert (answer.answer, answer.kind) == ("Incompatible", "SavepointUnreadable")
        assert "adoptAs" in answer.message
        assert answer.problems == (answer.message,)


def test_where_nothing_was_committed_there_is_nothing_to_try_it_on(place: Place) -> None:
    place.query("visits", 0)
    place.publish()
    options = ("--epoch-dir", place.epoch_dir, "--epoch", "3", "--savepoint", "before")
    where = ("--repository", place.repository, "--job", "shop/visits", *place.options)

    answer = ask("rehearse", *options, *where, "--", "script.py")

    assert answer.answer == "Unknown", answer
    assert "No batch was ever committed" in answer.message
