"""Which columns of a key decide in which partition Spark looks for it, for every operator.

Spark sends a row to the partition of its grouping or join key, and keeps its state there. A store's
own key may have more columns behind those: the start of a session, the index of a joined row.
Operators without a key run as one task, so their state is in partition 0, however many partitions
the query has.

What is not listed here is refused by name. That the rule is the right one is not only believed:
before anything is rewritten, every row is compared with it.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from sparkpoint.checkpoint.model import Operator
from sparkpoint.state import swift
from sparkpoint.state.errors import UnsupportedStateError
from sparkpoint.state.manyhash import hash_keys
from sparkpoint.state.murmur import SEED, row_hasher
from sparkpoint.state.types import Atom, Column, StoreSchema, Struct

__all__ = ["Placement", "placement_of"]

_BY_WHOLE_KEY = frozenset(
    {
        "stateStoreSave",
        "dedupe",
        "dedupeWithinWatermark",
        "flatMapGroupsWithState",
        "applyInPandasWithState",
    }
)
_SESSION = "sessionWindowStateStoreSaveExec"
_JOIN = "symmetricHashJoin"
_LIMIT = "globalLimit"
_LIMIT_COLUMNS = (Column("key", Atom("void")),), (Column("value", Atom("long")),)
_JOIN_STORES = {
    "left-keyToNumValues": 0,
    "right-keyToNumValues": 0,
    "left-keyWithIndexToValue": 1,
    "right-keyWithIndexToValue": 1,
}
"""Store -> columns behind the join key."""
_SESSION_START = Column("sessionStartTime", Atom("timestamp"))
_SESSION_WINDOWS = tuple(
    Struct((Column("start", Atom(kind)), Column("end", Atom(kind))))
    for kind in ("timestamp", "timestamp_ntz")
)
"""What a session is kept as in its value, whatever the script calls it."""
_SIGN = 0x80000000
_FEW = 32
"""So many keys at least before numpy is faster."""


@dataclass(frozen=True, slots=True)
class Placement:
    """How the rows of one store are spread over partitions."""

    columns: tuple[Column, ...]
    """The first columns of the key: those that are hashed. None of them: all is in partition 0."""
    width: int
    """How many columns a key has in all."""

    def partitions(self, wanted: int) -> int:
        """How many partitions the store has in a query of `wanted` partitions."""
        return wanted if self.columns else 1

    def hasher(self) -> Callable[[Sequence[bytes]], list[int]]:
        """Keys -> their hashes; modulo the number of partitions they are the partitions.

        UnsupportedStateError names a column whose type we cannot hash.
        """
        if not self.columns:
            return lambda keys: [0] * len(keys)
        one = self._one()
        numpy = swift.library("numpy")
        if numpy is None:
            return lambda keys: [one(key) for key in keys]

        def several(keys: Sequence[bytes]) -> list[int]:
            if len(keys) < _FEW:
                return [one(key) for key in keys]
            return hash_keys(numpy, keys, self.columns, width=self.width)

        return several

    def _one(self) -> Callable[[bytes], int]:
        hashed = row_hasher(self.columns, width=self.width)

        def signed(key: bytes) -> int:
            value = hashed(key, 0, SEED)
            # Spark's hash is signed; its pmod, like Python's %, is never negative.
            return value - ((value & _SIGN) << 1)

        return signed


def placement_of(operator: Operator, store: str, schema: StoreSchema) -> Placement:
    """The rule for one store of an operator; UnsupportedStateError for one that we do not know."""
    behind = _behind(operator, store, schema)
    if behind is None:
        return Placement((), len(schema.key))
    columns = schema.key[: len(schema.key) - behind]
    return Placement(columns, len(schema.key))


def _behind(operator: Operator, store: str, schema: StoreSchema) -> int | None:
    """How many columns stand behind those that are hashed; None if there is nothing to hash."""
    name = operator.name
    if name is None:
        name = _recognized(operator, schema)
    if name == _JOIN and store in _JOIN_STORES:
        return _JOIN_STORES[store]
    if name == _LIMIT:
        return None
    if name in _BY_WHOLE_KEY and store == "default":
        return 0
    if name == _SESSION and store == "default":
        return 1
    raise UnsupportedStateError(
        f"it is not known here by which columns Spark places the keys of store {store!r} of "
        f"operator {operator.id} ({operator.name or 'unnamed'})."
    )


def _recognized(operator: Operator, schema: StoreSchema) -> str:
    """Tell the operators of Spark 3.5, which records no names, by their stores and keys."""
    if {store.name for store in operator.stores} == _JOIN_STORES.keys():
        return _JOIN
    if (schema.key, schema.value) == _LIMIT_COLUMNS:
        return _LIMIT
    return _SESSION if _is_session(schema) else "stateStoreSave"


def _is_session(schema: StoreSchema) -> bool:
    """A session keeps whole rows, with its window and its other keys in them, of which Spark wants
    one at least; its start is only in the key.

    A grouping may have a column of that name, and out of one partition no audit would notice.
    """
    others = schema.key[:-1]
    if not others or schema.key[-1] != _SESSION_START:
        return False
    # By number: another key may be called like the start.
    keys, values = (Counter(c.name for c in columns) for columns in (schema.key, schema.value))
    if keys <= values or not Counter(c.name for c in others) <= values:
        return False
    return any(column.type in _SESSION_WINDOWS for column in schema.value)
