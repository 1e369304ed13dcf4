"""Connections to DuckDB: what they may reach, and where they write rows that outgrow memory.

DuckDB would spill rows to `.tmp` in the current directory, for everybody to read, and leave them there when it is
killed. Our folder lies where the system keeps temporary files (`TMPDIR`), only its user may enter it (mode 0700) and it
is removed when the process ends. What a killed process left is removed by the next one: a folder is held by a lock on
it, which the death of its process gives up, so that nobody sweeps away what a living process still needs.
"""

from __future__ import annotations

import atexit
import contextlib
import itertools
import os
import shutil
import stat
import tempfile
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from understudy.boundary.schema.late_imports import duckdb, pa
from understudy.boundary.tables.duck import unreadable
from understudy.boundary.tables.sql import DUCKDB_FUNCTIONS

try:
    import fcntl
except ImportError:  # a system without such locks: then nothing is swept
    fcntl = None  # type: ignore[assignment]

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
    settings = _SETTINGS | {"temp_directory": spill_directory()}
    try:
        connection = duckdb.connect(config=settings)
        if database is not None:
            _attach(connection, database)
    except duckdb.Error as error:
        raise unreadable(database.name if database else "memory", error) from None
    with contextlib.suppress(duckdb.InvalidInputException):  # a notebook without widgets: refused, as it is off already
        connection.execute("SET enable_progress_bar = false")
    # The pattern that stands in the query, and the file that it leads to.
    paths = (str(path), literal_path(path)) if path else ()
    allowed = ", ".join(map(quoted_text, paths))
    connection.execute(
        "SET TimeZone = 'UTC'; "  # else a time with a zone would be read by this machine's clock
        # The first would make each IN list of a few texts a join, and planning hundreds of joins takes minutes and all
        # memory. The second looks for what two columns have in common, in time that grows with their square. The third
        # takes a CSV file for a few rows, and would keep all of it in memory to look up a list of labels in it.
        "SET disabled_optimizers = 'in_clause,common_subexpressions,build_side_probe_side'; "
        f"{DUCKDB_FUNCTIONS}; SET allowed_paths = [{allowed}]; SET enable_external_access = false; "
        "SET allowed_configs = ['threads']; SET lock_configuration = true"
    )
    return connection


def _attach(connection: duckdb.DuckDBPyConnection, path: Path) -> None:
    """Under the name that the file gives it, since views may name their database."""
    # "memory" is the name of the engine's own database.
    taken = " AS memory_db" if path.name.split(".")[0].lower() == "memory" else ""
    connection.execute(f"ATTACH {quoted_text(str(path))}{taken} (READ_ONLY, TYPE duckdb)")
    ((name,),) = connection.sql("SELECT database_name FROM duckdb_databases() WHERE path IS NOT NULL").fetchall()
    connection.execute(f"USE {quoted_name(name)}")


def quoted_text(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def quoted_name(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def literal_path(path: Path) -> str:
    """A path in which DuckDB sees no wildcard."""
    return "".join(f"[{c}]" if c in "*?[" else c for c in str(path))


def written_moments(moments: pa.ChunkedArray, form: str) -> pa.ChunkedArray:
    """Points in time as texts of a format, by the engine that will read them back."""
    with connect() as connection:
        connection.register("moments", pa.table({"moment": moments}))
        query = "SELECT strftime(CAST(moment AS TIMESTAMP), $form) AS written FROM moments"
        return connection.sql(query, params={"form": form}).to_arrow_table().column("written")


# --- Where rows that outgrow memory are written ---------------------------------------------------------------------

PREFIX = "understudy-spill-"


@dataclass(frozen=True)
class Folder:
    """The folder of one process. `handle` holds its lock; it is closed by the system when the process ends."""

    path: Path
    process: int
    handle: int | None
    numbers: Iterator[int] = field(default_factory=itertools.count)

    def remove(self) -> None:
        """Does nothing in a child that was forked with this folder: it belongs to the parent."""
        if os.getpid() == self.process:
            shutil.rmtree(self.path, ignore_errors=True)


_making = threading.Lock()
_current: Folder | None = None


def spill_directory() -> str:
    """A place for one connection's temporary files; empty, which means no place, where there is no room for one.

    The engine makes the directory when it first writes to it, and deletes it when the connection is closed.
    """
    try:
        folder = _folder()
    except OSError:  # a full disk: then what outgrows memory is an error, and not a file for all to read
        return ""
    return str(folder.path / str(next(folder.numbers)))


def _folder() -> Folder:
    """This process's folder, made at the first call. A forked child has one of its own."""
    global _current
    with _making:
        if _current is None or _current.process != os.getpid():
            sweep(Path(tempfile.gettempdir()))
            _current = _made()
            atexit.register(_current.remove)
        return _current


def _made() -> Folder:
    while True:
        path = Path(tempfile.mkdtemp(prefix=PREFIX))
        if fcntl is None:
            return Folder(path, os.getpid(), None)
        handle = os.open(path, os.O_RDONLY)
        fcntl.flock(handle, fcntl.LOCK_EX)
        # Another process may have swept the folder away before the lock was taken.
        if _is_still(path, handle):
            return Folder(path, os.getpid(), handle)
        os.close(handle)


def _is_still(path: Path, handle: int) -> bool:
    try:
        return os.path.samestat(path.lstat(), os.fstat(handle))
    except FileNotFoundError:
        return False


def sweep(place: Path) -> None:
    """Removes the folders of this user whose processes are dead."""
    if fcntl is None:
        return
    for path in place.glob(f"{PREFIX}*"):
        try:
            _sweep(path)
        except OSError:  # somebody else's, or gone meanwhile
            continue


def _sweep(path: Path) -> None:
    # The checks make sure that nobody but this user can have put anything there: not even a link to another place.
    found = path.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid() or stat.S_IMODE(found.st_mode) & 0o077:
        return
    handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_DIRECTORY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if _is_still(path, handle):
            shutil.rmtree(path, ignore_errors=True)
    finally:
        os.close(handle)
