"""The same rows in every kind of file and frame."""

from __future__ import annotations

import csv
import gzip
import io
import sqlite3
from datetime import date, datetime
from decimal import Decimal
from types import SimpleNamespace

import duckdb
import polars as pl
import pyarrow.parquet as pq

import understudy as us
from understudy.boundary.privacy.sites.site import Site, SiteSettings
from understudy.boundary.schema.federation import AGGREGATOR, Federation
from understudy.boundary.tables.sites.federated import FederatedTable


def written(value):
    """A value as a CSV file holds it."""
    if value is None:
        return ""
    if isinstance(value, datetime):
        return value.isoformat(sep=" ")
    return value.isoformat() if isinstance(value, date) else str(value)


def csv_text(table, delimiter=","):
    out = io.StringIO()
    writer = csv.writer(out, delimiter=delimiter, lineterminator="\n")
    writer.writerow(table.column_names)
    writer.writerows([written(row[name]) for name in table.column_names] for row in table.to_pylist())
    return out.getvalue()


def in_duckdb(table, path):
    with duckdb.connect(str(path)) as connection:
        connection.register("given", table)
        connection.execute('CREATE TABLE "the rows" AS SELECT * FROM given')
    return f"{path}::the rows"


_SQLITE_TYPES = {"int": "INTEGER", "float": "REAL", "double": "REAL", "bool": "BOOLEAN", "date": "DATE"}


def in_sqlite(table, path):
    """Dates as ISO texts, truth values as 0 and 1, and decimals as numbers: SQLite has no types for them."""
    kinds = [
        next((k for sign, k in _SQLITE_TYPES.items() if str(f.type).startswith(sign)), "TEXT") for f in table.schema
    ]
    names = ['"' + n.replace('"', '""') + '"' for n in table.column_names]
    with sqlite3.connect(path) as connection:
        columns = ", ".join(f"{n} {k}" for n, k in zip(names, kinds, strict=True))
        connection.execute(f'CREATE TABLE "the rows" ({columns})')
        rows = ([_as_sqlite(row[c]) for c in table.column_names] for row in table.to_pylist())
        connection.executemany(f'INSERT INTO "the rows" VALUES ({", ".join("?" * len(names))})', rows)
    connection.close()
    return f"{path}::the rows"


def _as_sqlite(value):
    if isinstance(value, datetime):
        return value.isoformat(sep=" ")
    if isinstance(value, Decimal):
        return float(value)
    return value.isoformat() if isinstance(value, date) else value


def in_parquet(table, path):
    pq.write_table(table, path, row_group_size=7)
    return path


def in_csv(table, path):
    path.write_text(csv_text(table), encoding="utf-8", newline="")
    return str(path)


def in_gzip(table, path):
    path.write_bytes(gzip.compress(csv_text(table).encode()))
    return path


class CountingSite(Site):
    """Counts for anybody, without a session: what the suites over all kinds of tables look at."""

    def _open(self, message):
        bill = SimpleNamespace(federation=Federation(AGGREGATOR, 1))
        return SimpleNamespace(table=self._table, record=SimpleNamespace(bill=bill))


def in_sites(parts, schema):
    """Tables under one schema as one that counts."""
    sites = [
        CountingSite(us.open(part, schema, name=f"part {i}"), SiteSettings(f"site {i}", (AGGREGATOR,)))
        for i, part in enumerate(parts)
    ]
    table = FederatedTable([site.link() for site in sites], schema, Federation(AGGREGATOR, len(sites))).release()
    table._session = "0" * 16
    return table


def split_unevenly(table, schema):
    """Into three, of which one has few rows; people are not torn apart, since each site caps those that it has."""
    if schema.unit is not None:
        return [table.slice(0, 0), table, table.slice(0, 0)]
    few, most = len(table) // 20, len(table) // 3
    return [table.slice(0, few), table.slice(few, most), table.slice(few + most)]


BUILDERS = {
    "pandas": lambda table, _: table.to_pandas(),
    "polars": lambda table, _: pl.from_arrow(table),
    "polars-lazy": lambda table, _: pl.from_arrow(table).lazy(),
    "pyarrow": lambda table, _: table,
    "csv": lambda table, stem: in_csv(table, stem.with_suffix(".csv")),
    "csv-gz": lambda table, stem: in_gzip(table, stem.with_suffix(".csv.gz")),
    "parquet": lambda table, stem: in_parquet(table, stem.with_suffix(".parquet")),
    "sqlite": lambda table, stem: in_sqlite(table, stem.with_suffix(".sqlite")),
    "duckdb": lambda table, stem: in_duckdb(table, stem.with_suffix(".duckdb")),
}
