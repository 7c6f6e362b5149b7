"""The shape that Spark's logs share: a version line, then lines of JSON. Strict and bounded."""

import json
import re
from collections.abc import Collection
from typing import TypeAlias, cast

from sparkpoint.checkpoint.errors import DamagedError, UnknownFormatError

__all__ = ["Json", "as_int", "as_list", "as_object", "as_text", "lines_of", "parse", "version_of"]

Json: TypeAlias = "dict[str, Json] | list[Json] | str | int | float | bool | None"

_VERSION = re.compile(r"v([0-9]{1,9})")
_LONG = 2**63


def lines_of(data: bytes, path: str) -> list[str]:
    """Decode a log file into its lines."""
    if not data:
        raise DamagedError(f"{path} is empty: the writer was cut off. {_WAY_OUT}")
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        raise DamagedError(f"{path} is not text: {error.reason}. {_WAY_OUT}") from error
    if "\0" in text:
        raise DamagedError(f"{path} contains NUL bytes. {_WAY_OUT}")
    return [line.removesuffix("\r") for line in text.split("\n")]


def version_of(line: str, path: str, *, known: Collection[int]) -> int:
    """Read a version line such as `v1`, and refuse a version that is not known."""
    found = _VERSION.fullmatch(line.strip())
    if not found:
        raise DamagedError(f"{path} does not start with a version line. {_WAY_OUT}")
    version = int(found[1])
    if version not in known:
        supported = ", ".join(f"v{v}" for v in sorted(known))
        raise UnknownFormatError(
            f"{path} is written in version v{version}; known are {supported}. "
            "A newer Sparkpoint may know it."
        )
    return version


def parse(text: str | bytes, path: str) -> Json:
    """Parse JSON; whatever is wrong with it becomes a DamagedError."""
    try:
        return cast(Json, json.loads(text))  # json.loads is typed Any
    except (ValueError, RecursionError) as error:
        raise DamagedError(f"{path} holds no valid JSON: {str(error)[:120]}. {_WAY_OUT}") from error


def as_object(value: Json, path: str, what: str) -> dict[str, Json]:
    """Narrow to an object, or raise DamagedError."""
    if not isinstance(value, dict):
        raise _unexpected(path, what, "an object")
    return value


def as_list(value: Json, path: str, what: str) -> list[Json]:
    """Narrow to a list, or raise DamagedError."""
    if not isinstance(value, list):
        raise _unexpected(path, what, "a list")
    return value


def as_text(value: Json, path: str, what: str) -> str:
    """Narrow to a string, or raise DamagedError."""
    if not isinstance(value, str) or "\0" in value:
        raise _unexpected(path, what, "a string")
    return value


def as_int(value: Json, path: str, what: str) -> int:
    """Narrow to a number that fits 64 bits, or raise DamagedError."""
    if not isinstance(value, int) or isinstance(value, bool) or not -_LONG <= value < _LONG:
        raise _unexpected(path, what, "a 64-bit number")
    return value


_WAY_OUT = "Restore an older savepoint, or look at the file."


def _unexpected(path: str, what: str, wanted: str) -> DamagedError:
    return DamagedError(f"{path}: {what} is not {wanted}. {_WAY_OUT}")
