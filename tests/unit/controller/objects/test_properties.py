"""Spark's configuration file, against the rules of java.util.Properties."""

import re

from hypothesis import given, settings
from hypothesis import strategies as st

from sparkpoint.controller.objects.properties import render_properties

_TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=20)
_UNESCAPED = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}


def _read(text: str) -> dict[str, str]:
    """What java.util.Properties makes of it: its `load`, but for `\\u` and continued lines."""
    found = {}
    for line in re.split(r"[\r\n]", text):
        line = line.lstrip(" \t\f")
        if line and line[0] not in "#!":
            key, rest = _until(line, " \t\f:=")
            rest = rest.lstrip(" \t\f")
            if rest[:1] in (":", "="):
                rest = rest[1:].lstrip(" \t\f")
            found[key] = _until(rest, "")[0]
    return found


def _until(text: str, ends: str) -> tuple[str, str]:
    out, index = "", 0
    while index < len(text) and text[index] not in ends:
        if text[index] == "\\":
            index += 1
            out += _UNESCAPED.get(text[index], text[index])
        else:
            out += text[index]
        index += 1
    return out, text[index:]


@settings(max_examples=25, deadline=None)
@given(properties=st.dictionaries(_TEXT.filter(bool), _TEXT, max_size=5))
def test_java_reads_back_what_was_written(properties: dict[str, str]) -> None:
    assert _read(render_properties(properties)) == properties


def test_lines_are_sorted_and_what_is_usual_stays_readable() -> None:
    written = render_properties(
        {
            "spark.master": "k8s://https://kubernetes.default.svc",
            "spark.driver.extraJavaOptions": "-Dfile=C:\\x -Dmode=a=b #1",
            "spark.app.name": " visits\nof today",
        }
    )

    assert written.splitlines() == [
        r"spark.app.name=\ visits\nof today",
        r"spark.driver.extraJavaOptions=-Dfile=C:\\x -Dmode=a=b #1",
        "spark.master=k8s://https://kubernetes.default.svc",
    ]
