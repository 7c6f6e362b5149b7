"""What expressions ask Prometheus for, by a parser that follows Prometheus' own."""

import re
from collections.abc import Iterable

import promql_parser

from sparkpoint.controller.metrics import Metrics
from sparkpoint.runtime.metrics import SavepointFigures, render_metrics
from sparkpoint.runtime.model import GateInfo, Progress

__all__ = ["asked_for", "of_a_driver", "of_the_operator", "selectors", "series_of"]

_PARTS = ("_bucket", "_sum", "_count")


def of_the_operator() -> dict[str, str]:
    """Metric -> type, as the operator's page tells Prometheus."""
    return _shown(Metrics().render())


def of_a_driver() -> dict[str, str]:
    """The same of an agent's page."""
    gate = GateInfo(epoch=1, state="none")
    progress = Progress(job="a/b", epoch=1, phase="running", gate=gate, queries=[])
    return _shown(render_metrics(progress, SavepointFigures()))


def series_of(metrics: dict[str, str]) -> set[str]:
    """The names that can be asked for: of a histogram its parts, and not the histogram."""
    plain = {name for name, kind in metrics.items() if kind != "histogram"}
    parts = {
        f"{name}{part}" for name, kind in metrics.items() if kind == "histogram" for part in _PARTS
    }
    return plain | parts


def asked_for(expressions: Iterable[str]) -> set[str]:
    """Names of the series in these expressions; ValueError for one that does not parse."""
    return {
        name
        for text in expressions
        for part in _selectors(text)
        for name in _names(part).split("|")
    }


def selectors(expression: str, metric: str) -> list[set[str]]:
    """What is asked of labels, such as `kind="job"`, where the expression asks for this metric."""
    return [
        {f'{each.name}{_written(each.op)}"{each.value}"' for each in part.matchers.matchers}
        for part in _selectors(expression)
        if _names(part) == metric
    ]


def _selectors(expression: str) -> list[promql_parser.VectorSelector]:
    found: list[promql_parser.VectorSelector] = []

    def visit(part: promql_parser.Expr) -> None:
        if isinstance(part, promql_parser.VectorSelector):
            found.append(part)

    promql_parser.walk(promql_parser.parse(_as_sent(expression)), visit)
    return found


def _names(part: promql_parser.VectorSelector) -> str:
    """Of the series, with `|` between several."""
    if part.name:
        return part.name
    [named] = [each.value for each in part.matchers.matchers if each.name == "__name__"]
    return named


def _written(op: promql_parser.MatchOp) -> str:
    """As Prometheus writes it. The parser's own values cannot be keys of a table."""
    names = ("Equal", "NotEqual", "Re", "NotRe")
    [found] = [i for i, name in enumerate(names) if getattr(promql_parser.MatchOp, name) == op]
    return ("=", "!=", "=~", "!~")[found]


def _as_sent(expression: str) -> str:
    """With what Grafana puts in for its own variables."""
    return re.sub(r"\$__rate_interval", "5m", expression)


def _shown(page: str) -> dict[str, str]:
    return dict(re.findall(r"^# TYPE (\S+) (\S+)$", page, re.MULTILINE))
