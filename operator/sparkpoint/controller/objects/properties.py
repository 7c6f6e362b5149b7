"""Spark's configuration file: the format of java.util.Properties, in UTF-8."""

import re
from collections.abc import Mapping

__all__ = ["render_properties"]

_CONTROL = {"\t": r"\t", "\n": r"\n", "\r": r"\r", "\f": r"\f"}
_IN_KEY = re.compile(r"[\\ \t\n\r\f:=#!]")
_IN_VALUE = re.compile(r"[\\\t\n\r\f]|^ ")


def render_properties(properties: Mapping[str, str]) -> str:
    """One line per property, sorted, so that equal properties are equal texts."""
    return "".join(
        f"{_escaped(_IN_KEY, key)}={_escaped(_IN_VALUE, properties[key])}\n"
        for key in sorted(properties)
    )


def _escaped(special: re.Pattern[str], text: str) -> str:
    return special.sub(lambda found: _CONTROL.get(found[0], f"\\{found[0]}"), text)
