"""One table or view of a PostgreSQL server, and the transactions in which it is read.

Every statement runs in a READ ONLY transaction, which nothing that the statement calls can make writable: the server
refuses that once a query has begun. The name of the table is looked up once, by the role's own search path; from then
on names are those of the server's catalogue or qualified.

A snapshot is one transaction of a connection of its own, and ends with whoever holds it: all questions of a release see
what was committed before the first. Otherwise no transaction is left open between two questions.
"""

from __future__ import annotations

import copy
import re
import weakref
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from understudy.boundary.tables.connection import quoted_name
from understudy.boundary.tables.dialect import BoundQuery
from understudy.errors import InternalError, TableError, installing

SCHEMES = ("postgresql://", "postgres://")
BATCH = 8192
"""Groups that are fetched at a time."""
CHUNK = 1 << 17
"""Rows of packed codes that are handed on at a time: two blocks of `counting`."""

_SETTINGS = {
    "search_path": "pg_catalog, pg_temp",  # nobody's functions and operators but the server's own
    "timezone": "UTC",
    # How values are written follows from these, and labels are compared with what is written.
    "datestyle": "ISO",
    "intervalstyle": "postgres",
    "extra_float_digits": "1",  # the shortest text that reads back, as in `schema.spelling`
    "client_encoding": "UTF8",
    "standard_conforming_strings": "on",  # else a backslash would be an escape in a literal
    "jit": "off",  # compiling a hundred grouping sets takes longer than it saves
    # Up to 2 GB of hash tables may be planned, by the server's guess of how many groups there will be; what is used is
    # bounded by the cells that were asked for, and what outgrows the limit is written to the server's disk.
    "work_mem": "256MB",
    "hash_mem_multiplier": "8",
    "enable_sort": "off",  # grouping sets are hashed in one scan; sorted, each chain of them would be a pass of its own
}
"""For each transaction anew: a function in a view may leave other settings behind in the session.

The role's own limits (`statement_timeout` and the like) are not among them: whoever runs the server set them.
"""
_SET = "SELECT " + ", ".join(f"pg_catalog.set_config('{name}', '{value}', true)" for name, value in _SETTINGS.items())


