"""pydantic's errors in the words of this project: the field's path, what is wrong, what to do."""

import difflib
import re
import typing
from typing import Any

from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails

from sparkpoint.api.common import Record
from sparkpoint.api.errors import FieldError
from sparkpoint.api.scalars import EXPECTED

__all__ = ["Path", "explain", "model_of", "path_text"]

Path = tuple[str | int, ...]
"""Keys and indices from the root of the document."""

_LONGEST_VALUE = 60
_PRIVATE = frozenset(
    {
        "args",
        "endpointUrl",
        "env",
        "envFrom",
        "hadoopConf",
        "podTemplate",
        "repositories",
        "sparkConf",
    }
)
"""Fields in which people put secrets: of what is below them nothing is shown."""


def explain(error: ErrorDetails, model: type[Record]) -> FieldError:
    """One mistake in a document that was read as this model."""
    path: Path = tuple(error["loc"])
    message, remedy = _words(error, model, path)
    return FieldError(path_text(path), message, remedy)


def path_text(path: Path) -> str:
    """`spec.driver.env[0].name`, `spec.sparkConf[spark.master]`."""
    parts = [f".{key}" if re.fullmatch(r"[a-zA-Z]\w*", str(key)) else f"[{key}]" for key in path]
    return "".join(parts).removeprefix(".")


def model_of(field: FieldInfo) -> type[Record] | None:
    """The model that a field holds one or many of; None for a plain value."""
    return next(_models(field.annotation), None)


def _models(annotation: Any) -> typing.Iterator[type[Record]]:
    if isinstance(annotation, type) and issubclass(annotation, Record):
        yield annotation
    for inner in typing.get_args(annotation):
        yield from _models(inner)


def _words(error: ErrorDetails, model: type[Record], path: Path) -> tuple[str, str]:
    private = not _PRIVATE.isdisjoint(path)
    show = _described if private else _shown
    given, context = show(error.get("input")), error.get("ctx", {})
    match error["type"]:
        case "missing":
            return "is missing", "add it"
        case "extra_forbidden":
            return "there is no such field", _suggestion(model, path)
        case "enum" | "literal_error":
            return f"{given} is not known", f"use {context['expected']}"
        case "string_pattern_mismatch":
            pattern = context["pattern"]
            return f"{given} is not {EXPECTED.get(pattern, pattern)}", "correct it"
        case "string_type":
            return f"should be a string, but is {given}", "put it in quotes"
        case "int_type" | "float_type" | "bool_type" if isinstance(error.get("input"), str):
            return f"is the string {given}", "leave out the quotes"
        case "value_error":
            return str(context["error"]), "correct it"
    said = error["msg"].removeprefix("Input ").removeprefix("String ")
    return f"{said}, but is {given}", "correct it"


def _shown(value: object) -> str:
    """Never the whole of it: what was written into the wrong field may be long, or secret."""
    match value:
        case bool():
            return str(value).lower()
        case str() if len(value) <= _LONGEST_VALUE:
            return repr(value)
        case int() | float():
            return repr(value)
    return _described(value)


def _described(value: object) -> str:
    """What it is, without a word of it."""
    match value:
        case bool():
            return str(value).lower()
        case str():
            return f"a string of {len(value)} characters"
        case int() | float():
            return "a number"
        case list() | tuple():
            return f"a list of {len(value)}"
        case dict():
            return f"an object of {len(value)} fields"
    return "null"


def _suggestion(model: type[Record], path: Path) -> str:
    parent: type[Record] | None = model
    for key in path[:-1]:
        if isinstance(key, int) or parent is None:
            continue
        field = next((f for f in parent.model_fields.values() if f.alias == key), None)
        parent = model_of(field) if field else None
    known = [field.alias or "" for field in parent.model_fields.values()] if parent else []
    near = difflib.get_close_matches(str(path[-1]), known, n=1)
    return f"did you mean {near[0]}?" if near else f"remove it; known are {', '.join(known)}"
