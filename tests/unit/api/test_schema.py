"""From pydantic to structural schemas: what is converted, and what is refused."""

from enum import StrEnum
from typing import Annotated, Any, Literal

import pytest
from pydantic import Field

from sparkpoint.api.common import FreeForm, Record
from sparkpoint.api.crd import RESOURCES, definition
from sparkpoint.api.errors import NotStructuralError
from sparkpoint.api.rules import rule
from sparkpoint.api.scalars import expected
from sparkpoint.api.schema import Schema, spec_schema, status_schema

FORBIDDEN = {
    "$ref",
    "$defs",
    "anyOf",
    "allOf",
    "oneOf",
    "title",
    "const",
    "nullable",
    "prefixItems",
}


class Colour(StrEnum):
    RED = "Red"
    BLUE = "Blue"


class Inner(Record):
    """An inner thing."""

    size: Annotated[int, Field(ge=1)] = 1
    """How large."""


class Sized(Inner):
    """A kind of inner thing."""


def _property(annotation: Any, default: Any = ...) -> Schema:
    fields: dict[str, Any] = {"__annotations__": {"field": annotation}}
    if default is not ...:
        fields["field"] = default
    model = type("Model", (Record,), {"__module__": __name__, **fields})
    made: Schema = spec_schema(model)["properties"]["field"]
    return made


def test_reference_is_replaced_by_what_it_names() -> None:
    assert _property(Inner) == {
        "description": "An inner thing.",
        "type": "object",
        "properties": {
            "size": {"description": "How large.", "type": "integer", "default": 1, "minimum": 1}
        },
    }


def test_optional_field_is_one_that_may_be_absent() -> None:
    assert _property(int | None, None) == {"type": "integer"}


def test_optional_object_keeps_its_fields() -> None:
    assert _property(Inner | None, None)["properties"].keys() == {"size"}


@pytest.mark.parametrize(
    ("annotation", "wanted"),
    [
        (Literal["a"], {"type": "string", "enum": ["a"]}),
        (Literal[1, 2], {"type": "integer", "enum": [1, 2]}),
        (dict[str, int], {"type": "object", "additionalProperties": {"type": "integer"}}),
        (tuple[str, ...], {"type": "array", "items": {"type": "string"}}),
        (FreeForm, {"type": "object", "x-kubernetes-preserve-unknown-fields": True}),
    ],
)
def test_simple_annotation(annotation: Any, wanted: Schema) -> None:
    assert _property(annotation) == wanted


@pytest.mark.parametrize(
    ("annotation", "word"),
    [
        (tuple[int, str], "prefixItems"),
        (int | str, "union"),
        (Inner | str | None, "union"),
        (Any, "type"),
        (dict[str, Any], "any content"),
        (list[Any], "type"),
        (list, "type"),
        (Annotated[int, Field(multiple_of=3)], "multipleOf"),
        (Annotated[int, Field(gt=3)], "exclusiveMinimum"),
        (set[str], "uniqueItems"),
    ],
)
def test_what_kubernetes_cannot_express_is_refused_with_its_path(
    annotation: Any, word: str
) -> None:
    with pytest.raises(NotStructuralError, match=rf"Model\.field.*{word}"):
        _property(annotation)


def test_pattern_with_words_is_a_rule_that_says_them() -> None:
    made = _property(Annotated[str, Field(pattern=expected(r"^\d+\.$", "a number with a dot"))])

    assert made == {
        "type": "string",
        "x-kubernetes-validations": [
            {"rule": r'self.matches("^\\d+\\.$")', "message": "is not a number with a dot"}
        ],
    }


def test_pattern_without_words_stays_a_pattern() -> None:
    assert _property(Annotated[str, Field(pattern="^a$")]) == {"type": "string", "pattern": "^a$"}


def test_default_of_an_object_is_whole_as_rules_judge_it_before_its_fields_are_filled() -> None:
    assert _property(Inner, Inner())["default"] == {"size": 1}
    assert _property(Inner, Inner(size=5))["default"] == {"size": 5}


def test_empty_list_is_no_default() -> None:
    assert "default" not in _property(tuple[str, ...], ())


def test_falsehood_and_nought_are_defaults() -> None:
    assert _property(bool, False)["default"] is False
    assert _property(int, 0)["default"] == 0


def test_rules_of_a_model_hold_for_its_descendants() -> None:
    class Outer(Record):
        """An outer thing."""

        inner: Sized
        """The inner one."""

    about_inner = rule(
        Inner, lambda _: True, cel="self.size > 1", message="too small", remedy="add", field="size"
    )

    made = spec_schema(Outer, [about_inner])

    assert made["properties"]["inner"]["x-kubernetes-validations"] == [
        {"rule": "self.size > 1", "message": "too small; add", "fieldPath": ".size"}
    ]
    assert "x-kubernetes-validations" not in made


def test_enum_of_a_status_is_open_and_named_in_the_description() -> None:
    class Seen(Record):
        colour: Colour = Colour.RED
        """Its colour."""

    made = status_schema(Seen)["properties"]["colour"]

    assert made == {"description": "Its colour. One of Red, Blue.", "type": "string"}


def _keys(node: object) -> set[str]:
    match node:
        case dict():
            return set(node) | {key for value in node.values() for key in _keys(value)}
        case list():
            return {key for value in node for key in _keys(value)}
    return set()


@pytest.mark.parametrize("resource", RESOURCES, ids=lambda resource: resource.kind)
def test_nothing_of_json_schema_is_left_that_kubernetes_refuses(resource: Any) -> None:
    assert _keys(definition(resource)) & FORBIDDEN == set()
    assert "null" not in str(definition(resource))
