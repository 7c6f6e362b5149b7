"""What the columns of state in column families are called: in a savepoint, and by a plan.

Spark writes these schemas into one file for all families, and again only if types have changed; so
the names of the code that runs are taken from its plan. Those of variables' values are not there.
"""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from sparkpoint.checkpoint.jsonlog import Json, as_list, as_object, as_text, parse

if TYPE_CHECKING:
    from py4j.java_gateway import JavaObject

__all__ = ["Columns", "columns_of_node", "columns_of_schemas"]

Columns = Mapping[str, tuple[str, ...]]
"""What of an operator -> its columns."""

_JOIN = "StreamingSymmetricHashJoinExec"
_TRANSFORM = "TransformWithStateInPySparkExec"
_ROWS = ("-keyWithIndexToValue", "-keyWithTsToValues")
"""Where a join keeps its rows, in format 3 and in format 4."""
_MATCHED = "matched"
"""What a join writes behind each of its rows."""
_OF_MAPS = ("key", "userKey")
_SIDES = ("left", "right")


def columns_of_schemas(
    schemas: Mapping[str, tuple[str, str]], variables: Iterable[str], path: str
) -> Columns:
    """By the schemas of the families, of which some are variables of the script. Pure."""
    sides = {
        f"{side} side": _without_mark(_names(schemas[family][1], path))
        for side in _SIDES
        for rows in _ROWS
        if (family := f"{side}{rows}") in schemas
    }
    # Spark's own have a dollar, and keys of other columns.
    own = (name for name in variables if name in schemas and not name.startswith("$"))
    # All are of the same key.
    key = next((_grouping(schemas[name][0], path) for name in own), None)
    return sides if key is None else {**sides, "key": key}


def columns_of_node(node: "JavaObject") -> Columns:
    """By a node of the plan; nothing for one that keeps no families."""
    kind = str(node.getClass().getSimpleName())
    if kind == _TRANSFORM:
        return {"key": _attributes(node.groupingAttributes())}
    if kind == _JOIN:
        children = dict(zip(_SIDES, (node.left(), node.right()), strict=True))
        return {f"{side} side": _attributes(each.output()) for side, each in children.items()}
    return {}


def _without_mark(names: tuple[str, ...]) -> tuple[str, ...]:
    return names[:-1] if names[-1:] == (_MATCHED,) else names


def _attributes(found: "JavaObject") -> tuple[str, ...]:
    return tuple(str(found.apply(number).name()) for number in range(found.size()))


def _grouping(text: str, path: str) -> tuple[str, ...]:
    """The columns that rows are grouped by, which in a map are inside of another one."""
    columns = _columns(parse(text, path), path)
    names = tuple(name for name, _ in columns)
    if names == _OF_MAPS and isinstance(inside := columns[0][1], dict):
        return tuple(name for name, _ in _columns(inside, path))
    return names


def _names(text: str, path: str) -> tuple[str, ...]:
    return tuple(name for name, _ in _columns(parse(text, path), path))


def _columns(schema: Json, path: str) -> list[tuple[str, Json]]:
    """Names and types."""
    fields = as_list(as_object(schema, path, "the schema").get("fields"), path, "fields")
    found = [as_object(each, path, "a field") for each in fields]
    return [(as_text(each.get("name"), path, "a field's name"), each.get("type")) for each in found]
