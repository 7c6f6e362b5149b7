"""Secrets that a job's spec holds in plain text, so that nothing told of the job repeats them.

They belong into Secrets, which the operator never reads. People put them into `sparkConf` and `env`
nevertheless, and drivers and admission webhooks quote what they were given when something fails.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from sparkpoint.controller.errors import ClusterError
from sparkpoint.runtime.redaction import Redaction, is_sensitive

__all__ = ["discreet", "redaction_of"]

_CONF = ("sparkConf", "hadoopConf")
_ROLES = ("driver", "executor")


def redaction_of(*specs: Mapping[str, Any]) -> Redaction:
    """Of the secrets in these specs, which may be as wrong as their users wrote them."""
    return Redaction(value for spec in specs for value in _secrets(spec))


@contextmanager
def discreet(redaction: Redaction) -> Iterator[None]:
    """Whoever refuses an object may quote it: their words pass without what is secret in them."""
    try:
        yield
    except ClusterError as error:
        error.args = tuple(
            redaction.text(each) if isinstance(each, str) else each for each in error.args
        )
        # What it came of has the same words, and would be logged beside it.
        raise error from None


def _secrets(spec: Mapping[str, Any]) -> Iterator[str]:
    for part in _CONF:
        yield from _named(_mapping(spec.get(part)).items())
    for part in _ROLES:
        role = _mapping(spec.get(part))
        yield from _named(_variables(role))
        pod = _mapping(_mapping(role.get("podTemplate")).get("spec"))
        for kind in ("containers", "initContainers"):
            for container in _list(pod.get(kind)):
                yield from _named(_variables(_mapping(container)))


def _variables(holder: Mapping[str, Any]) -> Iterator[tuple[Any, Any]]:
    for each in map(_mapping, _list(holder.get("env"))):
        yield each.get("name"), each.get("value")


def _named(pairs: Any) -> Iterator[str]:
    for name, value in pairs:
        if isinstance(name, str) and isinstance(value, str | int) and is_sensitive(name):
            yield str(value)


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
