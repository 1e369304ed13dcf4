"""Tables of SQLite whose rows are only ever added: triggers abort UPDATE, DELETE and REPLACE."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator

# REPLACE deletes without firing DELETE triggers, so the collision itself is refused.
GUARD = """
CREATE TRIGGER {table}_update BEFORE UPDATE ON {table} BEGIN SELECT RAISE(ABORT, 'a ledger is append-only'); END;
CREATE TRIGGER {table}_delete BEFORE DELETE ON {table} BEGIN SELECT RAISE(ABORT, 'a ledger is append-only'); END;
CREATE TRIGGER {table}_replace BEFORE INSERT ON {table} WHEN EXISTS (SELECT 1 FROM {table} WHERE {clash})
BEGIN SELECT RAISE(ABORT, 'a ledger is append-only'); END;
"""


def make(database: sqlite3.Connection, tables: str, clashes: dict[str, str]) -> None:
    """Creates these tables and their guards; what would replace a row of a table is its clash."""
    guards = "".join(GUARD.format(table=table, clash=clash) for table, clash in clashes.items())
    for statement in _statements(tables + guards):
        database.execute(statement)


def _statements(script: str) -> Iterator[str]:
    """The statements of a script, one by one: `executescript` would commit in between."""
    pending = ""
    for line in script.splitlines(keepends=True):
        pending += line
        if sqlite3.complete_statement(pending):
            yield pending
            pending = ""
