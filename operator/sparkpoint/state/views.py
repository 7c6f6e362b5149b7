"""What the state of an operator is made of, to the eye: its stores, or the variables in them.

An operator with column families keeps several in one store: the sides of a join, the variables of
`transformWithState`. Each is looked at by itself, with the options that Spark's reader needs.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from sparkpoint.checkpoint.errors import IncompleteError
from sparkpoint.checkpoint.jsonlog import Json, as_list, as_object, as_text, lines_of, parse
from sparkpoint.checkpoint.layout import DEFAULT_STORE
from sparkpoint.savepoint.manifest import OperatorInfo, QueryInfo
from sparkpoint.state.survey import SavepointFiles

__all__ = ["StateView", "known_views", "views_of"]

_JOIN = "symmetricHashJoin"
_JOIN_FORMAT = "spark.sql.streaming.join.stateFormatVersion"
_TIMERS = "timers"
_TIMER_MARK = "Timers_"
_SIDES = ("left", "right")
_JOIN_STORES = ("keyToNumValues", "keyWithIndexToValue")
_LATER_JOIN_STORES = ("keyWithTsToValues", "tsWithKey")
"""Of join format 4."""


@dataclass(frozen=True, slots=True)
class StateView:
    """One thing to look at."""

    name: str
    options: Mapping[str, str]
    """Of Spark's state reader."""


def known_views(files: SavepointFiles, query: QueryInfo, operator: OperatorInfo) -> list[StateView]:
    """Everything that an operator of a savepoint keeps."""
    folder = f"state/{operator.id}/_metadata/v2"

    def metadata() -> tuple[bytes, str]:
        path = files.newest(folder)
        if path is None:
            raise IncompleteError([folder], batch=query.batch)
        return files.read(path), path

    return views_of(operator, query.conf, metadata)


def views_of(
    operator: OperatorInfo, conf: Mapping[str, str], metadata: Callable[[], tuple[bytes, str]]
) -> list[StateView]:
    """Everything that an operator keeps; `metadata` gives its file of version 2, and the path."""
    number = {"operatorId": str(operator.id)}
    names = [store.name for store in operator.stores]
    if operator.metadata_version != 2 or names != [DEFAULT_STORE]:
        return [StateView(name, {**number, "storeName": name}) for name in names]
    if operator.name == _JOIN:
        kinds = _LATER_JOIN_STORES if conf.get(_JOIN_FORMAT) == "4" else _JOIN_STORES
        families = [f"{side}-{kind}" for side in _SIDES for kind in kinds]
        return [StateView(name, {**number, "stateVarName": name}) for name in families]
    variables = _variables(*metadata())
    if not variables:
        return [StateView(DEFAULT_STORE, number)]
    found = {view.name: view for view in (_variable(name, number) for name in variables)}
    return list(found.values())


def _variable(name: str, number: Mapping[str, str]) -> StateView:
    """Timers are kept in a variable of Spark's own, which cannot be read by its name."""
    if _TIMER_MARK in name:
        return StateView(_TIMERS, {**number, "readRegisteredTimers": "true"})
    return StateView(name, {**number, "stateVarName": name})


def _variables(data: bytes, path: str) -> list[str]:
    """The names of an operator's state variables, and of its timers."""
    content = as_object(parse("\n".join(lines_of(data, path)[1:]), path), path, "the content")
    text = content.get("operatorPropertiesJson")
    if not isinstance(text, str) or not text:
        return []
    properties = as_object(parse(text, path), path, "the properties")
    listed = as_list(properties.get("stateVariables", []), path, "stateVariables")
    names = [_name(each, path) for each in listed]
    return [name for name in names if not name.startswith("$") or _TIMER_MARK in name]


def _name(variable: Json, path: str) -> str:
    content = json.loads(variable) if isinstance(variable, str) else variable
    return as_text(as_object(content, path, "a variable").get("stateName"), path, "stateName")
