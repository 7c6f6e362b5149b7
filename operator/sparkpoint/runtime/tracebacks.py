"""What a text with stack traces in it says to a person: the sentence, and the line to look at."""

import re
from pathlib import Path

__all__ = ["last_words", "place_in"]

_PYTHON = "Traceback (most recent call last):"
_FRAME = re.compile(r'^\s*File "([^"\n]+)", line (\d+)', re.MULTILINE)
_LIBRARY = re.compile(r"/(site-packages|dist-packages|pyspark|py4j|lib/python3[^/]*)/|^<")


def place_in(text: str) -> str | None:
    """`script.py:12`: the innermost line of a Python traceback that is not a library's."""
    frames = [match for match in _FRAME.findall(text) if not _LIBRARY.search(match[0])]
    return f"{Path(frames[-1][0]).name}:{frames[-1][1]}" if frames else None


def last_words(text: str) -> str:
    """The message without the plan and the stacks around it; of a Python traceback its end."""
    text = text.split("\n=== Streaming Query ===", 1)[0].split("\n\tat ", 1)[0].strip()
    _, python, trace = text.rpartition(_PYTHON)
    if not python:
        return text
    lines = trace.strip().splitlines()
    indented = [number for number, line in enumerate(lines) if line.startswith("  ")]
    return "\n".join(lines[max(indented, default=-1) + 1 :]).strip() or text
