"""`understudy budget`."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

from understudy.boundary.privacy.budget import Budget
from understudy.boundary.privacy.facts import PrivacyUnit
from understudy.boundary.privacy.ledger import state
from understudy.boundary.privacy.ledger.database import demand_not_gone
from understudy.boundary.privacy.ledger.division import Division, plain, rest_of
from understudy.boundary.privacy.ledger.entries import Account
from understudy.boundary.privacy.ledger.known_rows import demand_unknown, known_for, rows_of
from understudy.boundary.privacy.ledger.ledger import NEIGHBOURS, Ledger, Standing, is_server
from understudy.boundary.schema.schema import ADD_REMOVE, Schema
from understudy.cli.ledger_commands import others, source_of
from understudy.cli.locations import beside, ledger_of, schema_of
from understudy.cli.screen import bar, print_facts, print_json, print_table, tell
from understudy.errors import InputError
from understudy.files import write_atomically
from understudy.parameters import one_of

_UNDIVIDED = "what is kept for private values and trainings is settled by the first release"
_NO_WITNESS = "none, since the state folder can't be written to: an older copy of the ledger would pass for it"
MORE = 0.01
SLOWER = "(more than the difference: losses add up more slowly than their sum)"
_KNOWN_ANSWERS = (
    "releases came before this limit: it is a strict guarantee only if their answers had no part in choosing it"
)


def show_budget(data: str, path: Path | None, as_json: bool) -> None:
    ledger = _existing(data, path)
    standing = ledger.standing()
    same_rows, witnessed = others(data, ledger), state.usable()
    if as_json:
        accounts = [_without_cost(asdict(a)) for a in ledger.accounts()]
        limit, unit = standing.limit, standing.unit and standing.unit.to_dict()
        told = _without_cost(asdict(standing)) | {"unit": unit, "analysts": accounts}
        # How a limit is added up is the ledger's affair: the file says it with each debit.
        told["limit"] = limit and {"epsilon": limit.epsilon, "delta": limit.delta}
        del told["division"]
        told |= _parts(standing)
        told |= {"same_rows": [str(known.path) for known in same_rows], "witnessed": witnessed}
        print_json({"ledger": str(ledger), **told})
        return
    facts = [
        ("ledger", str(ledger)),
        ("neighbours", standing.neighbours or "not settled yet"),
        ("unit", _unit_words(standing)),
        ("debits", str(standing.entries)),
        ("spent", f"epsilon {standing.epsilon:.4g} at delta {standing.delta:g}"),
    ]
    if standing.limit is None:
        facts.append(("limit", "none; set one with `understudy budget set`"))
    else:
        share = standing.epsilon / standing.limit.epsilon
        facts += [
            ("limit", str(standing.limit)),
            ("", f"{bar(share)} {100 * share:.0f} % of epsilon"),
            # Not the limit less what was spent: g adds up (or ρ), and not ε, so that one more release may have more.
            ("left", f"one more release of epsilon {standing.left or 0:.4g} at delta {standing.limit.delta:g}"),
        ]
        if standing.left is not None and standing.left > standing.limit.epsilon - standing.epsilon + MORE:
            facts.append(("", SLOWER))
        if not standing.limit.pure:
            facts += _part_facts(standing)
    facts += [("same rows", known.notice) for known in same_rows]
    if not witnessed:
        facts.append(("witness", _NO_WITNESS))
    print_facts(facts)
    _print_accounts(ledger)


def _parts(standing: Standing) -> dict[str, float | None]:
    """What the limit keeps for failures and for trainings, and what is left of it; null where nothing is settled."""
    division, spent = standing.division, standing.spent
    if division is None:
        return dict.fromkeys(("failure_delta", "failure_delta_left", "training_epsilon", "training_epsilon_left"))
    return {
        "failure_delta": plain(division.failure_delta),
        "failure_delta_left": plain(rest_of(division.failure_delta, spent.delta)),
        "training_epsilon": plain(division.training_epsilon),
        "training_epsilon_left": plain(rest_of(division.training_epsilon, spent.direct)),
    }


def _part_facts(standing: Standing) -> list[tuple[str, str]]:
    division, spent = standing.division, standing.spent
    if division is None:
        return [("kept", _UNDIVIDED)]
    # In fractions, as the ledger adds: of two numbers that are nearly the same, floats would lose the rest.
    rest = plain(rest_of(division.failure_delta, spent.delta))
    kept = f"{rest:.4g} of {plain(division.failure_delta):.4g}; private values and trainings use it up for good"
    facts = [("delta left", kept if division.failure_delta else "none is kept for private values and trainings")]
    if division.training_epsilon:
        rest = plain(rest_of(division.training_epsilon, spent.direct))
        facts.append(("trainings", f"epsilon {rest:.4g} left of {plain(division.training_epsilon):.4g}"))
    else:
        facts.append(("trainings", "no epsilon is kept for them"))
    return facts


def _unit_words(standing: Standing) -> str:
    if standing.unit is not None:
        return standing.unit.who
    if standing.entries:
        return "not recorded; state it with `understudy budget unit`"
    return "not settled yet"


def _without_cost(facts: dict[str, object]) -> dict[str, object]:
    """Without the exact cost, which is a fraction of many digits; `history --json` has it."""
    return {k: v for k, v in facts.items() if k != "spent"}


def _print_accounts(ledger: Ledger) -> None:
    """Who asked for how much, and who may still ask; nothing where nobody has a name or a share."""
    accounts = ledger.accounts()
    if not any(a.analyst or a.share is not None for a in accounts):
        return
    heads = ("analyst", "share", "debits", "epsilon", "left", "share used up")
    print_table("Analysts", heads, [_account_row(a) for a in accounts])


def _account_row(account: Account) -> tuple[str, ...]:
    share = left = used = ""
    if account.share is not None:
        share = f"{100 * account.share:g} %"
        if account.left is not None:
            left = f"{account.left:.4g}"
    if account.used is not None:
        used = f"{bar(account.used, 20)} {account.used:.0%}"
    return account.analyst or "(not named)", share, str(account.entries), f"{account.epsilon:.4g}", left, used


def set_share(data: str, analyst: str, share: float, path: Path | None) -> None:
    ledger = _existing(data, path)
    ledger.set_share(analyst, share)
    # It may be more than the whole: the limit holds for all together, whatever the shares.
    together = sum(a.share or 0 for a in ledger.accounts())
    tell(f"{ledger}: {analyst} may use up {100 * share:g} % of the limit; all shares together are {100 * together:g} %")


def export(data: str, path: Path | None, out: Path) -> None:
    """The whole history, as CSV or JSON by the ending of the file."""
    rows = _existing(data, path).export()
    if out.suffix not in (".csv", ".json"):
        raise InputError(f"the export ({out.name}) must end with .csv or .json", out)
    if out.suffix == ".json":
        content = json.dumps(rows, indent=2, ensure_ascii=False) + "\n"
    else:
        content = _csv(rows)
    write_atomically(out, content.encode(), private=True)
    tell(f"{len(rows)} rows written to {out}")


def _csv(rows: list[dict[str, Any]]) -> str:
    flat = [{**r, **{f"cost_{k}": v for k, v in r.get("cost", {}).items()}} for r in rows]
    flat = [{**r, "unit": _unit_text(r.get("unit"))} for r in flat]
    heads = ["kind", "id", "time", "neighbours", "unit", "epsilon", "delta", "analyst", "share", "purpose"]
    heads += ["cost_gdp", "cost_rho", "cost_epsilon", "cost_delta", "failure_delta", "training_epsilon"]
    out = io.StringIO()
    # An extra is the nested cost, whose parts have columns of their own.
    writer = csv.DictWriter(out, heads, extrasaction="ignore", lineterminator="\n")
    writer.writeheader()
    writer.writerows(flat)
    return out.getvalue()


def set_limit(
    data: str,
    limit: Budget,
    neighbours: str | None = None,
    *,
    failure_delta: float | None = None,
    training_epsilon: float | None = None,
    ledger: Path | None = None,
    schema: Path | None = None,
) -> None:
    """The relation and the unit are those of the schema, where there is one; releases under it are held to both."""
    # Refused before a ledger is made.
    if neighbours is not None:
        one_of("neighbours", neighbours, NEIGHBOURS)
    Division.stated(limit, failure_delta, training_epsilon)
    where = Path(data.partition("::")[0])
    if ledger is None and not where.exists():
        raise InputError(f"{str(where)!r} does not exist; give the data, or a ledger with --ledger", data)
    known = _known_schema(data, schema)
    relation, unit = _protected(known, neighbours)
    place = ledger_of(data, ledger)
    demand_unknown(rows_of(source_of(data)), place)
    book = Ledger.open(place)
    book.set_limit(limit, relation, unit, failure_delta=failure_delta, training_epsilon=training_epsilon)
    may = f"{book}: all releases together may reach {limit}, neighbours {relation}, unit"
    if unit is not None:
        tell(f"{may} {unit.who}")
    else:
        tell(f"{may} of the first release")
        tell("no schema was found beside the data, so the unit will be that of the first release; or give --schema")
    standing = book.standing()
    if not limit.pure:
        tell(_division_words(standing.division))
    if standing.entries:
        tell(_KNOWN_ANSWERS)


def _division_words(division: Division | None) -> str:
    if division is None:
        return f"{_UNDIVIDED}; or give --failure-delta and --training-epsilon"
    trainings = "no epsilon"
    if division.training_epsilon:
        trainings = f"epsilon {plain(division.training_epsilon):.4g}"
    return (
        f"of it, delta {plain(division.failure_delta):.4g} is kept for private values and trainings, and {trainings} "
        "for trainings"
    )


def _known_schema(data: str, given: Path | None) -> Schema | None:
    """The schema that was given, or the one beside the data, if there is one yet."""
    if given is None and (is_server(data) or not beside(data, ".toml").exists()):
        return None
    return schema_of(data, given)


def _protected(schema: Schema | None, neighbours: str | None) -> tuple[str, PrivacyUnit | None]:
    """The relation and the unit of a limit; a relation that was typed must be the schema's."""
    if schema is None:
        return neighbours or ADD_REMOVE, None
    if neighbours not in (None, schema.neighbours):
        raise InputError(
            f"neighbours ({neighbours}) must be {schema.neighbours}, as in the schema; leave it out", neighbours
        )
    return schema.neighbours, PrivacyUnit.of(schema)


