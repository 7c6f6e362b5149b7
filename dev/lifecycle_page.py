"""Write the tables and the diagram of `docs/lifecycle.md` from the phases.

The page itself is written by hand; what lies between two marks is generated, and a unit test
compares it with what this module would write.
"""

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

from dev.console import run_command, say
from sparkpoint.lifecycle.phases import (
    AGAIN,
    INTERRUPTIONS,
    MEANINGS,
    OPEN_TO_CHANGE,
    PLANS,
    PURPOSES,
    Kind,
    Phase,
)

__all__ = ["PAGE", "generated_page"]

PAGE = Path(__file__).parent.parent / "docs" / "lifecycle.md"


def generated_page(page: str) -> str:
    """The page with its generated parts renewed; ValueError if one has no place in it."""
    parts = {
        "operations": _operations(),
        "phases": _phases(),
        "diagram": _diagram(),
        "newer wishes": _interruptions(),
    }
    for name, lines in parts.items():
        page = _with_part(page, name, "\n".join(lines))
    return page


def _with_part(page: str, name: str, content: str) -> str:
    begin, end = f"<!-- generated: {name} -->", f"<!-- end: {name} -->"
    before, found, rest = page.partition(begin)
    _, closed, after = rest.partition(end)
    if not (found and closed):
        raise ValueError(f"{PAGE.name} lacks the marks {begin} and {end}")
    return f"{before}{begin}\n{content}\n{end}{after}"


def _operations() -> Iterator[str]:
    yield "| operation | begins when | phases |"
    yield "|---|---|---|"
    for kind in Kind:
        plan = " → ".join(phase.value for phase in PLANS[kind])
        yield f"| **{kind.value}** | {PURPOSES[kind]} | {plan} |"


def _phases() -> Iterator[str]:
    yield "| phase | what happens | part of |"
    yield "|---|---|---|"
    for phase in Phase:
        kinds = ", ".join(kind.value for kind in Kind if phase in PLANS[kind])
        yield f"| **{phase.value}** | {MEANINGS[phase]} | {kinds} |"


def _interruptions() -> Iterator[str]:
    yield "| phase | may a newer wish take over? | what it does |"
    yield "|---|---|---|"
    for phase in Phase:
        answer = "yes" if phase in OPEN_TO_CHANGE else "no"
        yield f"| **{phase.value}** | {answer} | {INTERRUPTIONS[phase]} |"


def _diagram() -> Iterator[str]:
    yield "```mermaid"
    yield "stateDiagram-v2"
    for (before, after), kinds in _steps().items():
        yield f"    {before} --> {after}: {_label(kinds)}"
    for phase, again in AGAIN.items():
        yield f"    {phase.value} --> {again.value}: once more"
    yield "```"


def _label(kinds: list[Kind]) -> str:
    others = [kind for kind in Kind if kind not in kinds]
    few, words = (kinds, "") if len(kinds) <= len(others) else (others, "all but ")
    return words + ", ".join(kind.value for kind in few)


def _steps() -> dict[tuple[str, str], list[Kind]]:
    """Which operations go from which phase to which; [*] is where they begin and end."""
    steps: dict[tuple[str, str], list[Kind]] = {}
    for kind in Kind:
        stations = ["[*]", *(phase.value for phase in PLANS[kind]), "[*]"]
        for before, after in pairwise(stations):
            steps.setdefault((before, after), []).append(kind)
    return steps


def main() -> None:
    """Write the page if it has changed."""
    page = PAGE.read_text()
    renewed = generated_page(page)
    if renewed != page:
        PAGE.write_text(renewed)
        say(f"Wrote docs/{PAGE.name}")


if __name__ == "__main__":
    run_command(main)
