"""What an S3 server says is there: listings, and the entry of one object."""

import contextlib
import itertools
import math
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any

from sparkpoint.storage.errors import BadLocationError
from sparkpoint.storage.interface import Children, Entry, check_path

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client
    from mypy_boto3_s3.type_defs import ObjectTypeDef

__all__ = ["children_of", "entry_of", "objects_below", "sizes_below", "unfinished_uploads"]

_PAGES = 1
"""Of a thousand objects each: how far a listing goes that must not grow with the history."""


def entry_of(path: str, answer: Mapping[str, Any]) -> Entry:
    """The entry that a HEAD or GET describes."""
    modified = _second(answer["LastModified"])
    return Entry(path, int(answer["ContentLength"]), answer["ETag"].strip('"'), modified)


def _second(moment: datetime) -> float:
    """The second in which it was.

    A HEAD tells whole seconds, and listings of some servers (MinIO, Google's) tell milliseconds
    of the same moment: compared as they are, every object would look written since it was listed.
    """
    return float(math.floor(moment.timestamp()))


def objects_below(client: "S3Client", bucket: str, top: str, *, root: str) -> list[Entry]:
    """Every object whose key starts with `top`, sorted here, as servers differ in order.

    Paths are relative to `root`.
    """
    found: list[Entry] = []
    pages = client.get_paginator("list_objects_v2")
    for page in pages.paginate(Bucket=bucket, Prefix=top):
        found += _entries(page.get("Contents", []), root)
    return sorted(found, key=lambda entry: entry.path)


def sizes_below(
    client: "S3Client", bucket: str, top: str, *, root: str
) -> tuple[dict[str, int], bool]:
    """Path -> size of the objects that a few pages of a listing show, and whether these are all."""
    found: dict[str, int] = {}
    pages = iter(client.get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=top))
    for page in itertools.islice(pages, _PAGES):
        found |= {entry.path: entry.size for entry in _entries(page.get("Contents", []), root)}
        if not page.get("IsTruncated"):
            return found, True
    return found, False


def children_of(client: "S3Client", bucket: str, top: str, *, root: str) -> Children:
    """Sorted names of folders directly below `top`, and objects sorted by path."""
    folders: list[str] = []
    files: list[Entry] = []
    pages = client.get_paginator("list_objects_v2")
    for page in pages.paginate(Bucket=bucket, Prefix=top, Delimiter="/"):
        common = page.get("CommonPrefixes", [])
        folders += [each["Prefix"][len(top) : -1] for each in common]
        files += _entries(page.get("Contents", []), root)
    return sorted(folders), sorted(files, key=lambda entry: entry.path)


def unfinished_uploads(client: "S3Client", bucket: str, top: str, *, root: str) -> Iterator[Entry]:
    """Uploads in parts that nobody ended; the stamp is the upload's id."""
    pages = client.get_paginator("list_multipart_uploads")
    for page in pages.paginate(Bucket=bucket, Prefix=top):
        for each in page.get("Uploads", []):
            path = each["Key"][len(root) :]
            # As in listings: only names that can be ours.
            with contextlib.suppress(BadLocationError):
                check_path(path)
                yield Entry(path, 0, each["UploadId"], each["Initiated"].timestamp())


def _entries(contents: "Iterable[ObjectTypeDef]", root: str) -> Iterator[Entry]:
    for each in contents:
        path = each["Key"][len(root) :]
        # Other tools mark folders with empty objects "name/", and may use keys such as "a//b".
        with contextlib.suppress(BadLocationError):
            check_path(path)
            stamp = each["ETag"].strip('"')
            yield Entry(path, each["Size"], stamp, _second(each["LastModified"]))
