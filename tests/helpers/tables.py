"""Tables that spy, fail or are made up, and rows opened on every kind of back end."""

from __future__ import annotations

import csv
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from understudy.boundary.schema.domain import Domain
from understudy.boundary.schema.schema import Schema
from understudy.boundary.tables.counting import count_marginals
from understudy.boundary.tables.sources import open as open_table
from understudy.boundary.tables.table import Table
from understudy.errors import TableError

Opener = Callable[[str, Mapping[str, Sequence[Any]], Schema], Table]
KINDS = ("pandas", "polars", "pyarrow", "csv", "parquet", "duckdb")
COUNTING = ("count_by", "count_cells", "count_values", "count_rows", "has_rows", "check_readable")


class SpyTable:
    """A table that writes every call that reaches rows into a list of events."""

    def __init__(self, table: Table, events: list[str]) -> None:
        self._table, self._events = table, events
        self.schema, self.kind, self.name = table.schema, table.kind, table.name

    def __getattr__(self, name: str) -> Any:
        if name in COUNTING:
            self._events.append(name)
        return getattr(self._table, name)


class CountedOnce(SpyTable):
    """A table that scans its rows once for each question, however many curators ask: only their noise differs."""

    def __init__(self, table: Table) -> None:
        super().__init__(table, [])
        self._answers: dict[str, Any] = {}

    def __getattr__(self, name: str) -> Any:
        def once(*question: Any) -> Any:
            key = f"{name}{question[-1:]}"  # the domain, where there is one, is the same throughout a test
            if key not in self._answers:
                self._answers[key] = getattr(self._table, name)(*question)
            return self._answers[key]

        return once if name in COUNTING else super().__getattr__(name)


class UnreadableTable(SpyTable):
    """A table whose file turns out to be damaged as soon as its rows are counted."""

    def __getattr__(self, name: str) -> Any:
        if name in COUNTING and name != "has_rows":
            raise TableError("damaged.csv can't be read at line 7", self)
        return super().__getattr__(name)


@dataclass(frozen=True)
class MadeUpTable:
    """A table of given counts and no rows, for asks that would need millions of them."""

    schema: Schema
    values: tuple[list[str], NDArray[np.int64]]
    kind: str = "pyarrow"
    name: str = "made up"

    def count_by(self, domain: Domain, sets: Sequence[tuple[str, ...]]) -> list[NDArray[np.int64]]:
        return [np.zeros(domain.shape(s), dtype=np.int64) for s in sets]

    def count_cells(self, domain: Domain, partitions: Sequence[Any]) -> list[NDArray[np.int64]]:
        return [np.zeros(p.cells, dtype=np.int64) for p in partitions]

    def count_values(self, column: str) -> tuple[list[str], NDArray[np.int64]]:
        return self.values

    def count_rows(self) -> int:
        return int(self.values[1].sum())

    def has_rows(self, at_least: int) -> bool:
        return self.count_rows() >= at_least

    def check_readable(self) -> None:
        pass


@dataclass(frozen=True)
class CodeTable(MadeUpTable):
    """A table of codes, counted by the real counting but without an engine: for thousands of tiny tables."""

    codes: Mapping[str, NDArray[np.integer]] = field(default_factory=dict)

    def count_by(self, domain: Domain, sets: Sequence[tuple[str, ...]]) -> list[NDArray[np.int64]]:
        return count_marginals(domain, sets, [self.codes])


def opened(kind: str, columns: Mapping[str, Sequence[Any]], schema: Schema, folder: Path) -> Table:
    """The same columns behind each kind of back end; texts in every cell of a CSV file, types elsewhere."""
    import pyarrow as pa

    if kind == "csv":
        return open_table(_csv_file(columns, folder), schema)
    arrow = pa.table({name: pa.array(values) for name, values in columns.items()})
    match kind:
        case "pyarrow":
            return open_table(arrow, schema)
        case "pandas":
            return open_table(arrow.to_pandas(), schema)
        case "polars":
            import polars as pl

            return open_table(pl.from_arrow(arrow), schema)
        case "parquet":
            import pyarrow.parquet as pq

            pq.write_table(arrow, folder / "rows.parquet")
            return open_table(folder / "rows.parquet", schema)
    return open_table(_database(arrow, folder), schema)


def _csv_file(columns: Mapping[str, Sequence[Any]], folder: Path) -> Path:
    path = folder / "rows.csv"
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(columns)
        writer.writerows(["" if v is None else v for v in row] for row in zip(*columns.values(), strict=True))
    return path


def _database(arrow: Any, folder: Path) -> str:
    import duckdb

    with duckdb.connect(str(folder / "rows.duckdb")) as connection:
        connection.register("arrow", arrow)
        connection.execute("CREATE TABLE people AS SELECT * FROM arrow")
    return f"{folder / 'rows.duckdb'}::people"
