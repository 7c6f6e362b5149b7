"""What the demo claims is looked at: its ledger finds what was lost or counted twice."""

import ast

import pytest

from dev.demo import scripts
from dev.demo.ledger import explained_by, visits_of


def test_counts_are_explained_by_the_files_that_were_read() -> None:
    assert explained_by(visits_of(0, 7), since=0, most=20) == 7


def test_a_fork_tells_of_urls_that_it_met_with_all_their_visits() -> None:
    met = visits_of(5, 6)
    told = {url: count for url, count in visits_of(0, 6).items() if url in met}

    assert explained_by(told, since=5, most=20) == 6
    assert explained_by({}, since=5, most=20) == 5


@pytest.mark.parametrize("wrong", [-1, 1, 500])
def test_what_was_lost_or_counted_twice_is_explained_by_nothing(wrong: int) -> None:
    counts = visits_of(0, 7)
    counts["/"] += wrong

    assert explained_by(counts, since=0, most=20) is None


def test_a_file_that_was_read_twice_is_explained_by_nothing() -> None:
    twice = visits_of(3, 4)
    counts = {url: count + twice.get(url, 0) for url, count in visits_of(0, 7).items()}

    assert explained_by(counts, since=0, most=20) is None


@pytest.mark.parametrize("script", [scripts.with_sections(), scripts.mistaken()])
def test_each_change_of_the_script_is_code_and_a_few_lines(script: str) -> None:
    ast.parse(script)

    assert 2 <= len(scripts.change(scripts.first(), script).splitlines()) <= 3
