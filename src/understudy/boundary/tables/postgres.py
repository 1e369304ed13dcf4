"""Tables of a PostgreSQL server. What crosses the connection is groups with their counts, never a row.

The SQL is that of `tables.sql` and `tables.sums_sql`, put into PostgreSQL's words by `tables.dialect`. Many sets of
columns are counted in one scan, by GROUPING SETS.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from understudy.boundary.schema.column import Categorical, Column, Datetime, Identifier, Integer, Number
from understudy.boundary.schema.domain import ColumnSet, Domain
from understudy.boundary.schema.grouped_sums import GroupedSums
from understudy.boundary.schema.late_imports import exp
from understudy.boundary.schema.partition import Partition
from understudy.boundary.schema.schema import Schema, Unit
from understudy.boundary.tables.connection import quoted_name
from understudy.boundary.tables.dialect import BoundQuery, bound_query, check_format
from understudy.boundary.tables.duck import check_case, check_columns, rounded_ids
from understudy.boundary.tables.server import Server
from understudy.boundary.tables.sql import Source, Stored, capped, select_codes, select_rounded_ids, select_values
from understudy.boundary.tables.sums_sql import dense, select_sums
from understudy.boundary.tables.table import TableCard
from understudy.errors import TableError

MOST_SETS = 1000
"""Grouping sets in one statement; PostgreSQL itself stops at 4,096."""
MOST_JOINT_CELLS = 1 << 21
"""A partition of columns with more cells than that is applied to the distinct combinations that there are."""
PLACE = "understudy_ctid"


class PostgresTable(TableCard):
    """A table or view on a server; implements `tables.table.Table`."""

    kind = "postgresql"

    def __init__(self, url: str, schema: Schema, name: str | None = None) -> None:
        self.source = "postgresql://"  # the address itself may hold a password
        check_case(schema)
        self._server = Server(url, name)
        self.schema, self.name = schema, self._server.name
        self._connection = self._server.connection
        types = self._server.types
        check_columns(schema, list(types), self.name)
        # Which rows of a person count must be the same at every scan: only a plain table has places for its rows.
        if schema.unit is not None and self._server.relation.kind not in ("r", "m"):
            raise TableError(
                f"{self.name} is a view or a partitioned table, whose rows have no order to cap a person's rows by; "
                "copy it into a table, or declare no unit",
                self.name,
            )
        for column in schema.in_table:
            _check_type(column, types[column.name])
        self._source = plain_source(self._server, schema.unit)
        if schema.unit is not None:
            query = select_rounded_ids(self._source, schema.unit)
            if query is not None and self._server.fetch(bound_query(query))[0][0]:
                raise rounded_ids(self.name, schema.unit.column)

    def snapshot(self) -> Self:
        """The same table, as it is now and stays for all questions of one release."""
        taken = copy.copy(self)
        taken._server = self._server.snapshot()
        taken._connection = taken._server.connection
        return taken

    def version(self) -> str | None:
        """Of the snapshot: which row versions it sees (`server.Server.version`)."""
        return self._server.version()

    @cached_property
    def identity(self) -> str:
        """Server, database, schema and table; neither user nor password."""
        at, named = self._connection.info, ".".join(map(quoted_name, self._server.full_name))
        return f"postgresql://{at.host}:{at.port}/{at.dbname}::{named}"

    def count_by(self, domain: Domain, sets: Sequence[ColumnSet]) -> list[NDArray[np.int64]]:
        """Only sets that are part of no other one are counted; the others are sums over these."""
        largest = _largest(sets)
        counted: dict[ColumnSet, NDArray[np.int64]] = {}
        for first in range(0, len(largest), MOST_SETS):
            counted |= self._counted(domain, largest[first : first + MOST_SETS])
        return [_marginal(columns, counted) for columns in sets]

    def count_cells(self, domain: Domain, partitions: Sequence[Partition]) -> list[NDArray[np.int64]]:
        small = [p for p in partitions if domain.cells(p.columns) <= MOST_JOINT_CELLS]
        joint = dict(zip([p.columns for p in small], self.count_by(domain, [p.columns for p in small]), strict=True))
        found = {id(p): _assigned(p, joint[p.columns]) for p in small}
        large = [p for p in partitions if id(p) not in found]
        found |= zip(map(id, large), self._streamed(domain, large), strict=True)
        return [found[id(p)] for p in partitions]

    def count_tally(self, domain: Domain, tally: GroupedSums) -> list[NDArray[np.int64]]:
        rows = self._server.fetch(bound_query(select_sums(self._source, self.schema, domain, tally, "INT")))
        return dense(rows, domain.shape(tally.by), len(tally.summands))

    def count_values(self, column: str) -> tuple[list[str], NDArray[np.int64]]:
        query = select_values(self._source, self.schema.unit, column, self.schema.missing_texts_of(column))
        pairs = sorted(self._server.fetch(bound_query(query)))  # by code point, and not by the server's collation
        return [value for value, _ in pairs], np.array([rows for _, rows in pairs], dtype=np.int64)

    def count_rows(self) -> int:
        rows = bound_query(capped(self._source, self.schema.unit, self.schema.missing_texts))
        return int(self._server.fetch(rows.within("SELECT count(*) FROM ({}) AS counted"))[0][0])

    def has_rows(self, at_least: int) -> bool:
        rows = bound_query(capped(self._source, self.schema.unit, self.schema.missing_texts).limit(at_least))
        return bool(self._server.fetch(rows.within("SELECT count(*) FROM ({}) AS counted"))[0][0] >= at_least)

    def check_readable(self) -> None:
        """A server reads its tables to the end, or refuses as a whole: there is nothing to find out beforehand."""

    def _coded(self, domain: Domain, columns: ColumnSet) -> BoundQuery:
        codings = [domain[c] for c in columns]
        # PostgreSQL has no unsigned integers.
        types = ["SMALLINT" if c.size < 1 << 15 else "INT" for c in codings]
        return bound_query(select_codes(self._source, self.schema.unit, codings, self.schema.missing_texts, types))

    def _counted(self, domain: Domain, sets: Sequence[ColumnSet]) -> dict[ColumnSet, NDArray[np.int64]]:
        """All sets in one scan. A row of the answer has the codes of its own set, and null for all other columns."""
        columns = tuple(dict.fromkeys(c for s in sets for c in s))
        if not columns:
            return {s: np.array(self.count_rows(), dtype=np.int64) for s in sets}  # none, or the total alone
        place = {c: i for i, c in enumerate(columns)}
        grouping = ", ".join(f"({', '.join(f'code_{place[c]}' for c in s)})" for s in sets)
        codes = ", ".join(f"code_{i}" for i in range(len(columns)))
        wanted = f"SELECT {codes}, count(*) FROM ({{}}) AS coded GROUP BY GROUPING SETS ({grouping})"
        counts = {s: np.zeros(domain.shape(s), dtype=np.int64) for s in sets}
        # No code is null, so that the columns that are not null tell the set of a row of the answer.
        by_present = {np.packbits([c in s for c in columns]).tobytes(): s for s in sets}
        for rows in self._server.batches(self._coded(domain, columns).within(wanted)):
            _put(rows, by_present, place, counts)
        return counts

    def _streamed(self, domain: Domain, partitions: Sequence[Partition]) -> list[NDArray[np.int64]]:
        """Partitions applied to each distinct combination of codes, with its count."""
        counts = [np.zeros(p.cells, dtype=np.int64) for p in partitions]
        if not partitions:
            return counts
        columns = tuple(dict.fromkeys(c for p in partitions for c in p.columns))
        codes = ", ".join(f"code_{i}" for i in range(len(columns)))
        query = self._coded(domain, columns).within(f"SELECT {codes}, count(*) FROM ({{}}) AS coded GROUP BY {codes}")
        for rows in self._server.batches(query):
            block = {c: rows[:, i].astype(np.int64) for i, c in enumerate(columns)}
            for partition, total in zip(partitions, counts, strict=True):
                np.add.at(total, partition.assign(block), rows[:, -1].astype(np.int64))
        return counts


_WHOLE = ("int2", "int4", "int8", "oid")
_REAL = ("float4", "float8", "numeric")
_TEMPORAL = ("date", "timestamp", "timestamptz")
# Types whose text follows the server's settings (money, bytea) or has no one form (json, xml), and lists of values.
NO_FIXED_TEXT = ("array", "bytea", "money", "json", "jsonb", "xml", "bit", "varbit")


def _check_type(column: Column, kind: str) -> None:
    """The declared types of the server's columns are public too; refuse what no fixed rule can read."""
    if isinstance(column, Identifier):
        return
    dated = kind in _TEMPORAL or not (kind in _WHOLE or kind in _REAL or kind in ("bool", "time", "interval"))
    counted = isinstance(column, Integer | Number) or (isinstance(column, Categorical) and column.numeric)
    if kind in NO_FIXED_TEXT or (isinstance(column, Datetime) and not dated) or (counted and kind in _TEMPORAL):
        raise TableError(f"column {column.name!r} holds {kind} values, which can't be read as {column.type}", column)
    if isinstance(column, Datetime) and kind not in _TEMPORAL:
        check_format(column)


