"""`job rollback` and `job fork`: whole specs, and what becomes of each field."""

import json
from typing import Any

import pytest
import yaml

from sparkpoint.cli.jobs.cluster import ATTEMPT, EPOCH, JOB, ROLE
from sparkpoint.cli.jobs.specs import (
    LIVE,
    differences,
    patch_between,
    put,
    revised,
    without_secrets,
)
from sparkpoint.controller import keys
from sparkpoint.controller.revisions import Part, effective, part_of
from tests.unit.cli.jobs.apiserver import ApiServer
from tests.unit.cli.jobs.resources import SPEC, condition, config_map, revision
from tests.unit.cli.jobs.test_changing import settles
from tests.unit.cli.running import run, run_well


def test_we_and_the_operator_mean_the_same() -> None:
    from sparkpoint.api.job import JobSpec
    from sparkpoint.controller import revisions

    live = {path for path, part in revisions._PARTS.items() if part is Part.LIVE}
    stored = {**SPEC, "args": ["--old"], "savepoints": {"repository": "s3://data/elsewhere"}}
    theirs = effective(JobSpec.model_validate(stored), JobSpec.model_validate(SPEC))

    assert set(LIVE) == live
    assert all(part_of(path) is Part.LIVE for path in LIVE)
    assert JobSpec.model_validate(revised(stored, SPEC)) == theirs
    assert (JOB, EPOCH, ATTEMPT, ROLE) == (keys.JOB, keys.EPOCH, keys.ATTEMPT, keys.ROLE)


def test_a_rollback_says_what_it_changes_and_changes_only_that(shop: ApiServer) -> None:
    shop.reacts = settles("Running")
    shop.job()["spec"]["savepoints"]["schedule"] = "0 * * * *"
    shop.job()["metadata"]["annotations"] = {"mine": "kept"}

    outcome = run_well("job", "rollback", "visits")

    [(_, _, body)] = shop.writes()
    assert body["spec"] == {"args": ["--input=/in", "--output=/out"]}
    assert 'spec.args: ["--input=/in", "--output=/out", "--fast"] -> ' in outcome.err
    assert outcome.out.startswith("visits: at revision aaa after ")
    assert shop.job()["spec"]["savepoints"]["schedule"] == "0 * * * *"
    assert shop.job()["metadata"]["annotations"] == {"mine": "kept"}


def test_a_dry_run_asks_the_api_server_and_writes_nothing(shop: ApiServer) -> None:
    outcome = run_well("job", "rollback", "visits", "--dry-run", "--json")

    assert outcome.document["revision"] == "aaa"
    assert [each["path"] for each in outcome.document["changes"]] == ["spec.args"]
    assert shop.writes() == []
    assert "dryRun=All" in shop.asked[-1][1]


def test_a_spec_that_was_held_back_goes_back_to_the_stable_one(shop: ApiServer) -> None:
    shop.put_status(
        "StatefulSparkJob", "visits", {"revisions": {"current": "aaa", "stable": "aaa"}}
    )
    shop.job()["spec"]["driver"] = {"memory": "2g"}

    document = run_well("job", "rollback", "visits", "--dry-run", "--json").document

    assert document["revision"] == "aaa"
    changes = {each["path"]: each["new"] for each in document["changes"]}
    assert changes == {"spec.args": ["--input=/in", "--output=/out"], "spec.driver.memory": "1g"}


def test_to_the_revision_that_the_spec_says_there_is_nothing_to_do(shop: ApiServer) -> None:
    outcome = run_well("job", "rollback", "visits", "--to", "bb")

    assert "nothing to do" in outcome.out
    assert shop.writes() == []


@pytest.mark.parametrize("arguments", [("--to", "zzz"), ("--to", "")])
def test_a_revision_that_is_not_there_is_answered_with_those_that_are(
    shop: ApiServer, arguments: tuple[str, ...]
) -> None:
    outcome = run("job", "rollback", "visits", *arguments)

    assert outcome.code == 4
    assert "bbb (generation 2, current, stable); aaa (generation 1)" in outcome.err


def test_a_revision_of_an_earlier_job_of_that_name_is_not_ours(shop: ApiServer) -> None:
    foreign = revision("ccc", 1, args=["--foreign"])
    foreign["metadata"]["ownerReferences"] = [{"uid": "of another"}]
    shop.put(foreign)

    assert "ccc" not in run("job", "rollback", "visits", "--to", "zzz").err


