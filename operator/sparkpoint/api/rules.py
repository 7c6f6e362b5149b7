"""Rules between fields, said once for both judges: CEL for the API server, Python for the rest.

The API server's word is final where the installed CRD is ours. Python judges for an operator whose
CRD is older, and for a person without a cluster. A rule carries both forms, and a remedy.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeVar

from sparkpoint.api.common import Record

__all__ = ["Rule", "exactly_one", "rule", "rule_about_keys", "transition", "without_user"]

_Model = TypeVar("_Model", bound=Record)
_USER = "^[^/]*//[^/]*@"
_READ = re.compile(r"\bself((?:\.\w+)+)(\()?")


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """What must hold for every instance of a model, or for every change of one."""

    model: type[Record]
    field: str
    """The field that is to blame, relative to the model; empty for the model as a whole."""
    cel: str
    message: str
    remedy: str
    culprits: Callable[[Record, Record | None], Mapping[str, str]]
    """Judges the new and the old instance: keys below the field that break the rule, with what to
    do about each; "" for the field itself. Empty if the rule holds."""
    culprit_cel: str = ""
    """The first of these keys, for the API server to tell; empty for a rule that has none. All of
    them would cost more than it allows: the length of a map's keys has no bound."""

    @property
    def sentence(self) -> str:
        """Message and remedy, as the API server tells them."""
        return f"{self.message}; {self.remedy}"

    @property
    def is_about_change(self) -> bool:
        """Whether it compares with what was there before."""
        return "oldSelf" in self.cel

    @property
    def reads(self) -> frozenset[tuple[str, ...]]:
        """The fields that the verdict depends on, as paths of keys; only the innermost ones."""
        found = ((path[1:].split("."), call) for path, call in _READ.findall(self.cel))
        paths = {tuple(keys[:-1] if call else keys) for keys, call in found}
        outer = {path[:length] for path in paths for length in range(1, len(path))}
        return frozenset(paths - outer)


def rule(
    model: type[_Model],
    holds: Callable[[_Model], bool],
    *,
    cel: str,
    message: str,
    remedy: str,
    field: str = "",
) -> Rule:
    """A rule about an instance."""

    def judge(new: Record, old: Record | None) -> Mapping[str, str]:
        return {"": remedy} if isinstance(new, model) and not holds(new) else {}

    return Rule(model=model, field=field, cel=cel, message=message, remedy=remedy, culprits=judge)


def rule_about_keys(
    model: type[_Model],
    culprits: Callable[[_Model], Mapping[str, str]],
    *,
    bad_key_cel: str,
    message: str,
    remedy: str,
    field: str,
) -> Rule:
    """A rule about the keys of an optional map; each that breaks it has a remedy of its own."""

    def judge(new: Record, old: Record | None) -> Mapping[str, str]:
        return culprits(new) if isinstance(new, model) else {}

    return Rule(
        model=model,
        field=field,
        cel=f"!has(self.{field}) || !self.{field}.exists(key, {bad_key_cel})",
        message=message,
        remedy=remedy,
        culprits=judge,
        culprit_cel=f"self.{field}.filter(key, {bad_key_cel})[0]",
    )


def transition(
    model: type[_Model],
    holds: Callable[[_Model, _Model], bool],
    *,
    cel: str,
    message: str,
    remedy: str,
    field: str,
) -> Rule:
    """A rule about a change; it says nothing about a new object."""

    def judge(new: Record, old: Record | None) -> Mapping[str, str]:
        if not (isinstance(new, model) and isinstance(old, model)) or holds(new, old):
            return {}
        return {"": remedy}

    return Rule(model=model, field=field, cel=cel, message=message, remedy=remedy, culprits=judge)


def without_user(model: type[Record], name: str, *, found_cel: str) -> Rule:
    """A rule that this URL, or each of these, names neither user nor password: a resource, and what
    is made of it, can be read by many. A rule and no type: revisions that are stored may have one.

    `found_cel` says that one does, with the pattern in place of `{user}`.
    """
    key = model.model_fields[name].alias or name

    def holds(record: Record) -> bool:
        value = getattr(record, name) or ()
        urls = (value,) if isinstance(value, str) else value
        return not any(re.match(_USER, str(url)) for url in urls)

    return rule(
        model,
        holds,
        field=key,
        cel=f"!has(self.{key}) || !" + found_cel.format(user=f"matches('{_USER}')"),
        message="a user or a password in a URL can be read by whoever reads the resource",
        remedy="put them into a Secret",
    )


def exactly_one(model: type[Record], *names: str) -> Rule:
    """A rule that one, and only one, of these attributes is given."""
    keys = [model.model_fields[name].alias or name for name in names]
    given = ", ".join(f"has(self.{key})" for key in keys)
    return rule(
        model,
        lambda record: sum(getattr(record, name) is not None for name in names) == 1,
        cel=f"[{given}].exists_one(given, given)",
        message=f"exactly one of {', '.join(keys[:-1])} and {keys[-1]} must be given",
        remedy="add one, or remove the others",
    )
