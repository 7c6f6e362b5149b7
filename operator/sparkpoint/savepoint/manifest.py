"""The manifest: what a savepoint is, as JSON at the border of the repository.

It is small on purpose: the files are listed in a table, an object of its own that the manifest
names, so that listing a thousand savepoints reads a thousand small files and nothing more. Its
bytes are canonical; their digest is the savepoint's id.
"""

import json
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Annotated, Final, Literal, TypeVar

from pydantic import (
    AfterValidator,
    AwareDatetime,
    BaseModel,
    ConfigDict,
    Field,
    StringConstraints,
    ValidationError,
)
from pydantic.alias_generators import to_camel

from sparkpoint.savepoint.errors import DamagedError, NewerFormatError
from sparkpoint.storage.digest import CONTENT_DIGEST, digest_of, is_md5

__all__ = [
    "FORMAT",
    "NEWEST",
    "ContentDigest",
    "FileSet",
    "Manifest",
    "OperatorInfo",
    "Parent",
    "QueryInfo",
    "SinkInfo",
    "SourceCut",
    "SourceInfo",
    "SourceOffset",
    "StoreInfo",
    "Strict",
    "Timing",
    "canonical",
    "format_for",
    "identity_of",
    "moment",
    "parse_document",
    "parse_manifest",
]

FORMAT: Final = 1
"""Of every document that holds nothing newer."""
NEWEST: Final = 2
"""Of those with content that is named by its MD5, and of repositories that may have such."""
MANIFEST_LIMIT = 16 * 1024 * 1024

Digest = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]
ContentDigest = Annotated[str, StringConstraints(pattern=rf"^({CONTENT_DIGEST})$")]
Name = Annotated[str, StringConstraints(pattern=r"^[a-z0-9]([-a-z0-9._]{0,126}[a-z0-9])?$")]
Text = Annotated[str, StringConstraints(max_length=4096)]
Count = Annotated[int, Field(ge=0, lt=2**63)]


def _folder(name: str) -> str:
    if "/" in name or "\0" in name or name in (".", ".."):
        raise ValueError("must be one folder's name, or empty")
    return name


Prefix = Annotated[str, StringConstraints(max_length=255), AfterValidator(_folder)]

_FIRST, _END = datetime(1970, 1, 1, tzinfo=UTC), datetime(9999, 1, 1, tzinfo=UTC)


def _in_utc(time: datetime) -> datetime:
    # Near the ends of what a datetime can be, it cannot be shown in another zone.
    if not _FIRST <= time < _END:
        raise ValueError("must be a time in the years from 1970 to 9998, in UTC")
    return time.astimezone(UTC)


Moment = Annotated[AwareDatetime, Field(strict=False), AfterValidator(_in_utc)]


class Strict(BaseModel):
    """Unknown keys and wrong types are refused: a document of a newer format must not half-load."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        strict=True,
        alias_generator=to_camel,
        validate_by_name=True,
        validate_by_alias=True,
        serialize_by_alias=True,
    )


class SourceOffset(Strict):
    """How far one source was read."""

    key: Text
    offset: str | None = None


class StoreInfo(Strict):
    """One state store over all partitions."""

    name: Text
    partitions: Count
    base_versions: list[Count]
    files: Count
    bytes: Count


class OperatorInfo(Strict):
    """One stateful operator."""

    id: Count
    name: Text | None = None
    metadata_version: Count | None = None
    provider: Text
    partitions: Count
    stores: list[StoreInfo]


class SinkInfo(Strict):
    """What is known about where the query writes; rewinding needs it."""

    kind: Literal["file", "delta", "iceberg", "kafka", "foreachBatch", "other"]
    uri: Text | None = None


class SourceCut(Strict):
    """A file source's log that survives only inside a compacted entry newer than the batch."""

    source: Text
    path: Text
    last: Count
    interval: Annotated[int, Field(ge=1, lt=2**31)]


