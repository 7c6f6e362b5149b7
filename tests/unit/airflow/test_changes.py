"""A change is made once; what cannot be changed so is refused with a sentence."""

import pytest

from sparkpoint.airflow.decisions.due import POLICY
from sparkpoint.airflow.decisions.errors import SelectorError
from sparkpoint.airflow.work.changes import ensure_change, rescaling
from sparkpoint.airflow.work.reading import chosen, look
from sparkpoint.airflow.work.rounds import alarms, due_jobs
from sparkpoint.cli.jobs.errors import NotFoundError, RefusedError
from tests.unit.airflow.world import NOW, cluster, job
from tests.unit.cli.jobs.apiserver import ApiServer


def _api() -> ApiServer:
    api = ApiServer()
    api.put(job("a", labels={"team": "shop"}))
    api.put(job("b", annotations={POLICY: "never"}))
    return api


def test_the_same_change_is_written_once() -> None:
    api = _api()

    ensure_change(cluster(api), "a", {"image": "runtime:2"})
    ensure_change(cluster(api), "a", {"image": "runtime:2"})

    assert len([each for each in api.asked if each[0] == "PATCH"]) == 1
    assert api.job("a")["metadata"]["generation"] == 2


def test_bad_wishes_are_refused() -> None:
    api = _api()
    elastic = {"dynamicAllocation": {"min": 1, "max": 3}}
    api.put(job("elastic", spec={"executor": elastic}))

    with pytest.raises(RefusedError, match="say what"):
        ensure_change(cluster(api), "a", {})
    with pytest.raises(NotFoundError, match="Did you mean"):
        ensure_change(cluster(api), "elastik", {"image": "x"})
    with pytest.raises(RefusedError, match="dynamicAllocation"):
        rescaling(cluster(api), "elastic", 3)


def test_jobs_are_chosen_by_name_and_label_and_a_typing_error_is_told() -> None:
    sights = look(lambda _: cluster(_api()), [], everywhere=False)

    assert len(chosen(sights, names=[], selector="")) == 2
    assert [j["metadata"]["name"] for j in chosen(sights, names=[], selector="team=shop")] == ["a"]
    assert [j["metadata"]["name"] for j in chosen(sights, names=["shop/b"], selector="")] == ["b"]
    with pytest.raises(LookupError, match="no job c"):
        chosen(sights, names=["a", "c"], selector="")


@pytest.mark.parametrize(
    ("selector", "found"),
    [
        ("team==shop", "a"),
        ("team!=shop", "b"),
        ("team", "a"),
        ("!team", "b"),
        ("team = shop", "a"),
        ("", "ab"),
    ],
)
def test_a_selector_means_what_it_means_to_kubectl(selector: str, found: str) -> None:
    sights = look(lambda _: cluster(_api()), [], everywhere=False)

    jobs = chosen(sights, names=[], selector=selector)

    assert [job["metadata"]["name"] for job in jobs] == list(found)


@pytest.mark.parametrize(
    "selector",
    ["team in (shop)", "team in (a, b)", "=shop", "team>3", "!team=shop", " ", ",", "team=shop,"],
)
def test_a_selector_that_is_not_understood_is_refused(selector: str) -> None:
    sights = look(lambda _: cluster(_api()), [], everywhere=False)

    with pytest.raises(SelectorError, match="team=shop"):
        chosen(sights, names=[], selector=selector)


def test_a_selector_that_fits_no_job_is_no_success() -> None:
    sights = look(lambda _: cluster(_api()), [], everywhere=False)

    with pytest.raises(SelectorError, match="No job that was looked at fits"):
        chosen(sights, names=[], selector="team=shop,tier=gold")


def test_a_namespace_that_is_named_twice_is_looked_at_once() -> None:
    assert len(look(lambda _: cluster(_api()), ["shop", "shop"], everywhere=False)) == 1


def test_a_cluster_without_our_resources_says_so() -> None:
    api = ApiServer()
    api.kinds.clear()

    with pytest.raises(NotFoundError, match="CRDs"):
        look(lambda _: cluster(api), [], everywhere=True)


def test_a_round_says_who_is_due_and_why_others_are_not_and_who_is_late() -> None:
    sights = look(lambda _: cluster(_api()), [], everywhere=True)
    jobs = chosen(sights, names=[], selector="")

    due, lines = due_jobs(sights, jobs, every="6h", force=False, now=NOW, most=9)

    assert [each["job"] for each in due] == ["a"]
    assert lines == ["shop/b: not now. Never, as its policy says.", "shop/a: due."]
    (alarm,) = alarms(sights, jobs, every="6h", now=NOW)
    assert alarm.startswith("a: it has no savepoint")
