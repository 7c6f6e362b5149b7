"""`job list`, `status`, `wait` and `logs`: over HTTP, against a small API server."""

import re
from typing import Any

import pytest

from tests.unit.cli.jobs.apiserver import ApiServer
from tests.unit.cli.jobs.resources import condition, job, operation
from tests.unit.cli.running import run, run_well


def test_the_list_tells_what_a_person_wants_to_know(shop: ApiServer) -> None:
    degraded = [condition("Degraded", "True", "RolledBack", "The last stable revision runs.")]
    shop.put(job("clicks", conditions=degraded, operation=operation("Upgrade", "Launch")))
    shop.put(job("new") | {"status": {}})

    lines = run_well("job", "list").out.splitlines()

    assert re.split(r"\s{2,}", lines[0])[:4] == ["NAME", "PHASE", "BATCH", "RATE"]
    assert [line.split()[0] for line in lines[1:]] == ["clicks", "new", "visits"]
    assert "Running (Launch)" in lines[1]
    assert "RolledBack" in lines[1]
    assert "12.3k/s" in lines[3]
    assert "nightly" in lines[3]


def test_all_namespaces_are_told_apart_and_none_is_left_out(shop: ApiServer) -> None:
    for name in ("a", "b", "c"):
        shop.put(job(name) | {"metadata": {"name": name, "namespace": "other"}})

    document = run_well("job", "list", "-A", "--json").document

    assert [(each["namespace"], each["name"]) for each in document["jobs"]] == [
        ("other", "a"), ("other", "b"), ("other", "c"), ("shop", "visits"),
    ]  # fmt: skip
    assert run_well("job", "list", "-A").out.startswith("NAMESPACE")
    assert run_well("job", "list", "-n", "nowhere").out == "No jobs.\n"


def test_the_namespace_is_that_of_the_context_unless_it_is_named(shop: ApiServer) -> None:
    run_well("job", "list")
    run_well("job", "list", "--context", "bare")
    run_well("job", "list", "-n", "mine")

    asked = [path.split("/namespaces/")[1].split("/")[0] for _, path, _ in shop.asked]
    assert asked == ["shop", "default", "mine"]


def test_the_status_says_what_is_under_way_what_is_wrong_and_what_to_do(shop: ApiServer) -> None:
    shop.put_status(
        "StatefulSparkJob",
        "visits",
        {
            "phase": "Upgrading",
            "operation": operation("Upgrade", "Launch", "The driver starts."),
            "revisions": {"current": "bbb", "stable": "aaa", "failed": "ccc"},
            "conditions": [
                condition("Degraded", "True", "RolledBack", "It crashed. Change the spec."),
                condition("Progressing", "True", "UnderWay", "told elsewhere"),
            ],
            "lastOperation": {
                "id": "start-1", "kind": "Start", "result": "Succeeded", "message": "It runs.",
                "startedAt": "2026-07-30T11:00:00Z", "finishedAt": "2026-07-30T11:00:20Z",
                "downtimeSeconds": 4.0,
            },
        },
    )  # fmt: skip

    text = run_well("job", "status", "visits").out

    assert text.startswith("shop/visits  Upgrading (Launch)\n")
    assert "Prepare > Stop > Capture > [Launch] > Observe" in text
    assert "bbb (on trial; stable is aaa); held back: ccc" in text
    assert "Degraded is True: RolledBack" in text
    assert "  It crashed. Change the spec." in text
    assert "told elsewhere" not in text
    assert "Last: Start start-1 Succeeded" in text
    assert "took 20 s, 4.00 s down" in text
    assert re.search(r"nightly +Completed +41 +2\.0 KiB +1\.0 KiB", text)
    assert text.index("nightly  ") < text.index("before-sale  ")


