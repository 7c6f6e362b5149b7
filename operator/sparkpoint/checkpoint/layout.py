"""The `state/` tree, sorted into operators, partitions and stores. Looks at names only."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from sparkpoint.checkpoint.names import batch_number, is_visible
from sparkpoint.storage.interface import Entry

__all__ = [
    "DEFAULT_STORE",
    "OperatorFiles",
    "StoreFiles",
    "group_state",
    "stateful_operators",
    "store_folder",
]

DEFAULT_STORE = "default"
_INSIDE_A_STORE = ("SSTs", "logs")
_METADATA = "_metadata"


@dataclass(slots=True)
class StoreFiles:
    """The data files of one store of one partition; names are relative to `folder`."""

    folder: str
    live: dict[str, Entry] = field(default_factory=dict)
    held: dict[str, int] = field(default_factory=dict)
    """Sizes of files that the parent savepoint holds."""


@dataclass(slots=True)
class OperatorFiles:
    """All files of one stateful operator."""

    id: int
    metadata: Entry | None = None
    """`_metadata/metadata`: version 1."""
    metadata_v2: dict[int, Entry] = field(default_factory=dict)
    schemas: list[Entry] = field(default_factory=list)
    """`_stateSchema/…`."""
    partition_schemas: list[Entry] = field(default_factory=list)
    """`<partition>[/<store>]/_metadata/schema`; Spark writes it for partition 0."""
    stores: dict[tuple[int, str], StoreFiles] = field(default_factory=dict)
    """(partition, store name) -> files."""

    @property
    def store_names(self) -> tuple[str, ...]:
        """The stores that there are folders for, in order of name."""
        return tuple(sorted({name for _, name in self.stores}))


def store_folder(operator: int, partition: int, store: str) -> str:
    """Where Spark keeps a store; the default one has no folder of its own."""
    folder = f"state/{operator}/{partition}"
    return folder if store == DEFAULT_STORE else f"{folder}/{store}"


def group_state(files: Iterable[Entry], held: Mapping[str, int]) -> dict[int, OperatorFiles]:
    """Sort the files below `state/` by operator; hidden and foreign ones are left out."""
    operators: dict[int, OperatorFiles] = {}
    for entry in files:
        parts = entry.path.split("/")
        if len(parts) < 4 or parts[0] != "state" or not is_visible(entry.path):
            continue
        number = batch_number(parts[1])
        if number is not None:
            _add(operators.setdefault(number, OperatorFiles(number)), parts[2:], entry)
    for path, size in held.items():
        _add_held(operators, path, size)
    return operators


def stateful_operators(paths: Iterable[str]) -> set[int]:
    """The operators that these paths of a checkpoint are about."""
    parts = (path.split("/", 2) for path in paths if path.startswith("state/"))
    numbers = (batch_number(each[1]) for each in parts if len(each) == 3)
    return {number for number in numbers if number is not None}


def _add(operator: OperatorFiles, parts: list[str], entry: Entry) -> None:
    match parts:
        case ["_metadata", "metadata"]:
            operator.metadata = entry
        case ["_metadata", "v2", name] if (batch := batch_number(name)) is not None:
            operator.metadata_v2[batch] = entry
        case ["_stateSchema", *_]:
            operator.schemas.append(entry)
        case [name, *rest] if rest and (partition := batch_number(name)) is not None:
            _add_data(operator, partition, rest, entry)


def _add_data(operator: OperatorFiles, partition: int, rest: list[str], entry: Entry) -> None:
    store, name = _split_store(rest)
    if name.startswith(f"{_METADATA}/"):
        operator.partition_schemas.append(entry)
        return
    _store(operator, partition, store).live[name] = entry


def _add_held(operators: dict[int, OperatorFiles], path: str, size: int) -> None:
    match path.split("/"):
        case ["state", op, part, *rest] if rest:
            operator, partition = batch_number(op), batch_number(part)
            if operator is not None and partition is not None and operator in operators:
                store, name = _split_store(rest)
                if not name.startswith(f"{_METADATA}/"):
                    _store(operators[operator], partition, store).held[name] = size


def _split_store(rest: list[str]) -> tuple[str, str]:
    if len(rest) == 1 or rest[0] in _INSIDE_A_STORE or rest[0] == _METADATA:
        return DEFAULT_STORE, "/".join(rest)
    return rest[0], "/".join(rest[1:])


def _store(operator: OperatorFiles, partition: int, name: str) -> StoreFiles:
    key = (partition, name)
    if key not in operator.stores:
        operator.stores[key] = StoreFiles(store_folder(operator.id, partition, name))
    return operator.stores[key]