def state_unit(data: str, path: Path | None, schema: Path | None) -> None:
    """Of a ledger from before units were recorded: its debits had the unit of the schema."""
    ledger, unit = _existing(data, path), PrivacyUnit.of(schema_of(data, schema))
    count = ledger.state_unit(unit)
    plural = "" if count == 1 else "s"
    tell(f"{ledger}: {count} earlier debit{plural} protected {unit.who}, as stated now")


def show_history(data: str, path: Path | None, as_json: bool) -> None:
    ledger = _existing(data, path)
    rows = ledger.export()
    if as_json:
        print_json(rows)
        return
    shown = [
        [
            str(r["time"])[:19].replace("T", " "),
            str(r["kind"]),
            _amount(r),
            _unit_text(r["unit"]) if "unit" in r else "",
            str(r.get("purpose", "")),
            str(r.get("analyst", "")),
        ]
        for r in rows
    ]
    print_table(str(ledger), ("time (UTC)", "what", "epsilon at delta", "unit", "purpose", "analyst"), shown)


def _unit_text(unit: dict[str, Any] | None) -> str:
    """The unit of one row of the history."""
    if unit is None:
        return "not recorded"
    if unit["what"] == "row":
        return "row"
    return f"person by {unit['column']}, rows ≤ {unit['max_rows']}"


def _amount(row: dict[str, Any]) -> str:
    if row["kind"] == "unit":
        return f"stated of debits 1 to {row['debits']}"
    if row["kind"] == "share":
        return f"{100 * row['share']:g} % of it"
    amount = f"{row['epsilon']:g} at {row['delta']:g}"
    if row.get("failure_delta") is None:
        return amount
    return f"{amount}, of it {row['training_epsilon']:.4g} at {row['failure_delta']:.4g} kept"


def _existing(data: str, path: Path | None) -> Ledger:
    # To look is not to make one: an empty ledger beside the data would seem to say that nothing was ever spent.
    where = ledger_of(data, path)
    if not where.exists():
        demand_not_gone(where)
        rows = rows_of(source_of(data))
        demand_unknown(rows, where)
        known = "".join(f"; but {known.notice}" for known in known_for(rows))
        raise InputError(f"{str(where)!r} does not exist: nothing was spent yet, and no limit was set{known}", where)
    return Ledger.open(where, create=False)
