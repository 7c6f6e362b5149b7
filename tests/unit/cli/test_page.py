"""The tree of versions in a browser: the picture, and that words of others stay words."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from html.parser import HTMLParser
from itertools import combinations
from pathlib import Path
from types import MappingProxyType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparkpoint.cli.render.graph import Node, forest
from sparkpoint.cli.render.history import Restores, Uses
from sparkpoint.cli.render.lanes import Picture, lay_out
from sparkpoint.cli.render.page import tree_page
from sparkpoint.savepoint import Savepoint
from sparkpoint.savepoint.manifest import Parent
from sparkpoint.savepoint.uses import Restored
from tests.unit.cli.running import run, run_well
from tests.unit.cli.values import NOW, identity, query_info, savepoint

SERVER = "http://localhost:8333"
_EMPTY = frozenset({"meta", "path", "circle"})


class _Seen(HTMLParser):
    """The elements of a page; every one that is opened must be closed."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.elements: list[str] = []
        self.attributes: list[tuple[str, str, str]] = []
        self.texts: list[str] = []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append(tag)
        self.attributes += [(tag, name, value or "") for name, value in attrs]
        if tag not in _EMPTY:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag not in _EMPTY:
            assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append(data)

    def values(self, tag: str, name: str) -> list[str]:
        return [value for t, n, value in self.attributes if (t, n) == (tag, name)]


def _page(
    *savepoints: Savepoint,
    uses: Uses = MappingProxyType({}),
    restores: Restores = MappingProxyType({}),
    repository: str = "/data/savepoints",
) -> str:
    return "".join(
        tree_page(savepoints, uses, restores, repository=repository, endpoint_url=SERVER, now=NOW)
    )


def _laid_out(parents: list[int | None]) -> Picture:
    nodes = [
        Node(str(number), None if up is None else str(up), NOW + timedelta(minutes=number), [""])
        for number, up in enumerate(parents)
    ]
    (tree,) = forest(nodes)
    return lay_out(tree)


def test_a_line_of_versions_is_one_lane() -> None:
    assert _laid_out([None, 0, 1, 2]).width == 1


def test_a_fork_has_a_lane_of_its_own_down_to_its_parent() -> None:
    picture = _laid_out([None, 0, 0, 2])

    assert picture.lanes == {"3": 0, "2": 0, "1": 1, "0": 0}
    bent = [line for line in picture.lines if line.lane != line.parent_lane]
    assert [(line.child, line.parent_row) for line in bent] == [("1", 3)]


@given(st.lists(st.integers(0, 30), max_size=30))
def test_no_line_runs_over_another_savepoint_or_line(choices: list[int]) -> None:
    parents = [None, *(choice % (number + 1) for number, choice in enumerate(choices))]

    picture = _laid_out(parents)

    rows = {name: row for row, name in enumerate(picture.lanes)}
    assert len(picture.lines) == len(parents) - 1
    for line in picture.lines:
        assert line.row < line.parent_row
        between = {(row, line.lane) for row in range(line.row + 1, line.parent_row)}
        assert not between & {(rows[name], lane) for name, lane in picture.lanes.items()}
    for one, other in combinations(picture.lines, 2):
        if one.lane == other.lane:
            first, second = sorted((one, other), key=lambda line: line.row)
            assert first.parent_row <= second.row


def test_every_savepoint_opens_by_its_link() -> None:
    old = savepoint("old", hours=50)
    new = savepoint("new", parent=old, tags=("stable",))
    fork = savepoint("trial", hours=1, job="trial", parent=old)

    seen = _Seen(_page(fork, new, old))

    assert not seen.open
    links = [value for value in seen.values("a", "href") if value != "#"]
    assert sorted(links) == sorted(f"#{each.id}" for each in (old, new, fork))
    assert sorted(seen.values("section", "id")) == sorted(each.id for each in (old, new, fork))
    assert len(seen.values("circle", "r")) == 3
    assert len(seen.values("path", "d")) == 2
    assert "stable" in seen.texts
    assert "3 savepoints of 2 jobs" in "".join(seen.texts)


def test_a_parent_that_is_gone_is_still_drawn() -> None:
    gone = savepoint("gone", hours=9)

    seen = _Seen(_page(savepoint("a", hours=2, parent=gone), savepoint("b", parent=gone)))

    assert len(seen.values("circle", "r")) == 3
    assert f"{identity('gone')[:12]} shop/visits/gone  deleted" in seen.texts


