"""The CustomResourceDefinitions as documents; a real API server judges them in tests/cluster."""

import functools
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from sparkpoint.api.common import Record
from sparkpoint.api.conf import OWNED_CONF
from sparkpoint.api.crd import JOBS, RESOURCES, SAVEPOINTS, ResourceKind, definition
from sparkpoint.api.rules import Rule
from sparkpoint.api.schema import Schema, spec_schema
from sparkpoint.api.validation import parse_job, parse_savepoint
from tests.unit.api.loading import ACCEPTED, Accepted

each_resource = pytest.mark.parametrize("resource", RESOURCES, ids=lambda resource: resource.kind)


@functools.cache
def _roots() -> Mapping[str, Schema]:
    return {resource.kind: _schema(resource) for resource in RESOURCES}


def _schema(resource: ResourceKind) -> Schema:
    [version] = definition(resource)["spec"]["versions"]
    root: Schema = version["schema"]["openAPIV3Schema"]
    return root


def _root(resource: ResourceKind) -> Schema:
    return _roots()[resource.kind]


def _nodes(schema: Schema, path: str) -> Iterator[tuple[str, Schema]]:
    yield path, schema
    for name, child in schema.get("properties", {}).items():
        yield from _nodes(child, f"{path}.{name}")
    for key in ("items", "additionalProperties"):
        if key in schema:
            yield from _nodes(schema[key], f"{path}[]")


@each_resource
def test_every_field_has_a_description(resource: ResourceKind) -> None:
    missing = [
        path
        for path, node in _nodes(_root(resource), resource.kind)
        if not node.get("description") and not path.endswith(("[]", ".metadata", ".metadata.name"))
    ]

    assert missing == []


@each_resource
def test_every_object_has_its_fields_or_says_that_it_is_open(resource: ResourceKind) -> None:
    shapes = {"properties", "additionalProperties", "x-kubernetes-preserve-unknown-fields"}

    shapeless = [
        path
        for path, node in _nodes(_root(resource), resource.kind)
        if node["type"] == "object" and not shapes & node.keys()
    ]

    assert shapeless == []


@each_resource
def test_everything_that_a_rule_may_walk_has_a_bound(resource: ResourceKind) -> None:
    bounds = {"string": ("maxLength", "enum", "format"), "array": ("maxItems",)}

    boundless = [
        path
        for path, node in _nodes(_root(resource)["properties"]["spec"], "spec")
        if (
            (wanted := bounds.get(node["type"])) is not None
            and not any(key in node for key in wanted)
        )
        or ("additionalProperties" in node and "maxProperties" not in node)
    ]

    assert boundless == []


@each_resource
def test_keys_that_make_a_list_a_map_are_required(resource: ResourceKind) -> None:
    """Otherwise the API server refuses the definition."""
    lists = [
        node for _, node in _nodes(_root(resource), "") if "x-kubernetes-list-map-keys" in node
    ]

    assert lists
    for node in lists:
        assert set(node["x-kubernetes-list-map-keys"]) <= set(node["items"]["required"])


def _fields_read(rule: Rule) -> Iterator[tuple[Rule, tuple[str, ...]]]:
    for keys in sorted(rule.reads):
        yield rule, keys


@pytest.mark.parametrize(
    ("rule", "keys"),
    [read for resource in RESOURCES for rule in resource.rules for read in _fields_read(rule)],
    ids=lambda value: ".".join(value) if isinstance(value, tuple) else None,
)
def test_rule_reads_fields_that_exist(rule: Rule, keys: tuple[str, ...]) -> None:
    node = _root_of(rule)

    for key in keys:
        assert key in node["properties"], f"{rule.cel} reads {'.'.join(keys)}"
        node = node["properties"][key]


@functools.cache
def _root_of(rule: Rule) -> Schema:
    for resource in RESOURCES:
        if rule.model is resource.model:
            return _root(resource)
    return spec_schema(rule.model)


@each_resource
def test_every_rule_is_in_the_definition_with_its_message_and_what_to_do(
    resource: ResourceKind,
) -> None:
    entries = [
        entry
        for _, node in _nodes(_root(resource), "")
        if node["type"] == "object"
        for entry in node.get("x-kubernetes-validations", ())
    ]
    said = {(entry["rule"], entry["message"]) for entry in entries}

    assert {(rule.cel, f"{rule.message}; {rule.remedy}") for rule in resource.rules} == said


def test_rule_about_the_keys_of_a_map_names_the_first() -> None:
    [entry] = [
        entry
        for entry in _root(JOBS)["properties"]["spec"]["x-kubernetes-validations"]
        if "hadoopConf" in entry["rule"]
    ]

    assert entry["messageExpression"] == (
        f"self.hadoopConf.filter(key, key.startsWith('spark.'))[0] + \": {entry['message']}\""
    )


def test_owned_properties_are_all_in_the_rule() -> None:
    [rule] = [rule for rule in JOBS.rules if "'spark.master'" in rule.cel]

    assert [key for key in OWNED_CONF if f"'{key}'" not in rule.cel] == []


def test_printer_columns_are_those_that_people_work_from() -> None:
    shown = {
        resource.short_name: [column.name.upper() for column in resource.columns]
        for resource in RESOURCES
    }

    assert shown == {
        "ssj": [
            *("PHASE", "BATCH", "RATE", "EXECUTORS", "PARTITIONS"),
            *("LAST-SAVEPOINT", "RESTORED-FROM", "AGE"),
        ],
        "ssp": ["JOB", "PHASE", "BATCH", "SIZE", "NEW", "VERIFIED", "PARENT", "AGE"],
    }


@each_resource
def test_printer_columns_and_scale_point_at_fields(resource: ResourceKind) -> None:
    paths = [column.path for column in resource.columns] + list((resource.scale or {}).values())

    for path in paths:
        node = _root(resource)
        if path.startswith(".metadata"):
            continue
        for key in path.strip(".").split("."):
            assert key in node["properties"], path
            node = node["properties"][key]


def _with_defaults(value: Any, schema: Schema) -> Any:
    """As the API server fills them in."""
    if isinstance(value, list):
        return [_with_defaults(item, schema["items"]) for item in value]
    if not isinstance(value, dict) or "properties" not in schema:
        return value
    filled = dict(value)
    for name, child in schema["properties"].items():
        if name not in filled and "default" in child:
            filled[name] = child["default"]
        if name in filled:
            filled[name] = _with_defaults(filled[name], child)
    return filled


@pytest.mark.parametrize("sample", ACCEPTED, ids=lambda sample: sample.name)
def test_defaults_of_the_api_server_are_those_of_the_models(sample: Accepted) -> None:
    resource = {kind.kind: kind for kind in RESOURCES}[sample.resource["kind"]]
    filled = _with_defaults(sample.resource, _root(resource))
    parse = {JOBS.kind: parse_job, SAVEPOINTS.kind: parse_savepoint}[resource.kind]

    read: Record = parse(filled)

    assert read == parse(sample.resource)


def test_a_status_has_no_defaults_and_takes_words_of_newer_operators() -> None:
    for resource in RESOURCES:
        for path, node in _nodes(_root(resource)["properties"]["status"], "status"):
            assert "default" not in node, path
            assert "enum" not in node, path
