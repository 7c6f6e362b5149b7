"""Whether code means by its state what the code meant that wrote it, as far as names tell.

Spark compares the types of columns, and neither their names nor what is computed: a maximum goes on
from what was a sum, two columns of a key change places, a state variable with another name begins
empty, all without a word. When a query first starts, however, Spark writes down what columns and
variables are called. Here it is made to do that again for the new code, on the throw-away copy.
"""

import logging
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence

from sparkpoint.checkpoint.errors import CheckpointError
from sparkpoint.checkpoint.jsonlog import Json, as_list, as_object, as_text, parse
from sparkpoint.checkpoint.layout import DEFAULT_STORE, store_folder
from sparkpoint.checkpoint.operators import schema_texts, variable_names
from sparkpoint.runtime.execution import LostError
from sparkpoint.savepoint.manifest import OperatorInfo
from sparkpoint.storage import Store
from sparkpoint.storage.errors import NotFoundError, StorageError

__all__ = ["StateNames", "changes_between"]

Names = Mapping[str, tuple[str, ...]]
"""What has names -> these: columns in their order."""

_VARIABLES = "state variables"

logger = logging.getLogger("sparkpoint.runtime")


class StateNames:
    """What the columns and variables of one query's state are called, in the savepoint and now."""

    def __init__(self, checkpoint: Store, operators: Sequence[OperatorInfo]) -> None:
        """`checkpoint` is the copy, before anything has run on it."""
        self._checkpoint, self._operators = checkpoint, operators
        self._before = self._told()
        self._asking = threading.Lock()
        self._changes: tuple[str, ...] | None = None

    def changes(self, write_schemas: Callable[[], None]) -> tuple[str, ...]:
        """What is called otherwise by the code that runs; asked once, from whichever thread.

        `write_schemas` lets Spark write down the names of the code that runs.
        """
        with self._asking:
            if self._changes is None:
                self._changes = self._found(write_schemas)
            return self._changes

    def _found(self, write_schemas: Callable[[], None]) -> tuple[str, ...]:
        try:
            for _, path in self._schemas():
                self._checkpoint.delete(path)
            write_schemas()
        except (LostError, StorageError) as error:
            # Spark has taken the state; that nobody knows the names is no reason against it.
            logger.warning("Rehearsal: the names of the state could not be compared: %s", error)
            return ()
        return tuple(changes_between(self._before, self._told()))

    def _told(self) -> Names:
        names: dict[str, tuple[str, ...]] = {}
        try:
            for what, path in self._schemas():
                names.update(self._columns(what, path))
            for what, folder in self._families():
                names.update(self._variables(what, folder))
        except (CheckpointError, StorageError) as error:
            logger.warning("Rehearsal: the names of the state are not known: %s", error)
        return names

    def _schemas(self) -> Iterator[tuple[str, str]]:
        for operator in self._operators:
            if operator.metadata_version in (None, 1):
                for store in operator.stores:
                    where = "" if store.name == DEFAULT_STORE else f", store {store.name}"
                    folder = store_folder(operator.id, 0, store.name)
                    yield f"operator {operator.id}{where}", f"{folder}/_metadata/schema"

    def _families(self) -> Iterator[tuple[str, str]]:
        for operator in self._operators:
            if operator.metadata_version not in (None, 1):
                yield f"operator {operator.id}", f"state/{operator.id}/_metadata/v2"

    def _columns(self, what: str, path: str) -> Names:
        try:
            texts = schema_texts(self._checkpoint.read(path), path)
        except NotFoundError:
            return {}
        if texts is None:
            return {}
        sides = zip(("key", "value"), texts, strict=True)
        return {f"{side} of {what}": tuple(_names(parse(text, path), path)) for side, text in sides}

    def _variables(self, what: str, folder: str) -> Names:
        _, files = self._checkpoint.children(folder)
        names = [each.path.rpartition("/")[2] for each in files]
        numbers = [int(name) for name in names if name.isdecimal()]
        if not numbers:
            return {}
        path = f"{folder}/{max(numbers)}"
        found = variable_names(self._checkpoint.read(path), path)
        return {} if found is None else {f"{_VARIABLES} of {what}": found}


def changes_between(before: Names, after: Names) -> Iterator[str]:
    """A sentence for whatever has names on both sides, and other ones. Pure."""
    for what, names in before.items():
        now = after.get(what)
        if now is None or now == names:
            continue
        if not what.startswith(_VARIABLES):
            yield f"the {what} was {_listed(names)}, and is {_listed(now)} in this code"
        elif gone := [name for name in names if name not in now]:
            begun = [name for name in now if name not in names]
            empty = f", and {_listed(begun)} begins empty" if begun else ""
            yield f"of the {what}, {_listed(gone)} is not in this code{empty}"


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names) or "nothing"


def _names(schema: Json, path: str, above: str = "") -> Iterator[str]:
    """Of all columns, those inside of others with the names of both."""
    fields = as_list(as_object(schema, path, "the schema").get("fields"), path, "fields")
    for each in fields:
        field = as_object(each, path, "a field")
        name = above + as_text(field.get("name"), path, "a field's name")
        kind = field.get("type")
        if isinstance(kind, dict) and "fields" in kind:
            yield from _names(kind, path, f"{name}.")
        else:
            yield name
