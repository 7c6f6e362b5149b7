"""The crash matrix as data: complete, named, grouped, and on its page."""

from pathlib import Path

import pytest

from sparkpoint.lifecycle.phases import PLANS, Kind, Phase
from tests.chaos.campaign import draw, shrink
from tests.chaos.lanes import judged
from tests.chaos.matrix import Case, Fault, Run, all_cases, find_case, find_run, hindrance, runs_of
from tests.chaos.play import Played
from tests.chaos.results import PAGE, Result, Results, generated_page
from tests.chaos.witness import Attempt, conflicts


def test_every_phase_of_every_operation_meets_every_fault() -> None:
    rows = sum(len(plan) for plan in PLANS.values())

    assert len(set(all_cases())) == rows * len(Fault)
    assert all(find_case(case.name) == case for case in all_cases())


def test_a_name_that_is_none_is_told() -> None:
    with pytest.raises(ValueError, match="no case 'upgrade-stop-nothing'"):
        find_case("upgrade-stop-nothing")


def test_runs_fill_every_cell_and_strike_twice_only_where_that_changes_nothing() -> None:
    cases = [case for case in all_cases() if not hindrance(case)]

    runs = list(runs_of(cases))

    assert sorted(case.name for run in runs for case in run.cases) == sorted(
        case.name for case in cases
    )
    for fault in set(Fault) - {Fault.DRIVER}:
        assert Run(Kind.RESCALE, (Phase.STOP, Phase.LAUNCH, Phase.OBSERVE), fault) in runs
    assert all(len(run.phases) == 1 for run in runs if run.fault is Fault.DRIVER)
    assert all(len(run.phases) == 1 for run in runs if Phase.CAPTURE in run.phases)


def test_runs_are_found_by_the_names_that_they_are_printed_with() -> None:
    timed = Run(Kind.UPGRADE, (), Fault.DRIVER, after=4.5)

    assert find_run(timed.name) == timed
    assert find_run("start-adopt-etcd") == Run(Kind.START, (Phase.ADOPT,), Fault.ETCD)


def test_a_seed_gives_the_same_runs_again() -> None:
    first, again, other = draw(1), draw(1), draw(2)

    drawn = [next(first) for _ in range(50)]

    assert drawn == [next(again) for _ in range(50)]
    assert drawn != [next(other) for _ in range(50)]
    assert all(not hindrance(case) for run in drawn for case in run.cases)


def test_what_is_not_needed_to_fail_is_left_out() -> None:
    drawn = draw(3)
    steps = [next(drawn) for _ in range(9)]
    needed = [steps[2], steps[5], steps[8]]

    def fails(fewer: object) -> bool:
        assert isinstance(fewer, list)
        return all(step in fewer for step in needed)

    assert shrink(steps, fails) == needed
    # Bounded: what was not tried stays.
    assert shrink(steps, fails, tries=4) == [*steps[:6], steps[8]]


def test_a_failure_of_the_last_step_alone_is_found_at_once() -> None:
    drawn = draw(3)
    steps = [next(drawn) for _ in range(9)]
    tried: list[object] = []

    def fails(fewer: object) -> bool:
        tried.append(fewer)
        return True

    assert shrink(steps, fails) == steps[8:]
    assert len(tried) == 1


_STOP_AND_LAUNCH = Run(Kind.UPGRADE, (Phase.STOP, Phase.LAUNCH), Fault.S3)