def plain_source(server: Server, unit: Unit | None = None) -> Source:
    """The table with every column in one of five plain types: a whole number, a double, a boolean, a timestamp, a text.

    With a unit, a row's place is its physical one; it stays as long as nobody writes.
    """
    above, named = [exp.to_identifier(n, quoted=True) for n in server.full_name]
    table, types = exp.Table(this=named, db=above), server.types
    ids = unit.column if unit else None
    columns = [exp.alias_(_plain(n, kind, exactly=n == ids), n, quoted=True) for n, kind in types.items()]
    order = None
    if unit is not None:
        columns.append(exp.alias_(exp.column("ctid"), PLACE))
        order = exp.column(PLACE)
    stored = {n: _stored(n, kind, exactly=n == ids) for n, kind in types.items()}
    return Source(exp.select(*columns).from_(table).subquery("understudy_table"), stored, order)


def _plain(name: str, kind: str, exactly: bool) -> Any:
    """A column in its plain type; ids keep all digits that they have."""
    raw = exp.column(name, quoted=True)
    if kind == "numeric" and exactly:
        # 7.50 and 7.5 are one person, as in `schema.spelling`. (PostgreSQL 13 and later.)
        return exp.cast(exp.Anonymous(this="TRIM_SCALE", expressions=[raw]), "text")
    if kind == "numeric":
        return exp.Anonymous(this="UNDERSTUDY_DOUBLE", expressions=[raw])
    if kind in _REAL:
        return exp.cast(raw, "double")
    if kind in _WHOLE:
        return exp.cast(raw, "bigint")
    if kind == "bool":
        return raw
    if kind in _TEMPORAL:
        return exp.cast(raw, "timestamp")
    return exp.cast(raw, "text")


