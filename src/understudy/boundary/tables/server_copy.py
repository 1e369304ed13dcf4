"""A table of a server as a file among our temporary ones, for drafts and checks: the steward may see the rows.

Both scan the rows several times, and what they say of them must be of one state of the table. So the rows are copied by
a single statement, which sees one snapshot, and streamed to disk block by block, so that memory does not grow with
them. Only this user may enter the folder; the copy is removed with the last reader, at the latest when the process
ends. No release comes here: its rows never leave the server.
"""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from understudy.boundary.schema.derived import Derived
from understudy.boundary.schema.late_imports import exp
from understudy.boundary.schema.schema import Schema
from understudy.boundary.tables.connection import connect, spill_directory
from understudy.boundary.tables.dialect import bound_query
from understudy.boundary.tables.postgres import NO_FIXED_TEXT, plain_source
from understudy.boundary.tables.server import Server
from understudy.boundary.tables.sql import Source, Storage, Stored
from understudy.boundary.tables.text_files import csv_relation
from understudy.errors import TableError

TYPES: dict[Storage, str] = {"whole": "bigint", "real": "double", "truth": "boolean", "moment": "timestamp"}
"""The plain types of `postgres.plain_source` as the engine of `Rows` calls them; all others are texts."""


def copy_of(server: Server, schema: Schema | None = None) -> tuple[Any, Source]:
    """A connection to the engine of `Rows`, and where in it the rows are; of a schema only the columns it needs."""
    source = plain_source(server, schema.unit if schema else None)
    names = [n for n in server.types if schema is None or n in _needed(schema)]
    if len({n.lower() for n in names}) < len(names):
        raise TableError(f"{server.name}: names of columns differ in case only; rename one of them", server.name)
    path = _copied(server, names, source)
    stored = {n: source.columns[n] for n in names}
    read = [exp.alias_(_typed(i, stored[n]), n, quoted=True) for i, n in enumerate(names)]
    made = Source(exp.select(*read).from_(csv_relation(path)).subquery("understudy_copy"), stored)
    weakref.finalize(made, path.unlink, missing_ok=True)
    return connect(path), made


def _needed(schema: Schema) -> set[str]:
    """Columns that are modelled or make up one that is, and the one that tells whose a row is."""
    sources = {s.name for c in schema.modelled if isinstance(c, Derived) for s in c.sources}
    people = {schema.unit.column} if schema.unit else set()
    return {c.name for c in schema.in_table if c.modelled} | sources | people


def _typed(i: int, stored: Stored) -> Any:
    text = exp.column(f"c{i}")
    kind = TYPES.get(stored.kind)
    return exp.TryCast(this=text, to=exp.DataType.build(kind)) if kind else text


def _copied(server: Server, names: Sequence[str], source: Source) -> Path:
    """The texts of these columns under plain names; what can't be released has no text that could be drafted from."""
    folder = spill_directory()
    if not folder:
        raise TableError(f"{server.name} can't be read: there is no room for a copy of it", server.name)
    texts = [exp.alias_(_text(server, n), f"c{i}") for i, n in enumerate(names)]
    path = Path(folder) / "server.csv"
    try:
        path.parent.mkdir(mode=0o700)
        with path.open("wb") as out:
            for block in server.copied(bound_query(exp.select(*texts).from_(source.relation.copy()))):
                out.write(block)
    except OSError as error:
        path.unlink(missing_ok=True)
        raise TableError(f"{server.name} can't be read: no room for a copy of it ({error.strerror})", path) from None
    return path


def _text(server: Server, name: str) -> Any:
    if server.types[name] in NO_FIXED_TEXT:
        return exp.cast(exp.null(), "text")
    return exp.cast(exp.column(name, quoted=True), "text")
