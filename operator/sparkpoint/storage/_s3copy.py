"""Copies that the S3 server makes by itself, and what they may rely on."""

import threading
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from boto3.s3.transfer import TransferConfig
from botocore.exceptions import ClientError

from sparkpoint.storage._s3errors import code_of
from sparkpoint.storage.errors import StorageError

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

__all__ = ["LARGEST_COPY", "CopyProof", "OtherEtagError", "ServerCopy", "touch"]

LARGEST_COPY = 1024 * 1024 * 1024
"""Above this (S3 itself allows five times as much) the server copies in parts."""
_IN_PARTS = TransferConfig(
    multipart_threshold=LARGEST_COPY, multipart_chunksize=256 * 1024 * 1024, max_concurrency=4
)
_REFUSED = ("PreconditionFailed", "412", "ConditionalRequestConflict", "409")


class OtherEtagError(Exception):
    """A copy has not got the ETag that it should have."""


@dataclass(frozen=True, slots=True)
class ServerCopy:
    """One copy from bucket and key to bucket and key of the same server."""

    client: "S3Client"
    source: tuple[str, str]
    target: tuple[str, str]
    size: int
    stamp: str | None = None
    """The source must still have this ETag, where one is given."""
    same_stamp: bool = False
    """The copy must get the same one, else OtherEtagError; not for copies in parts."""

    @property
    def in_parts(self) -> bool:
        """Whether it takes several requests; those cannot be made create-only."""
        return self.size > LARGEST_COPY

    def run(self) -> None:
        """Copy over whatever is there."""
        if self.in_parts:
            self.client.copy(
                self._origin, *self.target, ExtraArgs=self._condition, Config=_IN_PARTS
            )
            return
        self._send()

    def run_if_new(self) -> bool:
        """Copy if nothing is there; whether it did.

        False also if the source has changed: a server does not say which condition failed.
        """
        try:
            self._send(IfNoneMatch="*")
        except ClientError as error:
            if code_of(error) not in _REFUSED:
                raise
            return False
        return True

    @property
    def _origin(self) -> Any:
        return {"Bucket": self.source[0], "Key": self.source[1]}

    @property
    def _condition(self) -> dict[str, Any]:
        return {"CopySourceIfMatch": f'"{self.stamp}"'} if self.stamp else {}

    def _send(self, **condition: Any) -> None:
        bucket, key = self.target
        answer = self.client.copy_object(
            Bucket=bucket, Key=key, CopySource=self._origin, **self._condition, **condition
        )
        found = answer["CopyObjectResult"].get("ETag", "").strip('"')
        if self.same_stamp and found != self.stamp:
            raise OtherEtagError(f"The copy {key} has the ETag {found}, not {self.stamp}.")


class CopyProof:
    """Whether this server honours `If-None-Match: *` on copies; some do so on writes only.

    Asked for once, with a copy that was just made. Until the server has refused to make that one
    again, its word that a copy is the first of its name counts for nothing.
    """

    def __init__(self) -> None:
        self._asked = threading.Lock()
        self._given = False

    def copy_or_refresh(
        self, copy: ServerCopy, *, refresh: Callable[[], bool], unchanged: Callable[[], bool]
    ) -> bool:
        """Copy, or refresh what is there; whether something was. One request if it is proven new.

        `refresh` does so if there is something, and tells; `unchanged`: whether the source is still
        the one to be copied.
        """
        if self._given and not copy.in_parts and copy.run_if_new():
            return False
        # Something is there, or the source is another one now: look.
        if refresh():
            return True
        copy.run()
        if not copy.in_parts and self._asked.acquire(blocking=False):
            self._given = _is_refused(copy, unchanged)
        return False


def _is_refused(copy: ServerCopy, unchanged: Callable[[], bool]) -> bool:
    """Whether the server refuses to make a copy again; if it makes it, no harm is done."""
    try:
        # The source's condition may be what failed, so it must be seen to hold still.
        return not copy.run_if_new() and unchanged()
    except (ClientError, StorageError):
        return False  # the server does not know the header, or the source was purged


def touch(client: "S3Client", bucket: str, key: str, *, size: int) -> None:
    """Give an object a new modification time without sending it again.

    S3 copies an object onto itself only if something about it changes: here a piece of metadata.
    """
    changed: Any = {"Metadata": {"touched": uuid.uuid4().hex}, "MetadataDirective": "REPLACE"}
    origin: Any = {"Bucket": bucket, "Key": key}
    if size > LARGEST_COPY:
        client.copy(origin, bucket, key, ExtraArgs=changed, Config=_IN_PARTS)
        return
    client.copy_object(Bucket=bucket, Key=key, CopySource=origin, **changed)
