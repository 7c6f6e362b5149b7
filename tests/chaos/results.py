"""What came of each case, kept in `docs/reliability.json`, and the table on the page."""

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

from sparkpoint.lifecycle.phases import PLANS, Kind, Phase
from tests.chaos.matrix import MEANINGS, Case, Fault, all_cases, hindrance

__all__ = ["FILE", "PAGE", "Result", "Results", "generated_page", "write_page"]

_DOCS = Path(__file__).parent.parent.parent / "docs"
FILE = _DOCS / "reliability.json"
PAGE = _DOCS / "reliability.md"
_BEGIN, _END = "<!-- generated: crash matrix -->", "<!-- end: crash matrix -->"
_SIGNS = {"passed": "✓", "failed": "✗", "not applicable": "n.a."}


@dataclass(frozen=True, slots=True)
class Result:
    """Of one case."""

    result: Literal["passed", "failed", "not applicable"]
    seconds: float
    day: str
    note: str = ""


class Results:
    """Of all cases that were run."""

    def __init__(self, file: Path = FILE) -> None:
        self._file = file
        found = json.loads(file.read_text()) if file.exists() else {}
        self._known = {name: Result(**each) for name, each in found.items()}

    def get(self, case: Case) -> Result | None:
        """None: it was not run yet."""
        return self._known.get(case.name)

    def put(self, case: Case, result: Result) -> None:
        """Kept at once: a run may be ended at any moment."""
        self._known[case.name] = result
        order = [case.name for case in all_cases()]
        known = {name: asdict(self._known[name]) for name in order if name in self._known}
        draft = self._file.with_suffix(".new")
        draft.write_text(json.dumps(known, indent=1, ensure_ascii=False) + "\n")
        draft.rename(self._file)

    def missing(self) -> list[Case]:
        """What can be tried and was not."""
        return [case for case in all_cases() if not hindrance(case) and self.get(case) is None]


def generated_page(page: str, results: Results) -> str:
    """The page with its table renewed; ValueError if there is no place for it."""
    before, found, rest = page.partition(_BEGIN)
    _, closed, after = rest.partition(_END)
    if not (found and closed):
        raise ValueError(f"{PAGE.name} lacks the marks {_BEGIN} and {_END}")
    return f"{before}{_BEGIN}\n" + "\n".join(_section(results)) + f"\n{_END}{after}"


def write_page(results: Results) -> None:
    """Renew the table on the page."""
    PAGE.write_text(generated_page(PAGE.read_text(), results))


def _section(results: Results) -> Iterator[str]:
    notes: dict[str, int] = {}
    rows = [_row(kind, phase, results, notes) for kind in Kind for phase in PLANS[kind]]
    yield _count(results)
    yield ""
    yield "| in the phase | " + " | ".join(fault.value for fault in Fault) + " |"
    yield "|---|" + "---|" * len(Fault)
    yield from rows
    yield ""
    yield from (f"- **{fault.value}**: {MEANINGS[fault]}." for fault in Fault)
    yield ""
    yield from (f"{number}. {note}" for note, number in notes.items())


def _row(kind: Kind, phase: Phase, results: Results, notes: dict[str, int]) -> str:
    cells = [_cell(Case(kind, phase, fault), results, notes) for fault in Fault]
    return f"| {kind.value} · {phase.value} | " + " | ".join(cells) + " |"


def _cell(case: Case, results: Results, notes: dict[str, int]) -> str:
    result, reason = results.get(case), hindrance(case)
    if result is None and not reason:
        return "–"
    sign = _SIGNS[result.result] if result is not None else "n.a."
    note = reason or (result.note if result is not None else "")
    return f"{sign} ({notes.setdefault(note, len(notes) + 1)})" if note else sign


def _count(results: Results) -> str:
    known = [(case, results.get(case)) for case in all_cases() if not hindrance(case)]
    run = [result for _, result in known if result is not None]
    passed = [result for result in run if result.result == "passed"]
    failed = [result for result in run if result.result == "failed"]
    days = sorted({result.day for result in run})
    when = f", {' to '.join(dict.fromkeys((days[0], days[-1])))}" if days else ""
    return (
        f"{len(passed)} cases passed, {len(failed)} failed, {len(known) - len(run)} not run yet "
        f"(–){when}. Numbers refer to the notes below the table."
    )


if __name__ == "__main__":
    write_page(Results())
