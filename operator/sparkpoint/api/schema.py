"""A model's structural schema: what Kubernetes takes of JSON Schema, and nothing else.

pydantic writes references, unions with null, titles and `const`; an API server refuses them, or
worse, takes them and prunes fields. What has no counterpart is an error here, not a surprise there.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from sparkpoint.api.common import Record
from sparkpoint.api.errors import NotStructuralError
from sparkpoint.api.rules import Rule
from sparkpoint.api.scalars import EXPECTED

__all__ = ["Schema", "rule_entry", "spec_schema", "status_schema"]

Schema = dict[str, Any]

_OPEN: Final = "x-kubernetes-preserve-unknown-fields"
_RULES: Final = "x-kubernetes-validations"
_ORDER: Final[tuple[str, ...]] = (
    "description",
    "type",
    "format",
    "enum",
    "default",
    "pattern",
    "minLength",
    "maxLength",
    "minimum",
    "maximum",
    "minItems",
    "maxItems",
    "maxProperties",
    "x-kubernetes-list-type",
    "x-kubernetes-list-map-keys",
    _OPEN,
    _RULES,
    "required",
    "properties",
    "items",
    "additionalProperties",
)
"""Every keyword that is kept, in the order in which a person wants to read them."""
_CONVERTED: Final = frozenset({"title", "const"})
_MODEL: Final = "model"
"""Says during the conversion which class an object came from."""


def spec_schema(model: type[Record], rules: Iterable[Rule] = ()) -> Schema:
    """The schema of what a person writes, with the rules of the model and of all that it holds."""
    return _convert(model, _Converter(_by_name(rules), is_status=False))


def status_schema(model: type[Record]) -> Schema:
    """The schema of what the operator writes.

    Any word is taken where the model has an enum, and the known ones are named in the description:
    an operator that is newer than the CRD must be able to write. Nothing has a default: what is
    absent is not known.
    """
    return _convert(model, _Converter({}, is_status=True))


def _convert(model: type[Record], converter: "_Converter") -> Schema:
    document = model.model_json_schema(by_alias=True, mode="validation")
    definitions = document.pop("$defs", {})
    return converter.convert({**document, _MODEL: model.__name__}, definitions, model.__name__)


def _by_name(rules: Iterable[Rule]) -> dict[str, list[Rule]]:
    """Class -> its rules and those of its bases."""
    found: dict[str, list[Rule]] = {}
    for rule in rules:
        for name in _family(rule.model):
            found.setdefault(name, []).append(rule)
    return found


def _family(model: type[Record]) -> list[str]:
    below = [name for child in model.__subclasses__() for name in _family(child)]
    return [model.__name__, *below]


@dataclass(frozen=True, slots=True)
class _Converter:
    rules: Mapping[str, list[Rule]]
    is_status: bool

    def convert(self, node: Schema, definitions: Mapping[str, Schema], path: str) -> Schema:
        node = _resolve(node, definitions, path)
        _check(node, path)
        made = {key: node[key] for key in _ORDER if key in node}
        if "const" in node:
            made["enum"] = [node["const"]]
        if "properties" in node:
            made["properties"] = {
                name: self.convert(child, definitions, f"{path}.{name}")
                for name, child in node["properties"].items()
            }
        if "items" in node:
            made["items"] = self.convert(node["items"], definitions, f"{path}[]")
        values = made.pop("additionalProperties", None)
        if isinstance(values, dict):
            made["additionalProperties"] = self.convert(values, definitions, f"{path}.*")
        entries = [rule_entry(rule) for rule in self.rules.get(node.get(_MODEL, ""), ())]
        if made.get("pattern") in EXPECTED:
            entries.append(_pattern_entry(made.pop("pattern")))
        if entries:
            made[_RULES] = entries
        return self._finish(made)

    def _finish(self, made: Schema) -> Schema:
        words = " ".join(made.get("description", "").split())
        default = _default(made)
        if self.is_status:
            known = made.pop("enum", None)
            words = f"{words} One of {', '.join(known)}." if known else words
            default = None
        finished = {**made, "description": words.strip(), "default": default}
        return {key: finished[key] for key in _ORDER if finished.get(key) not in (None, "")}


def _resolve(node: Schema, definitions: Mapping[str, Schema], path: str) -> Schema:
    """Without references, and without unions: null means absent in Kubernetes."""
    if "$ref" in node:
        name = node["$ref"].rsplit("/", 1)[-1]
        beside = {key: value for key, value in node.items() if key != "$ref"}
        return {**definitions[name], _MODEL: name, **beside}
    if "anyOf" not in node:
        return node
    options = [option for option in node["anyOf"] if option.get("type") != "null"]
    if len(options) != 1:
        raise NotStructuralError(
            f"{path}: a union of types; use one object with optional fields and a rule"
        )
    beside = {key: value for key, value in node.items() if key != "anyOf"}
    return {**_resolve(options[0], definitions, path), **beside}


def _check(node: Schema, path: str) -> None:
    unknown = node.keys() - set(_ORDER) - _CONVERTED - {_MODEL}
    if unknown:
        raise NotStructuralError(f"{path}: Kubernetes has no {', '.join(sorted(unknown))}")
    if "type" not in node:
        raise NotStructuralError(f"{path}: a field needs one type; say which")
    if node["type"] == "array" and "items" not in node:
        raise NotStructuralError(f"{path}: a list needs one type of items")
    if node.get("additionalProperties") is True and not node.get(_OPEN):
        raise NotStructuralError(f"{path}: any content is allowed; mark it with {_OPEN}")


def _default(made: Schema) -> Any:
    """What the API server should fill in; None for nothing. An empty list is as good as none."""
    default = made.get("default")
    if "properties" not in made:
        return default if default not in ([], {}) else None
    return None if default is None else _whole(default, made["properties"])


def _whole(default: Mapping[str, Any], properties: Mapping[str, Schema]) -> Schema:
    """Every field: rules judge a default as it stands, before those of its fields are filled in."""
    found = {key: _default({**properties[key], "default": value}) for key, value in default.items()}
    return {key: value for key, value in found.items() if value is not None}


def rule_entry(rule: Rule) -> dict[str, str]:
    """The rule as an item of `x-kubernetes-validations`."""
    made = {"rule": rule.cel, "message": rule.sentence}
    if rule.culprit_cel:
        made["messageExpression"] = f"{rule.culprit_cel} + {json.dumps(f': {rule.sentence}')}"
    if rule.field:
        made["fieldPath"] = f".{rule.field}"
    return made


def _pattern_entry(pattern: str) -> dict[str, str]:
    """A pattern as a rule: the API server tells its message, and of a pattern only the pattern."""
    return {
        "rule": f"self.matches({json.dumps(pattern)})",
        "message": f"is not {EXPECTED[pattern]}",
    }
