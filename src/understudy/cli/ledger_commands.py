"""`understudy budget backup`, `restore` and `forget`: what happens to a ledger as a file."""

from __future__ import annotations

from pathlib import Path

from understudy.boundary.privacy.ledger import backup as backups
from understudy.boundary.privacy.ledger.known_rows import Known, known_for, rows_of
from understudy.boundary.privacy.ledger.ledger import Ledger, is_server
from understudy.cli.locations import ledger_of
from understudy.cli.screen import tell
from understudy.errors import InputError


def back_up(data: str, ledger: Path | None, to: Path) -> None:
    where = ledger_of(data, ledger)
    tell(f"{_debits(backups.back_up(where, to))} of {where} copied to {to}")


def restore(data: str, ledger: Path | None, backup: Path) -> None:
    where = ledger_of(data, ledger)
    if not backup.is_file():
        raise InputError(f"{str(backup)!r} does not exist; give a backup", backup)
    restored = backups.restore(where, backup)
    tell(f"{where}: {_debits(restored.debits)} of {backup} restored")
    if restored.added:
        tell(f"{_debits(restored.added)} that came after it written again")
    if not restored.witnessed:
        tell("nothing on this machine knows of debits after the backup; if there were any, they are forgotten")


def forget(data: str, ledger: Path | None) -> None:
    for path in backups.begin_anew(ledger_of(data, ledger), source_of(data)):
        tell(f"{path} is forgotten: what was released under it is counted nowhere any more")


def others(data: str, ledger: Ledger) -> list[Known]:
    """The other ledgers in which the same rows were debited."""
    return known_for(rows_of(source_of(data)), ledger.identity())


def source_of(data: str) -> str | None:
    """The file of the data as it is known after opening; None for a server."""
    return None if is_server(data) else data


def _debits(count: int) -> str:
    return f"{count} debit{'' if count == 1 else 's'}"
