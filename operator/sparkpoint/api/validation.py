"""Judging a resource without an API server: every mistake at once, with its path and a remedy.

For an operator whose CRD is older than itself, and for people who have no cluster at hand. First
the shape of each field, then the rules between fields, as far as what they read is sound.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from pydantic import TypeAdapter, ValidationError
from pydantic.alias_generators import to_snake
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails

from sparkpoint.api.common import API_VERSION, Record
from sparkpoint.api.crd import JOBS, RESOURCES, SAVEPOINTS, ResourceKind
from sparkpoint.api.errors import FieldError, InvalidResourceError
from sparkpoint.api.job import JobSpec, StatefulSparkJob
from sparkpoint.api.mistakes import Path, explain, model_of, path_text
from sparkpoint.api.rules import Rule
from sparkpoint.api.savepoint import SparkSavepoint

__all__ = ["parse_job", "parse_savepoint", "parse_spec", "validate", "validate_resource"]

Document = Mapping[str, Any]


def validate(
    spec: Document, *, resource: ResourceKind = JOBS, old: Document | None = None
) -> list[FieldError]:
    """Everything that is wrong with a spec; with an old one, also with changing it into this."""
    document = {"metadata": {"name": "x"}, "spec": spec}
    return _validate(resource, document, None if old is None else {**document, "spec": old})


def validate_resource(resource: Document, *, old: Document | None = None) -> list[FieldError]:
    """Everything that is wrong with what a person applies: name, kind and spec, not the status."""
    known = {kind.kind: kind for kind in RESOURCES}
    found = known.get(str(resource.get("kind")))
    if found is None:
        message = f"{resource.get('kind')!r} is not a kind of {API_VERSION}"
        return [FieldError("kind", message, f"use {' or '.join(known)}")]
    return _validate(found, resource, old)


def parse_spec(spec: Document) -> JobSpec:
    """A job's spec alone; InvalidResourceError lists what is wrong with it."""
    if errors := validate(spec):
        raise InvalidResourceError(errors)
    return JobSpec.model_validate_json(_json(spec), by_name=False)


def parse_job(resource: Document) -> StatefulSparkJob:
    """The job as the API server tells it; InvalidResourceError lists what is wrong with its spec.

    What cannot be read in the status, such as a word of a newer operator, counts as not said.
    """
    return StatefulSparkJob.model_validate_json(_sound(JOBS, resource), by_name=False)


def parse_savepoint(resource: Document) -> SparkSavepoint:
    """The savepoint as the API server tells it; as `parse_job` otherwise."""
    return SparkSavepoint.model_validate_json(_sound(SAVEPOINTS, resource), by_name=False)


def _sound(resource: ResourceKind, document: Document) -> str:
    if errors := _validate(resource, document, None):
        raise InvalidResourceError(errors)
    status = document.get("status")
    if status is None:
        return _json(document)
    return _json({**document, "status": _readable(resource.status, status)})


def _readable(model: type[Record], status: Document) -> Document:
    try:
        model.model_validate_json(_json(status), by_name=False)
    except ValidationError as error:
        unsound = {mistake["loc"][0] for mistake in error.errors()}
        return {key: value for key, value in status.items() if key not in unsound}
    return status


@dataclass(frozen=True, slots=True)
class _Reading:
    """What a person wrote, as far as it can be read, and the mistakes that were met."""

    record: Record
    mistakes: Sequence[ErrorDetails] = ()

    def unsound(self) -> list[Path]:
        """The places that cannot be read."""
        return [tuple(mistake["loc"]) for mistake in self.mistakes]


def _validate(resource: ResourceKind, document: Document, old: Document | None) -> list[FieldError]:
    new = _read(resource.model, document)
    former = None if old is None else _read(resource.model, old)
    return [
        *(explain(mistake, resource.model) for mistake in new.mistakes),
        *_rule_errors(resource.rules, new, former),
        *_repetitions(new.record),
    ]


def _read(model: type[Record], document: Document) -> _Reading:
    text = _json({key: value for key, value in document.items() if key != "status"})
    try:
        # As JSON, where strict mode takes words for enums and times, and a number for nothing else.
        read = model.model_validate_json(text, strict=True, by_name=False)
    except ValidationError as error:
        return _Reading(_sound_part(model, json.loads(text)), error.errors(include_url=False))
    return _Reading(read)


