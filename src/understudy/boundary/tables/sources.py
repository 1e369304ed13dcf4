"""`understudy.open`: a frame, a file or a database table becomes a table behind the boundary.

Files are scanned by DuckDB and never loaded whole. A CSV file is read as text throughout: guessing its types would make
the reading of every row depend on all of them. Its header is public; the delimiter is the one that gives the header the
most fields.
"""

from __future__ import annotations

import csv
import io
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from understudy.boundary.schema.late_imports import exp
from understudy.boundary.schema.schema import Schema
from understudy.boundary.tables.connection import connect, literal_path
from understudy.boundary.tables.duck import DuckTable
from understudy.boundary.tables.frame import FrameTable, kind_of, to_arrow
from understudy.boundary.tables.postgres import SCHEMES, PostgresTable
from understudy.boundary.tables.table import Table, is_table
from understudy.errors import SchemaError, TableError

CSV_ENDINGS = (".csv", ".tsv", ".txt", ".csv.gz", ".tsv.gz")
PARQUET_ENDINGS = (".parquet", ".pq")
DUCKDB_ENDINGS = (".duckdb", ".ddb")
_DELIMITERS = ",;\t|"
# A file without a line break would else be read whole into memory.
_LONGEST_HEADER = 1 << 20


def open(source: Any, schema: Schema | str | Path | None = None, *, name: str | None = None) -> Table:
    """Puts private rows behind the boundary.

    `source` is a data frame (pandas, polars, pyarrow), the path of a CSV or Parquet file, a table of a DuckDB database
    written `path/to/file.duckdb::table`, or one on a PostgreSQL server, `postgresql://host/database::table`.

    What is asked of a file is debited from the ledger beside it.

    Args:
        source: The rows, as said.
        schema: The public facts about them, or the TOML file that states them.
        name: What ledgers and reports call the table; a frame needs one for its questions to be recognised when they
            are asked again.

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
        return PostgresTable(source, schema, name)
    if isinstance(source, str | Path):
        found = path_relation(str(source))
        table = DuckTable(found.connection, found.relation, schema, kind=found.kind, name=name or found.name)
        where, separator, inside = str(source).partition("::")
        # Made absolute now: the working directory may be another one when the table is asked.
        table.source = f"{Path(where).absolute()}{separator}{inside}"
        # Links are followed and names of tables lowered (to DuckDB they are the same): one table has one ledger.
        table.identity = f"{Path(where).resolve()}{separator}{inside.lower()}"
        return table
    kind = kind_of(source)
    if kind is None:
        raise TableError(
            f"a {type(source).__name__} can't be opened; give a pandas, polars or pyarrow frame, or a path", source
        )
    opened = open_frame(source, schema, kind, name or f"a {kind} frame")
    if name is not None:
        opened.identity = f"frame {name}"
    return opened


def open_frame(source: Any, schema: Schema, kind: str, name: str) -> FrameTable:
    """A frame of this kind behind the boundary; no engine is started as long as none is needed."""
    unit = schema.unit.column if schema.unit else None
    return FrameTable(to_arrow(source, name, unit=unit), schema, kind=kind, name=name)


def frame_relation(source: Any, name: str) -> tuple[Any, Any]:
    """A connection and the relation in it that holds the frame."""
    connection = connect()
    connection.register("frame", to_arrow(source, name))
    return connection, exp.to_table("frame")


@dataclass(frozen=True)
class Found:
    """What a path leads to."""

    connection: Any
    relation: Any
    kind: str
    name: str


def path_relation(source: str) -> Found:
    """The rows that a path names, not read yet."""
    where, _, inside = source.partition("::")
    path = Path(where)
    lower = path.name.lower()
    if not path.exists():
        raise TableError(f"{where!r} does not exist, or is not a file", source)
    if path.is_dir():
        raise TableError(f"{where!r} is a folder; give a file", source)
    if lower.endswith(DUCKDB_ENDINGS):
        if not inside:
            raise TableError(f"{where!r} is a database; name one of its tables, as in {where}::table", source)
        return Found(connect(database=path), exp.table_(inside, quoted=True), "duckdb", inside)
    if inside:
        raise TableError(f"{where!r} is not a DuckDB file, so it has no table {inside!r}; leave out ::{inside}", source)
    if lower.endswith(CSV_ENDINGS):
        return Found(connect(path), csv_relation(path), "csv", path.name)
    if lower.endswith(PARQUET_ENDINGS):
        return Found(connect(path), _scan("READ_PARQUET", path, {}), "parquet", path.name)
    known = ", ".join((*CSV_ENDINGS[:3], *PARQUET_ENDINGS[:1], *DUCKDB_ENDINGS[:1]))
    raise TableError(f"{path.name!r} has an ending that is not known; give one of {known}", source)


def csv_relation(path: Path) -> Any:
    """`read_csv` with every choice made from the header, none from the rows."""
    names, delimiter = read_header(path)
    if len(set(names)) < len(names):
        twice = next(n for n, times in Counter(names).items() if times > 1)
        raise TableError(f"{path.name}: column {twice!r} stands twice in the header; rename one of them", names)
    columns = exp.Struct(
        expressions=[
            exp.PropertyEQ(this=exp.Identifier(this=n, quoted=True), expression=exp.Literal.string("VARCHAR"))
            for n in names
        ]
    )
    settings = {
        "columns": columns,
        "delim": exp.Literal.string(delimiter),
        "header": exp.true(),
        "auto_detect": exp.false(),  # else the first thousands of rows would decide how all are read
        "quote": exp.Literal.string('"'),
        "escape": exp.Literal.string('"'),
        "nullstr": exp.Literal.string(""),
        "compression": exp.Literal.string("gzip" if _is_gzip(path) else "none"),
    }
    return _scan("READ_CSV", path, settings)


def read_header(path: Path) -> tuple[list[str], str]:
    """The column names of a CSV file and its delimiter."""
    text = _first_line(path)
    if not text.strip():
        raise TableError(f"{path.name} can't be read: it has no header line", path)
    # One line was read, so that a line break inside of quotes, or a lone \r, would leave half a header here.
    if text.count('"') % 2 or "\r" in text.rstrip("\r\n"):
        raise TableError(f"{path.name} can't be read: its header must be one line, ended by \\n or \\r\\n", path)
    try:
        delimiter = max(_DELIMITERS, key=lambda d: len(_fields(text, d)))  # the first of several that give as many
        names = _fields(text, delimiter)
    except csv.Error:
        raise TableError(
            f"{path.name} can't be read: a name in its header has more than {csv.field_size_limit():,} characters", path
        ) from None
    if not all(names):
        raise TableError(f"{path.name}: column {names.index('') + 1} of the header has no name", names)
    return names, delimiter


def _first_line(path: Path) -> str:
    import gzip
    import zlib

    try:
        with gzip.open(path, "rb") if _is_gzip(path) else path.open("rb") as file:
            raw = file.readline(_LONGEST_HEADER)
    except (gzip.BadGzipFile, zlib.error, EOFError):
        raise TableError(f"{path.name} can't be read: it is not a gzip file, or a damaged one", path) from None
    except OSError as error:
        raise TableError(f"{path.name} can't be read: {error.strerror}", path) from None
    try:
        return raw.decode("utf-8-sig")  # spreadsheets put a byte order mark before the first name
    except UnicodeDecodeError:
        raise TableError(f"{path.name} can't be read: it is not UTF-8 text", path) from None


def _is_gzip(path: Path) -> bool:
    return path.suffix.lower() == ".gz"


def _fields(line: str, delimiter: str) -> list[str]:
    rows = list(csv.reader(io.StringIO(line.rstrip("\r\n")), delimiter=delimiter))
    return [name.strip() for name in rows[0]] if rows else []


def _scan(function: str, path: Path, settings: dict[str, Any]) -> Any:
    """`function('path', key = value, …)` as a relation; the settings come in a fixed order."""
    pattern = exp.Literal.string(literal_path(path))
    arguments = [exp.EQ(this=exp.var(key), expression=value) for key, value in settings.items()]
    return exp.Table(this=exp.Anonymous(this=function, expressions=[pattern, *arguments]))
