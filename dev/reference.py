"""The reference page of the resources, from the same models as the CRDs."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from sparkpoint.api.common import API_VERSION
from sparkpoint.api.conf import OWNED_CONF
from sparkpoint.api.crd import RESOURCES, ResourceKind
from sparkpoint.api.schema import Schema, spec_schema, status_schema

__all__ = ["api_reference"]

_EXAMPLES = Path(__file__).parent.parent / "examples"

_INTRODUCTION = f"""\
<!-- Generated from operator/sparkpoint/api by `make crds`. Do not edit. -->
# Resources

Group and version `{API_VERSION}`; both are namespaced and in the category `spark`, so
`kubectl get spark` shows both. `kubectl explain ssj.spec` says the same as this page.

**Bold** fields are required. Durations are written `30s`, `5m`, `1h30m`, `7d`. Memory is written as
Spark does (`512m`, `2g`) or as Kubernetes does (`512Mi`, `2Gi`), always in powers of 1024.

The API server checks every rule on this page when a resource is applied. The operator checks them
again, for a cluster with an older CRD, and goes on with the last valid spec.
"""

_CONF_HEADING = """\
## Spark properties with an owner
`sparkConf` takes any Spark property but these.

| property | instead |
|---|---|
"""


def api_reference() -> str:
    """The page as Markdown."""
    parts = [
        _INTRODUCTION,
        _example(),
        *(_resource(resource) for resource in RESOURCES),
        _owned_conf(),
    ]
    return "\n".join(part.rstrip() + "\n" for part in parts)


def _example() -> str:
    text = (_EXAMPLES / "url-visits.yaml").read_text()
    return f"## Example\n```yaml\n{text}```\n"


def _owned_conf() -> str:
    rows = "".join(f"| `{key}` | {OWNED_CONF[key]} |\n" for key in sorted(OWNED_CONF))
    return _CONF_HEADING + rows


def _resource(resource: ResourceKind) -> str:
    columns = ", ".join(column.name.upper() for column in resource.columns)
    spec = spec_schema(resource.spec, resource.rules)
    sections = [
        f"## {resource.kind} (`{resource.short_name}`)\n{resource.model.__doc__}\n\n"
        f"`kubectl get {resource.short_name}` shows {columns}.\n",
        *_Tables().of("spec", spec),
        _rules(resource, spec),
        *_Tables().of("status", status_schema(resource.status)),
    ]
    return "\n".join(sections)


def _rules(resource: ResourceKind, spec: Schema) -> str:
    heading = f"### Rules of {resource.kind}\n| field | refused | what to do |\n|---|---|---|\n"
    places = dict(_places("spec", spec))
    rows = []
    for rule in resource.rules:
        owner = places.get(rule.cel, "")
        field = ".".join(part for part in (owner, rule.field) if part)
        rows.append(f"| `{field}` | {_cell(rule.message)} | {_cell(rule.remedy)} |\n")
    return heading + "".join(rows)


def _places(path: str, schema: Schema) -> Iterator[tuple[str, str]]:
    """Each rule with the object that it is about; of several the first, which comes last."""
    for name, child in reversed(schema.get("properties", {}).items()):
        mark = "[]" if "items" in child else ""
        yield from _places(f"{path}.{name}{mark}", child.get("items", child))
    for entry in schema.get("x-kubernetes-validations", ()):
        yield entry["rule"], path


class _Tables:
    """One table per object, the outer ones first; what was shown already is named, not repeated."""

    def __init__(self) -> None:
        self._shown: dict[str, str] = {}

    def of(self, path: str, schema: Schema) -> Iterator[str]:
        """The table of an object, and of all that it holds."""
        self._shown[_identity(schema)] = path
        fields = schema["properties"]
        defaults = any("default" in child and child["default"] != {} for child in fields.values())
        heading = ("field", "type", *(["default"] if defaults else []), "meaning")
        rows = [heading, ["---"] * len(heading)]
        for name, child in fields.items():
            shown = f"**`{name}`**" if name in schema.get("required", ()) else f"`{name}`"
            default = [_default(child)] if defaults else []
            rows.append([shown, _type(child), *default, self._meaning(child)])
        table = "".join(f"| {' | '.join(row)} |\n" for row in rows)
        yield f"### `{path}`\n{schema.get('description', '')}\n\n{table}"
        for name, child in fields.items():
            mark, inner = ("[]", child["items"]) if "items" in child else ("", child)
            if "properties" in inner and _identity(inner) not in self._shown:
                yield from self.of(f"{path}.{name}{mark}", inner)

    def _meaning(self, schema: Schema) -> str:
        words = _cell(schema.get("description", ""))
        seen = self._shown.get(_identity(schema.get("items", schema)))
        return f"{words} As `{seen}`." if seen else words


def _identity(schema: Schema) -> str:
    return repr(schema["properties"]) if "properties" in schema else ""


def _type(schema: Schema) -> str:
    if "enum" in schema:
        return " \\| ".join(f"`{value}`" for value in schema["enum"])
    if "items" in schema:
        return f"list of {_type(schema['items'])}"
    if "additionalProperties" in schema:
        return f"map to {_type(schema['additionalProperties'])}"
    return str(schema.get("format") or schema["type"])


def _default(schema: Schema) -> str:
    default: Any = schema.get("default")
    match default:
        case None | {} if not default:
            return ""
        case bool():
            return f"`{str(default).lower()}`"
        case dict():
            return ", ".join(f"`{key}: {value}`" for key, value in default.items())
    return f"`{default}`"


def _cell(words: str) -> str:
    return words.replace("|", "\\|")
