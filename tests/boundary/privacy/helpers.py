"""Stand-ins for the parts around the curator: silent or broken noise, tables that spy, fail or are made up."""

from __future__ import annotations

import csv
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from understudy.boundary.privacy.mechanisms.randomness import ExactRandomness, Randomness
from understudy.boundary.schema.domain import Domain
from understudy.boundary.schema.schema import Schema
from understudy.boundary.tables.counting import count_marginals
from understudy.boundary.tables.opening import open as open_table
from understudy.boundary.tables.table import Table
from understudy.errors import TableError

Opener = Callable[[str, Mapping[str, Sequence[Any]], Schema], Table]
KINDS = ("pandas", "polars", "pyarrow", "csv", "parquet", "duckdb")


@dataclass
class SilentRandomness:
    """No noise at all, and selections pinned to the first indices; remembers what it was asked for."""

    secure: bool = True
    events: list[str] = field(default_factory=list)
    scales: list[tuple[str, float, int]] = field(default_factory=list)
    scores: list[NDArray[np.float64]] = field(default_factory=list)
    exponents: list[float] = field(default_factory=list)

    def noise(self, mechanism: str, scale: float, size: int) -> NDArray[np.int64]:
        self.events.append("noise")
        self.scales.append((mechanism, scale, size))
        return np.zeros(size, dtype=np.int64)

    def choose(self, scores: NDArray[np.float64], exponent: float, k: int) -> list[int]:
        self.events.append("choose")
        self.scores.append(scores)
        self.exponents.append(exponent)
        return list(range(k))


@dataclass
class BestRandomness(SilentRandomness):
    """No noise, and the best scores selected: the answer of an infinite budget."""

    def choose(self, scores: NDArray[np.float64], exponent: float, k: int) -> list[int]:
        super().choose(scores, exponent, k)
        return [int(i) for i in np.argsort(-scores, kind="stable")[:k]]


class MutantRandomness:
    """Honest noise, spoilt by a subclass."""

    secure = True

    def __init__(self) -> None:
        self._honest: Randomness = ExactRandomness.system()

    def noise(self, mechanism: str, scale: float, size: int) -> NDArray[np.int64]:
        return self._honest.noise(mechanism, scale, size)

    def choose(self, scores: NDArray[np.float64], exponent: float, k: int) -> list[int]:
        return self._honest.choose(scores, exponent, k)


class ScaledNoise(MutantRandomness):
    """The right law at the wrong scale."""

    def __init__(self, factor: float) -> None:
        super().__init__()
        self._factor = factor

    def noise(self, mechanism: str, scale: float, size: int) -> NDArray[np.int64]:
        return super().noise(mechanism, scale * self._factor, size)


class ShiftedNoise(MutantRandomness):
    """Noise that is not centred at zero: `ones` plus `share` of the scale."""

    def __init__(self, ones: int = 0, share: float = 0.0) -> None:
        super().__init__()
        self._ones, self._share = ones, share

    def noise(self, mechanism: str, scale: float, size: int) -> NDArray[np.int64]:
        return super().noise(mechanism, scale, size) + self._ones + round(self._share * scale)


class RepeatedNoise(MutantRandomness):
    """Fresh draws for a `share` of the cells, used again for the rest; a share of 0 gives all the same noise.

    A draw of 0 becomes 1: were it the only one, the mutant would add nothing, and be caught by another check.
    """

    def __init__(self, share: float) -> None:
        super().__init__()
        self._share = share

    def noise(self, mechanism: str, scale: float, size: int) -> NDArray[np.int64]:
        fresh = super().noise(mechanism, scale, max(1, round(size * self._share)))
        return np.resize(np.where(fresh == 0, 1, fresh), size)


class PairedNoise(MutantRandomness):
    """Each draw used for two neighbouring cells."""

    def noise(self, mechanism: str, scale: float, size: int) -> NDArray[np.int64]:
        return np.repeat(super().noise(mechanism, scale, (size + 1) // 2), 2)[:size]


class ReusedNoise(MutantRandomness):
    """The noise of the first histogram, used again for every later one of its size."""

    def __init__(self) -> None:
        super().__init__()
        self._kept: dict[int, NDArray[np.int64]] = {}

    def noise(self, mechanism: str, scale: float, size: int) -> NDArray[np.int64]:
        return self._kept.setdefault(size, super().noise(mechanism, scale, size))


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