class QueryInfo(Strict):
    """One streaming query in the savepoint."""

    prefix: Prefix
    """Its folder below the checkpoint's root; empty if it is the root."""
    id: Text
    batch: Count
    watermark_ms: int
    next_watermark_ms: int
    timestamp_ms: int
    sources: list[SourceOffset]
    conf: dict[str, str]
    operators: list[OperatorInfo]
    sink: SinkInfo | None = None
    rows: Count | None = None
    """Of state, as Spark counted them and its reader must find them; None if nobody told."""
    pending: bool
    """A batch was begun and not committed: its offsets are kept for resuming."""
    offsets_version: Count
    commits_version: Count
    source_cuts: list[SourceCut] = []
    """What a restore must cut out of newer entries; nearly always empty."""
    warnings: list[Text] = []


class Parent(Strict):
    """The savepoint before this one in its lineage."""

    id: Digest
    namespace: Name
    job: Name
    name: Name


class SourceInfo(Strict):
    """The checkpoint that was captured."""

    uri: Text
    epoch: Text | None = None


class FileSet(Strict):
    """What the savepoint consists of, and what it added to the repository."""

    table: Digest
    table_bytes: Count
    count: Count
    bytes: Count
    new_bytes: Count
    new_objects: Count


class Timing(Strict):
    """When the capture began, and what it took."""

    started: Moment
    seconds: float = Field(ge=0, allow_inf_nan=False)
    tries: Count


class Manifest(Strict):
    """A savepoint."""

    format: Literal[1, 2]
    """That of its table."""
    namespace: Name
    job: Name
    name: Name
    created: Moment
    parent: Parent | None = None
    source: SourceInfo
    revision: Text | None = None
    spark_version: Text | None = None
    trigger: Text | None = None
    queries: Annotated[list[QueryInfo], Field(min_length=1, max_length=1000)]
    files: FileSet
    timing: Timing

    @property
    def pending(self) -> bool:
        """Whether any query was stopped, or caught, in the middle of a batch."""
        return any(query.pending for query in self.queries)


def canonical(model: Strict) -> bytes:
    """The one way to write a document: sorted keys, no spaces, UTF-8, a newline at the end."""
    content = model.model_dump(mode="json", exclude_none=True)
    text = json.dumps(content, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return f"{text}\n".encode()


def format_for(digests: Iterable[str]) -> Literal[1, 2]:
    """What a document that names this content is written in: the oldest that can."""
    return NEWEST if any(map(is_md5, digests)) else FORMAT


def identity_of(data: bytes) -> str:
    """The id of the savepoint whose manifest these bytes are."""
    return digest_of(data)


def parse_manifest(data: bytes, where: str) -> Manifest:
    """The manifest in these bytes; NewerFormatError or DamagedError otherwise."""
    if len(data) > MANIFEST_LIMIT:
        raise DamagedError(f"{where} has {len(data)} bytes, too many for a manifest. {_WAY_OUT}")
    manifest = parse_document(Manifest, data, where, newest=NEWEST)
    prefixes = [query.prefix for query in manifest.queries]
    if len(set(prefixes)) != len(prefixes) or ("" in prefixes and len(prefixes) > 1):
        raise DamagedError(f"{where}: two of its queries share a folder. {_WAY_OUT}")
    return manifest


_WAY_OUT = "Restore it from a copy of the repository, or delete it."

_Document = TypeVar("_Document", bound=Strict)


def parse_document(
    model: type[_Document],
    data: bytes,
    where: str,
    *,
    newest: int = FORMAT,
    way_out: str = _WAY_OUT,
) -> _Document:
    """Any versioned JSON document of the repository; its format is checked before all else.

    `way_out` is what to do if it is damaged.
    """
    try:
        content = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise DamagedError(f"{where} is not JSON: damaged or cut off. {way_out}") from error
    version = content.get("format") if isinstance(content, dict) else None
    if not isinstance(version, int) or isinstance(version, bool) or version < 1:
        raise DamagedError(f"{where} does not say which format it has. {way_out}")
    if version > newest:
        raise NewerFormatError(
            f"{where} has format {version}; this version of Sparkpoint knows formats up to "
            f"{newest}. Update Sparkpoint."
        )
    try:
        return model.model_validate(content)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        field = ".".join(str(part) for part in first["loc"])
        raise DamagedError(f"{where} is damaged at {field}: {first['msg']}. {way_out}") from error


def moment(timestamp: float) -> datetime:
    """A time as manifests write it: UTC, to the millisecond."""
    return datetime.fromtimestamp(round(timestamp, 3), tz=UTC)
