"""One stateful operator at one batch: its metadata, its schemas and the plan of all its stores."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from sparkpoint.checkpoint.ancestry import StoreTask
from sparkpoint.checkpoint.errors import DamagedError, UnknownFormatError
from sparkpoint.checkpoint.layout import OperatorFiles, StoreFiles, store_folder
from sparkpoint.checkpoint.logs import parse_commit
from sparkpoint.checkpoint.model import (
    CommitEntry,
    OffsetEntry,
    Operator,
    PlannedFile,
    Role,
    StateStore,
)
from sparkpoint.checkpoint.names import (
    CODEC,
    DECODABLE,
    batch_number,
    codec_name,
    provider_name,
)
from sparkpoint.checkpoint.operators import (
    LIMIT_FIELDS,
    OperatorMetadata,
    parse_operator,
    schema_fields,
    schema_tail,
)
from sparkpoint.checkpoint.reader import BatchReader
from sparkpoint.checkpoint.stateplan import PlannedStore, plan_stores
from sparkpoint.storage.interface import Entry

__all__ = ["PlannedOperator", "plan_operator"]

_PROVIDER = "spark.sql.streaming.stateStore.providerClass"
_PARTITIONS = "spark.sql.shuffle.partitions"
_MAX_PARTITIONS = 1_000_000


@dataclass(slots=True)
class PlannedOperator:
    """The operator as it will be described, and its files."""

    operator: Operator
    files: list[PlannedFile] = field(default_factory=list)
    state: list[tuple[int, PlannedFile]] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    doubts: list[str] = field(default_factory=list)


def plan_operator(
    files: OperatorFiles,
    offsets: OffsetEntry,
    commit: CommitEntry,
    reader: BatchReader,
    *,
    max_chain: int,
    listed: Mapping[str, Entry],
    as_stored: bool = False,
) -> PlannedOperator:
    """Plan one operator; what is missing is collected, what is unknown or damaged is raised."""
    provider, codec = _provider(offsets), _codec(offsets)
    metadata_file, metadata = _metadata(files, offsets.batch, reader)
    partitions = _partitions(files, metadata, offsets, commit, reader)
    names = tuple(s.name for s in metadata.stores) if metadata else files.store_names
    tasks = [
        _task(files, partition, name, commit) for name in names for partition in range(partitions)
    ]
    older = _older_commits(commit, codec, listed, reader)
    planned = plan_stores(
        tasks,
        commit=commit,
        provider=provider,
        codec=codec,
        reader=reader,
        older=older,
        max_chain=max_chain,
        families_since=_families_since(files, offsets.batch, metadata),
        as_stored=as_stored,
    )
    schemas = [e for e in files.schemas if _schema_batch(e.path) <= offsets.batch]
    own = [*([metadata_file] if metadata_file else []), *schemas, *files.partition_schemas]
    # What an older batch needs, Spark purges, and loads the newest without.
    is_newest = f"commits/{commit.batch + 1}" not in listed
    return PlannedOperator(
        operator=Operator(
            id=files.id,
            name=metadata.name if metadata else None,
            metadata_version=metadata.version if metadata else None,
            provider=provider,
            partitions=partitions,
            stores=_describe(names, tasks, planned),
        ),
        files=[PlannedFile(e.path, e.size, e.stamp, Role.OPERATOR) for e in own],
        state=[aged for store in planned for aged in store.files],
        missing=[
            *([] if names else [f"state/{files.id}/0"]),
            *_missing_schemas(files, metadata, metadata_file, {e.path for e in schemas}),
            *(path for store in planned for path in store.missing),
        ],
        warnings=[
            *(warning for store in planned for warning in store.warnings),
            *_lost([path for store in planned for path in store.lent if is_newest]),
        ],
        doubts=[doubt for store in planned for doubt in store.doubts],
    )


def _lost(lent: list[str]) -> list[str]:
    if not lent:
        return []
    others = f", one of {len(lent)} files," if len(lent) > 1 else ""
    return [
        f"{lent[0]}{others} is no longer in the checkpoint, which cannot be loaded without; the "
        "parent savepoint's is taken. If the query fails for want of it, restore this savepoint."
    ]


def _provider(offsets: OffsetEntry) -> str:
    name = offsets.conf.get(_PROVIDER)
    if name is None:
        raise UnknownFormatError(
            f"offsets/{offsets.batch} does not record {_PROVIDER}: the checkpoint is older than "
            "Spark 2.3. Run one batch with a supported Spark first."
        )
    provider = provider_name(name)
    if provider is None:
        raise UnknownFormatError(
            f"the state store provider {name} is unknown; known are Spark's own "
            "HDFSBackedStateStoreProvider and RocksDBStateStoreProvider."
        )
    return provider


def _codec(offsets: OffsetEntry) -> str:
    text = offsets.conf.get(CODEC, DECODABLE)
    codec = codec_name(text)
    if codec is None:
        raise UnknownFormatError(
            f"the state is compressed with {text}; known are lz4, lzf, snappy and zstd."
        )
    return codec


def _metadata(
    files: OperatorFiles, batch: int, reader: BatchReader
) -> tuple[Entry | None, OperatorMetadata | None]:
    known = [number for number in files.metadata_v2 if number <= batch]
    entry = files.metadata_v2[max(known)] if known else files.metadata
    if entry is None:
        return None, None
    metadata = parse_operator(reader.read(entry.path), entry.path)
    if metadata.id != files.id:
        raise DamagedError(
            f"{entry.path} is of operator {metadata.id}: folders of operators were swapped or "
            "moved. Restore an older savepoint."
        )
    return entry, metadata


def _families_since(files: OperatorFiles, batch: int, metadata: OperatorMetadata | None) -> int:
    """The first version after the operator's last start, if it keeps column families; else 0.

    Every start may add families, and writes a new metadata file of version 2.
    """
    if metadata is None or metadata.version == 1:
        return 0
    return max(number for number in files.metadata_v2 if number <= batch) + 1


def _partitions(
    files: OperatorFiles,
    metadata: OperatorMetadata | None,
    offsets: OffsetEntry,
    commit: CommitEntry,
    reader: BatchReader,
) -> int:
    if files.id in commit.state_ids:
        return len(commit.state_ids[files.id])
    text = offsets.conf.get(_PARTITIONS, "")
    if not text.isascii() or not text.isdigit() or not 0 < int(text[:9]) <= _MAX_PARTITIONS:
        raise DamagedError(
            f"offsets/{offsets.batch}: {_PARTITIONS} is {text[:40]!r}, not a number of partitions."
        )
    return 1 if _has_no_key(files, metadata, reader) else int(text)


def _has_no_key(
    files: OperatorFiles, metadata: OperatorMetadata | None, reader: BatchReader
) -> bool:
    """Without grouping keys there is one partition, whatever the configuration says."""
    if metadata is not None and metadata.name == "globalLimit":
        return True
    schema = next(iter(files.partition_schemas), None)
    if schema is None or (metadata is not None and metadata.version > 1):
        return False
    fields = schema_fields(reader.read(schema.path), schema.path)
    if fields is None:
        return False
    # By a column of no type, such as a null, Spark distributes as by any other.
    return not fields[0] or (metadata is None and fields == LIMIT_FIELDS)


def _task(files: OperatorFiles, partition: int, name: str, commit: CommitEntry) -> StoreTask:
    found = files.stores.get((partition, name))
    partitions = commit.state_ids.get(files.id, ())
    ids = [uid for store in partitions[partition] for uid in store] if partitions else []
    return StoreTask(
        operator=files.id,
        partition=partition,
        name=name,
        files=found or StoreFiles(store_folder(files.id, partition, name)),
        unique_ids=tuple(ids),
    )


def _older_commits(
    commit: CommitEntry, codec: str, listed: Mapping[str, Entry], reader: BatchReader
) -> dict[int, CommitEntry]:
    """The commit log back from this batch: it replaces changelog heads that we cannot decode."""
    if not commit.state_ids or codec == DECODABLE:
        return {}
    paths = [p for p in listed if p.startswith("commits/")]
    numbers = {p: n for p in paths if (n := batch_number(p[8:])) is not None and n < commit.batch}
    older = reader.map(numbers, lambda data, path: parse_commit(data, numbers[path]))
    return {**{each.batch: each for each in older.values()}, commit.batch: commit}


def _schema_batch(path: str) -> int:
    """The batch in `<batch>_<uuid>`; schemas with other names are always taken."""
    number = batch_number(path.rsplit("/", 1)[-1].partition("_")[0])
    return -1 if number is None else number


def _missing_schemas(
    files: OperatorFiles,
    metadata: OperatorMetadata | None,
    entry: Entry | None,
    present: set[str],
) -> list[str]:
    if metadata is None or entry is None:
        return []
    named = (uri for store in metadata.stores for uri in store.schema_paths)
    wanted = {f"state/{files.id}/{schema_tail(uri, entry.path)}" for uri in named}
    return sorted(wanted - present)


def _describe(
    names: tuple[str, ...], tasks: list[StoreTask], planned: list[PlannedStore]
) -> tuple[StateStore, ...]:
    described = []
    for name in names:
        mine = [p for task, p in zip(tasks, planned, strict=True) if task.name == name]
        described.append(
            StateStore(
                name=name,
                partitions=len(mine),
                base_versions=tuple(store.base for store in mine),
                files=sum(len(store.files) for store in mine),
                bytes=sum(file.size for store in mine for _, file in store.files),
                rows=_sum(store.rows for store in mine),
            )
        )
    return tuple(described)


def _sum(counts: Iterable[int | None]) -> int | None:
    """None if one of them is unknown."""
    known = list(counts)
    return sum(each for each in known if each is not None) if None not in known else None
