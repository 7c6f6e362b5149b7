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
    # A folder tells where its files belong, and tens of thousands of them share a few folders.
    places: dict[str, tuple[dict[str, Entry], str] | None] = {}
    for entry in files:
        if not is_visible(entry.path):
            continue
        folder, _, name = entry.path.rpartition("/")
        if folder not in places:
            places[folder] = _place(operators, folder.split("/"))
        place = places[folder]
        if place is None:
            _add(operators, entry)
        else:
            live, start = place
            live[start + name] = entry
    for path, size in held.items():
        _add_held(operators, path, size)
    return operators


def stateful_operators(paths: Iterable[str]) -> set[int]:
    """The operators that these paths of a checkpoint are about."""
    parts = (path.split("/", 2) for path in paths if path.startswith("state/"))
    numbers = (batch_number(each[1]) for each in parts if len(each) == 3)
    return {number for number in numbers if number is not None}


def _place(
    operators: dict[int, OperatorFiles], folder: list[str]
) -> tuple[dict[str, Entry], str] | None:
    """The store that files directly in a folder belong to, and how their names begin there.

    None for a folder with anything else than a store's data.
    """
    match folder:
        case ["state", op, part, *rest]:
            operator, partition = batch_number(op), batch_number(part)
            if operator is None or partition is None:
                return None
            store, start = _split_store([*rest, ""])
            if start.startswith(f"{_METADATA}/"):
                return None
            files = operators.setdefault(operator, OperatorFiles(operator))
            return _store(files, partition, store).live, start
        case _:
            return None


def _add(operators: dict[int, OperatorFiles], entry: Entry) -> None:
    """What is no store's data: metadata and schemas of the operator."""
    match entry.path.split("/"):
        case ["state", op, *parts] if len(parts) > 1 and (number := batch_number(op)) is not None:
            operator = operators.setdefault(number, OperatorFiles(number))
        case _:
            return
    match parts:
        case ["_metadata", "metadata"]:
            operator.metadata = entry
        case ["_metadata", "v2", name] if (batch := batch_number(name)) is not None:
            operator.metadata_v2[batch] = entry
        case ["_stateSchema", *_]:
            operator.schemas.append(entry)
        case [name, *_] if batch_number(name) is not None:
            operator.partition_schemas.append(entry)


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
