"""The digest that names content: BLAKE3, 256 bits as hex.

As strong as SHA-256, and twice as fast or more, which is what a capture is bound by: with SHA-256
hashing alone took as long as copying (docs/repository-format.md, "Decisions").
"""

from blake3 import blake3

__all__ = ["Digester", "digest_of"]

Digester = blake3
"""Has `update` and `hexdigest`; large pieces are hashed outside the interpreter's lock."""


def digest_of(data: bytes | memoryview) -> str:
    """The digest of some bytes."""
    return blake3(data).hexdigest()
