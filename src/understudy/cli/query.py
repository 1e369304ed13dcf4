"""`understudy query`."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

from understudy.boundary.tables.opening import open as open_table
from understudy.cli.place import ledger_of, schema_of
from understudy.cli.screen import print_facts, print_json, print_table
from understudy.queries.answer import Answer, IntervalEstimate, Key
from understudy.queries.query import query


def show_query(
    data: str,
    sql: str,
    epsilon: float,
    delta: float,
    schema: Path | None,
    ledger: Path | None,
    analyst: str,
    confidence: float,
    accept_draft: bool,
    noise_seed: int | None,
    as_json: bool,
) -> None:
    answer = query(
        open_table(data, schema_of(data, schema)),
        sql,
        epsilon=epsilon,
        delta=delta,
        ledger=ledger_of(data, ledger),
        analyst=analyst,
        confidence=confidence,
        accept_draft_as_public=accept_draft,
        test_only_noise_seed=noise_seed,
    )
    if as_json:
        print_json(answer.to_dict())
    elif answer.keys or len(answer.names) > 1:
        _print_groups(answer)
    else:
        _print_figure(answer)


def _print_figure(answer: Answer) -> None:
    figure = answer.figure
    print_facts(
        [
            (answer.names[0], _written(figure.value)),
            (f"{100 * answer.confidence:g} % interval", f"{_written(figure.low)} to {_written(figure.high)}"),
            ("cost", _cost(answer)),
        ]
    )


def _print_groups(answer: Answer) -> None:
    heads = [*answer.keys, *(h for name in answer.names for h in (name, f"{100 * answer.confidence:g} % interval"))]
    rows = [[*map(_label, g.keys), *(c for f in g.figures for c in _cells(f))] for g in answer]
    print_table(answer.sql, heads, rows)
    print_facts([("cost", _cost(answer))])


def _cells(figure: IntervalEstimate) -> tuple[str, str]:
    return _written(figure.value), f"{_written(figure.low)} to {_written(figure.high)}"


def _cost(answer: Answer) -> str:
    if answer.recorded:
        return f"nothing: asked before, at epsilon {answer.epsilon:g} and delta {answer.delta:g}"
    if not answer.secure:
        return "TEST-ONLY: the noise was seeded, and nothing is guaranteed"
    if not answer.epsilon:
        return "nothing: the number of rows is public"
    paid = f"epsilon {answer.epsilon:g} at delta {answer.delta:g}"
    return f"{paid}; nothing is guaranteed: {answer.void}" if answer.void else paid


def _label(key: Key) -> str:
    return "(missing)" if key is None else str(key)


def _written(value: float | int | datetime) -> str:
    if isinstance(value, datetime):
        return value.isoformat(sep=" ").removesuffix(" 00:00:00")
    return f"{value:,}" if isinstance(value, int) else f"{value:,.6g}" if abs(value) < 1e6 else f"{value:,.2f}"
