"""Laying one pod over another."""

import copy
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sparkpoint.controller.objects.merge import filled, merge

_NAMES = st.sampled_from(["spark", "proxy", "logs", "data"])
_TEXTS = st.sampled_from(["a", "b", "c"])


def _items(key: str, **fields: st.SearchStrategy[Any]) -> st.SearchStrategy[list[Any]]:
    item = st.fixed_dictionaries({key: _NAMES}, optional=fields)
    return st.lists(item, max_size=3, unique_by=lambda each: each[key])


_ENV = _items("name", value=_TEXTS)
_MOUNTS = _items("mountPath", name=_TEXTS, readOnly=st.booleans())
_SECURITY = st.fixed_dictionaries(
    {}, optional={"runAsUser": st.integers(0, 3), "capabilities": st.just({"drop": ["ALL"]})}
)
_PROBES = st.sampled_from([{"httpGet": {"port": 1}}, {"exec": {"command": ["true"]}}])
_CONTAINERS = _items(
    "name",
    image=_TEXTS,
    env=_ENV,
    volumeMounts=_MOUNTS,
    args=st.lists(_TEXTS, max_size=2),
    securityContext=_SECURITY,
    livenessProbe=_PROBES,
    resources=st.fixed_dictionaries(
        {}, optional={"requests": st.dictionaries(_TEXTS, _TEXTS, max_size=2)}
    ),
)
_PODS = st.fixed_dictionaries(
    {},
    optional={
        "containers": _CONTAINERS,
        "initContainers": _CONTAINERS,
        "volumes": _items("name", emptyDir=st.just({}), secret=st.just({"secretName": "s"})),
        "tolerations": st.lists(st.fixed_dictionaries({"key": _TEXTS}), max_size=2, unique_by=repr),
        "nodeSelector": st.dictionaries(_TEXTS, _TEXTS, max_size=2),
        "hostNetwork": st.booleans(),
        "securityContext": _SECURITY,
    },
)


@settings(max_examples=25, deadline=None)
@given(base=_PODS, over=_PODS)
def test_it_is_idempotent_and_changes_neither_side(
    base: dict[str, Any], over: dict[str, Any]
) -> None:
    before = copy.deepcopy((base, over))

    once = merge(base, over)

    assert merge(once, over) == once
    assert merge(base, once) == once
    assert (base, over) == before


@settings(max_examples=25, deadline=None)
@given(pod=_PODS)
def test_nothing_over_it_or_under_it_leaves_it_as_it_is(pod: dict[str, Any]) -> None:
    assert merge(pod, {}) == pod
    assert merge({}, pod) == pod
    assert merge(pod, pod) == pod


@settings(max_examples=25, deadline=None)
@given(first=_PODS, second=_PODS, third=_PODS)
def test_layers_may_be_put_together_in_any_grouping(
    first: dict[str, Any], second: dict[str, Any], third: dict[str, Any]
) -> None:
    assert merge(merge(first, second), third) == merge(first, merge(second, third))


@settings(max_examples=25, deadline=None)
@given(base=_PODS, over=_PODS)
def test_what_is_laid_over_wins_and_everything_else_stays(
    base: dict[str, Any], over: dict[str, Any]
) -> None:
    merged = merge(base, over)

    assert merged.keys() == base.keys() | over.keys()
    for key in ("containers", "initContainers", "volumes"):
        names = {each["name"] for side in (base, over) for each in side.get(key, [])}
        assert sorted(each["name"] for each in merged.get(key, [])) == sorted(names)
    for wanted in over.get("containers", []):
        (found,) = [each for each in merged["containers"] if each["name"] == wanted["name"]]
        assert found.items() >= {k: wanted[k] for k in wanted.keys() & {"image", "args"}}.items()
        assert all(variable in found["env"] for variable in wanted.get("env", []))
    for kept in base.get("volumes", []):
        replaced = kept["name"] in [each["name"] for each in over.get("volumes", [])]
        assert replaced or kept in merged["volumes"]


@settings(max_examples=25, deadline=None)
@given(base=_PODS, over=_PODS)
def test_the_first_container_is_that_of_what_is_laid_over(
    base: dict[str, Any], over: dict[str, Any]
) -> None:
    containers = merge(base, over).get("containers", [])

    expected = [each["name"] for each in over.get("containers", [])]
    assert [each["name"] for each in containers[: len(expected)]] == expected


_CASES: dict[str, tuple[dict[str, Any], dict[str, Any], dict[str, Any]]] = {
    "a volume is of one kind": (
        {"volumes": [{"name": "v", "emptyDir": {}}]},
        {"volumes": [{"name": "v", "secret": {"secretName": "s"}}]},
        {"volumes": [{"name": "v", "secret": {"secretName": "s"}}]},
    ),
    "a variable has one value": (
        {"env": [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}]},
        {"env": [{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}]},
        {
            "env": [
                {"name": "B", "value": "2"},
                {"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}},
            ]
        },
    ),
    "a probe asks in one way": (
        {"livenessProbe": {"httpGet": {"port": 1}, "periodSeconds": 5}},
        {"livenessProbe": {"exec": {"command": ["true"]}}},
        {"livenessProbe": {"exec": {"command": ["true"]}}},
    ),
    "one mount per path": (
        {"volumeMounts": [{"name": "a", "mountPath": "/x", "readOnly": True}]},
        {"volumeMounts": [{"name": "b", "mountPath": "/x"}]},
        {"volumeMounts": [{"name": "b", "mountPath": "/x"}]},
    ),
    "null says nothing": (
        {"nodeSelector": {"disk": "ssd"}, "hostname": None},
        {"nodeSelector": None, "priority": None},
        {"nodeSelector": {"disk": "ssd"}},
    ),
    "other lists are replaced": (
        {"args": ["a", "b"]},
        {"args": ["c"]},
        {"args": ["c"]},
    ),
    "equal sources are one source": (
        {"envFrom": [{"secretRef": {"name": "a"}}, {"secretRef": {"name": "b"}}]},
        {"envFrom": [{"secretRef": {"name": "a"}}]},
        {"envFrom": [{"secretRef": {"name": "b"}}, {"secretRef": {"name": "a"}}]},
    ),
}


@pytest.mark.parametrize(("base", "over", "expected"), _CASES.values(), ids=_CASES)
def test_cases(base: dict[str, Any], over: dict[str, Any], expected: dict[str, Any]) -> None:
    assert merge(base, over) == expected


def test_lists_without_items_are_left_out_and_empty_mappings_are_not() -> None:
    assert filled({"env": [], "emptyDir": {}, "args": [""]}) == {"emptyDir": {}, "args": [""]}
