"""Where queries write, as the command line says it."""

from collections.abc import Collection, Iterable
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


def recorded_sinks(
    settings: Settings, given: Iterable[str], queries: Collection[str]
) -> dict[str, SinkInfo]:
    """Query -> sink, out of `[QUERY=]KIND[:URI]`."""
    sinks = {}
    for text in given:
        query, rest = _split(text, queries)
        kind, _, location = rest.partition(":")
        if kind not in _KINDS:
            known = ", ".join(_KINDS)
            raise BadLocationError(
                f"--sink {text!r} is of no known kind: write KIND or KIND:URI with one of {known}."
            )
        # As an absolute path, because whoever restores may do so from elsewhere.
        uri = open_place(settings, location).uri if location and kind == "file" else location
        sinks[query] = SinkInfo.model_validate({"kind": kind, "uri": uri or None})
    return sinks


def sink_stores(
    settings: Settings, given: Iterable[str], manifest: Manifest, *, mode: Mode, policy: SinkPolicy
) -> dict[str, Store]:
    """Query -> its file sink: what is given as `[QUERY=]PATH_OR_URI`, else what is recorded.

    A fork must not touch the sink of the query that it leaves.
    """
    stores: dict[str, Store] = {}
    if mode is not Mode.FORK and policy is not SinkPolicy.IGNORE:
        for info in manifest.queries:
            if info.sink is not None and info.sink.kind == "file" and info.sink.uri:
                stores[info.prefix] = open_place(settings, info.sink.uri)
    queries = [query.prefix for query in manifest.queries]
    for text in given:
        query, location = _split(text, queries)
        stores[query] = open_place(settings, location)
    return stores


def _split(text: str, queries: Collection[str]) -> tuple[str, str]:
    """The query and the rest; a path may have `=` in it, so only a known query counts as one."""
    name, equals, rest = text.partition("=")
    if equals and name in queries:
        return name, rest
    if len(queries) == 1:
        return next(iter(queries)), text
    raise NoQueryError(
        f"--sink {text!r} does not say of which query: write QUERY={text}, with one of "
        f"{', '.join(queries)}."
    )
