"""`understudy budget`."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

from understudy.cli.place import ledger_of
from understudy.cli.screen import bar, print_facts, print_json, print_table
from understudy.errors import InputError
from understudy.files import write_atomically
from understudy.privacy.budget import Budget
from understudy.privacy.ledger import NEIGHBOURS, Ledger


def show(data: str, path: Path | None, as_json: bool) -> None:
    ledger = _existing(data, path)
    standing = ledger.standing()
    if as_json:
        accounts = [_without_cost(asdict(a)) for a in ledger.accounts()]
        print_json({"ledger": str(ledger), **_without_cost(asdict(standing)), "analysts": accounts})
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
    _print_accounts(ledger)


def _without_cost(facts: dict[str, object]) -> dict[str, object]:
    """Without the exact cost, which is a fraction of many digits; `history --json` has it."""
    return {k: v for k, v in facts.items() if k != "spent"}


def _print_accounts(ledger: Ledger) -> None:
    """Who asked for how much, and who may still ask; nothing where nobody has a name or a share."""
    accounts = ledger.accounts()
    if not any(a.analyst or a.share is not None for a in accounts):
        return
    rows = [
        (
            a.analyst or "(not named)",
            "" if a.share is None else f"{100 * a.share:g} %",
            str(a.entries),
            f"{a.epsilon:.4g}",
            "" if a.left is None or a.share is None else f"{a.left:.4g}",
            "" if a.used is None else f"{bar(a.used, 20)} {a.used:.0%}",
        )
        for a in accounts
    ]
    print_table("Analysts", ("analyst", "share", "debits", "epsilon", "left", "share used up"), rows)


def set_share(data: str, analyst: str, share: float, path: Path | None) -> None:
    ledger = _existing(data, path)
    ledger.set_share(analyst, share)
    together = sum(a.share or 0 for a in ledger.accounts())
    print(
        f"{ledger}: {analyst} may use up {100 * share:g} % of the limit; all shares together are {100 * together:g} %"
    )


def export(data: str, path: Path | None, out: Path) -> None:
    """The whole history, as CSV or JSON by the ending of the file."""
    rows = _existing(data, path).export()
    if out.suffix not in (".csv", ".json"):
        raise InputError(f"the export ({out.name}) must end with .csv or .json", out)
    content = json.dumps(rows, indent=2, ensure_ascii=False) + "\n" if out.suffix == ".json" else _csv(rows)
    write_atomically(out, content.encode())
    print(f"{len(rows)} rows written to {out}")


def _csv(rows: list[dict[str, Any]]) -> str:
    flat = [{**r, **{f"cost_{k}": v for k, v in r.get("cost", {}).items()}} for r in rows]
    heads = ["kind", "id", "time", "neighbours", "epsilon", "delta", "analyst", "share", "purpose"]
    heads += ["cost_rho", "cost_epsilon", "cost_delta"]
    out = io.StringIO()
    writer = csv.DictWriter(out, heads, extrasaction="ignore", lineterminator="\n")
    writer.writeheader()
    writer.writerows(flat)
    return out.getvalue()


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


def _amount(row: dict[str, Any]) -> str:
    return f"{100 * row['share']:g} % of it" if row["kind"] == "share" else f"{row['epsilon']:g} at {row['delta']:g}"


def _existing(data: str, path: Path | None) -> Ledger:
    where = ledger_of(data, path)
    if not where.exists():
        raise InputError(f"{str(where)!r} does not exist: nothing was spent yet, and no limit was set", where)
    return Ledger.open(where, create=False)
