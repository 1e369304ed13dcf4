"""Tables of Spark, classic or by Spark Connect, and of engines that speak its protocol (Sail).

Rows are read, capped and counted by our own code on the executors (`tables.spark_tasks`), each part by itself; arrays
of counts are added up there, and their sum is all that reaches the driver.

Every scan also adds up a digest of each row over all columns. Where the sum is another one than at the first scan, the
table has changed meanwhile, and the question is refused before any noise is drawn for it.
"""

from __future__ import annotations

import copy
import os
import socket
from collections.abc import Sequence
from typing import Any, Self
from urllib.parse import urlsplit

import numpy as np
from numpy.typing import NDArray

from understudy.boundary.schema.column import Column
from understudy.boundary.schema.derived import Derived
from understudy.boundary.schema.domain import ColumnSet, Domain
from understudy.boundary.schema.grouped_sums import GroupedSums
from understudy.boundary.schema.partition import Partition
from understudy.boundary.schema.schema import Schema
from understudy.boundary.tables.duck import check_case, check_columns, rounded_ids
from understudy.boundary.tables.spark_tasks import (
    CHECKSUM,
    COUNTS,
    DIGEST,
    FORM,
    VALUE,
    Answer,
    CountCells,
    CountRoundedIds,
    CountRows,
    CountSets,
    CountTally,
    CountValues,
    Question,
    add_up,
    counting,
    keying,
    parted,
    read,
)
from understudy.boundary.tables.sql import PERSON, PLACES
from understudy.boundary.tables.table import TableCard
from understudy.errors import TableError, installing

SCHEME = "sc://"
"""Begins an address of Spark Connect."""
PARQUET = (".parquet", ".pq")
PORT = 15002
"""Of Spark Connect, where an address names none."""
BITS = 60
"""Of a number of the engine's that are used: their sum can't overflow."""
SECONDS = 20
"""That a server may take to answer at all."""


class SparkTable(TableCard):
    """A data frame of Spark's; implements `tables.table.Table`."""

    kind = "spark"
    identity: str | None
    source: str | None = None
    """See `tables.table.identity_of` and `source_of`."""

    def __init__(self, frame: Any, schema: Schema, *, name: str | None = None, address: str | None = None) -> None:
        self.schema = schema
        self.name, self.identity = name or "a Spark frame", None if name is None else f"frame {name}"
        if address is not None:
            server, inside = split_address(address)
            self.source = SCHEME  # the address itself may hold a token
            self.name, self.identity = name or inside, f"{server.partition(';')[0].rstrip('/')}::{inside}"
        check_case(schema)
        try:
            names = frame.columns
        except Exception as error:  # of a plan that the engine looks at only now
            raise unreadable(self.name, error) from None
        check_columns(schema, names, self.name)
        # By names in which no engine sees a path into a record, or a keyword.
        self._renamed = {column: f"column_{i}" for i, column in enumerate(names)}
        self._frame = frame.toDF(*self._renamed.values())
        self._seen: tuple[int, ...] | None = None
        self._check_unit()

    def snapshot(self) -> Self:
        """The same table for one release, which ends with a refusal where a scan sees other rows than the first one."""
        taken = copy.copy(self)
        taken._seen = None
        return taken

    def version(self) -> str | None:
        """How many rows the first scan saw, and the sum of their digests."""
        return None if self._seen is None else " ".join(map(str, self._seen))

    def count_by(self, domain: Domain, sets: Sequence[ColumnSet]) -> list[NDArray[np.int64]]:
        if not sets:
            return []
        return self._counts(CountSets(domain, tuple(sets)))

    def count_cells(self, domain: Domain, partitions: Sequence[Partition]) -> list[NDArray[np.int64]]:
        if not partitions:
            return []
        return self._counts(CountCells(domain, tuple(partitions)))

    def count_tally(self, domain: Domain, tally: GroupedSums) -> list[NDArray[np.int64]]:
        return self._counts(CountTally(domain, tally))

    def count_values(self, column: str) -> tuple[list[str], NDArray[np.int64]]:
        found = self._ask(CountValues(self.schema[column]))
        # By code point, as everywhere.
        values = sorted(name.removeprefix(VALUE) for name in found if name.startswith(VALUE))
        return values, np.array([int(found[VALUE + v][0]) for v in values], dtype=np.int64)

    def count_rows(self) -> int:
        return int(self._counts(CountRows())[0])

    def has_rows(self, at_least: int) -> bool:
        return self.count_rows() >= at_least

    def check_readable(self) -> None:
        """Every scan reads all columns to their end."""

    def _check_unit(self) -> None:
        unit = self.schema.unit
        if unit is None:
            return
        if unit.order is None:
            raise TableError(
                f"the rows of {self.name} have no order of their own to cap a person's rows by; name a column that "
                f'puts them in order in the schema: [unit] column = "{unit.column}", order = …',
                self.name,
            )
        kind = self._frame.schema[self._renamed[unit.column]].dataType.typeName()
        if kind in ("float", "double") and self._counts(CountRoundedIds())[0]:
            raise rounded_ids(self.name, unit.column)

    def _counts(self, question: Question) -> list[NDArray[np.int64]]:
        found = self._ask(question)
        cells = sum(int(np.prod(shape)) for shape in question.shapes)
        return parted(found.get(COUNTS, np.zeros(cells, dtype=np.int64)), question.shapes)

    def _ask(self, question: Question) -> Answer:
        try:
            counted = self._job(question).mapInArrow(add_up, FORM)
            found = read(counted.toArrow().to_batches())
        except Exception as error:
            raise unreadable(self.name, error) from None
        # Of the ids all rows are looked at, and not only those that have one.
        if not isinstance(question, CountRoundedIds):
            self._check_unchanged(found)
        return found

    def _check_unchanged(self, found: Answer) -> None:
        seen = tuple(map(int, found.get(CHECKSUM, np.zeros(2, dtype=np.int64))))
        if self._seen is None:
            self._seen = seen
        if seen != self._seen:
            raise TableError(
                f"{self.name} was changed while it was released, and one release must be of one state of it; give a "
                "fixed version of it, or a copy where nobody writes, and begin anew",
                self.name,
            )

    def _job(self, question: Question) -> Any:
        """The answers of all parts, brought to one place; nothing runs yet."""
        unit = self.schema.unit
        # Without a column a part would not tell how many rows it has.
        asked = stored_columns(question.columns) or [self.schema.in_table[0].name]
        if unit is None:
            return self._counted(self._digested(asked), question, asked)
        if isinstance(question, CountRoundedIds):
            return self._counted(self._digested([unit.column]), question, [unit.column])
        everything = [c.name for c in self.schema.in_table]
        kept = {name: self._renamed[name] for name in asked}
        keys = keying(everything, kept, self.schema)
        rows = self._digested(everything).mapInArrow(keys, self._keyed_form(asked)).repartition(PERSON)
        return self._counted(rows, question, asked, keyed=True)

    def _counted(self, rows: Any, question: Question, names: Sequence[str], *, keyed: bool = False) -> Any:
        return rows.mapInArrow(counting(question, names, self.schema, keyed=keyed), FORM).repartition(1)

    def _digested(self, names: Sequence[str]) -> Any:
        """These columns of the rows, and a digest of each row over all columns."""
        columns = [self._renamed[c.name] for c in self.schema.in_table]
        # A hash passes over nulls, so that it is told where they are: by a bit for each column, since a hash of as many
        # truth values as columns took half as long again.
        nulls = [f"CASE WHEN isnull({c}) THEN {1 << i % BITS}L ELSE 0L END" for i, c in enumerate(columns)]
        words = [" + ".join(nulls[i : i + BITS]) for i in range(0, len(nulls), BITS)]
        digest = f"xxhash64({', '.join([*columns, *words])}) AS {DIGEST}"
        # As texts: pyspark's own functions take any frame for one of the kind of session that was begun last.
        return self._frame.selectExpr(*(self._renamed[name] for name in names), digest)

    def _keyed_form(self, names: Sequence[str]) -> Any:
        from pyspark.sql import types

        number, text = types.DoubleType(), types.StringType()
        fields = [self._frame.schema[self._renamed[name]] for name in names]
        kinds = {DIGEST: types.LongType(), PERSON: text, **dict(zip(PLACES, (number, text, text), strict=True))}
        return types.StructType([*fields, *(types.StructField(name, kind) for name, kind in kinds.items())])