def test_two_forks_are_told_side_by_side(shop: ApiServer) -> None:
    origin = {"restoredFrom": {"name": "before-sale", "id": "a" * 64, "sink": "Fork"}}
    for name, rows in (("trial-a", 10), ("trial-b", 12)):
        fork = job(
            name,
            **origin,
            lastSavepoint={"name": f"{name}-1", "id": name[-1] * 64, "batch": 50},
            queries=[{"name": "visits", "batch": 50, "stateRows": rows, "stateBytes": 2048}],
        )
        fork["spec"]["args"][1] = f"--output=/{name}"
        shop.put(fork)

    text = run_well("job", "compare", "trial-a", "trial-b").out
    document = run_well("job", "compare", "trial-a", "trial-b", "--json").document

    lines = [re.split(r"\s{2,}", line) for line in text.splitlines()]
    assert ["", "trial-a", "trial-b"] in lines
    assert ["visits: state rows", "10", "12"] in lines
    assert ["visits: state in memory", "2.0 KiB", "2.0 KiB"] in lines
    assert "Their present epochs began with the same savepoint." in text
    assert "spec.args:" in text
    command = f"sparkpoint state diff {'a' * 12} {'b' * 12} --repository s3://data/savepoints"
    assert text.endswith(f"What differs in their state:\n  {command}\n")
    assert document["sameOrigin"] is True
    assert document["diff"] == command
    assert [change["path"] for change in document["changes"]] == ["spec.args"]
    assert [each["name"] for each in document["jobs"]] == ["trial-a", "trial-b"]


def test_jobs_of_other_origins_and_repositories_are_told_as_such(shop: ApiServer) -> None:
    for name in ("a", "b"):
        began = {"name": name, "id": name * 64}
        other = job(name, restoredFrom=began, lastSavepoint=began)
        other["spec"]["savepoints"] = {"repository": f"s3://{name}-data/savepoints"}
        shop.put(other)
    shop.put(job("new") | {"status": {}})

    text = run_well("job", "compare", "a", "b").out

    assert "began with different savepoints" in text
    assert "state diff" not in text
    assert "began" not in run_well("job", "compare", "visits", "new").out
    assert run("job", "compare", "a", "nobody").code == 4


@pytest.mark.parametrize("field", [{"turbo": {"level": 1}}, {"suspend": "perhaps"}])
def test_a_spec_that_cannot_be_read_is_compared_as_it_is_written(
    shop: ApiServer, field: dict[str, Any]
) -> None:
    began = {"name": "x", "id": "a" * 64}
    for name, more in (("known", {}), ("newer", field)):
        body = job(name, restoredFrom=began, lastSavepoint=began)
        body["spec"] |= more
        body["spec"]["sparkConf"] = {"spark.my.password": f"hidden of {name}"}
        shop.put(body)

    text = run_well("job", "compare", "known", "newer")
    document = run_well("job", "compare", "newer", "known", "--json").document

    (name,) = field
    assert "Their present epochs began with the same savepoint." in text.out
    assert "sparkpoint state diff" in text.out
    assert f"  spec.{name}" in text.out
    assert f"newer: this version of sparkpoint cannot read spec.{name}" in text.err
    assert "known:" not in text.err
    assert "hidden of" not in text.out
    assert document["notes"] == [text.err.removeprefix("Note: ").strip()]
    assert any(change["path"].startswith(f"spec.{name}") for change in document["changes"])


@pytest.mark.parametrize(
    ("first", "second", "options"),
    [
        ({}, {}, ""),
        ({"savepoints": "http://a:1"}, {"savepoints": "http://b:1"}, None),
        ({"savepoints": "http://a:1"}, {}, None),
        ({"savepoints": "http://a:1"}, {"storage": "http://a:1"}, " --endpoint-url http://a:1"),
        ({"savepoints": "http://a:1", "storage": "http://b:1"}, {"storage": "http://b:1"}, None),
    ],
)
def test_two_s3_servers_are_two_repositories(
    shop: ApiServer, first: dict[str, str], second: dict[str, str], options: str | None
) -> None:
    _put_with_endpoints(shop, "s3://data/sp", first, second)

    command = run_well("job", "compare", "a", "b", "--json").document["diff"]

    of_both = f"sparkpoint state diff {'a' * 12} {'b' * 12} --repository s3://data/sp"
    assert command == (None if options is None else f"{of_both}{options}")


def test_a_folder_is_one_repository_whatever_the_s3_server(shop: ApiServer) -> None:
    _put_with_endpoints(shop, "/data/sp", {"storage": "http://a:1"}, {"storage": "http://b:1"})

    command = run_well("job", "compare", "a", "b", "--json").document["diff"]

    assert command.endswith(" --repository /data/sp")


def _put_with_endpoints(shop: ApiServer, repository: str, *endpoints: dict[str, str]) -> None:
    for name, given in zip("ab", endpoints, strict=True):
        body = job(name, lastSavepoint={"name": name, "id": name * 64})
        body["spec"]["savepoints"] = {"repository": repository}
        body["spec"]["storage"] = {"volumes": [{"claimName": "data", "mountPath": "/data"}]}
        for section, url in given.items():
            body["spec"].setdefault(section, {})["endpointUrl"] = url
        shop.put(body)