def reads_the_script(api: ApiServer, revision: str, **status: Any) -> None:
    """An operator that finds the script some time after it was written, while it is waited for."""

    def look() -> None:
        api.put_status("StatefulSparkJob", "visits", {"batch": 43})
        seen = {"revisions": {"current": revision, "stable": revision}, **status}
        api.put_status("StatefulSparkJob", "visits", seen)

    api.on_watch = look


def test_another_script_has_to_be_spoken_about(shop: ApiServer) -> None:
    shop.reacts = settles("Running")
    shop.put(config_map("print('new')\n"))

    silent = run("job", "rollback", "visits", "--to", "aaa")
    assert (silent.code, shop.writes()) == (3, [])
    assert "--script" in silent.err
    without = run_well("job", "rollback", "visits", "--to", "aaa", "--no-script", "--dry-run")
    assert "ConfigMap" not in without.out
    reads_the_script(shop, "aaa")
    run_well("job", "rollback", "visits", "--to", "aaa", "--script")

    data = shop.objects["configmaps", "shop", "script"]["data"]
    assert data == {"visits.py": "print('visits')\n", "other": "kept"}
    assert shop.job()["spec"]["args"] == ["--input=/in", "--output=/out"]


def test_a_script_that_alone_has_changed_goes_back_to_the_stable_one(shop: ApiServer) -> None:
    shop.put(config_map("print('new')\n"))

    run_well("job", "rollback", "visits", "--script")

    data = shop.objects["configmaps", "shop", "script"]["data"]
    assert data["visits.py"] == "print('visits')\n"
    assert [method for method, _, _ in shop.writes()] == ["PATCH"]


def test_a_script_is_back_only_when_the_operator_runs_it(shop: ApiServer) -> None:
    shop.put(config_map("print('new')\n"))
    shop.put(revision("aaa", 1))
    shop.put_status("StatefulSparkJob", "visits", {"revisions": {"current": "n", "stable": "aaa"}})

    early = run("job", "rollback", "visits", "--script", "--timeout", "0.3s")
    shop.put(config_map("print('new')\n"))
    reads_the_script(shop, "aaa")
    outcome = run_well("job", "rollback", "visits", "--script", "--timeout", "20s", "--json")

    assert early.code == 8
    assert outcome.document["result"] == "Succeeded"
    assert shop.job()["status"]["revisions"]["current"] == "aaa"


def test_what_was_rolled_back_before_does_not_count_against_the_script_put_back(
    shop: ApiServer,
) -> None:
    shop.put(config_map("print('new')\n"))
    failed = {
        "revisions": {"current": "bbb", "stable": "bbb", "failed": "new"},
        "conditions": [condition("Degraded", "True", "RolledBack", "It crashed.")],
    }
    shop.put_status("StatefulSparkJob", "visits", failed)
    fine = [condition("Degraded", "False", "AsExpected")]
    reads_the_script(shop, "bbb", conditions=fine)

    run_well("job", "rollback", "visits", "--script", "--timeout", "20s")


def test_a_restore_goes_with_a_script_that_alone_is_put_back(shop: ApiServer) -> None:
    shop.reacts = settles("Running")
    shop.job()["spec"]["restoreFrom"] = {"savepoint": "nightly", "sink": "Rewind"}
    shop.put(config_map("print('new')\n"))
    arguments = ("job", "rollback", "visits", "--to", "bbb", "--savepoint", "nightly")

    run_well(*arguments, "--sink", "rewind", "--script")
    again = run_well(*arguments, "--sink", "rewind", "--script")

    assert shop.job()["spec"]["restoreFrom"]["nonce"] == 1
    assert [path.split("?")[0].split("/")[-2] for _, path, _ in shop.writes()] == [
        "configmaps",
        "statefulsparkjobs",
    ]
    assert "--again restores it once more" in again.err


def test_without_the_script_its_config_map_is_not_read(shop: ApiServer) -> None:
    shop.reacts = settles("Running")
    shop.delete("ConfigMap", "script")

    run_well("job", "rollback", "visits", "--to", "aaa", "--no-script")

    assert not [path for _, path, _ in shop.asked if "configmaps" in path]
    assert shop.job()["spec"]["args"] == ["--input=/in", "--output=/out"]