class Server:
    """The connection to a server, and the table in it that an address names."""

    def __init__(self, url: str, name: str | None = None) -> None:
        self._where, relation = split_url(url)
        self.name = name or relation[-1]
        self.connection = _connected(self._where)
        self._held = False
        weakref.finalize(self, self.connection.close)
        self.relation = self._found(relation)
        self.types = self._types(self.relation)
        """The base type of each column; public, as the declared types of any database are."""

    def snapshot(self) -> Server:
        """The same table in one transaction, in which no other one can change anything."""
        taken = copy.copy(self)
        taken.connection, taken._held = _connected(self._where), True
        weakref.finalize(taken, taken.connection.close)
        return taken

    @property
    def full_name(self) -> tuple[str, str]:
        return self.relation.schema, self.relation.name

    def _found(self, relation: Sequence[str]) -> Relation:
        """The table that the role itself would find under this name; no operator is used before the path is set."""
        if len(relation) == 1:
            self._check_single(relation[0])
        named = ".".join(map(quoted_name, relation))
        looked_up = "SELECT CAST(CAST(CAST($1 AS pg_catalog.text) AS pg_catalog.regclass) AS pg_catalog.oid)"
        ((oid,),) = self.fetch(BoundQuery(looked_up, (named,)), settings="")
        qualified = """
            SELECT n.nspname, c.relname, c.relkind
            FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
            WHERE c.oid = CAST($1 AS OID)"""
        ((schema, name, kind),) = self.fetch(BoundQuery(qualified, (oid,)))
        return Relation(oid, _text(schema), _text(name), _text(kind))

    def _check_single(self, name: str) -> None:
        """Refuses a name without a schema that several schemas have: the role's own one would hide the one meant."""
        ((path,),) = self.fetch(BoundQuery("SELECT pg_catalog.current_schemas(true)", ()), settings="")
        query = """
            SELECT n.nspname FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
            WHERE c.relname = CAST($1 AS TEXT) AND c.relkind IN ('r', 'v', 'm', 'p', 'f')
                AND n.nspname = ANY (CAST($2 AS TEXT[]))
            ORDER BY n.nspname"""
        found = [_text(schema) for (schema,) in self.fetch(BoundQuery(query, (name, list(map(_text, path)))))]
        if len(found) > 1:
            raise TableError(
                f"the name {name!r} is that of {len(found)} tables, in the schemas {', '.join(map(repr, found))}; "
                f"write which is meant, as in ::{quoted_name(found[0])}.{quoted_name(name)}",
                name,
            )

    def _types(self, relation: Relation) -> Mapping[str, str]:
        """The base type of each column, by its name in the catalogue; arrays and composites by their category."""
        query = """
            SELECT a.attname, CASE WHEN b.typcategory IN ('A', 'C', 'P', 'R') THEN 'array' ELSE b.typname END
            FROM pg_catalog.pg_attribute a
            JOIN pg_catalog.pg_type t ON t.oid = a.atttypid
            JOIN pg_catalog.pg_type b ON b.oid = CASE WHEN t.typtype = 'd' THEN t.typbasetype ELSE t.oid END
            WHERE a.attrelid = CAST($1 AS OID) AND a.attnum > 0 AND NOT a.attisdropped
            ORDER BY a.attnum"""
        return {str(name): str(kind) for name, kind in self.fetch(BoundQuery(query, (relation.oid,)))}

    def fetch(self, statement: BoundQuery, settings: str = _SET) -> list[tuple[Any, ...]]:
        import psycopg

        with self.reading(settings), psycopg.RawCursor(self.connection) as cursor:
            return cursor.execute(statement.text.encode(), statement.values).fetchall()

    def batches(self, statement: BoundQuery) -> Iterator[NDArray[np.float64]]:
        """The rows of an answer, a few thousand at a time; null is NaN, and counts are exact up to 2^53."""
        import psycopg

        with self.reading(_SET), psycopg.RawServerCursor(self.connection, "understudy") as cursor:
            cursor.execute(statement.text.encode(), statement.values, binary=True)
            while rows := cursor.fetchmany(BATCH):
                yield np.array(rows, dtype=np.float64)

    def copied(self, statement: BoundQuery) -> Iterator[memoryview]:
        """The rows of a statement as a CSV file with a header, block by block; it sees one snapshot of the table."""
        import psycopg

        if statement.values:
            raise InternalError("COPY takes no parameters", statement.values)
        copy = f"COPY ({statement.text}) TO STDOUT (FORMAT csv, HEADER true, FORCE_QUOTE *)".encode()
        with self.reading(_SET), psycopg.RawCursor(self.connection) as cursor, cursor.copy(copy) as blocks:
            yield from blocks

    def version(self) -> str | None:
        """A digest of the rows that are seen now; None where the role may not ask for it.

        Whoever changes a row of a table writes another version of it, at another place and by another transaction. The
        rows of a view have neither, so their texts are taken.
        """
        row = "CAST(seen AS pg_catalog.text)"
        if self.relation.kind in ("r", "m", "p"):
            row = " || ' ' || ".join(f"CAST({c} AS pg_catalog.text)" for c in ("tableoid", "ctid", "xmin"))
        hashed = f"count(*), sum(hashtextextended({row}, 0))"
        named = ".".join(map(quoted_name, self.full_name))
        import psycopg

        try:
            # Within the transaction of a snapshot this is a savepoint: a refusal must not end it.
            with self.connection.transaction():
                return str(self.fetch(BoundQuery(f"SELECT {hashed} FROM {named} AS seen", ())))
        except (psycopg.Error, TableError):
            return None

    def words(self, statement: BoundQuery, words: int) -> Iterator[NDArray[np.int64]]:
        """Rows of as many columns of 8 bytes, many at a time, as 64-bit numbers."""
        import psycopg
        from psycopg.rows import scalar_row

        from understudy.boundary.tables.packing import joined

        with self.reading(_SET), psycopg.RawCursor(self.connection, row_factory=scalar_row) as cursor:
            # Streamed, and not by COPY, which has no parameters and hands over one row at a time (docs/decisions/0025).
            size = BATCH if psycopg.capabilities.has_stream_chunked() else 1
            rows = cursor.stream(statement.text.encode(), statement.values, binary=True, size=size)
            while part := list(islice(rows, CHUNK)):
                yield joined(part, words)

    @contextmanager
    def reading(self, settings: str) -> Iterator[None]:
        """A transaction that can only read, with our settings for as long as it lasts."""
        import psycopg

        # Rolled back even if all is well: before PostgreSQL 16 a READ ONLY transaction could write large objects.
        once: Any = nullcontext() if self._held else self.connection.transaction(force_rollback=True)
        try:
            with once:
                if settings:
                    self.connection.execute(settings)
                yield
        except psycopg.Error as error:
            raise _unreadable(self.name, error) from None


