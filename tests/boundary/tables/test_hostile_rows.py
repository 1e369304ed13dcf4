"""A hundred thousand rows of whatever somebody may have typed: no engine raises, and all read them alike."""

from __future__ import annotations

import itertools

import numpy as np
import pyarrow as pa
import pytest

import understudy as us
from understudy.boundary.tables.table import Table

ROWS = 100_000
PIECES = [
    "1",
    "0",
    "-",
    "+",
    ".",
    "e",
    "E",
    "5",
    "9" * 30,
    "_",
    " ",
    "\u00a0",
    "\t",
    "\n",
    "nan",
    "inf",
    "true",
    "F",
    "'",
]
PIECES += ['"', "\\", "$1", "?1", "{}", "%s", ";--", "☃", "\U0001f600", "é", "T", "1e400", "1e-400", "0x1f", "NULL"]
# Engines differ on years of more than four digits, on years before the first, and on tabs around a date.
DATES = ["2024-02-29", "2023-02-29", "2024-13-01", "0000-00-00", "9999-12-31", "T", " ", "12:30", "23:59:60", ":", "Z"]
DATES += ["+14:00", "-02:30", "31/12/2024", "1/2/2024", "/", "☃", "'", "nan", "2024", "\u00a0", "NULL"]
TOML = """
missing_values = ["?", "NULL", "-1"]
[columns.whole]
type = "integer"
min = -5
max = 5
missing = true
special = ["N", -9, 99]
[columns.real]
type = "number"
min = -1
max = 1
bins = 7
[columns.other]
type = "number"
min = 0
max = 100
cuts = [0.5, 5, 9]
missing = true
[columns.few]
type = "categorical"
values = ["1", "true", "é", "T", "☃"]
other = "rest"
[columns.coded]
type = "categorical"
values = [0, 1, 5]
missing = true
[columns.flag]
type = "boolean"
missing = true
[columns.day]
type = "datetime"
min = 2000-01-01
max = 2030-12-31
missing = true
[columns.written]
type = "datetime"
min = 2000-01-01
max = 2030-12-31
format = "%d/%m/%Y"
[columns.gap]
type = "derived"
of = "other - real"
min = -10
max = 10
bins = 9
"""


def hostile(rows: int) -> pa.Table:
    """Texts of up to four pieces, and some of a piece alone, which may mean something."""
    rng = np.random.default_rng(26)
    columns = {}
    for name in ("whole", "real", "other", "few", "coded", "flag", "day", "written"):
        pieces = DATES if name in ("day", "written") else PIECES
        lengths, picks = rng.integers(0, 5, rows), rng.integers(0, len(pieces), (rows, 4))
        texts = ["".join(pieces[i] for i in row[:n]) for row, n in zip(picks.tolist(), lengths.tolist(), strict=True)]
        columns[name] = [None if n == 0 and i % 2 else t for i, (t, n) in enumerate(zip(texts, lengths, strict=True))]
    return pa.table(columns)


@pytest.fixture(scope="module")
def rows() -> pa.Table:
    return hostile(ROWS)


@pytest.fixture(scope="module")
def schema() -> us.Schema:
    return us.Schema.loads(TOML)


def counts(table: Table) -> list[np.ndarray]:
    domain = us.Domain.of(table.schema)
    return table.count_by(domain, list(itertools.combinations(domain.names, 2)))


@pytest.fixture(scope="module")
def expected(rows: pa.Table, schema: us.Schema, opened) -> list[np.ndarray]:
    return counts(opened("pyarrow", rows, schema))


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["csv", "parquet", "duckdb", "postgresql", "postgresql-pushdown", "sqlite"])
def test_every_engine_reads_hostile_rows_alike(kind: str, rows, schema: us.Schema, expected, opened):
    table = opened(kind, rows, schema)
    for pair, found, wanted in zip(
        itertools.combinations(us.Domain.of(schema).names, 2), counts(table), expected, strict=True
    ):
        np.testing.assert_array_equal(found, wanted, err_msg=str(pair))
        assert found.sum() == ROWS
