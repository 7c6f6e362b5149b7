"""The tree of versions: pictures, and what holds for every picture."""

from datetime import timedelta
from textwrap import dedent

from hypothesis import given, settings
from hypothesis import strategies as st

from sparkpoint.cli.render.graph import Node, draw
from sparkpoint.cli.render.history import graph_text, log_text
from sparkpoint.savepoint.uses import Restored
from tests.unit.cli.values import NOW, identity, savepoint


def node(name: str, minute: int, parent: str | None = None, *more: str) -> Node:
    return Node(name, parent, NOW + timedelta(minutes=minute), [name, *more])


def picture(text: str) -> str:
    return dedent(text).strip("\n")


def test_a_line_of_versions_is_a_column_of_stars() -> None:
    nodes = [node("a", 1), node("b", 2, "a"), node("c", 3, "b")]

    assert draw(nodes) == "* c\n* b\n* a"


def test_a_branch_joins_its_parent() -> None:
    nodes = [node("a", 1), node("b", 2, "a"), node("c", 3, "a"), node("d", 4, "c")]

    assert draw(nodes) == picture("""
        * d
        * c
        | * b
        |/
        * a
        """)


def test_three_branches_of_one_parent_join_one_after_the_other() -> None:
    nodes = [node("a", 1), node("b", 2, "a"), node("c", 3, "a"), node("d", 4, "a")]

    assert draw(nodes) == picture("""
        * d
        | * c
        |/
        | * b
        |/
        * a
        """)


def test_a_branch_passes_under_the_one_between() -> None:
    nodes = [
        node("a", 1),
        node("b", 2, "a"),
        node("c", 3, "a"),
        node("d", 4, "b"),
        node("e", 5, "c"),
        node("f", 6, "b"),
        node("x", 7, "c"),
    ]

    assert draw(nodes) == picture("""
        * x
        | * f
        | | * e
        | |/
        |/|
        | | * d
        | |/
        * | c
        | * b
        |/
        * a
        """)


def test_lines_below_a_savepoint_stay_beside_the_tree() -> None:
    nodes = [node("a", 1, None, "used by x"), node("b", 2, "a", "used by y"), node("c", 3, "a")]

    assert draw(nodes) == picture("""
        * c
        | * b
        | |   used by y
        |/
        * a
            used by x
        """)


def test_jobs_that_are_not_related_do_not_share_lines() -> None:
    nodes = [node("a", 1), node("x", 2), node("b", 3, "a"), node("y", 4, "x")]

    assert draw(nodes) == "* y\n* x\n\n* b\n* a"


def test_a_parent_stays_below_its_child_whatever_the_clocks_say() -> None:
    assert draw([node("a", 9), node("b", 1, "a")]) == "* b\n* a"


@settings(max_examples=25, deadline=None)
@given(st.lists(st.tuples(st.integers(-1, 30), st.integers(0, 20)), max_size=31))
def test_every_savepoint_is_drawn_once_and_above_its_parent(shape: list[tuple[int, int]]) -> None:
    nodes = [
        node(f"n{index}.", minute, f"n{parent % index}." if index and parent >= 0 else None)
        for index, (parent, minute) in enumerate(shape)
    ]

    lines = draw(nodes).splitlines()

    rows = {
        each.id: [i for i, line in enumerate(lines) if line.endswith(each.id)] for each in nodes
    }
    assert all(len(found) == 1 for found in rows.values())
    assert all(rows[each.id] < rows[each.parent] for each in nodes if each.parent)
    assert all(line == line.rstrip() for line in lines)


@settings(max_examples=25, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 30), st.integers(0, 20)), min_size=1, max_size=31))
def test_lines_lead_from_every_savepoint_down_to_its_parent(shape: list[tuple[int, int]]) -> None:
    nodes = [
        node(f"n{index}.", minute, f"n{parent % index}." if index else None)
        for index, (parent, minute) in enumerate(shape)
    ]
    lines = [line.split("n")[0].ljust(100) for line in draw(nodes).splitlines()]
    names = ["n" + line.split("n")[1] if "n" in line else "" for line in draw(nodes).splitlines()]

    for each in nodes:
        if each.parent:
            assert _follow(lines, names, names.index(each.id)) == each.parent


def _follow(lines: list[str], names: list[str], row: int) -> str:
    """Go down from a star as the eye does, to the next star."""
    column = lines[row].index("*")
    while True:
        row += 1
        if lines[row][column] == "*":
            return names[row]
        if lines[row][column] == "|":
            continue
        assert lines[row][column - 1] == "/"
        slash = column - 1
        while lines[row][slash - 2] == "_":
            slash -= 2
        if lines[row + 1][slash - 2] == "/":  # it passes under the lane between
            row, slash = row + 1, slash - 2
        column = slash - 1


def test_the_log_with_a_tree_shows_what_matters_in_one_line_each() -> None:
    first = savepoint("one", hours=50, revision="1.4.2")
    second = savepoint("two", hours=30, parent=first, tags=("keep", "stable"))
    fork = savepoint("trial", hours=2, parent=first, job="trial")
    uses = {second.id: ["restore shop/visits/two on worker-3"]}
    restores = {second.id: [Restored("s3://lake/ck", "rewind", NOW - timedelta(hours=29))]}

    assert graph_text([fork, second, first], uses, restores, NOW) == picture("""
        * 747269616c00 shop/trial/trial  batch 41  2 h ago  27.1 MiB (+1.2 MiB)
        | * 74776f000000 shop/visits/two  batch 41  30 h ago  27.1 MiB (+1.2 MiB)  [keep, stable]
        | |   used by restore shop/visits/two on worker-3
        | |   restored to s3://lake/ck (rewind, 29 h ago)
        |/
        * 6f6e65000000 shop/visits/one  batch 41  2 d ago  27.1 MiB (+1.2 MiB)  rev 1.4.2
        """)


def test_children_of_a_deleted_savepoint_still_meet() -> None:
    lost = savepoint("one", hours=50)
    left, right = savepoint("two", hours=3, parent=lost), savepoint("six", hours=1, parent=lost)

    assert graph_text([right, left], {}, {}, NOW).splitlines()[-2:] == [
        "|/",
        "o 6f6e65000000 shop/visits/one  deleted",
    ]


def test_the_log_without_a_tree_is_a_paragraph_each() -> None:
    first = savepoint("one", hours=50)
    second = savepoint("two", hours=3, parent=first, tags=("keep",), revision="1.4.2")
    restores = {
        second.id: [
            Restored("/a", "resume", NOW - timedelta(hours=2)),
            Restored("/b", "fork", NOW - timedelta(hours=1)),
        ]
    }

    assert log_text([second, first], {first.id: ["copy x on y"]}, restores, NOW) == picture(f"""
        savepoint {identity("two")}
          name         shop/visits/two
          parent       shop/visits/one (6f6e65000000)
          revision     1.4.2
          batch        41
          created      2026-07-30T09:00:00.000Z (3 h ago)
          size         27.1 MiB, 1.2 MiB new
          tags         keep
          restored to  /a (resume, 2 h ago); /b (fork, 1 h ago)

        savepoint {identity("one")}
          name     shop/visits/one
          parent   none
          batch    41
          created  2026-07-28T10:00:00.000Z (2 d ago)
          size     27.1 MiB, 1.2 MiB new
          used by  copy x on y
        """)


def test_a_revision_of_several_lines_does_not_tear_the_picture() -> None:
    odd = savepoint("odd", revision="1\n* 2\x1b[31m")

    assert len(graph_text([odd], {}, {}, NOW).splitlines()) == 1
    assert "\x1b" not in log_text([odd], {}, {}, NOW)