def test_the_document_of_a_status_is_the_operators_own_but_for_its_record(shop: ApiServer) -> None:
    document = run_well("job", "status", "visits", "--json").document

    assert document["status"]["revisions"] == {"current": "bbb", "stable": "bbb"}
    assert "record" not in document["status"]
    assert [each["name"] for each in document["savepoints"]] == ["nightly", "before-sale"]


def test_a_status_that_is_watched_is_told_again_until_the_job_is_gone(shop: ApiServer) -> None:
    def live() -> None:
        shop.put_status("StatefulSparkJob", "visits", {"batch": 42})
        shop.delete("StatefulSparkJob", "visits")

    shop.on_watch = live

    outcome = run("job", "status", "visits", "--watch")

    assert outcome.code == 4
    assert outcome.out.count("shop/visits  Running") >= 2
    assert "batch      42" in outcome.out
    assert "deleted meanwhile" in outcome.err


@pytest.mark.parametrize(
    ("what", "status", "code", "says"),
    [
        ("running", {}, 0, ""),
        ("ready", {}, 0, ""),
        ("upgraded", {}, 0, ""),
        ("condition=degraded=False", {}, 0, ""),
        ("running", {"phase": "Suspended"}, 6, "The job is Suspended"),
        ("suspended", {"phase": "Suspended"}, 0, ""),
        ("running", {"phase": "Failed"}, 6, "has failed"),
        (
            "upgraded",
            {"conditions": [condition("Degraded", "True", "RolledBack", "It crashed.")]},
            7,
            "It crashed.",
        ),
        (
            "upgraded",
            {"conditions": [condition("Degraded", "True", "Incompatible", "No.")]},
            6,
            "No.",
        ),
        (
            "upgraded",
            {"conditions": [condition("Accepted", "False", "InvalidSpec", "spec.image: bad")]},
            6,
            "spec.image: bad",
        ),
        ("running", {"observedGeneration": 1}, 8, "Check that the operator runs"),
        (
            "upgraded",
            {"operation": operation("Upgrade", "Launch", "The image is pulled.")},
            8,
            "Upgrade: Launch. The image is pulled. It goes on by itself.",
        ),
    ],
)
def test_a_wait_ends_when_it_is_known_how_it_ends(
    shop: ApiServer, what: str, status: dict[str, object], code: int, says: str
) -> None:
    shop.put_status("StatefulSparkJob", "visits", status)
    timeout = "3s" if code == 8 else "60s"

    outcome = run("job", "wait", "visits", "--for", what, "--timeout", timeout, "--json")

    assert outcome.code == code
    assert says in outcome.err
    assert outcome.document["for"] == what


def test_a_wait_sees_what_changes_by_a_watch_and_asks_once(shop: ApiServer) -> None:
    shop.put_status("StatefulSparkJob", "visits", {"operation": operation("Resume", "Launch")})
    shop.on_watch = lambda: shop.put_status("StatefulSparkJob", "visits", {"operation": None})

    run_well("job", "wait", "visits", "--for", "running")

    assert sum("watch=true" in path for _, path, _ in shop.asked) == 1
    assert len(shop.asked) <= 4


def test_a_log_is_that_of_the_present_driver(shop: ApiServer) -> None:
    assert run_well("job", "logs", "visits").out == "Zählt.\n"
    assert run_well("job", "logs", "visits", "--previous").out == "before\n"
    assert run_well("job", "logs", "visits", "--executor", "1", "-f").out == "executor\n"
    assert run_well("job", "logs", "visits", "--json").document == {
        "namespace": "shop", "job": "visits", "pod": "visits-e1-a2", "log": "Zählt.\n",
    }  # fmt: skip
    assert "container=spark" in shop.asked[2][1]


def test_a_log_that_is_not_there_says_what_there_is(shop: ApiServer) -> None:
    outcome = run("job", "logs", "visits", "--executor", "7")

    assert outcome.code == 4
    assert "no pod of executor 7; it has: 1" in outcome.err


def test_a_container_that_has_not_started_is_told_in_kubernetes_words(shop: ApiServer) -> None:
    shop.logs.clear()

    outcome = run("job", "logs", "visits")

    assert (outcome.code, outcome.out) == (3, "")
    assert "is waiting to start" in outcome.err
