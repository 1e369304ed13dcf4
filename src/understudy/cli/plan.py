"""`understudy plan`."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

from understudy.cli.locations import schema_of
from understudy.cli.screen import print_json, print_table
from understudy.errors import InputError
from understudy.methods.forecast.forecast import ASSUMED_ROWS, FEWEST_TABLES, Forecast
from understudy.methods.registry import spoken_seconds
from understudy.releases.planning import Outlook, plan


def show(
    data: str | None,
    schema: Path | None,
    epsilon: float,
    delta: float,
    rows: int | None,
    target: tuple[str, ...],
    as_json: bool,
) -> None:
    """Reads the schema alone: the data only name it."""
    if data is None and schema is None:
        raise InputError("plan needs the data, whose schema lies beside them, or a schema given with --schema", data)
    guess = ASSUMED_ROWS if rows is None else rows
    outlook = plan(schema_of(data or "", schema), epsilon=epsilon, delta=delta, rows=guess, target=target)
    if as_json:
        print_json(asdict(outlook))
        return
    said = "given" if rows is not None else "assumed; say how many with --rows"
    print_table(
        f"What to expect at epsilon {epsilon:g}, delta {delta:g} and {outlook.rows:,} rows ({said})",
        ("method", "error of pairs", "most tables", "time", "memory"),
        [_line(f) for f in outlook.forecasts],
    )
    _print_notes(outlook)


def _line(f: Forecast) -> tuple[str, ...]:
    return (
        f.method if f.firm else f"{f.method} *",
        _percent(f.error),
        f"{_percent(f.low)} to {_percent(f.high)}",
        spoken_seconds(f.seconds),
        f"{f.megabytes:,.2g} MB" if f.megabytes < 100 else f"{round(f.megabytes, -1):,.0f} MB",
    )


def _print_notes(outlook: Outlook) -> None:
    if not all(f.firm for f in outlook.forecasts):
        print(f"* rests on few measurements: releases of fewer than {FEWEST_TABLES} tables.")
    told = f"told to predict {', '.join(outlook.targets)}" if outlook.targets else "where no target is named"
    print(f"auto would take {outlook.method} {told}: {outlook.reason}.")
    print("Nothing was read but the schema, and nothing was spent.")


def _percent(share: float) -> str:
    return f"{100 * share:.2g} %"
