"""Conditions and SQL over the rows of one store, by DuckDB: typed, nested, in bounded memory.

The rows are a table `state` with the columns of Spark's state reader, so that one writes
`key.url = '/'` and `value.count > 3`. They are streamed in; what a query has to keep beyond
the limit of memory goes to files in the folder for temporary ones.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sparkpoint.state import swift
from sparkpoint.state.arrow import no_rows
from sparkpoint.state.errors import BadQueryError, MissingLibraryError

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

__all__ = ["TABLE", "check_sql", "may_read_again", "selecting", "sql_batches"]

TABLE = "state"
_A_TABLE = '"type":"BASE_TABLE"'
"""In DuckDB's tree of a statement; quotes within texts of the statement are escaped there."""
_BY_TEXT = re.compile(r"\b(query(_table)?|histogram(_values)?)\b", re.IGNORECASE)
_MEMORY = "512MB"
_TOGETHER = 8192


def selecting(condition: str | None) -> str:
    """The SQL of a condition alone."""
    return f"SELECT * FROM {TABLE}" + (f" WHERE {condition}" if condition else "")  # noqa: S608


def sql_batches(source: Any, sql: str, *, limit: int | None, scratch: Path) -> Iterator[Any]:
    """The answer in Arrow's batches, after one that tells the columns.

    `source` is a reader of such batches, or Parquet's files; `sql` has passed `check_sql`.
    """
    duckdb = _library()
    try:
        with duckdb.connect() as connection:
            _prepare(connection, source, scratch)
            relation = connection.sql(sql)
            # Either one numbers columns of one name: rows are documents, which have one of each.
            bounded = relation.project("*") if limit is None else relation.limit(limit)
            reader = bounded.to_arrow_reader(_TOGETHER)
            yield no_rows(reader.schema)
            yield from reader
    except duckdb.Error as error:
        raise BadQueryError(_told(error)) from error


def check_sql(sql: str) -> None:
    """Whether it is a query at all, before anything is read for it: Spark may take minutes."""
    duckdb = _library()
    try:
        statements = duckdb.extract_statements(sql)
    except duckdb.Error as error:
        raise BadQueryError(_told(error)) from error
    if [each.type for each in statements] != [duckdb.StatementType.SELECT]:
        raise BadQueryError("that is no single query: begin it with SELECT.")


def may_read_again(sql: str) -> bool:
    """Whether it may go through the table more than once: beyond doubt is only what names one table
    in all. A name that WITH gives counts as one, wherever it is used."""
    duckdb = _library()
    try:
        with duckdb.connect() as connection:
            (tree,) = connection.execute("SELECT json_serialize_sql(?::VARCHAR)", [sql]).fetchone()
    except duckdb.Error:
        return True
    # These functions read tables that the tree does not show.
    return str(tree).count(_A_TABLE) != 1 or bool(_BY_TEXT.search(sql))


def _library() -> Any:
    duckdb = swift.library("duckdb")
    if duckdb is None:
        raise MissingLibraryError(
            "conditions and SQL need DuckDB. Install it with `pip install 'sparkpoint[query]'`."
        )
    return duckdb


def _prepare(connection: "DuckDBPyConnection", source: Any, scratch: Path) -> None:
    connection.execute(f"SET memory_limit = '{_MEMORY}'")
    connection.execute("SET temp_directory = ?", [str(scratch / "sql")])
    connection.execute("SET threads = 2")
    connection.execute("SET TimeZone = 'UTC'")
    # Nothing is fetched from anywhere, whatever the SQL says.
    connection.execute("SET autoinstall_known_extensions = false")
    if isinstance(source, Path):
        connection.execute("SET allowed_directories = ?", [[str(source), str(scratch / "sql")]])
        connection.read_parquet(f"{source}/*.parquet").create_view(TABLE)
    else:
        connection.register(TABLE, source)
    # A question may come from somebody else than whoever asks it: it sees the state, no other file.
    connection.execute("SET enable_external_access = false")
    connection.execute("SET lock_configuration = true")


def _told(error: Exception) -> str:
    """What DuckDB says, in one paragraph, without the picture of where."""
    text = str(error).split("\n\nLINE ")[0]
    return f"the query cannot be answered: {' '.join(text.split())}"
