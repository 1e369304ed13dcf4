"""`understudy.open`: a frame, a file or a database table becomes a table behind the boundary.

Files are scanned by DuckDB and never loaded whole, but for workbooks. A CSV file is read as text throughout: guessing
its types would make the reading of every row depend on all of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from understudy.boundary.schema.column import Integer, Number
from understudy.boundary.schema.file_format import FileFormat
from understudy.boundary.schema.late_imports import exp
from understudy.boundary.schema.schema import Schema
from understudy.boundary.tables.connection import connect
from understudy.boundary.tables.duck import DuckTable
from understudy.boundary.tables.excel import read_sheet
from understudy.boundary.tables.frame import FrameTable, kind_of, to_arrow
from understudy.boundary.tables.postgres import PostgresTable
from understudy.boundary.tables.server import SCHEMES
from understudy.boundary.tables.sites.flower import SCHEME as SITES
from understudy.boundary.tables.sites.flower import open_sites
from understudy.boundary.tables.spark import SCHEME, SparkTable, is_spark_frame, spark_frame
from understudy.boundary.tables.sqlite import ENDINGS as SQLITE_ENDINGS
from understudy.boundary.tables.sqlite import SqliteTable
from understudy.boundary.tables.streamed import StreamedTable
from understudy.boundary.tables.table import Table, is_table
from understudy.boundary.tables.text_files import CSV_ENDINGS, csv_relation, in_utf8, scan
from understudy.errors import SchemaError, TableError

PARQUET_ENDINGS = (".parquet", ".pq")
DUCKDB_ENDINGS = (".duckdb", ".ddb")
EXCEL_ENDINGS = (".xlsx", ".xlsm", ".xlsb", ".xls", ".ods")


def open(
    source: Any, schema: Schema | str | Path | None = None, *, name: str | None = None, pushdown: bool = False
) -> Table:
    """Puts private rows behind the boundary.

    `source` is a data frame (pandas, polars, pyarrow), the path of a CSV or Parquet file, a table of a DuckDB or SQLite
    file written `path/to/file.duckdb::table`, one on a PostgreSQL server, `postgresql://host/database::table`, a data
    frame of Spark's, or a table behind Spark Connect, `sc://host:15002::catalog.table`. Sites that hold
    parts of one table join at an address, `flower://host:port?sites=3&trust=nobody` (docs/concepts/sites.md).

    What is asked of a file is debited from the ledger beside it.

    Args:
        source: The rows, as said.
        schema: The public facts about them, or the TOML file that states them.
        name: What ledgers and reports call the table; a frame needs one for its questions to be recognised when they
            are asked again.
        pushdown: Whether a PostgreSQL server counts by itself, and hands over nothing but groups and their counts. It
            is many times slower than counting the codes of its rows here.

    Returns:
        A table that can be released from, asked and checked, and shows no row.

    Raises:
        SchemaError: No schema is given, or it says something impossible.
        TableError: The rows can't be read, or don't have the columns of the schema.

    >>> import pyarrow as pa
    >>> schema = Schema.loads('[columns.age]\\ntype = "integer"\\nmin = 0\\nmax = 99')
    >>> open(pa.table({"age": [31, 47, 52]}), schema).kind
    'pyarrow'
    """
    if schema is None:
        raise SchemaError(
            "a table is opened with its schema: us.draft_schema(table) drafts one; check every line, then "
            "us.open(table, schema.confirm(by=...))",
            None,
        )
    if not isinstance(schema, Schema):
        schema = Schema.load(schema)
    if is_table(source):
        raise TableError("the table is open already; give the frame or the path that it was opened from", source)
    if isinstance(source, str) and source.startswith(SCHEMES):
        return (PostgresTable if pushdown else StreamedTable)(source, schema, name)
    if pushdown:
        raise TableError(
            "pushdown is for tables on a PostgreSQL server, and all others are counted here; leave it out", source
        )
    if isinstance(source, str) and source.startswith(SCHEME):
        return SparkTable(spark_frame(source), schema, address=source, name=name)
    if isinstance(source, str) and source.startswith(f"{SITES}://"):
        return open_sites(source, schema, name)
    if isinstance(source, str | Path) and str(source).partition("::")[0].lower().endswith(SQLITE_ENDINGS):
        return _open_sqlite(str(source), schema, name)
    if isinstance(source, str | Path):
        found = path_relation(str(source), schema)
        table = DuckTable(found.connection, found.relation, schema, kind=found.kind, name=name or found.name)
        where, separator, inside = str(source).partition("::")
        table.path = found.path.absolute() if found.path else None
        # Made absolute now: the working directory may be another one when the table is asked.
        table.source = f"{Path(where).absolute()}{separator}{inside}"
        # Links are followed and names of tables lowered (to DuckDB they are the same): one table has one ledger.
        table.identity = f"{Path(where).resolve()}{separator}{inside.lower()}"
        return table
    if is_spark_frame(source):
        return SparkTable(source, schema, name=name)
    kind = kind_of(source)
    if kind is None:
        raise TableError(
            f"a {type(source).__name__} can't be opened; give a pandas, polars, pyarrow or Spark frame, or a path",
            source,
        )
    opened = open_frame(source, schema, kind, name or f"a {kind} frame")
    if name is not None:
        opened.identity = f"frame {name}"
    return opened


def _open_sqlite(source: str, schema: Schema, name: str | None) -> Table:
    where, _, inside = source.partition("::")
    _demand_file(Path(where), where)
    if not inside:
        raise TableError(f"{where!r} is a database; name one of its tables, as in {where}::table", source)
    return SqliteTable(Path(where), inside, schema, name)


def open_frame(source: Any, schema: Schema, kind: str, name: str) -> FrameTable:
    """A frame of this kind behind the boundary; no engine is started as long as none is needed."""
    unit = schema.unit.column if schema.unit else None
    return FrameTable(to_arrow(source, name, unit=unit), schema, kind=kind, name=name)


def frame_relation(source: Any, name: str) -> tuple[Any, Any]:
    """A connection and the relation in it that holds the frame."""
    connection, rows = connect(), to_arrow(source, name)
    cut = next((n for n in rows.column_names if "\0" in n), None)
    if cut is not None:
        raise TableError(f"{name}: column name {cut!r} holds a zero character, at which it would end; rename it", cut)
    connection.register("frame", rows)
    return connection, exp.to_table("frame")


@dataclass(frozen=True)
class Found:
    """What a path leads to."""

    connection: Any
    relation: Any
    kind: str
    name: str
    path: Path | None = None
    """The file that is read at each scan; None where the rows were copied."""


def path_relation(source: str, schema: Schema | None = None, file: FileFormat | None = None) -> Found:
    """The rows that a path names, not read yet; those of a CSV file in the notation that the schema declares."""
    where, _, inside = source.partition("::")
    path = Path(where)
    lower = path.name.lower()
    _demand_file(path, where)
    if lower.endswith(DUCKDB_ENDINGS):
        if not inside:
            raise TableError(f"{where!r} is a database; name one of its tables, as in {where}::table", source)
        return Found(connect(database=path), exp.table_(inside, quoted=True), "duckdb", inside, path)
    if lower.endswith(EXCEL_ENDINGS):
        return _excel_relation(path, inside, schema)
    if inside:
        raise TableError(f"{where!r} is not a DuckDB file, so it has no table {inside!r}; leave out ::{inside}", source)
    if lower.endswith(CSV_ENDINGS):
        declared = file or (schema.file if schema else None) or FileFormat()
        readable = in_utf8(path, declared)
        numbers = [c.name for c in schema or () if isinstance(c, Integer | Number)]
        relation = csv_relation(readable, declared, path.name, numbers)
        return Found(connect(readable), relation, "csv", path.name, path if readable == path else None)
    if lower.endswith(PARQUET_ENDINGS):
        return Found(connect(path), scan("READ_PARQUET", path, {}), "parquet", path.name, path)
    known = ", ".join((*CSV_ENDINGS[:3], *PARQUET_ENDINGS[:1], *DUCKDB_ENDINGS[:1], *EXCEL_ENDINGS[:1]))
    raise TableError(f"{path.name!r} has an ending that is not known; give one of {known}", source)


def _demand_file(path: Path, where: str) -> None:
    if not path.exists():
        raise TableError(f"{where!r} does not exist, or is not a file", where)
    if path.is_dir():
        raise TableError(f"{where!r} is a folder; give a file", where)


def _excel_relation(path: Path, sheet: str, schema: Schema | None) -> Found:
    """A sheet as a table of texts, each cell spelled by itself; a workbook is read whole."""
    unit = schema.unit.column if schema and schema.unit else None
    connection = connect()
    connection.register("frame", read_sheet(path, sheet, unit=unit))
    return Found(connection, exp.to_table("frame"), "excel", path.name)
