"""Other partitions by an edit of the spec: the pods that are made for it, and what is told."""

from typing import Any

import pytest

from sparkpoint.controller.cluster import CONFIG_MAPS, Object, metadata
from tests.unit.controller.simulation import NAME, NAMESPACE, QUERY, SPEC, Simulation

FOUR = {**SPEC, "state": {"partitions": 4}}
BEFORE = "visits-repartition-2-uid1"
MADE = f"{BEFORE}-p8"
FITS = {"answer": "Compatible", "message": "It can be done."}
REFUSED = {"answer": "Incompatible", "message": "operator 0 (globalLimit): it has no columns."}
FULL = {"answer": "Failed", "kind": "UnsupportedState", "message": "It cannot be done."}


def summary(name: str) -> dict[str, Any]:
    return {
        "id": "cd" * 32,
        "name": name,
        "batches": {QUERY: 44},
        "files": 3,
        "bytes": 100,
        "new_bytes": 50,
        "seconds": 1.0,
        "parent": f"shop/visits/{BEFORE}",
    }


def details(partitions: int) -> dict[str, Any]:
    query = {"name": QUERY, "id": "q", "batch": 44, "partitions": partitions}
    return {"namespace": "shop", "job": NAME, "queries": [query]}


def line(pod: Object) -> list[str]:
    found: list[str] = pod["spec"]["containers"][0]["args"]
    return found[3:]


def after(options: list[str], option: str) -> str:
    return options[options.index(option) + 1]


class Workers:
    """What they are told, and what they say."""

    def __init__(self, look: dict[str, Any], *moves: dict[str, Any]) -> None:
        self.lines: dict[str, list[str]] = {}
        self._look, self._moves = look, list(moves)

    def __call__(self, pod: Object) -> dict[str, Any]:
        words = line(pod)
        self.lines[metadata(pod)["name"]] = words
        if "--check" in words:
            return self._look
        if words[0] == "rehearse":
            return FITS
        if self._moves:
            return self._moves.pop(0)
        made = after(words, "--as")
        return {"answer": "Repartitioned", "savepoint": summary(made), "details": details(8)}


def running(workers: Workers, **changes: Any) -> Simulation:
    simulation = Simulation({**FOUR, **changes})
    simulation.world.answers = workers
    simulation.settle(simulation.is_running)
    return simulation


def has_moved(simulation: Simulation) -> bool:
    return simulation.is_running() and simulation.status["epoch"] == 2


def last(simulation: Simulation) -> tuple[str, str]:
    found = simulation.status["lastOperation"]
    return found["kind"], found["result"]


def conf(simulation: Simulation) -> str:
    """Of the driver that runs."""
    run = simulation.status["record"]["run"]
    name = f"{NAME}-e{run['epoch']}-a{run['attempt']}"
    maps = [
        body
        for body in simulation.cluster.all(CONFIG_MAPS, NAMESPACE)
        if metadata(body)["name"].startswith(name)
    ]
    return "\n".join(text for body in maps for text in body["data"].values())


def test_a_worker_makes_the_savepoint_that_the_next_driver_restores() -> None:
    workers = Workers(FITS)
    simulation = running(workers)

    simulation.edit(state={"partitions": 8})
    simulation.settle(lambda: has_moved(simulation))

    look = workers.lines["visits-repartition-2-prepare-1-0"]
    move = workers.lines["visits-repartition-2-modify-1-0"]
    assert after(look, "--partitions") == "8"
    assert (after(move, "--name"), after(move, "--as")) == (BEFORE, MADE)
    assert after(move, "--repository") == "s3://data/savepoints"
    driver = simulation.pods("driver")[-1]
    assert after(line(driver), "--restore") == MADE
    assert "spark.sql.shuffle.partitions=8" in conf(simulation).replace(" ", "=")
    assert last(simulation) == ("Repartition", "Succeeded")
    assert simulation.status["partitions"] == 8
    assert simulation.savepoint(BEFORE)["status"]["phase"] == "Completed"
    made = simulation.savepoint(MADE)["status"]
    assert (made["phase"], made["id"]) == ("Completed", "cd" * 32)
    assert made["queries"][0]["partitions"] == 8
    assert made["parent"] == f"shop/visits/{BEFORE}"


