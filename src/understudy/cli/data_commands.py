"""`understudy schema` and `query`, of a private table; `verify`, `replay` and `count`, of a release."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

from understudy.boundary.schema.column import Identifier
from understudy.boundary.tables.draft import draft_schema
from understudy.boundary.tables.sources import open as open_table
from understudy.cli.locations import ledger_of, schema_of
from understudy.cli.screen import print_facts, print_json, print_table, print_toml, progress, tell
from understudy.errors import ReleaseError
from understudy.pages.formatting import counted
from understudy.queries.answer import Answer, IntervalEstimate, spoken
from understudy.queries.query import query
from understudy.releases.checking import replay, verify
from understudy.releases.release import Release


def draft_to(data: str, out: Path | None, overwrite: bool) -> None:
    if out is not None and out.exists() and not overwrite:
        raise ReleaseError(f"{str(out)!r} exists already; choose another file, or say --overwrite", out)
    with progress(None, quiet=False) as begin:
        schema = draft_schema(data, progress=begin)
    if out is not None:
        schema.save(out)
    # To standard error, since standard output may be the schema itself, on its way to a file.
    if left_out := [c.name for c in schema if isinstance(c, Identifier)]:
        tell(f"drafted as identifiers, so left out of a release: {', '.join(left_out)}", error=True)
    if out is None:
        print_toml(schema.commented)
    else:
        tell(f'{out}: check every line, then change status to "confirmed"', error=True)


# --- query


def show_query(
    data: str,
    sql: str,
    *,
    schema: Path | None,
    ledger: Path | None,
    as_json: bool,
    pushdown: bool = False,
    **asked: Any,
) -> None:
    """Answers a question; what is `asked` besides it goes to `understudy.query` as it is."""
    table = open_table(data, schema_of(data, schema), pushdown=pushdown)
    answer = query(table, sql, ledger=ledger_of(data, ledger), **asked)
    if as_json:
        print_json(answer.to_dict())
    elif answer.keys or len(answer.names) > 1:
        _print_groups(answer)
    else:
        value, interval = _cells(answer.figure)
        named = f"{100 * answer.confidence:g} % interval"
        print_facts([(answer.names[0], value), (named, interval), ("cost", _cost(answer))])


def _print_groups(answer: Answer) -> None:
    # Every figure has its own interval beside it: no number of a noisy answer stands alone.
    heads = [*answer.keys, *(h for name in answer.names for h in (name, f"{100 * answer.confidence:g} % interval"))]
    rows = [
        [*("(missing)" if k is None else str(k) for k in g.keys), *(c for f in g.figures for c in _cells(f))]
        for g in answer
    ]
    print_table(answer.sql, heads, rows)
    print_facts([("cost", _cost(answer))])


def _cells(figure: IntervalEstimate) -> tuple[str, str]:
    return spoken(figure.value), f"{spoken(figure.low)} to {spoken(figure.high)}"


def _cost(answer: Answer) -> str:
    if answer.recorded:
        return f"nothing: asked before, at epsilon {answer.epsilon:g} and delta {answer.delta:g}"
    if not answer.secure:
        return "TEST-ONLY: the noise was seeded, and nothing is guaranteed"
    if not answer.epsilon:
        return "nothing: the number of rows is public"
    paid = f"epsilon {answer.epsilon:g} at delta {answer.delta:g}"
    if answer.void:
        return f"{paid}; nothing is guaranteed: {answer.void}"
    return paid


# --- releases


def show_verified(folder: Path, as_json: bool) -> None:
    found = verify(folder)
    if as_json:
        print_json(asdict(found))
        return
    spent = f"epsilon {found.spent:.6g} at delta {found.delta:g}, within the {found.epsilon:g} asked for"
    tell(f"verified: {counted(found.spends, 'spend')} for {spent}; {len(found.files)} files are unchanged")
    tell("`understudy replay` checks more: that the table follows from the measurements alone")
    if found.audit is not None:
        tell(f"audit: {found.audit}")
    if found.not_compared is not None:
        tell(f"but {found.not_compared}")
    if not found.claimed:
        tell(f"but this release guarantees nothing: {found.void}")


def show_replayed(folder: Path, as_json: bool) -> None:
    with progress(1, quiet=as_json) as begin:
        begin("rebuilding the table")
        found = replay(folder)
    if as_json:
        print_json(asdict(found))
        return
    answers = counted(found.answers, "measurement")
    tell(f"replayed: {found.file} ({found.rows:,} rows) rebuilt byte for byte from {answers}")
    if found.not_compared is not None:
        tell(f"but {found.not_compared}")


def show_count(folder: Path, expression: str, confidence: float, as_json: bool) -> None:
    with progress(1, quiet=as_json) as begin:
        begin("rebuilding the model")
        counted = Release.load(folder).count(expression, confidence=confidence)
    if as_json:
        print_json({"expression": expression, **asdict(counted)})
        return
    print_facts(
        [
            ("rows", f"about {counted.value:,.0f}"),
            (f"{100 * confidence:g} % interval", f"{counted.low:,} to {counted.high:,}"),
            ("basis", counted.basis),
        ]
    )
