"""The picture: every ratio against its target, as shares of the target."""

from collections.abc import Sequence
from pathlib import Path

import matplotlib

from tests.bench.measure import Figure
from tests.bench.table import Section

__all__ = ["draw"]

_GOOD, _BAD = "#2a7f62", "#c0392b"
_WIDEST = 2.5
"""Bars end here; the number beside them tells the rest."""


def draw(sections: Sequence[Section], target: Path) -> None:
    """Write an SVG; figures without a target are left out."""
    matplotlib.use("svg")
    matplotlib.rcParams["svg.hashsalt"] = "sparkpoint"
    from matplotlib import pyplot

    rows = [
        (f"{section.name}: {figure.title} [{figure.unit}] vs {figure.peer}", figure)
        for section in sections
        if section.name != "memory"
        for figure in section.figures
        if figure.target is not None
    ]
    canvas, axes = pyplot.subplots(figsize=(11, 0.36 * len(rows) + 1.2), layout="constrained")
    places = list(range(len(rows)))[::-1]
    shares = [min(_share(figure), _WIDEST) for _, figure in rows]
    axes.barh(places, shares, color=[_GOOD if figure.met else _BAD for _, figure in rows])
    for place, share, (_, figure) in zip(places, shares, rows, strict=True):
        text = f"{figure.ratio:.2f} (≤ {figure.target:g})"
        axes.text(share + 0.02, place, text, va="center", fontsize=8)
    axes.axvline(1.0, color="black", linewidth=1)
    axes.set_yticks(places, [name for name, _ in rows], fontsize=8)
    axes.set_xlim(0, _WIDEST + 0.4)
    axes.set_xlabel("ratio as a share of its target: left of the line the target is met")
    canvas.savefig(target, metadata={"Date": None})
    pyplot.close(canvas)


def _share(figure: Figure) -> float:
    return figure.ratio / figure.target if figure.target else 0.0
