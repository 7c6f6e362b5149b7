"""Where things are in a repository, and which names they may have."""

import re

from sparkpoint.savepoint.errors import BadNameError, DamagedError
from sparkpoint.storage.digest import CONTENT_DIGEST

__all__ = [
    "COLLECT_LEASE",
    "DELETED",
    "LEASES",
    "OBJECTS",
    "REPOSITORY",
    "RESERVE",
    "SAVEPOINTS",
    "TAGS",
    "check_digest",
    "check_name",
    "deleted_path",
    "digest_of_path",
    "lease_path",
    "manifest_path",
    "object_path",
    "tag_path",
]

REPOSITORY = "repository.json"
OBJECTS = "objects"
SAVEPOINTS = "savepoints"
DELETED = "deleted"
TAGS = "tags"
LEASES = "leases"
COLLECT_LEASE = f"{LEASES}/collect.json"
RESERVE = "reserve"

_NAME = re.compile(r"[a-z0-9]([-a-z0-9._]{0,126}[a-z0-9])?")
_DIGEST = re.compile(r"[0-9a-f]{64}")
_CONTENT_DIGEST = re.compile(CONTENT_DIGEST)


def check_name(name: str, what: str) -> str:
    """The name itself if it can be one, else BadNameError."""
    if not _NAME.fullmatch(name):
        raise BadNameError(
            f"{name[:140]!r} cannot be the name of a {what}: use up to 128 lower-case letters, "
            "digits, '-', '.' and '_', with a letter or digit at both ends."
        )
    return name


def check_digest(digest: str) -> str:
    """The digest itself if it is well-formed, else DamagedError."""
    if not _DIGEST.fullmatch(digest):
        raise DamagedError(f"{digest[:80]!r} is not a digest in lower-case hex.")
    return digest


def object_path(digest: str) -> str:
    """Where the object with this content is; 256 folders keep each listing short."""
    if not _CONTENT_DIGEST.fullmatch(digest):
        raise DamagedError(f"{digest[:80]!r} is not a digest of content.")
    return f"{OBJECTS}/{_shard(digest)}/{digest}"


def _shard(digest: str) -> str:
    return digest.removeprefix("md5-")[:2]


def digest_of_path(path: str) -> str | None:
    """The digest of an object's path; None for a file that does not belong there."""
    parts = path.split("/")
    proper = (
        len(parts) == 3 and _CONTENT_DIGEST.fullmatch(parts[2]) and _shard(parts[2]) == parts[1]
    )
    return parts[2] if proper else None


def manifest_path(namespace: str, job: str, name: str) -> str:
    """Where a savepoint's manifest is."""
    for part, what in ((namespace, "namespace"), (job, "job"), (name, "savepoint")):
        check_name(part, what)
    return f"{SAVEPOINTS}/{namespace}/{job}/{name}.json"


def deleted_path(identity: str) -> str:
    """Where the record of a deleted savepoint is."""
    return f"{DELETED}/{check_digest(identity)}.json"


def tag_path(identity: str, tag: str) -> str:
    """Where a savepoint's tag is."""
    return f"{TAGS}/{check_digest(identity)}/{check_name(tag, 'tag')}.json"


def lease_path(identity: str) -> str:
    """Where a lease is."""
    return f"{LEASES}/{identity}.json"
