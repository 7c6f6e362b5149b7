"""The text format that Prometheus reads, version 0.0.4: families of samples as lines."""

import math
from collections.abc import Iterable, Mapping

__all__ = ["CONTENT_TYPE", "Labels", "Sample", "escaped", "family", "head", "labelled", "value"]

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

Labels = Mapping[str, str]
Sample = tuple[Labels, float]


def family(name: str, kind: str, text: str, samples: Iterable[Sample]) -> list[str]:
    """A metric with its description; the description stays where there is no sample."""
    return [
        *head(name, kind, text),
        *(f"{name}{labelled(labels)} {value(number)}" for labels, number in samples),
    ]


def head(name: str, kind: str, text: str) -> list[str]:
    """What comes before the samples of a family."""
    return [f"# HELP {name} {text}", f"# TYPE {name} {kind}"]


def labelled(labels: Labels) -> str:
    """Labels in braces; nothing if there are none."""
    inner = ",".join(f'{key}="{escaped(text)}"' for key, text in labels.items())
    return f"{{{inner}}}" if inner else ""


def escaped(text: str) -> str:
    """A label's value."""
    return text.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")


def value(number: float) -> str:
    """Whole numbers without an exponent: 2**53 bytes of state are readable, and exact."""
    whole = math.isfinite(number) and number == int(number)
    return str(int(number)) if whole else repr(float(number))
