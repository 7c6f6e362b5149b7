"""Where queries write, as the command line says it: `[QUERY=][KIND:]PATH_OR_URI`."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import get_args

from sparkpoint.cli.answer import Settings
from sparkpoint.cli.work.places import open_place
from sparkpoint.savepoint import Manifest, Mode, SinkPolicy
from sparkpoint.savepoint.errors import NoQueryError
from sparkpoint.savepoint.manifest import SinkInfo
from sparkpoint.storage import Store
from sparkpoint.storage.errors import BadLocationError

__all__ = ["recorded_sinks", "sink_stores"]

_KINDS = get_args(SinkInfo.model_fields["kind"].annotation)


@dataclass(frozen=True, slots=True)
class _Given:
    """One `--sink`."""

    text: str
    query: str
    kind: str | None
    location: str


def recorded_sinks(
    settings: Settings, given: Iterable[str], queries: Collection[str]
) -> dict[str, SinkInfo]:
    """Query -> sink, out of `[QUERY=]KIND[:URI]`; a path or URI alone is that of a file sink."""
    sinks = {}
    for each in _parse_all(given, queries):
        if each.kind is None and "/" not in each.location:
            known = ", ".join(_KINDS)
            raise BadLocationError(
                f"--sink {each.text!r} is of no known kind: write KIND or KIND:URI with one of "
                f"{known}; a folder of this name is file:{each.location}."
            )
        kind = each.kind or "file"
        # As an absolute path, because whoever restores may do so from elsewhere.
        uri = open_place(settings, each.location).uri if kind == "file" else each.location
        sinks[each.query] = SinkInfo.model_validate({"kind": kind, "uri": uri or None})
    return sinks


def sink_stores(
    settings: Settings, given: Iterable[str], manifest: Manifest, *, mode: Mode, policy: SinkPolicy
) -> dict[str, Store]:
    """Query -> its file sink: what is given as `[QUERY=][file:]PATH_OR_URI`, else what is recorded.

    A fork must not touch the sink of the query that it leaves.
    """
    stores: dict[str, Store] = {}
    if mode is not Mode.FORK and policy is not SinkPolicy.IGNORE:
        for info in manifest.queries:
            if info.sink is not None and info.sink.kind == "file" and info.sink.uri:
                stores[info.prefix] = open_place(settings, info.sink.uri)
    for each in _parse_all(given, [query.prefix for query in manifest.queries]):
        if each.kind not in (None, "file"):
            raise BadLocationError(
                f"--sink {each.text!r} is not that of a file sink, and a restore looks at no "
                f"other: write PATH or file:PATH; a folder of this name is file:{each.kind}."
            )
        stores[each.query] = open_place(settings, each.location)
    if policy is SinkPolicy.SEED and not stores:
        raise BadLocationError(
            "--sink-policy seed has nothing to give a beginning to: name the new file sink with "
            "--sink PATH_OR_URI, or leave the policy out."
        )
    return stores


def _parse_all(given: Iterable[str], queries: Collection[str]) -> list[_Given]:
    found: dict[str, _Given] = {}
    for text in given:
        each = _parse(text, queries)
        if each.query in found:
            raise BadLocationError(
                f"--sink {found[each.query].text!r} and --sink {text!r} are both of the query "
                f"{each.query or 'of this checkpoint'}, and a query has one sink: give one of them."
            )
        found[each.query] = each
    return list(found.values())


def _parse(text: str, queries: Collection[str]) -> _Given:
    query, rest = _split(text, queries)
    kind, _, location = rest.partition(":")
    if kind not in _KINDS:
        kind, location = "", rest
    elif location.startswith("//") and kind == "file":
        location = rest  # a file: URI, with its escapes
    if kind in ("", "file") and not location:
        raise BadLocationError(
            f"--sink {text!r} does not say where: write [QUERY=]PATH_OR_URI or "
            "[QUERY=]file:PATH_OR_URI."
        )
    return _Given(text, query, kind or None, location)


def _split(text: str, queries: Collection[str]) -> tuple[str, str]:
    """The query and the rest; a path may have `=` in it, but no name of a query has `/` or `:`."""
    for query in sorted(queries, key=len, reverse=True):
        if text.startswith(f"{query}="):
            return query, text[len(query) + 1 :]
    name, equals, rest = text.partition("=")
    if equals and not {"/", ":"} & set(name):
        raise NoQueryError(f"--sink {text!r}: {_no_query(name, rest, queries)}")
    if len(queries) == 1:
        return next(iter(queries)), text
    raise NoQueryError(
        f"--sink {text!r} does not say of which query: write QUERY={text}, with one of "
        f"{', '.join(queries)}."
    )


def _no_query(name: str, rest: str, queries: Collection[str]) -> str:
    is_kind = not rest or rest.partition(":")[0] in _KINDS
    sink = rest if is_kind or "/" in rest else f"file:{rest}"
    # It may have been meant as a path with `=` in it, as partitions have; KIND:URI never was.
    folder = "" if is_kind else f" (a folder of that name is ./{name}={rest})"
    if list(queries) == [""]:
        return (
            f"there is no query {name!r}, but one alone, which has no name: write --sink "
            f"{sink or 'PATH_OR_URI'}{folder}."
        )
    there = f"there {'are' if len(queries) > 1 else 'is'} {', '.join(queries)}"
    return (
        f"there is no query {name!r}; {there}: write --sink QUERY={sink or 'PATH_OR_URI'}{folder}."
    )