def test_the_state_goes_back_with_the_revision_in_one_write(shop: ApiServer) -> None:
    shop.reacts = settles("Running")

    run_well("job", "rollback", "visits", "--savepoint", "latest", "--sink", "rewind")

    [(_, _, body)] = shop.writes()
    # The newest of that revision, and not the newest of all.
    assert body["spec"]["restoreFrom"]["savepoint"] == "before-sale"
    assert body["spec"]["args"] == ["--input=/in", "--output=/out"]
    assert run("job", "rollback", "visits", "--savepoint", "latest").code == 2


def test_a_spec_with_a_field_that_we_do_not_know_is_left_alone(shop: ApiServer) -> None:
    shop.job()["spec"]["mystery"] = 1

    outcome = run("job", "rollback", "visits")

    assert (outcome.code, shop.writes()) == (3, [])
    assert "spec.mystery" in outcome.err


def test_no_secret_is_shown(shop: ApiServer) -> None:
    conf = {"spark.hadoop.fs.s3a.secret.key": "hush", "spark.ui.enabled": "true"}
    env = [{"name": "DB_PASSWORD", "value": "hush"}, {"name": "PLACE", "value": "here"}]
    shop.job()["spec"] |= {
        "sparkConf": conf,
        "driver": {"env": env},
        "args": ["--token=hush"],
        "hadoopConf": {"password": "hush"},
        "storage": {"secretName": "s3"},
    }

    for extra in ((), ("--json",)):
        outcome = run_well("job", "rollback", "visits", "--to", "aaa", "--dry-run", *extra)
        assert "hush" not in outcome.out + outcome.err
        assert "here" in outcome.out
        assert '"s3"' in outcome.out


@pytest.mark.parametrize(
    ("shown", "hidden"),
    [
        (["--password", "hush", "--fast"], ["--password", "(hidden)", "--fast"]),
        (["--use-token", "--password", "hush"], ["--use-token", "(hidden)", "(hidden)"]),
        (["--output", "/out"], ["--output", "/out"]),
        (["--token=hush", "/out"], ["(hidden)", "/out"]),
        (["jdbc:x://db/shop?user=me&password=hush"], ["(hidden)"]),
        (["-Djavax.net.ssl.keyStorePassword=hush", "a=b"], ["(hidden)", "a=b"]),
        (["spark.hadoop.fs.s3a.secret.key = hush"], ["(hidden)"]),
        (["Token =hush", 1], ["(hidden)", 1]),
    ],
)
def test_a_secret_among_arguments_is_hidden(shown: list[Any], hidden: list[Any]) -> None:
    assert without_secrets(shown, "args") == hidden


def test_a_patch_makes_one_spec_into_the_other() -> None:
    old = {**SPEC, "sparkConf": {"spark.a": "1", "spark.b": "2"}, "sparkVersion": "4.3.0"}
    wanted = revised({**SPEC, "sparkConf": {"spark.b": "3"}}, old)

    patch = patch_between(old, wanted)

    assert patch == {"sparkConf": {"spark.a": None, "spark.b": "3"}, "sparkVersion": None}
    assert [str(each) for each in differences(old, patch)] == [
        'spec.sparkConf[spark.a]: "1" -> (not set)',
        'spec.sparkConf[spark.b]: "2" -> "3"',
        'spec.sparkVersion: "4.3.0" -> (not set)',
    ]


@pytest.mark.parametrize(
    ("assignment", "path", "value"),
    [
        ("executor.instances=4", ("executor", "instances"), 4),
        ("spec.image=runtime:2", ("image",), "runtime:2"),
        ("args[1]=--output=/b", ("args", 1), "--output=/b"),
        ("args[3]=5", ("args", 3), "5"),
        ("sparkConf[spark.ui.enabled]=true", ("sparkConf", "spark.ui.enabled"), "true"),
        ('args=["a"]', ("args",), ["a"]),
        ("storage.volumes=[]", ("storage", "volumes"), []),
    ],
)
def test_set_reaches_every_field(assignment: str, path: tuple[Any, ...], value: object) -> None:
    found: Any = put(SPEC, assignment)
    for key in path:
        found = found[key]

    assert found == value
    assert SPEC["args"][1] == "--output=/out"


