"""The digests that name content: BLAKE3, or an MD5 that an S3 server vouches for.

BLAKE3, 256 bits as hex, is as strong as SHA-256, and twice as fast or more, which is what a capture
is bound by: with SHA-256 hashing alone took as long as copying.

`md5-<MD5>-<scope>` is for what a server copies without our reading it. MD5 does not withstand
somebody who makes two contents for it, so it names content only within a scope, the digest of a
name that others cannot use (docs/repository-format.md, "Decisions").
"""

import hashlib
import re
from collections.abc import Sequence
from typing import Protocol

from blake3 import blake3

__all__ = [
    "CONTENT_DIGEST",
    "Digester",
    "digest_of",
    "digest_of_parts",
    "is_md5",
    "md5_digest",
    "new_digester",
]

CONTENT_DIGEST = r"[0-9a-f]{64}|md5-[0-9a-f]{32}-[0-9a-f]{32}"
"""What a digest of either kind looks like, as a pattern without its ends."""
_MD5 = re.compile(r"md5-[0-9a-f]{32}-(?P<scope>[0-9a-f]{32})")
_SCOPE_DIGITS = 32
_TOGETHER = 64


class Digester(Protocol):
    """Large pieces are hashed outside the interpreter's lock, whatever the kind."""

    def update(self, data: bytes | memoryview, /) -> object:
        """Add to what is hashed."""
        ...

    def hexdigest(self) -> str:
        """The digest of all so far, as it is written in names."""
        ...


class _Md5:
    def __init__(self, scope: str) -> None:
        self._hash = hashlib.md5(usedforsecurity=False)
        self._scope = scope
        self.update = self._hash.update

    def hexdigest(self) -> str:
        return f"md5-{self._hash.hexdigest()}-{self._scope}"


def new_digester(like: str = "") -> Digester:
    """One that makes digests of the same kind and scope as `like`; BLAKE3 if that is none."""
    md5 = _MD5.fullmatch(like)
    return _Md5(md5["scope"]) if md5 else blake3()


def digest_of(data: bytes | memoryview, like: str = "") -> str:
    """The digest of some bytes, of the same kind and scope as `like`."""
    if not like or not is_md5(like):
        return blake3(data).hexdigest()
    digester = new_digester(like)
    digester.update(data)
    return digester.hexdigest()


def digest_of_parts(parts: Sequence[bytes]) -> str:
    """The digest of all of them, one after the other."""
    digester = new_digester()
    # Small ones some at a time: each call costs more than to put them together.
    for at in range(0, len(parts), _TOGETHER):
        digester.update(b"".join(parts[at : at + _TOGETHER]))
    return digester.hexdigest()


def is_md5(digest: str) -> bool:
    """Whether it is of the kind that counts only within its scope."""
    return digest.startswith("md5-")


def md5_digest(md5: str, scope: str) -> str:
    """The digest of content with this MD5, in lower-case hex, within a scope of any name."""
    return f"md5-{md5}-{blake3(scope.encode()).hexdigest()[:_SCOPE_DIGITS]}"