def test_a_worker_that_was_killed_is_made_again_and_there_is_one_savepoint() -> None:
    killed = {"answer": "Failed", "retry_helps": True, "message": "A signal ended it."}
    workers = Workers(FITS, killed, killed)
    simulation = running(workers)

    simulation.edit(state={"partitions": 8})
    simulation.settle(lambda: has_moved(simulation))

    moves = [words for words in workers.lines.values() if words[0] == "repartition"][1:]
    assert [after(words, "--as") for words in moves] == [MADE] * 3


def test_what_cannot_be_done_leaves_the_driver_alone_and_is_told_with_a_remedy() -> None:
    simulation = running(Workers(REFUSED))
    driver = metadata(simulation.pods("driver")[0])["uid"]

    simulation.edit(state={"partitions": 8})
    simulation.settle(lambda: last(simulation) == ("Repartition", "Failed"))
    simulation.settle(simulation.is_running)

    assert [metadata(pod)["uid"] for pod in simulation.pods("driver")] == [driver]
    degraded = simulation.condition("Degraded")
    assert degraded["reason"] == "NotRepartitioned"
    assert "globalLimit" in degraded["message"]
    assert "Set spec.state.partitions back" in degraded["message"]
    assert simulation.status["partitions"] == 4
    assert simulation.status["record"]["sequence"] == 2

    simulation.edit(state={"partitions": 4})
    simulation.settle(lambda: simulation.condition("Degraded")["status"] == "False")
    assert [metadata(pod)["uid"] for pod in simulation.pods("driver")] == [driver]


def test_if_it_fails_after_the_stop_the_job_runs_again_as_it_was() -> None:
    simulation = running(Workers(FITS, FULL))

    simulation.edit(state={"partitions": 8})
    simulation.settle(lambda: last(simulation) == ("Recover", "Succeeded"))
    simulation.settle(simulation.is_running)

    run = simulation.status["record"]["run"]
    assert (run["epoch"], run["attempt"]) == (1, 2)
    assert simulation.status["partitions"] == 4
    assert simulation.condition("Degraded")["reason"] == "NotRepartitioned"
    assert "RepartitionFailed" in simulation.events()


@pytest.mark.parametrize("compatibility", ["Enforce", "Skip"])
def test_new_code_in_other_partitions_is_one_operation(compatibility: str) -> None:
    workers = Workers(FITS)
    simulation = running(workers, upgrade={"compatibility": compatibility})

    simulation.edit(state={"partitions": 8}, application={"script": {"path": "/opt/job/better.py"}})
    simulation.settle(lambda: has_moved(simulation))

    tried = [words for words in workers.lines.values() if words[0] == "rehearse"]
    assert len(tried) == (compatibility == "Enforce")
    assert simulation.status["record"]["sequence"] == 2
    assert "better.py" in str(line(simulation.pods("driver")[-1]))


def test_without_a_repository_it_is_refused_with_a_sentence() -> None:
    without = {key: FOUR[key] for key in FOUR if key != "savepoints"}
    simulation = Simulation({**without, "upgrade": {"mode": "LastCommit"}})
    simulation.settle(simulation.is_running)

    simulation.edit(state={"partitions": 8})
    simulation.settle(lambda: simulation.condition("Accepted")["status"] == "False")

    accepted = simulation.condition("Accepted")
    assert accepted["reason"] == "ChangeRefused"
    assert "Set spec.savepoints.repository" in accepted["message"]
    assert simulation.status["partitions"] == 4


def test_a_number_that_is_left_out_is_refused_until_it_is_there_again() -> None:
    simulation = running(Workers(FITS))
    driver = metadata(simulation.pods("driver")[0])["uid"]

    simulation.edit(state={})
    simulation.settle(lambda: simulation.condition("Accepted")["status"] == "False")
    assert "Set it back to 4" in simulation.condition("Accepted")["message"]
    assert simulation.status["partitions"] == 4

    simulation.edit(state={"partitions": 4})
    simulation.settle(lambda: simulation.condition("Accepted")["status"] == "True")
    assert [metadata(pod)["uid"] for pod in simulation.pods("driver")] == [driver]