@pytest.mark.parametrize("bad", ["image", "a..b=1", "args[9]=x", "image.x=1", "args[x]=1", "=1"])
def test_set_refuses_what_it_cannot_place(shop: ApiServer, bad: str) -> None:
    outcome = run("job", "fork", "visits", "trial", "--savepoint", "latest", "--set", bad)

    assert (outcome.code, shop.writes()) == (2, [])


FORK = ("job", "fork", "visits", "trial", "--savepoint", "latest")


def test_a_fork_is_a_second_job_from_a_savepoint(shop: ApiServer) -> None:
    shop.reacts = settles("Running")
    shop.job()["spec"] |= {"suspend": True, "restartNonce": 4}

    run_well(*FORK, "--set", "args[1]=--output=/trial", "--set", "executor.instances=1")

    spec = shop.job("trial")["spec"]
    assert spec["restoreFrom"] == {"savepoint": "nightly", "sink": "Fork"}
    assert spec["args"] == ["--input=/in", "--output=/trial", "--fast"]
    assert spec["executor"] == {"instances": 1}
    assert not {"suspend", "restartNonce"} & set(spec)
    assert shop.job()["spec"]["args"][1] == "--output=/out"


def test_a_dry_run_prints_a_manifest_that_can_be_applied(shop: ApiServer) -> None:
    outcome = run_well(*FORK, "--set", "args[1]=--output=/trial", "--dry-run")

    manifest = yaml.safe_load(outcome.out)
    assert (manifest["kind"], manifest["metadata"]["name"]) == ("StatefulSparkJob", "trial")
    assert shop.writes() == []
    assert "dryRun=All" in shop.asked[-1][1]


def test_a_fork_that_would_write_to_the_same_place_is_refused(shop: ApiServer) -> None:
    outcome = run(*FORK, "--set", "executor.instances=1")

    assert (outcome.code, shop.writes()) == (3, [])
    assert "[1] --output=/out" in outcome.err
    shop.reacts = settles("Running")
    run_well(*FORK, "--same-output")


@pytest.mark.parametrize(
    ("changes", "refused"),
    [
        (["driver.memory=2g"], True),
        (["driver.env=[]"], True),
        (['driver.env=[{"name":"OUTPUT","value":"/b"}]'], False),
        (['driver.envFrom=[{"configMapRef":{"name":"b"}}]'], False),
        (["sparkConf[spark.output]=/b"], False),
        (["hadoopConf[output]=/b"], False),
    ],
)
def test_only_what_the_script_reads_says_where_it_writes(
    shop: ApiServer, changes: list[str], refused: bool
) -> None:
    outcome = run(*FORK, "--dry-run", *(each for change in changes for each in ("--set", change)))

    assert outcome.code == (3 if refused else 0), outcome.err


def test_a_fork_that_is_refused_shows_no_secret(shop: ApiServer) -> None:
    shop.job()["spec"]["args"] = ["--output=/out", "--password", "hush", "--api-token=hush"]

    outcome = run(*FORK)

    assert outcome.code == 3
    assert "hush" not in outcome.err
    assert "[0] --output=/out [1] --password [2] (hidden) [3] (hidden)" in outcome.err


def test_the_same_fork_once_more_is_the_same_and_another_one_is_refused(shop: ApiServer) -> None:
    shop.reacts = settles("Running")
    run_well(*FORK, "--set", "args[1]=--output=/trial")
    before = json.dumps(shop.job("trial")["spec"])

    run_well(*FORK, "--set", "args[1]=--output=/trial")
    other = run(*FORK, "--set", "args[1]=--output=/other")

    assert other.code == 3
    assert "Choose another name" in other.err
    assert json.dumps(shop.job("trial")["spec"]) == before


def test_a_fork_that_cannot_be_lists_every_mistake(shop: ApiServer) -> None:
    outcome = run(
        *("job", "fork", "visits", "Bad_Name", "--savepoint", "nightly"),
        *("--set", "executor.instances=0", "--set", "args[0]=x"),
    )

    assert (outcome.code, shop.writes()) == (3, [])
    assert "metadata.name" in outcome.err
    assert "spec.executor.instances" in outcome.err
