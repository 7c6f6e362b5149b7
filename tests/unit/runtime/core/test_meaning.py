"""What is said of state whose columns or variables have other names than they had."""

import pytest

from sparkpoint.runtime.meaning import Names, changes_between

SUM: Names = {"key of operator 0": ("url",), "value of operator 0": ("count", "sum")}
VARIABLES = "state variables of operator 0"


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        (SUM, SUM, []),
        (SUM, {}, []),
        (
            SUM,
            {**SUM, "value of operator 0": ("count", "max")},
            ["the value of operator 0 was count, sum, and is count, max in this code"],
        ),
        (
            {"key of operator 1": ("a", "b")},
            {"key of operator 1": ("b", "a")},
            ["the key of operator 1 was a, b, and is b, a in this code"],
        ),
        ({VARIABLES: ("seen",)}, {VARIABLES: ("last", "seen")}, []),
        (
            {VARIABLES: ("seen",)},
            {VARIABLES: ("visits",)},
            [f"of the {VARIABLES}, seen is not in this code, and visits begins empty"],
        ),
        (
            {VARIABLES: ("last", "seen")},
            {VARIABLES: ("seen",)},
            [f"of the {VARIABLES}, last is not in this code"],
        ),
    ],
)
def test_other_names_are_told_and_new_ones_are_not(
    before: Names, after: Names, said: list[str]
) -> None:
    assert list(changes_between(before, after)) == said
