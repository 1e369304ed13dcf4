"""Made-up rows on a server that somebody named: tables of a schema of their own in PostgreSQL, which is dropped again,
and frames that nothing keeps in Spark."""

from __future__ import annotations

import dataclasses
import gc
import itertools
import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from understudy.boundary.schema.schema import Schema
from understudy.boundary.tables.spark import session_at
from understudy.boundary.tables.table import Table
from understudy.errors import TableError, installing
from understudy.lab.audits.harness import opened

if TYPE_CHECKING:
    import pyarrow as pa

# By the names of Arrow's types; all else is text.
TYPES = {"int64": "bigint", "double": "double precision", "bool": "boolean"}


@contextmanager
def served(url: str) -> Iterator[Callable[[pa.Table, Schema], Table]]:
    """A way to open rows on the server."""
    if url.startswith("sc://"):
        yield _sent_to_spark(url)
        return
    try:
        import psycopg
        from psycopg import sql
    except ImportError:
        raise TableError(f"an audit on PostgreSQL needs psycopg: {installing('postgres')}", None) from None
    # A schema under a name that nobody has: nothing else on the server is touched.
    place, numbers = f"understudy_audit_{secrets.token_hex(6)}", itertools.count()
    try:
        connection = psycopg.connect(url, autocommit=True)
    except psycopg.Error:  # its own message may quote the address, and a password in it
        raise TableError("the PostgreSQL server can't be reached; name one on which tables may be made", None) from None

    def opened_there(rows: pa.Table, schema: Schema) -> Table:
        name = f"rows_{next(numbers)}"
        _load(connection, place, name, rows)
        return opened(f'{url}::"{place}"."{name}"', schema)

    with connection:
        connection.execute(sql.SQL("CREATE SCHEMA {}").format(sql.Identifier(place)))
        try:
            yield opened_there
        finally:
            gc.collect()  # tables that nobody holds close their connections, which would keep theirs from being dropped
            # A connection that is still open elsewhere would make DROP wait for ever.
            connection.execute("SET lock_timeout = '10s'")
            connection.execute(sql.SQL("DROP SCHEMA {} CASCADE").format(sql.Identifier(place)))


def _sent_to_spark(url: str) -> Callable[[pa.Table, Schema], Table]:
    """A person's rows, which have no order there, are put in that of the column that tells the persons apart."""
    session = session_at(url)

    def opened_there(rows: pa.Table, schema: Schema) -> Table:
        if schema.unit is not None:
            schema = dataclasses.replace(schema, unit=dataclasses.replace(schema.unit, order=schema.unit.column))
        return opened(session.createDataFrame(rows), schema)

    return opened_there


def _load(connection: Any, place: str, name: str, rows: pa.Table) -> None:
    """In the order of the rows."""
    from psycopg import sql

    where = sql.Identifier(place, name)
    columns = [
        sql.SQL("{} {}").format(sql.Identifier(f.name), sql.SQL(TYPES.get(str(f.type), "text"))) for f in rows.schema
    ]
    connection.execute(sql.SQL("CREATE TABLE {} ({})").format(where, sql.SQL(", ").join(columns)))
    with connection.cursor() as cursor, cursor.copy(sql.SQL("COPY {} FROM STDIN").format(where)) as copy:
        for row in rows.to_pylist():
            copy.write_row(tuple(row.values()))