def _json(document: Document) -> str:
    return json.dumps(_without_nulls(document))


def _without_nulls(value: Any) -> Any:
    """As the API server reads it: null is absent. YAML's own times are strings to it, too."""
    if isinstance(value, Mapping):
        return {key: _without_nulls(inner) for key, inner in value.items() if inner is not None}
    if isinstance(value, list | tuple):
        return [_without_nulls(inner) for inner in value]
    return value.isoformat() if isinstance(value, datetime) else value


def _sound_part(model: type[Record], document: object) -> Record:
    """The model with what can be read; what cannot, and what is missing, has no attribute."""
    values = {}
    given = document if isinstance(document, dict) else {}
    for name, field in model.model_fields.items():
        if field.alias not in given:
            continue
        inner = model_of(field)
        value = given[field.alias]
        if (read := _read_field(field, value)) is not None:
            values[name] = read
        elif inner is not None and isinstance(value, list):
            values[name] = tuple(_sound_part(inner, item) for item in value)
        elif inner is not None:
            values[name] = _sound_part(inner, value)
    return model.model_construct(**values)


def _read_field(field: FieldInfo, value: object) -> Any:
    adapter: TypeAdapter[Any] = TypeAdapter(field.rebuild_annotation())
    try:
        return adapter.validate_json(json.dumps(value), strict=True, by_name=False)
    except ValidationError:
        return None


def _rule_errors(
    rules: Iterable[Rule], new: _Reading, old: _Reading | None
) -> Iterator[FieldError]:
    unsound = new.unsound()
    unsound_before = [*unsound, *(old.unsound() if old else ())]
    for path, part, former in _parts(new.record, old.record if old else None, ()):
        for rule in rules:
            if isinstance(part, rule.model):
                hidden = unsound_before if rule.is_about_change else unsound
                if not _is_blind(rule, path, hidden):
                    yield from _broken(rule, path, rule.culprits(part, former))


def _is_blind(rule: Rule, path: Path, unsound: Iterable[Path]) -> bool:
    """Whether the rule reads something that cannot be read: a verdict would be a guess."""
    read = [(*path, *keys) for keys in rule.reads]
    return any(one[: len(bad)] == bad or bad[: len(one)] == one for one in read for bad in unsound)


def _broken(rule: Rule, path: Path, culprits: Mapping[str, str]) -> list[FieldError]:
    blamed = (*path, *(rule.field.split(".") if rule.field else ()))
    return [
        FieldError(path_text((*blamed, key) if key else blamed), rule.message, remedy)
        for key, remedy in culprits.items()
    ]


def _parts(
    record: Record, old: Record | None, path: Path
) -> Iterator[tuple[Path, Record, Record | None]]:
    """Every model in the tree, with its former self; items of lists have none."""
    yield path, record, old
    for name, field in type(record).model_fields.items():
        value, key = getattr(record, name, None), field.alias or name
        if isinstance(value, Record):
            before = getattr(old, name, None)
            yield from _parts(value, before, (*path, key))
        elif isinstance(value, tuple):
            for index, item in enumerate(value):
                if isinstance(item, Record):
                    yield from _parts(item, None, (*path, key, index))


def _repetitions(record: Record) -> Iterator[FieldError]:
    """Items of a list that share what should tell them apart; the API server refuses them, too."""
    for where, part, _ in _parts(record, None, ()):
        for name, field in type(part).model_fields.items():
            extra = field.json_schema_extra
            if isinstance(extra, dict) and "x-kubernetes-list-type" in extra:
                yield from _repeated(getattr(part, name, ()), extra, (*where, field.alias or name))


def _repeated(items: tuple[Any, ...], extra: Mapping[str, Any], path: Path) -> Iterator[FieldError]:
    [key] = extra.get("x-kubernetes-list-map-keys", [""])
    words = [getattr(item, to_snake(key), None) if key else item for item in items]
    for index, word in enumerate(words):
        if word is not None and word in words[:index]:
            message = f"{key or 'value'} {word!r} occurs twice"
            yield FieldError(path_text((*path, index)), message, "keep one of them")
