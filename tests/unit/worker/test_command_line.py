"""Bad command lines: everything is told at once, and nothing is begun."""

import pytest

from sparkpoint.worker.exits import Exit, exit_of
from sparkpoint.worker.tasks import TASKS
from tests.unit.worker.asking import ask

CAPTURE = ("capture", "--epoch-dir", "/data/epoch-3", "--job", "shop/visits", "--epoch", "3")


def test_every_mistake_is_told_at_once() -> None:
    answer = ask(
        "capture",
        *("stray", "--epoch-dir", "data/epoch-3", "--job", "Shop", "--epoch", "-1"),
        *("--repository", "gs://bucket/x", "--tag", "a b", "--tag", "fine", "--colour=red"),
        *("--endpoint-url", "localhost:9000", "--revision", "--trigger", "a", "--trigger", "b"),
    )

    assert (answer.answer, exit_of(answer)) == ("Refused", Exit.REFUSED)
    wanted = [
        "'stray' belongs to no option",
        "--colour is not an option",
        "--epoch-dir is 'data/epoch-3': give an absolute path or s3://bucket/prefix",
        "--job is 'Shop': give NAMESPACE/NAME",
        "--epoch is '-1': give a whole number",
        "--repository is 'gs://bucket/x': give an absolute path or s3://bucket/prefix",
        "--name is missing",
        "--tag is 'a b': give up to 128",
        "--endpoint-url is 'localhost:9000': give a URL",
        "--revision has no value",
        "--trigger is given 2 times",
    ]
    assert len(answer.problems) == len(wanted)
    for sentence in wanted:
        assert any(problem.startswith(sentence) for problem in answer.problems), sentence
        assert sentence in answer.message
    assert (
        "Usage: python -m sparkpoint.worker capture [--termination-log PATH] --epoch-dir "
        in answer.message
    )


@pytest.mark.parametrize("arguments", [(), ("caputre",), ("--help",)])
def test_an_unknown_task_is_answered_with_those_that_there_are(arguments: tuple[str, ...]) -> None:
    answer = ask(*arguments)

    assert answer.answer == "Refused"
    assert all(task in answer.message for task in TASKS)


@pytest.mark.parametrize("task", TASKS)
def test_each_task_says_what_it_needs_and_its_usage_names_it(task: str) -> None:
    answer = ask(task)

    usage = answer.message.rpartition("Usage: ")[2]
    missing = [problem.split(" ")[0] for problem in answer.problems if problem.startswith("--")]
    assert answer.answer == "Refused"
    assert missing
    assert all(option in usage for option in missing)


@pytest.mark.parametrize(
    "place",
    ["s3://", "s3:///key", "s3://key@bucket/x", "s3://bucket/a?b", "file:x", "/a/../b", "x", "a:b"],
)
def test_places_that_cannot_be_are_refused(place: str) -> None:
    answer = ask(*CAPTURE, "--name", "first", "--repository", place)

    (problem,) = answer.problems
    assert problem.startswith(f"--repository is {place!r}: ")


@pytest.mark.parametrize(
    ("task", "more", "problem"),
    [
        ("dispose", ("--name", "a", "--grace", "5"), "--grace does nothing without --collect"),
        ("dispose", ("--name", "a", "--collect=yes"), "--collect takes no value"),
        ("dispose", ("--name", "a", "--id", "abc"), "--id is 'abc': give all 64"),
        ("inspect", (), "--name is missing: give it, or --id"),
        (
            "inspect",
            ("--name", "a", "--copy-from-endpoint-url", "http://x"),
            "--copy-from-endpoint-url does nothing without --copy-from",
        ),
    ],
)
def test_options_that_do_not_go_together_are_refused(
    task: str, more: tuple[str, ...], problem: str
) -> None:
    answer = ask(task, "--repository", "/r", "--job", "shop/visits", *more)

    assert [each[: len(problem)] for each in answer.problems] == [problem]


def test_a_text_that_no_manifest_takes_is_refused() -> None:
    answer = ask(*CAPTURE, "--name", "a", "--repository", "/r", "--revision", "x" * 4097)

    assert answer.problems == ("--revision is longer than 4096 characters",)


def test_a_relative_target_is_refused() -> None:
    answer = ask("fetch", "--uri", "s3://bucket/a.py", "--to", "a.py")

    assert answer.problems == ("--to is 'a.py': give an absolute path",)


def test_what_follows_two_dashes_is_for_a_rehearsal_only() -> None:
    answer = ask(*CAPTURE, "--name", "first", "--repository", "/r", "--", "script.py")

    assert answer.problems == ("-- is not an option",)
