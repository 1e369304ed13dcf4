"""Which ledger is debited when nobody names one: the one beside the data, in Python as on the command line."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from understudy.boundary.privacy.ledger.ledger import Ledger
from understudy.boundary.tables.table import Table, source_of
from understudy.errors import InputError

ENDING = ".ledger.sqlite"
Debited = Ledger | str | Path | Literal[False] | None
"""What `ledger=` takes: a ledger, its path, False to debit none, or None for the one beside the data."""


def is_server(data: str) -> bool:
    """Whether the data are a table on a server."""
    return "://" in data


def ledger_beside(data: str) -> Path:
    """It carries the whole name of the data file, so that `a.csv` and `a.parquet` have one each.

    >>> ledger_beside("town/people.csv").as_posix(), ledger_beside("town.duckdb::people").as_posix()
    ('town/people.csv.ledger.sqlite', 'town.duckdb.people.ledger.sqlite')
    """
    where, _, inside = data.partition("::")
    path = Path(where)
    named = _beside(path, inside)
    # A link has the ledger of what it leads to, and DuckDB's names know no upper and lower case: one table, one ledger.
    if path.is_symlink():
        path = path.resolve()
    known = _beside(path, inside.lower())
    if named.exists() and not known.exists():
        return named
    return known


def _beside(path: Path, inside: str) -> Path:
    return path.with_name(".".join(filter(None, [path.name, inside])) + ENDING)


def ledger_for(table: Table, ledger: Debited) -> Ledger | Path | None:
    """The ledger that pays for what is asked of a table; None where none does: `ledger=False`, or a frame in memory."""
    if ledger is False:
        return None
    if isinstance(ledger, bool):
        raise InputError("ledger (True) must be a ledger, its path, False for none, or None for the default.", ledger)
    if ledger is not None:
        return Path(ledger) if isinstance(ledger, str) else ledger
    source = source_of(table)
    if source is None:
        return None
    if is_server(source):
        raise InputError(
            "a table on a server has no folder for a ledger; name one with ledger=, or debit none with ledger=False.",
            table.name,
        )
    return ledger_beside(source)
