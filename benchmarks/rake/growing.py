"""Tables that grow, in rows or in columns, as Parquet files under .bench; each is made once, chunk by chunk.

`python -m rake.growing NAME` makes one in a process of its own: a worker's peak memory starts from its parent's.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from marginals.environment import BENCH
from numpy.typing import NDArray

import understudy as us
from understudy.boundary.schema.column import Boolean, Categorical, Column, Integer, Number

ROWS = (1_000, 10_000, 100_000, 1_000_000, 10_000_000)
COLUMNS = (5, 10, 20, 40, 80, 120)
MIXED, FEW_ROWS = 12, 20_000
"""How many columns the tables of growing rows have, and how many rows those of growing columns."""
CHUNK = 500_000
SEED = 20_240_301
FACTORS = 4
NAMES = tuple(f"rows-{n}" for n in ROWS) + tuple(f"columns-{n}" for n in COLUMNS)


def size_of(name: str) -> int:
    """The number that grows."""
    return int(name.partition("-")[2])


def shape_of(name: str) -> tuple[int, int]:
    """Rows and columns of a table."""
    return (size_of(name), MIXED) if name.startswith("rows-") else (FEW_ROWS, size_of(name))


def schema_of(name: str) -> us.Schema:
    return us.Schema(tuple(_column(i) for i in range(shape_of(name)[1])))


def path_of(name: str) -> Path:
    return BENCH / "growing" / f"{name}.parquet"


def make(name: str) -> None:
    """Writes the table where it is not there yet; a file that is half written has another name."""
    path, (rows, columns) = path_of(name), shape_of(name)
    if path.exists():
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    new = path.with_suffix(f".tmp-{os.getpid()}")
    with pq.ParquetWriter(new, _rows(0, 1, columns).schema) as writer:
        for number, first in enumerate(range(0, rows, CHUNK)):
            writer.write_table(_rows(number, min(CHUNK, rows - first), columns))
    new.replace(path)


def _column(i: int) -> Column:
    """Four kinds in turn, of several sizes."""
    size = 3 + 5 * i % 14
    return (
        Integer(f"c{i}", minimum=0, maximum=99, bins=20 + 4 * (i % 20)),
        Categorical(f"c{i}", values=tuple(f"v{j}" for j in range(size))),
        Boolean(f"c{i}"),
        Number(f"c{i}", minimum=-4.0, maximum=4.0, bins=16),
    )[i % 4]


def _rows(number: int, rows: int, columns: int) -> pa.Table:
    rng = np.random.default_rng((SEED, number))
    factors = rng.normal(size=(rows, FACTORS))
    return pa.table({f"c{i}": _values(i, factors, rng) for i in range(columns)})


def _values(i: int, factors: NDArray[np.float64], rng: np.random.Generator) -> pa.Array:
    """A mix of the factors, the same in every chunk, as values of the column's kind."""
    mix = np.random.default_rng((SEED, 1, i)).normal(size=FACTORS)
    score = (factors @ mix + rng.normal(size=len(factors))) / np.sqrt(1 + mix @ mix)
    match _column(i):
        case Integer():
            return pa.array(np.clip(50 + 20 * score, 0, 99).astype(np.int64))
        case Categorical(values=tuple(values)):
            codes = np.clip((score + 2) * len(values) / 4, 0, len(values) - 1).astype(int)
            return pa.array(np.array(values)[codes])
        case Boolean():
            return pa.array(score > 0.5)
        case _:
            return pa.array(np.clip(score, -4, 4))


if __name__ == "__main__":
    make(sys.argv[1])
