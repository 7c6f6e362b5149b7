"""Secrets of the environment do not leave a driver or a worker in what it says."""

import json
from pathlib import Path

import pytest

from sparkpoint.runtime.agent.answers import answer, failure
from sparkpoint.runtime.model import (
    EndReason,
    ErrorInfo,
    OperationState,
    SavepointOperation,
    Termination,
)
from sparkpoint.runtime.redaction import BLOT, Redaction, is_sensitive
from sparkpoint.runtime.termination import write_termination
from sparkpoint.worker.process import answer_to

CANARY = 'CANARY/"quoted"+key'


@pytest.mark.parametrize(
    ("name", "sensitive"),
    [
        ("AWS_SECRET_ACCESS_KEY", True),
        ("AWS_SESSION_TOKEN", True),
        ("spark.hadoop.fs.s3a.secret.key", True),
        ("fs.s3a.access.key", True),
        ("fs.azure.account.key.shop.blob.core.windows.net", True),
        ("spark.ssl.keyPassword", True),
        ("MY_API_KEY", True),
        ("PGPASSWD", True),
        ("STORAGE_KEY", True),
        ("AZURE_STORAGE_KEY", True),
        ("signing-key", True),
        ("fs.s3a.encryption.key", True),
        ("encryptionKey", True),
        ("KEY", True),
        ("COSMOS_PRIMARY_KEY", True),
        ("SECRET_JOIN_KEY", True),
        ("ENCRYPTION_KEYS", True),
        ("encryptionKeys", True),
        ("MASTERKEY", True),
        ("SIGNINGKEY", True),
        ("storagekeys", True),
        # These end like keys of rows, and are none.
        ("ESCROW_KEY", True),
        ("escrowKey", True),
        ("arrow.key", True),
        ("GROUP_KEY", True),
        ("HMACKEY", True),
        ("DECRYPTIONKEY", True),
        ("ocpSubscriptionkey", True),
        # Other keys than those that open something.
        ("monkey", False),
        ("MONKEY", False),
        ("partition.key.columns", False),
        ("PARTITION_KEY", False),
        ("joinKey", False),
        ("rowKey", False),
        ("hbase.row.key", False),
        ("leftJoinKeys", False),
        ("spark.shop.grouping.keys", False),
        ("DEDUP_KEYS", False),
        ("DEDUPE_KEYS", False),
        ("GROUP_KEYS", False),
        ("businessKeys", False),
        ("shop.primary.keys", False),
        ("MONKEYS", False),
        ("spark.io.encryption.keySizeBits", False),
        ("spark.io.encryption.keygen.algorithm", False),
        ("SSH_PUBLIC_KEY", False),
        # Where a secret is, or how one is come by.
        ("AWS_WEB_IDENTITY_TOKEN_FILE", False),
        ("spark.hadoop.fs.s3a.aws.credentials.provider", False),
        ("spark.sql.shuffle.partitions", False),
        ("PATH", False),
    ],
)
def test_secrets_are_known_by_their_names(name: str, sensitive: bool) -> None:
    assert is_sensitive(name) is sensitive


def test_the_longest_goes_first_and_short_ones_stay() -> None:
    redaction = Redaction.of({"A_TOKEN": "abcdef", "B_TOKEN": "abcdef-ghi", "C_TOKEN": "abc"})

    assert redaction.text("abc abcdef abcdef-ghi") == f"abc {BLOT} {BLOT}"


def test_names_and_states_are_left_alone() -> None:
    """Whoever reads them goes by them, though a password may be an everyday word."""
    redaction = Redaction.of({"PASSWORD": "running"})

    content = redaction.document({"phase": "running", "error": {"message": "not running"}})

    assert content == {"phase": "running", "error": {"message": f"not {BLOT}"}}


def test_the_last_word_of_a_driver_holds_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", CANARY)
    said = Termination(
        reason=EndReason.SCRIPT_FAILED,
        message=f"cannot log in with {CANARY}",
        exit_code=1,
        clean=False,
        epoch=1,
        error=ErrorInfo(type="ValueError", message=f"bad {CANARY}"),
    )

    write_termination(said, tmp_path / "log")

    text = (tmp_path / "log").read_text()
    assert "CANARY" not in text
    assert json.loads(text)["error"]["message"] == f"bad {BLOT}"


def test_the_answers_of_an_agent_hold_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", CANARY)
    error = ErrorInfo(type="Refused", message=f"S3 refused {CANARY}")
    operation = SavepointOperation(name="a", state=OperationState.FAILED, error=error)

    texts = [answer(operation).text, failure(500, "Unexpected", f"oh {CANARY}").text]

    assert all(text is not None and "CANARY" not in text and BLOT in text for text in texts)


def test_the_answer_of_a_worker_holds_none() -> None:
    answered = answer_to(["verify", "--job", CANARY], {"DB_PASSWORD": CANARY})

    assert answered.answer in ("Failed", "Refused")
    assert "CANARY" not in answered.model_dump_json()
