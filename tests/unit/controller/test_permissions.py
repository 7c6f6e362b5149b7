"""Rights that are missing are told before anything begins."""

import asyncio
from collections.abc import Callable

import pytest

from sparkpoint.controller.claims import CLAIM_NAME
from sparkpoint.controller.errors import UnavailableError, UnfitError
from sparkpoint.controller.permissions import Question, check_permissions


class Judge:
    """Answers as the test says, and remembers what it was asked."""

    def __init__(self, allows: Callable[[Question], bool]) -> None:
        self._allows = allows
        self.asked: list[Question] = []

    async def allows(self, question: Question) -> bool:
        self.asked.append(question)
        return self._allows(question)


def check(
    judge: Judge, *namespaces: str, lease: tuple[str, str] | None = ("system", "sparkpoint")
) -> None:
    asyncio.run(check_permissions(judge, namespaces=namespaces, lease=lease, patience=0.01))


def test_everything_that_the_operator_does_is_asked_for_in_each_namespace() -> None:
    judge = Judge(lambda _: True)

    check(judge, "shop", "lab")

    asked = {(each.namespace, each.verb, each.resource, each.name) for each in judge.asked}
    for namespace in ("shop", "lab"):
        assert (namespace, "create", "pods", "") in asked
        assert (namespace, "update", "statefulsparkjobs/status", "") in asked
    assert ("system", "update", "leases", "sparkpoint") in asked
    assert ("system", "create", "leases", "") in asked


@pytest.mark.parametrize("namespaces", [(), ("shop", "lab")])
def test_of_the_leases_where_jobs_are_only_that_of_the_claim_is_asked_for(
    namespaces: tuple[str, ...],
) -> None:
    judge = Judge(lambda _: True)

    check(judge, *namespaces, lease=None)

    asked = [each for each in judge.asked if each.resource == "leases"]
    assert {each.namespace for each in asked} == set(namespaces or ("",))
    assert {(each.verb, each.name) for each in asked} == {
        ("get", CLAIM_NAME),
        ("update", CLAIM_NAME),
        # What is not there yet cannot be allowed by its name.
        ("create", ""),
    }


def test_a_whole_cluster_is_asked_for_as_such() -> None:
    judge = Judge(lambda _: True)

    check(judge, lease=None)

    assert {each.namespace for each in judge.asked} == {""}


def test_all_that_is_missing_is_told_in_one_sentence() -> None:
    judge = Judge(lambda each: each.resource != "pods" or each.verb in ("get", "list", "watch"))

    with pytest.raises(UnfitError) as caught:
        check(judge, "shop", "lab")

    told = str(caught.value)
    assert "in shop: create/delete pods; in lab: create/delete pods." in told
    assert "rbac.create" in told


def test_a_role_that_was_made_just_now_is_waited_for() -> None:
    judge = Judge(lambda each: judge.asked.count(each) > 1)

    asyncio.run(check_permissions(judge, namespaces=(), lease=None, patience=1.0))


def test_a_server_that_does_not_tell_does_not_keep_the_operator_from_acting(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def fail(_: Question) -> bool:
        raise UnavailableError("no answer")

    check(Judge(fail))

    assert "could not be looked up: no answer" in caplog.records[0].getMessage()
