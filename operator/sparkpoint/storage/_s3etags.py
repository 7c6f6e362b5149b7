"""ETags that are the MD5 of the content: then an object can be named without reading it.

S3 promises that for objects which came in one piece and are not encrypted with a key of somebody's
(SSE-KMS, SSE-C). Other servers may do as they like, so none is believed before an object of the
same bucket, in the same class of size, was read and found to be as its ETag says.
"""

import re
import threading
from typing import TYPE_CHECKING

from sparkpoint.storage._s3errors import explained
from sparkpoint.storage._s3listing import entry_of
from sparkpoint.storage._s3stream import hash_object
from sparkpoint.storage.digest import md5_digest
from sparkpoint.storage.interface import Entry

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client
    from mypy_boto3_s3.type_defs import HeadObjectOutputTypeDef

__all__ = ["EtagProof"]

_MD5 = re.compile(r"[0-9a-f]{32}")
_PLAIN = (None, "AES256")
"""Encryption that leaves the MD5 in the ETag: none, or by the server with keys of its own."""
_SCOPE = "proof"


class EtagProof:
    """Which buckets of one server were seen to tell the MD5, and up to which size."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._proven: set[tuple[str, int]] = set()
        self._refuted: set[str] = set()

    def entry_with_md5(
        self, client: "S3Client", bucket: str, key: str, *, path: str
    ) -> Entry | None:
        """The object's entry, called `path`, if its stamp is the MD5 of its content; else None."""
        if bucket in self._refuted:
            return None
        with explained(f"s3://{bucket}", key):
            answer = client.head_object(Bucket=bucket, Key=key)
        entry = entry_of(path, answer)
        believed = _may_be_md5(answer, entry) and self._is_proven(client, bucket, key, entry)
        return entry if believed else None

    def refute(self, bucket: str) -> None:
        """Believe no ETag of this bucket any more."""
        self._refuted.add(bucket)

    def _is_proven(self, client: "S3Client", bucket: str, key: str, entry: Entry) -> bool:
        # Servers cut what they store at round sizes, and may hash what is longer in another way.
        size = entry.size.bit_length()
        if (bucket, size) in self._proven:
            return True
        with self._lock:
            # Whoever waited here finds the answer.
            if (bucket, size) not in self._proven and bucket not in self._refuted:
                digest, seen = hash_object(
                    client, bucket, key, path=entry.path, like=md5_digest(entry.stamp, _SCOPE)
                )
                if digest == md5_digest(seen.stamp, _SCOPE):
                    self._proven.add((bucket, size))
                else:
                    self.refute(bucket)
        return bucket not in self._refuted


def _may_be_md5(answer: "HeadObjectOutputTypeDef", entry: Entry) -> bool:
    return (
        _MD5.fullmatch(entry.stamp) is not None
        and answer.get("ServerSideEncryption") in _PLAIN
        and answer.get("SSECustomerAlgorithm") is None
    )