@dataclass(frozen=True)
class Relation:
    """A table or view as the server's catalogue knows it."""

    oid: int
    schema: str
    name: str
    kind: str
    """`pg_class.relkind`: "r" is a table, "m" a materialized view."""


def split_url(url: str) -> tuple[str, tuple[str, ...]]:
    """`postgresql://host/database::schema.table` as the server's address and the names of the table."""
    where, _, inside = url.partition("::")
    parts = re.fullmatch(r'(?:("(?:[^"]|"")+"|[^".]+)\.)?("(?:[^"]|"")+"|[^".]+)', inside)
    if not parts:
        raise TableError(
            "a PostgreSQL address must end with the table, as in postgresql://host/database::table or ::schema.table",
            inside,
        )
    return where, tuple(p[1:-1].replace('""', '"') if p.startswith('"') else p for p in parts.groups() if p)


def _text(value: Any) -> str:
    if isinstance(value, bytes):
        return value.decode()
    return str(value)


def _connected(where: str) -> Any:
    try:
        import psycopg
    except ImportError:
        raise TableError(f"tables on a PostgreSQL server need psycopg: {installing('postgres')}", None) from None
    try:
        # Nothing is prepared for later: between two transactions only the address and the role are taken on trust.
        connection = psycopg.connect(where, prepare_threshold=None)
        connection.read_only = True  # every transaction begins as READ ONLY, whatever the session's default is
        connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
    except (psycopg.Error, UnicodeError) as error:
        raise _unreadable("the PostgreSQL server", error) from None
    return connection


# By the beginning of the SQLSTATE, first come first served: 42P01 and 42501 must stand before their class, 42.
_REASONS = {
    "42P01": "there is no table of that name in it",
    "3F000": "there is no schema of that name in it",
    "42501": "permission denied",
    "28": "the server refused the user or the password",
    "3D": "there is no database of that name",
    "57P": "the server was stopped, or somebody ended the connection",
    "57": "the server stopped the query",
    "53": "the server has too little memory, disk or connections left",
    "42": "it doesn't understand the question",
    "22": "a value can't be read",
    "25P02": "an earlier question of the same release failed, and with it the snapshot that it looks at",
    "25006": "it calls something that writes, and the connection can only read",
}
_SIGNS = {
    "password authentication failed": _REASONS["28"],
    "no password supplied": _REASONS["28"],
    "no pg_hba.conf entry": _REASONS["28"],
    'role "': _REASONS["28"],
    'database "': _REASONS["3D"],
    "refused": "no server answers at that address",
    "timeout": "no server answers at that address",
    "could not translate host": "there is no host of that name",
    "resolve host": "there is no host of that name",
    "closed the connection": "the connection was lost",
    "connection is closed": "the connection was lost",
    "connection is lost": "the connection was lost",
}
"""Where a connection fails, there is no code: only a message, which may quote the address."""


def _unreadable(name: str, error: Exception) -> TableError:
    """One sentence for the server's error, without the address and the values that it may quote."""
    state = getattr(error, "sqlstate", None)
    if state:
        reasons = [reason for sign, reason in _REASONS.items() if state.startswith(sign)]
    else:
        reasons = [reason for sign, reason in _SIGNS.items() if sign in str(error)]
    return TableError(f"{name} can't be read: {next(iter(reasons), 'the connection failed')}", name)
