"""`understudy methods` and `plan`, and what the shell completes of methods and their options."""

from __future__ import annotations

from dataclasses import asdict
from decimal import Decimal
from pathlib import Path
from typing import Any

from understudy.cli.locations import check_command, schema_of
from understudy.cli.screen import print_facts, print_json, print_table, tell
from understudy.errors import InputError, installing
from understudy.lab.specimens.all_specimens import SPECIMENS
from understudy.lab.specimens.specimen_result import SpecimenKind
from understudy.methods.forecast.caution import rough, spoken
from understudy.methods.forecast.forecast import ASSUMED_ROWS, FEWEST_TABLES, Forecast
from understudy.methods.method import Method
from understudy.methods.registry import AUTO, METHODS, find_method, general_methods, spoken_seconds
from understudy.releases.planning import plan

HEADS = ("method", "guarantee", "good for", "limits")


def show_methods(as_json: bool) -> None:
    """Every method, those without privacy, and why an installed one can't be used."""
    if as_json:
        print_json([_described(m) for m in METHODS.values()])
        return
    general = ", ".join(m.name for m in general_methods())
    print_table(
        f"Methods (auto, the default: marginals if some are named, else by forecast one of {general})",
        HEADS,
        [(m.name, m.guarantee, m.good_for, m.limits) for m in METHODS.values()],
    )
    print_table(
        "Without privacy (synth --no-privacy, for studies and for rows that are public)",
        ("name", "good for", "limits"),
        [(kind.name, kind.good_for, kind.limits) for kind in SPECIMENS.values()],
    )
    for reason in METHODS.offered.refused.values():
        tell(f"{reason}.")


def show_method(name: str, as_json: bool) -> None:
    """One method, or one without privacy, with its options."""
    found = SPECIMENS.get(name) or find_method(name)  # in this order: the latter refuses what it doesn't know
    described = _described(found)
    if as_json:
        print_json(described)
        return
    print_facts([(head, described[head]) for head in HEADS])
    if rows := found.params.rows():
        print_table("Options (--option NAME=VALUE)", ("option", "default", "must be", "what it is"), rows)
    else:
        tell("It has no options of its own.")


def _described(found: Method | SpecimenKind) -> dict[str, Any]:
    guarantee = found.guarantee if isinstance(found, Method) else "none"
    texts = zip(HEADS, (found.name, guarantee, found.good_for, found.limits), strict=True)
    return {**dict(texts), "options": found.params.describe()}


def method_names() -> list[str]:
    return [*METHODS, AUTO, *SPECIMENS]


def option_texts(name: str) -> list[str]:
    """What may follow `--option` for this method: names with an equals sign, and choices where there are some."""
    found = METHODS.get(name) or SPECIMENS.get(name)
    if found is None:
        return []
    # An option without choices is completed up to its equals sign, and the shell waits for the value.
    declared = found.params.declared().items()
    return [f"{option}={choice}" for option, of in declared for choice in of.choices or ("",)]


# --- plan


def parse_error(text: str | None) -> float | None:
    """A share, as 3% or as 0.03.

    >>> parse_error("3%"), parse_error("0.03")
    (0.03, 0.03)
    """
    if text is None:
        return None
    plain = text.strip()
    try:
        return float(Decimal(plain.removesuffix("%").strip()) / (100 if plain.endswith("%") else 1))
    except ArithmeticError:
        raise InputError(f"error ({text!r}) must be a share of the rows, such as 3% or 0.03", text) from None


def show_plan(data: str | None, schema: Path | None, *, rows: int | None, as_json: bool, **asked: Any) -> None:
    """Reads the schema alone: the data only name it. What is `asked` besides goes to `understudy.plan` as it is."""
    if data is None and schema is None:
        raise InputError("plan needs the data, whose schema lies beside them, or a schema given with --schema", data)
    # How many rows there are may be private, so it is guessed and never looked up.
    guess, origin = rows, "given"
    if guess is None:
        guess, origin = ASSUMED_ROWS, "assumed"
    outlook = plan(schema_of(data or "", schema), rows=guess, **asked)
    if as_json:
        print_json(asdict(outlook))
        return
    print_table(
        f"Expected at epsilon {outlook.epsilon:g}, delta {outlook.delta:g} and {guess:,} rows ({origin})",
        ("method", "error of pairs", "most tables", "time", "memory"),
        [_forecast_row(f) for f in outlook.forecasts],
    )
    if rows is None:
        tell(f"{guess:,} rows were assumed; say how many you have with --rows.")
    if not all(f.firm for f in outlook.forecasts):
        tell(f"* rests on few measurements: releases of fewer than {FEWEST_TABLES} tables.")
    extras = {f.method: METHODS[f.method].traits.extra for f in outlook.forecasts}
    for extra in sorted(set(extras.values()) - {""}):
        needing = ", ".join(sorted(name for name, needed in extras.items() if needed == extra))
        tell(f"To be installed: {needing} ({installing(extra)}).")
    told = "where no target is named"
    if outlook.targets:
        told = f"told to predict {', '.join(outlook.targets)}"
    tell(f"auto would take {outlook.method} {told}: {outlook.reason}.")
    if (expected := outlook.expected) is not None:
        tell(f"Expected of it: {spoken(expected, guess)}.")
    if asked["error"] is not None:
        tell(f"Epsilon {outlook.epsilon:g} is the least at which it is expected to err by {rough(asked['error'])}.")
    for caution in outlook.cautions:
        tell(f"Caution: {caution}.")
    tell("Error of pairs: rows that would have to move for a pair of columns to be right. Most tables: four of five.")
    tell("Nothing was read but the schema, and nothing was spent.")
    if command := check_command(data):
        tell(f"What the schema does to the rows: `{command}` (internal, spends nothing).")


def _forecast_row(f: Forecast) -> tuple[str, ...]:
    name = f.method if f.firm else f"{f.method} *"
    memory = f"{f.megabytes:,.2g}" if f.megabytes < 100 else f"{round(f.megabytes, -1):,.0f}"
    error, low, high = map(rough, (f.error, f.low, f.high))
    return name, error, f"{low} to {high}", spoken_seconds(f.seconds), f"{memory} MB"
