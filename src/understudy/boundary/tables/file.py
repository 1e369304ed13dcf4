"""CSV and Parquet files and DuckDB databases as relations that DuckDB scans; a file is never loaded whole.

A CSV file is read as text throughout: guessing its types would make the reading of every row depend on all of
them. Its header is public; the delimiter is the one that gives the header the most fields.
"""

from __future__ import annotations

import contextlib
import csv
import io
from pathlib import Path
from typing import TYPE_CHECKING, Any

from understudy.boundary.tables.duck import unreadable
from understudy.boundary.tables.spill import spill_directory
from understudy.boundary.tables.sql import DUCKDB_FUNCTIONS
from understudy.errors import TableError

if TYPE_CHECKING:
    import duckdb

CSV_ENDINGS = (".csv", ".tsv", ".txt", ".csv.gz", ".tsv.gz")
PARQUET_ENDINGS = (".parquet", ".pq")
DUCKDB_ENDINGS = (".duckdb", ".ddb")
_DELIMITERS = ",;\t|"
_LONGEST_HEADER = 1 << 20


_SETTINGS = {
    "allow_community_extensions": "false",
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "python_enable_replacements": "false",  # else a name without a table could be a variable of whoever calls
}
"""What a connection starts with. Files and frames need no extension that is not part of the engine."""


def connect(path: Path | None = None, *, database: Path | None = None) -> duckdb.DuckDBPyConnection:
    """A DuckDB connection that reaches nothing but frames given to it, the file at `path` or the `database`.

    It can only read: a view in a database may name any file of this machine, or an address of the network, and would
    be read with the rights of whoever opened it. Nothing can be switched on again, by a view either.
    """
    import duckdb

    settings = _SETTINGS | {"temp_directory": spill_directory()}
    try:
        connection = duckdb.connect(config=settings)
        if database is not None:
            _attach(connection, database)
    except duckdb.Error as error:
        raise unreadable(database.name if database else "memory", error) from None
    with contextlib.suppress(duckdb.InvalidInputException):  # a notebook without widgets: refused, as it is off already
        connection.execute("SET enable_progress_bar = false")
    allowed = ", ".join(_literal(p) for p in (str(path), _literal_path(path))) if path else ""
    connection.execute(
        "SET TimeZone = 'UTC'; "  # else a time with a zone would be read by this machine's clock
        f"{DUCKDB_FUNCTIONS}; SET allowed_paths = [{allowed}]; SET enable_external_access = false; "
        "SET allowed_configs = ['threads']; SET lock_configuration = true"
    )
    return connection


def _attach(connection: duckdb.DuckDBPyConnection, path: Path) -> None:
    """Under the name that the file gives it, since views may name their database."""
    taken = " AS memory_db" if path.name.split(".")[0].lower() == "memory" else ""
    connection.execute(f"ATTACH {_literal(str(path))}{taken} (READ_ONLY, TYPE duckdb)")
    ((name,),) = connection.sql("SELECT database_name FROM duckdb_databases() WHERE path IS NOT NULL").fetchall()
    connection.execute(f"USE {_quoted(name)}")


def _literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def csv_relation(path: Path) -> Any:
    """`read_csv` with every choice made from the header, none from the rows."""
    from sqlglot import exp

    names, delimiter = read_header(path)
    if len(set(names)) < len(names):
        twice = next(n for n in names if names.count(n) > 1)
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
        "auto_detect": exp.false(),
        "quote": exp.Literal.string('"'),
        "escape": exp.Literal.string('"'),
        "nullstr": exp.Literal.string(""),
        "compression": exp.Literal.string("gzip" if _is_gzip(path) else "none"),
    }
    return _scan("READ_CSV", path, settings)


def parquet_relation(path: Path) -> Any:
    return _scan("READ_PARQUET", path, {})


def read_header(path: Path) -> tuple[list[str], str]:
    """The column names of a CSV file and its delimiter."""
    text = _first_line(path)
    if not text.strip():
        raise TableError(f"{path.name} can't be read: it has no header line", path)
    if text.count('"') % 2 or "\r" in text.rstrip("\r\n"):
        raise TableError(f"{path.name} can't be read: its header must be one line, ended by \\n or \\r\\n", path)
    delimiter = max(_DELIMITERS, key=lambda d: (len(_fields(text, d)), -_DELIMITERS.index(d)))
    names = _fields(text, delimiter)
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
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise TableError(f"{path.name} can't be read: it is not UTF-8 text", path) from None


def _is_gzip(path: Path) -> bool:
    return path.suffix.lower() == ".gz"


def _fields(line: str, delimiter: str) -> list[str]:
    rows = list(csv.reader(io.StringIO(line.rstrip("\r\n")), delimiter=delimiter))
    return [name.strip() for name in rows[0]] if rows else []


def _scan(function: str, path: Path, settings: dict[str, Any]) -> Any:
    """`function('path', key = value, …)` as a relation; the settings come in a fixed order."""
    from sqlglot import exp

    pattern = exp.Literal.string(_literal_path(path))
    arguments = [exp.EQ(this=exp.var(key), expression=value) for key, value in settings.items()]
    return exp.Table(this=exp.Anonymous(this=function, expressions=[pattern, *arguments]))


def _literal_path(path: Path) -> str:
    """A path in which DuckDB sees no wildcard."""
    return "".join(f"[{c}]" if c in "*?[" else c for c in str(path))
