"""Links between the pages lead somewhere: to files that are there, and headings that they have."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("helm/**/*.md")])

_FENCED = re.compile(r"^```.*?^```", re.M | re.S)
_LINK = re.compile(r"\]\(([^)\s{}]+)\)")
_HEADING = re.compile(r"^#+ (.+)$", re.M)


def _text(page: Path) -> str:
    return _FENCED.sub("", page.read_text())


def _anchors(page: Path) -> set[str]:
    """As GitHub makes them: lower case, no punctuation, hyphens for spaces."""
    return {
        re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
        for heading in _HEADING.findall(_text(page))
    }


def _leads_nowhere(page: Path, link: str) -> bool:
    path, _, anchor = link.partition("#")
    target = (page.parent / path).resolve() if path else page
    if not target.exists():
        return True
    return bool(anchor) and anchor not in _anchors(target)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_of_a_page_leads_somewhere(page: Path) -> None:
    links = [link for link in _LINK.findall(_text(page)) if "://" not in link]

    assert [link for link in links if _leads_nowhere(page, link)] == []


def test_a_link_to_nothing_is_seen(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("# A `word`, or two\n[here](#a-word-or-two)\n")

    assert not _leads_nowhere(page, "#a-word-or-two")
    assert _leads_nowhere(page, "#another")
    assert _leads_nowhere(page, "missing.md")