def _stored(name: str, kind: str, exactly: bool) -> Stored:
    if kind in _WHOLE:
        return Stored(name, "whole")
    if kind in _REAL and not (exactly and kind == "numeric"):
        return Stored(name, "real")
    if kind == "bool":
        return Stored(name, "truth")
    if kind in _TEMPORAL:
        return Stored(name, "moment")
    return Stored(name, "text", compared_first=True)


def _largest(sets: Sequence[ColumnSet]) -> list[ColumnSet]:
    """The sets that are part of no other one, each once."""
    seen = {frozenset(s): s for s in sets}
    # A subset is a sum over its superset, which costs the server nothing.
    return [s for f, s in seen.items() if not any(f < other for other in seen)]


def _marginal(columns: ColumnSet, counted: Mapping[ColumnSet, NDArray[np.int64]]) -> NDArray[np.int64]:
    """The counts of a set from those of the smallest counted one that holds it: the least to add up."""
    within = min((s for s in counted if set(columns) <= set(s)), key=lambda s: counted[s].size)
    others = tuple(i for i, c in enumerate(within) if c not in columns)
    kept = [c for c in within if c in columns]
    summed = counted[within].sum(axis=others)
    return np.array(np.transpose(summed, [kept.index(c) for c in columns]), dtype=np.int64, order="C")


def _put(
    rows: NDArray[np.float64],
    sets: Mapping[bytes, ColumnSet],
    place: Mapping[str, int],
    counts: Mapping[ColumnSet, NDArray[np.int64]],
) -> None:
    """Puts a batch of rows of several sets into their tables; which codes are there tells the set."""
    present, which = np.unique(np.packbits(~np.isnan(rows[:, :-1]), axis=-1), axis=0, return_inverse=True)
    for i, bits in enumerate(present):
        columns, chosen = sets[bits.tobytes()], rows[which.ravel() == i]
        at = tuple(chosen[:, place[c]].astype(np.intp) for c in columns)
        # Set and not added: a combination of codes comes once in the answer.
        counts[columns][at] = chosen[:, -1].astype(np.int64)


def _assigned(partition: Partition, joint: NDArray[np.int64]) -> NDArray[np.int64]:
    """The histogram of a partition from the joint counts of its columns."""
    cells = np.indices(joint.shape).reshape(joint.ndim, -1)
    at = partition.assign(dict(zip(partition.columns, cells, strict=True)))
    counts = np.zeros(partition.cells, dtype=np.int64)
    np.add.at(counts, at, joint.ravel())
    return counts
