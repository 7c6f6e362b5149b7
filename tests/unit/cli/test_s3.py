"""The command line against a real S3 server: it works, and bad input is answered as on disk."""

import uuid
from pathlib import Path

import pytest
from mypy_boto3_s3 import S3Client

from tests.support.s3 import S3Server
from tests.unit.cli.running import run, run_well

pytestmark = pytest.mark.s3


@pytest.fixture
def place(s3: S3Server) -> str:
    """A prefix that no other test uses."""
    return f"s3://cli/{uuid.uuid4().hex}"


def test_a_savepoint_travels_through_s3_and_back(checkpoint: Path, place: str) -> None:
    repository = ("--repository", f"{place}/savepoints")
    create = ("savepoint", "create", *repository, "--job", "visits", "--json")

    made = run_well(*create, "--checkpoint", checkpoint, "--name", "one").document
    run_well("savepoint", "restore", "one", *repository, "--to", f"{place}/back")
    shown = run_well("checkpoint", "show", f"{place}/back", "--json").document
    again = run_well(*create, "--checkpoint", f"{place}/back", "--name", "two").document
    run_well("savepoint", "copy", "two", "--from", f"{place}/savepoints", "--to", "vault")
    run_well("savepoint", "restore", "two", "--repository", "vault", "--to", "back")

    assert shown["queries"][0]["batch"] == made["savepoint"]["queries"][0]["batch"]
    assert again["savepoint"]["parent"]["name"] == "one"
    assert again["readBytes"] < made["readBytes"]
    run_well("savepoint", "verify", "--all", *repository)
    run_well("log", *repository, "--html", "tree.html")
    assert f"{place}/savepoints --endpoint-url http://" in Path("tree.html").read_text()
    assert (Path("back") / "commits/5").exists()


def test_a_target_may_be_on_another_server(
    repository: Path, place: str, s3: S3Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("AWS_ENDPOINT_URL")
    copy = ("savepoint", "copy", "before-upgrade", "--from", "savepoints", "--to", place)

    run_well(*copy, "--to-endpoint-url", s3.endpoint_url)


@pytest.mark.parametrize("name", ["AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"])
def test_wrong_credentials(
    checkpoint: Path, place: str, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    create = ("savepoint", "create", "--checkpoint", checkpoint, "--repository", place)

    with monkeypatch.context() as patch:
        patch.setenv(name, "wrong")
        outcome = run(*create)

    assert outcome.code == 1
    assert outcome.err.startswith(f"Error: {place}")
    assert "access was refused" in outcome.err
    assert "AWS_ACCESS_KEY_ID" in outcome.err
    run_well(*create)


def test_a_bucket_that_is_missing(checkpoint: Path, s3: S3Server, s3_client: S3Client) -> None:
    bucket = f"later-{uuid.uuid4().hex[:8]}"
    create = ("savepoint", "create", "--checkpoint", checkpoint)

    outcome = run(*create, "--repository", f"s3://{bucket}/savepoints")
    absent = run("checkpoint", "show", f"s3://{bucket}/checkpoints")

    assert (outcome.code, absent.code) == (2, 2)
    assert f"s3://{bucket}" in outcome.err
    assert "check the name, or create it" in outcome.err
    s3_client.create_bucket(Bucket=bucket)
    run_well(*create, "--repository", f"s3://{bucket}/savepoints")


def test_a_target_that_is_not_empty(repository: Path, place: str, s3_client: S3Client) -> None:
    key = f"{place.removeprefix('s3://cli/')}/back/precious"
    s3_client.put_object(Bucket="cli", Key=key, Body=b"mine")
    restore = ("savepoint", "restore", "before-upgrade", "--to", f"{place}/back")

    outcome = run(*restore)

    assert outcome.code == 3
    assert f"{place}/back" in outcome.err
    s3_client.delete_object(Bucket="cli", Key=key)
    run_well(*restore)


@pytest.mark.parametrize("inside", ["savepoints/objects/x", "ck/offsets/x"])
def test_a_place_inside_a_repository_or_a_checkpoint(
    checkpoint: Path, place: str, inside: str
) -> None:
    repository = ("--repository", f"{place}/savepoints")
    run_well("savepoint", "create", "--checkpoint", checkpoint, *repository, "--name", "one")
    run_well("savepoint", "restore", "one", *repository, "--to", f"{place}/ck")

    outcome = run("savepoint", "restore", "one", *repository, "--to", f"{place}/{inside}")

    assert outcome.code == 3
    assert f"is inside {place}/{inside.split('/')[0]}" in outcome.err


def test_a_name_that_is_taken(
    checkpoint: Path, place: str, s3: S3Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("AWS_ENDPOINT_URL")
    endpoint = ("--endpoint-url", s3.endpoint_url)  # as an option this time
    create = ("savepoint", "create", "--checkpoint", checkpoint, "--repository", place, *endpoint)
    run_well(*create, "--name", "one")

    outcome = run(*create, "--name", "one")

    assert outcome.code == 3
    assert place in outcome.err
    run_well(*create, "--name", "two")