def is_spark_frame(source: Any) -> bool:
    """By its module, so that Spark need not be imported to know anything else."""
    return type(source).__module__.startswith("pyspark.") and hasattr(source, "mapInArrow")


def spark_frame(address: str) -> Any:
    """The table, or the Parquet file as the server sees it, behind `sc://host:port::name`; no row is read."""
    server, inside = split_address(address)
    session = session_at(server)
    if inside.lower().rstrip("/").endswith(PARQUET):
        return session.read.parquet(inside)
    return session.table(inside)


def session_at(server: str) -> Any:
    """A session of Spark Connect, of which no row is asked."""
    _demand_reachable(server)
    # Before it is loaded: what gRPC does in a forked child now and then ends programs that are started later.
    os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "0")
    try:
        # By its own module: the general one would switch the whole process over, and break classic frames in it.
        from pyspark.sql.connect.session import SparkSession

        return SparkSession.builder.remote(server).create()
    except ImportError:
        raise TableError(f"tables behind Spark Connect need pyspark: {installing('spark')}", None) from None
    except Exception as error:
        raise unreadable("the Spark server", error) from None


def _demand_reachable(server: str) -> None:
    """Refuses an address at which nobody answers; pyspark would try it for ten minutes."""
    where = urlsplit(server)
    try:
        socket.create_connection((where.hostname or "", where.port or PORT), SECONDS).close()
    except (OSError, ValueError):
        raise TableError("the Spark server can't be reached; check the address, and whether it runs", None) from None


def split_address(address: str) -> tuple[str, str]:
    """The server and the name of the table on it."""
    server, _, inside = address.partition("::")
    if not inside:
        raise TableError("an address of Spark Connect must end with the table, as in sc://host:15002::table", None)
    return server, inside


def stored_columns(columns: Sequence[Column]) -> list[str]:
    """The columns of the table that these are read from."""
    names: list[str] = []
    for column in columns:
        if isinstance(column, Derived) and not column.in_table:
            names += [source.name for source in column.sources]
        else:
            names.append(column.name)
    return list(dict.fromkeys(names))


def unreadable(name: str, error: Exception) -> TableError:
    """One sentence for an error of Spark's, without the row that it may quote."""
    reasons = (reason for sign, reason in _REASONS.items() if sign in str(error))
    return TableError(f"{name} can't be read by Spark: {next(reasons, 'a job failed')}", name)


_REASONS = {
    "No module named 'understudy": "understudy is not installed where its executors run Python",
    "on an executor must be the driver's": "its executors have another version of understudy than the driver",
    "TABLE_OR_VIEW_NOT_FOUND": "there is no table of that name",
    "PATH_NOT_FOUND": "there is no file of that name where it looks for it",
}