def test_jobs_have_colours_of_their_own_over_all_trees() -> None:
    seen = _Seen(_page(savepoint("a", job="one"), savepoint("b", job="two")))

    assert sorted(seen.values("circle", "class")) == ["k0", "k1"]


def _page_of(words: Sequence[str]) -> str:
    """With one of the words wherever somebody else's may be."""
    # Names like these are refused when a manifest is read; the page does not count on it.
    about = dict(zip(("namespace", "job", "name"), words, strict=False))
    gone = Parent.model_construct(None, id=identity("gone"), **about)
    queries = [query_info(words[3]), query_info("visits")]
    one = savepoint("one", revision=words[4], tags=(words[5],), queries=queries)
    other = savepoint("other", hours=9)
    return _page(
        replace(other, manifest=other.manifest.model_copy(update={"parent": gone})),
        replace(one, manifest=one.manifest.model_copy(update=about)),
        uses={one.id: [words[6]]},
        restores={one.id: [Restored(words[7], words[8], NOW)]},
        repository=words[9],
    )


def test_words_of_others_stay_text() -> None:
    evil = [f"<b onclick=alert({number})>\"'&" for number in range(10)]

    page, plain = _Seen(_page_of(evil)), _Seen(_page_of([f"word {n}" for n in range(10)]))

    assert not page.open
    assert page.elements == plain.elements
    assert [each[:2] for each in page.attributes] == [each[:2] for each in plain.attributes]
    assert [word for word in evil if word not in "".join(page.texts)] == []


def test_the_page_fetches_nothing_and_says_so() -> None:
    page = _page(savepoint("x"))

    seen = _Seen(page)

    assert not [v for _, name, v in seen.attributes if name in {"src", "srcset", "data"}]
    assert all(value.startswith("#") for value in seen.values("a", "href"))
    assert any(value.startswith("default-src 'none'") for value in seen.values("meta", "content"))
    assert "url(" not in page


def test_it_tells_where_a_savepoint_went() -> None:
    one = savepoint("one")
    restores = {one.id: (Restored("/data/trial", "fork", NOW - timedelta(hours=1)),)}

    page = _page(one, restores=restores, repository="/data/my savepoints")

    assert "restored to /data/trial (fork, 1 h ago)" in page
    assert "restore shop/visits/one --repository &#x27;/data/my savepoints&#x27; --to" in page


def test_the_command_that_restores_names_the_s3_server() -> None:
    on_s3 = _page(savepoint("x"), repository="s3://lake/sp")

    assert f"--repository s3://lake/sp --endpoint-url {SERVER} --to TARGET" in on_s3
    assert SERVER not in _page(savepoint("x"), repository="/data/sp")


@pytest.mark.parametrize("target", ["/proc/x.html", "x" * 255])
@pytest.mark.usefixtures("repository")
def test_a_file_that_cannot_be_written_is_told_by_its_name(target: str) -> None:
    outcome = run("log", "--html", target)

    assert outcome.code == 1
    assert outcome.err.startswith(f"Error: Cannot write {target}: ")
    assert "SPARKPOINT_DEBUG" not in outcome.err


@pytest.mark.usefixtures("repository")
def test_a_disk_that_is_full_leaves_what_was_there(monkeypatch: pytest.MonkeyPatch) -> None:
    Path("tree.html").write_text("before")
    # A device that is always full takes the place of the file that grows.
    monkeypatch.setattr(Path, "with_name", lambda *_: Path("full"))
    Path("full").symlink_to("/dev/full")

    outcome = run("log", "--html", "tree.html")

    assert (
        outcome.err
        == "Error: Cannot write tree.html: No space left on device. Name another file.\n"
    )
    assert Path("tree.html").read_text() == "before"


@pytest.mark.usefixtures("repository")
def test_the_command_writes_a_page_that_is_whole() -> None:
    document = run_well("log", "--html", "tree.html", "--json").document

    page = Path("tree.html").read_text()
    assert document["html"] == "tree.html"
    assert not _Seen(page).open
    assert all(each["id"] in page for each in document["savepoints"])
    assert "open it in a browser" in run_well("log", "--html", "tree.html").out
    assert [path.name for path in Path().glob(".*growing")] == []


@pytest.mark.parametrize(
    "asked", [("--graph", "--html", "x.html"), ("--html", "no/x.html"), ("--html", "/dev/null")]
)
@pytest.mark.usefixtures("repository")
def test_what_cannot_be_written_is_refused(asked: tuple[str, ...]) -> None:
    outcome = run("log", *asked)

    assert outcome.code == 2
    assert "html" in outcome.err or "does not exist" in outcome.err
    assert not Path("x.html").exists()
