"""Rows as they are, for whoever stands on the steward's side of the boundary: evaluation and attacks.

What is computed from them is *internal*: it has no guarantee. Nothing that makes a release comes here, but for a prior,
whose rows are public (`releases.priors`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from understudy.boundary.schema.column import Column
from understudy.boundary.schema.domain import Coding
from understudy.boundary.schema.file_format import FileFormat
from understudy.boundary.schema.late_imports import duckdb, exp, pa
from understudy.boundary.schema.schema import Schema
from understudy.boundary.tables.duck import DuckTable, stored_as, unreadable
from understudy.boundary.tables.frame import kind_of
from understudy.boundary.tables.postgres import PostgresTable
from understudy.boundary.tables.server import SCHEMES, Server
from understudy.boundary.tables.server_copy import copy_of
from understudy.boundary.tables.sources import frame_relation, path_relation
from understudy.boundary.tables.sql import Source, select_readings
from understudy.boundary.tables.sums_sql import select_looks
from understudy.boundary.tables.table import is_table
from understudy.errors import TableError


@dataclass(frozen=True)
class Rows:
    """A table whose rows may be looked at: a frame, a file, a table of a database, or a copy of one on a server."""

    name: str
    source: Source
    connection: Any
    kind: str = "frame"

    @classmethod
    def of(
        cls, source: Any, name: str = "the frame", schema: Schema | None = None, file: FileFormat | None = None
    ) -> Rows:
        """Of whatever `understudy.open` takes or returns; `schema`, or `file` alone, says how a file is written."""
        if isinstance(source, DuckTable):
            return cls(source.name, source._source, source._connection, source.kind)  # of the same package
        if isinstance(source, PostgresTable):
            return cls._copied(source._server, source.schema)
        if isinstance(source, str) and source.startswith(SCHEMES):
            return cls._copied(Server(source), schema)
        if isinstance(source, str | Path):
            found = path_relation(str(source), schema, file)
            return cls._described(found.name, found.connection, found.relation, found.kind)
        if is_table(source):
            raise TableError(
                f"the rows of {source.name}, a {source.kind} table, can't be looked at; export them to a file first",
                source.name,
            )
        if kind_of(source) is None:
            raise TableError(f"a {type(source).__name__} can't be read; give a frame or a path", source)
        return cls._described(name, *frame_relation(source, name))

    @classmethod
    def _copied(cls, server: Server, schema: Schema | None) -> Rows:
        connection, source = copy_of(server, schema)
        return cls(server.name, source, connection, PostgresTable.kind)

    @classmethod
    def _described(cls, name: str, connection: Any, relation: Any, kind: str = "frame") -> Rows:
        try:
            found = connection.sql(exp.select("*").from_(relation).limit(0).sql(dialect="duckdb"))
        except (duckdb.Error, RuntimeError, UnicodeError) as error:  # a damaged file's names may be no UTF-8
            raise unreadable(name, error) from None
        types = dict(zip(found.columns, map(str, found.types), strict=True))
        return cls(name, Source(relation, {c: stored_as(c, t) for c, t in types.items()}), connection, kind)

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(self.source.columns)

    @property
    def relation(self) -> str:
        """The rows as what stands after FROM, under whatever name the query gives them."""
        # A relation may have a name already, beside which none can stand.
        return f"({exp.select('*').from_(self.source.relation).sql(dialect='duckdb')})"

    def everything(self) -> pa.Table:
        """All columns as they are stored."""
        return self._fetch(exp.select("*").from_(self.source.relation))

    def read(self, columns: Sequence[Column], missing_values: Sequence[str]) -> pa.Table:
        """The values of these columns: doubles for what lies on a line, texts for the others, null where missing."""
        return self._fetch(select_readings(self.source, columns, missing_values))

    def looks(self, schema: Schema, codings: Sequence[Coding]) -> str:
        """A query of DuckDB's: every row as a release reads it, step by step (`sums_sql.select_looks`)."""
        return str(select_looks(self.source, schema, codings).sql(dialect="duckdb"))

    def fetch(self, text: str) -> pa.Table:
        """The answer to a query of DuckDB's as a table."""
        try:
            return self.connection.sql(text).to_arrow_table()
        except (duckdb.Error, OSError) as error:
            raise unreadable(self.name, error) from None

    def query(self, text: str) -> list[tuple[Any, ...]]:
        """The answer to a query of DuckDB's; the rows stand in it as `relation`."""
        try:
            return list(self.connection.sql(text).fetchall())
        except duckdb.Error as error:
            raise unreadable(self.name, error) from None

    def _fetch(self, query: Any) -> pa.Table:
        return self.fetch(query.sql(dialect="duckdb"))
