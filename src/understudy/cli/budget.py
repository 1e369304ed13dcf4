"""`understudy budget`."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

from understudy.cli.place import ledger_of
from understudy.cli.screen import bar, print_facts, print_json, print_table
from understudy.errors import InputError
from understudy.privacy.budget import Budget
from understudy.privacy.ledger import NEIGHBOURS, Ledger


def show(data: str, path: Path | None, as_json: bool) -> None:
    ledger = _existing(data, path)
    standing = ledger.standing()
    if as_json:
        plain = {k: v for k, v in asdict(standing).items() if k != "spent"}
        print_json({"ledger": str(ledger), **plain})
        return
    facts = [
        ("ledger", str(ledger)),
        ("neighbours", standing.neighbours or "not settled yet"),
        ("debits", str(standing.entries)),
        ("spent", f"epsilon {standing.epsilon:.4g} at delta {standing.delta:g}"),
    ]
    if standing.limit is None:
        facts.append(("limit", "none; set one with `understudy budget set`"))
    else:
        share = standing.epsilon / standing.limit.epsilon
        facts += [
            ("limit", str(standing.limit)),
            ("", f"{bar(share)} {share:.0%} of epsilon"),
            ("left", f"one more release of epsilon {standing.left or 0:.4g} at delta {standing.limit.delta:g}"),
        ]
    print_facts(facts)


def set_limit(data: str, epsilon: float, delta: float, neighbours: str, path: Path | None) -> None:
    limit = Budget(epsilon, delta)
    if neighbours not in NEIGHBOURS:  # before a ledger is made
        raise InputError(f"neighbours ({neighbours}) must be one of {', '.join(NEIGHBOURS)}", neighbours)
    where = Path(data.partition("::")[0])
    if path is None and not where.exists():
        raise InputError(f"{str(where)!r} does not exist; give the data, or a ledger with --ledger", data)
    ledger = Ledger.open(ledger_of(data, path))
    ledger.set_limit(limit, neighbours)
    print(f"{ledger}: all releases together may reach {limit}, neighbours {neighbours}")


def history(data: str, path: Path | None, as_json: bool) -> None:
    ledger = _existing(data, path)
    rows = ledger.export()
    if as_json:
        print_json(rows)
        return
    shown = [
        [str(r["time"]), str(r["kind"]), _amount(r), str(r.get("purpose", "")), str(r.get("analyst", ""))] for r in rows
    ]
    print_table(str(ledger), ("time (UTC)", "what", "epsilon at delta", "purpose", "analyst"), shown)


def _amount(row: dict[str, object]) -> str:
    return f"{row['epsilon']:g} at {row['delta']:g}"


def _existing(data: str, path: Path | None) -> Ledger:
    where = ledger_of(data, path)
    if not where.exists():
        raise InputError(f"{str(where)!r} does not exist: nothing was spent yet, and no limit was set", where)
    return Ledger.open(where, create=False)
