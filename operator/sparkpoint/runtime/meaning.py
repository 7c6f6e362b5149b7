"""Whether code means by its state what the code meant that wrote it, as far as names tell.

Spark compares the types of columns, and neither their names nor what is computed: a maximum goes on
from what was a sum, two columns of a key change places, a state variable with another name begins
empty, all without a word. When a query first starts, however, Spark writes down what columns and
variables are called. Here it is made to do that again for the new code, on the throw-away copy;
where it keeps column families, its plan is looked at instead.
"""

import threading
from collections.abc import Iterator, Mapping, Sequence
from typing import Protocol

from sparkpoint.checkpoint.errors import CheckpointError
from sparkpoint.checkpoint.jsonlog import Json, as_list, as_object, as_text, parse
from sparkpoint.checkpoint.layout import DEFAULT_STORE, store_folder
from sparkpoint.checkpoint.operators import (
    LIMIT_FIELDS,
    family_schemas,
    parse_operator,
    schema_fields,
    schema_tail,
    schema_texts,
    variable_names,
)
from sparkpoint.runtime.execution import LostError
from sparkpoint.runtime.families import Columns, columns_of_schemas
from sparkpoint.savepoint.manifest import OperatorInfo
from sparkpoint.storage import Store
from sparkpoint.storage.errors import NotFoundError, StorageError

__all__ = ["Code", "NamesUnknownError", "StateNames", "changes_between"]

Names = Mapping[str, tuple[str, ...]]
"""What has names -> these: columns in their order."""

_VARIABLES = "state variables"
_METADATA = "/_metadata/v2"


class NamesUnknownError(Exception):
    """Names could not be compared: then nobody knows whether the state means what it meant."""

    def __init__(self, message: str, *, retry_helps: bool = False) -> None:
        super().__init__(message)
        self.retry_helps = retry_helps


class Code(Protocol):
    """The code that runs, as far as it tells names; see execution.py."""

    def write_schemas(self) -> None: ...
    def family_columns(self) -> dict[int, Columns]: ...


class StateNames:
    """What the columns and variables of one query's state are called, in the savepoint and now."""

    def __init__(self, checkpoint: Store, operators: Sequence[OperatorInfo]) -> None:
        """`checkpoint` is the copy, before anything has run on it."""
        self._checkpoint, self._operators = checkpoint, operators
        self._before: Names = {}
        self._planned: Names = {}
        self._error: NamesUnknownError | None = None
        try:
            self._planned = self._kept()
            self._before = {**self._told(), **self._planned}
        except (CheckpointError, StorageError) as error:
            self._error = NamesUnknownError(str(error), retry_helps=error.retry_helps)
        self._asking = threading.Lock()
        self._changes: tuple[str, ...] | None = None

    def changes(self, code: Code) -> tuple[str, ...]:
        """What is called otherwise by the code that runs; asked once, from whichever thread.

        NamesUnknownError if it cannot be compared.
        """
        with self._asking:
            if self._changes is None and self._error is None:
                self._find(code)
            if self._error is not None:
                raise self._error
            return self._changes or ()

    def _find(self, code: Code) -> None:
        if not self._operators:
            self._changes = ()
            return
        try:
            for _, path in self._schemas():
                self._checkpoint.delete(path)
            code.write_schemas()
            planned = {
                f"{what} of operator {operator}": names
                for operator, columns in code.family_columns().items()
                for what, names in columns.items()
            }
            # What Spark has written down is nearer to the state than a plan.
            after = {**planned, **self._told()}
            if missing := self._before.keys() - after.keys():
                self._error = NamesUnknownError(f"the code does not tell the {min(missing)}")
                return
            self._changes = tuple(changes_between(self._before, after))
        except LostError as lost:
            self._error = NamesUnknownError(str(lost), retry_helps=True)
        except (CheckpointError, StorageError) as error:
            self._error = NamesUnknownError(str(error), retry_helps=error.retry_helps)

    def _told(self) -> Names:
        names: dict[str, tuple[str, ...]] = {}
        for what, path in self._schemas():
            names.update(self._columns(what, path))
        for what, folder in self._families():
            names.update(self._variables(what, folder))
        return names

    def _schemas(self) -> Iterator[tuple[str, str]]:
        for operator in self._operators:
            # A limit has a number and no names; Spark writes none of it down anew.
            if operator.metadata_version in (None, 1) and not self._is_limit(operator):
                for store in operator.stores:
                    where = "" if store.name == DEFAULT_STORE else f", store {store.name}"
                    folder = store_folder(operator.id, 0, store.name)
                    yield f"operator {operator.id}{where}", f"{folder}/_metadata/schema"

    def _is_limit(self, operator: OperatorInfo) -> bool:
        if operator.name is not None:
            return operator.name == "globalLimit"
        path = f"{store_folder(operator.id, 0, DEFAULT_STORE)}/_metadata/schema"
        try:
            return schema_fields(self._checkpoint.read(path), path) == LIMIT_FIELDS
        except NotFoundError:
            return False

    def _families(self) -> Iterator[tuple[str, str]]:
        for operator in self._operators:
            if operator.metadata_version not in (None, 1):
                yield f"operator {operator.id}", f"state/{operator.id}{_METADATA}"

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
        path = self._newest(folder)
        found = variable_names(self._checkpoint.read(path), path) if path else None
        return {} if found is None else {f"{_VARIABLES} of {what}": found}

    def _kept(self) -> Names:
        """Of column families."""
        return {
            f"{each} of {what}": names
            for what, folder in self._families()
            for each, names in self._family_columns(folder).items()
        }

    def _family_columns(self, folder: str) -> Columns:
        """By the file of schemas that the metadata of an operator names last."""
        if (path := self._newest(folder)) is None:
            return {}
        metadata = self._checkpoint.read(path)
        stores = parse_operator(metadata, path).stores
        paths = [each for store in stores for each in store.schema_paths]
        if not paths:
            return {}
        schema = f"{folder.removesuffix(_METADATA)}/{schema_tail(paths[-1], path)}"
        families = family_schemas(self._checkpoint.read(schema), schema)
        return columns_of_schemas(families, variable_names(metadata, path) or (), schema)

    def _newest(self, folder: str) -> str | None:
        _, files = self._checkpoint.children(folder)
        names = [each.path.rpartition("/")[2] for each in files]
        numbers = [int(name) for name in names if name.isdecimal()]
        return f"{folder}/{max(numbers)}" if numbers else None


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
