"""The header by which whoever asks an agent says what the request belongs to."""

import re
from collections.abc import Mapping
from typing import Final

__all__ = ["HEADER", "correlation_in"]

HEADER: Final = "X-Correlation-Id"
_WELL_FORMED: Final = re.compile(r"[A-Za-z0-9._-]{1,64}")


def correlation_in(headers: Mapping[str, str]) -> str:
    """What the header says; `-` if it is missing, or could break a line of the log."""
    given = headers.get(HEADER, "")
    return given if _WELL_FORMED.fullmatch(given) else "-"