@pytest.mark.parametrize(
    ("run", "played", "expected"),
    [
        pytest.param(
            _STOP_AND_LAUNCH,
            Played(struck=[Phase.STOP, Phase.LAUNCH], ended="Rollback Succeeded"),
            ["passed", "passed"],
            id="struck, however it went on",
        ),
        pytest.param(
            _STOP_AND_LAUNCH,
            Played(struck=[Phase.STOP], ended="Upgrade Succeeded"),
            ["passed", None],
            id="not seen: the other phase is tried by itself",
        ),
        pytest.param(
            Run(Kind.UPGRADE, (Phase.LAUNCH,), Fault.S3),
            Played(ended="Upgrade Succeeded"),
            ["not applicable"],
            id="a phase that was over at once",
        ),
        pytest.param(
            _STOP_AND_LAUNCH,
            Played(struck=[Phase.STOP], ended="Upgrade Failed"),
            ["passed", None],
            id="another way: so it is, too",
        ),
        pytest.param(
            Run(Kind.UPGRADE, (Phase.LAUNCH,), Fault.S3),
            Played(ended="Upgrade Failed"),
            ["failed"],
            id="never reached, though nothing went wrong",
        ),
        pytest.param(
            Run(Kind.UPGRADE, (Phase.LAUNCH,), Fault.EXECUTOR),
            Played(missed=[Phase.LAUNCH], ended="Upgrade Succeeded"),
            ["not applicable"],
            id="nothing there to strike",
        ),
        pytest.param(
            Run(Kind.UPGRADE, (Phase.STOP, Phase.LAUNCH), Fault.EXECUTOR),
            Played(struck=[Phase.STOP], missed=[Phase.LAUNCH], ended="Upgrade Succeeded"),
            ["passed", None],
            id="nothing there to strike any more, perhaps: so it is, too",
        ),
    ],
)
def test_a_cell_is_ticked_only_if_its_fault_struck_in_its_phase(
    run: Run, played: Played, expected: list[str | None]
) -> None:
    results = [result for _, result in judged(run, played)]

    assert [result.result if result is not None else None for result in results] == expected


def test_results_are_kept_and_shown_on_the_page(tmp_path: Path) -> None:
    passed, failed, none = (
        find_case(f"upgrade-{p}-operator") for p in ("stop", "launch", "capture")
    )
    file = tmp_path / "results.json"
    Results(file).put(passed, Result("passed", 31.5, "2026-11-17"))
    Results(file).put(failed, Result("failed", 90, "2026-11-18", "two writers"))
    results = Results(file)

    page = generated_page("a<!-- generated: crash matrix -->b<!-- end: crash matrix -->c", results)

    rows = {line.split(" | ")[0]: line.split(" | ")[1] for line in page.splitlines() if "·" in line}
    assert rows["| Upgrade · Stop"] == "✓"
    assert rows["| Upgrade · Launch"].startswith("✗ (")
    assert rows["| Upgrade · Capture"] == "–"
    assert rows["| Resume · Stop"].startswith("n.a. (")
    assert "1 cases passed, 1 failed" in page
    assert "2026-11-17 to 2026-11-18" in page
    assert passed not in results.missing()
    assert none in results.missing()


def test_the_page_shows_what_is_kept() -> None:
    assert generated_page(PAGE.read_text(), Results()) == PAGE.read_text()


def _attempt(number: int, *, epoch: int = 1, open: bool = True, left: bool = False) -> Attempt:  # noqa: A002
    return Attempt("life", epoch, number, open, left, (f"driver-{number}",))


def test_two_open_attempts_in_one_directory_are_two_writers_whatever_became_of_their_pods() -> None:
    assert conflicts([_attempt(1, left=True), _attempt(2)])


def test_one_behind_its_gate_writes_nothing() -> None:
    assert not conflicts([_attempt(1), _attempt(2, open=False)])


def test_two_open_attempts_in_two_directories_share_sinks_unless_the_first_was_left_behind() -> (
    None
):
    assert conflicts([_attempt(1), _attempt(2, epoch=2)])
    assert not conflicts([_attempt(1, left=True), _attempt(2, epoch=2)])


def test_a_case_that_cannot_be_says_why() -> None:
    assert "over at once" in hindrance(Case(Kind.RESUME, Phase.STOP, Fault.OPERATOR))
    assert not hindrance(Case(Kind.UPGRADE, Phase.STOP, Fault.OPERATOR))
