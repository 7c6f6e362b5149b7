"""What a trace of Java's is about, in one line."""

import re

__all__ = ["condition_in"]

_CAUSE = "Caused by: "
_CONDITION = re.compile(r"\[[A-Z][A-Z0-9_.]+\] .*")
_LONGEST = 300


def condition_in(text: str) -> str:
    """Spark's own condition, and what all of it comes from."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    conditions = [found[0] for line in lines if (found := _CONDITION.search(line))]
    causes = [line.removeprefix(_CAUSE) for line in lines if line.startswith(_CAUSE)]
    told = dict.fromkeys([*(conditions or lines)[:1], *causes[-1:]])
    return ", caused by ".join(each[:_LONGEST] for each in told)
