"""`understudy.check`: what a schema does to the rows of its table, before any budget is spent.

It is for the steward, who may see the rows. Its result is internal: it quotes values, and has no guarantee.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

from understudy.boundary.privacy.budget import DEFAULT_DELTA, Budget
from understudy.boundary.privacy.facts import PrivacyUnit
from understudy.boundary.schema.column import Boolean, Categorical, Column
from understudy.boundary.schema.domain import Domain
from understudy.boundary.schema.schema import DRAFT, Schema
from understudy.boundary.tables.rows import Rows
from understudy.boundary.tables.table import Table, opened
from understudy.errors import TableError
from understudy.inference.discovery import provisional
from understudy.lab.evaluation.comparison import value_text
from understudy.lab.intake.blur import Blur, blur_of
from understudy.lab.intake.findings import (
    NOISE_AT,
    Cap,
    Check,
    ColumnCheck,
    NoiseCheck,
    PersonCheck,
    RuleCheck,
    Strange,
)
from understudy.lab.intake.likeness import meant
from understudy.lab.intake.looking import CAPS, EXACTLY, ColumnCounts, Looks
from understudy.lab.intake.verdict import issues_of, verdict
from understudy.methods.forecast.forecast import coefficients_of, forecasts
from understudy.methods.method import Options
from understudy.methods.registry import AUTO, choose
from understudy.progress import Listener, listening

STEPS = ("reading every value", "looking at what is strange", "counting the rows of each person", "foretelling")


def check(table: Table, *, progress: Listener | None = None) -> Check:
    """Says what the schema does to the rows: what is clamped, undeclared, unreadable, lost or blurred.

    Nothing is spent and nothing leaves the table but what this prints. The result is internal, and never part of a
    release: to declare what is read off it makes private facts public.

    Args:
        table: What `understudy.open` returned, of a frame, a file or a DuckDB database.
        progress: A function of the name of each part as it begins, or an `understudy.progress.Progress`.

    Returns:
        A `Check`, with `issues`, a `verdict`, and a report to `save`.

    Raises:
        TableError: The table is not open, can't be read, or is on a server.

    >>> import pyarrow as pa, understudy as us
    >>> schema = us.Schema.loads('[columns.sex]\\ntype = "categorical"\\nvalues = ["Female", "Male"]')
    >>> found = us.check(us.open(pa.table({"sex": ["Female", "male", "male"]}), schema))
    >>> found["sex"].undeclared, found["sex"].strange[0].meant
    (2, 'Male')
    """
    step, schema = listening(progress), opened(table).schema
    domain = Domain.of(provisional(schema))
    # Columns whose bounds are private have none that a value could be held against, nor a cleaned value.
    known = {c.name for c in schema.modelled if not c.private}
    looks = Looks.of(Rows.of(table), domain.schema, domain.codings)
    rules = [r for r in schema.constraints if r.columns <= known]
    step(STEPS[0])
    rows, counts, broken = looks.count(rules)
    if not rows:
        raise TableError(f"{table.name} has no rows, so there is nothing to check", table.name)
    step(STEPS[1])
    found = dict(zip(domain.names, counts, strict=True))
    strange = looks.strange([n for n, c in found.items() if c.unreadable or (c.stray and n in known)])
    quantiles = _quantiles(looks, found, rows)
    codes = looks.codes([name for name in quantiles if name in known])
    columns = []
    for column in schema.modelled:
        figures = found[column.name]
        texts = _strange(column, strange.get(column.name, []))
        blur = None
        if column.name in codes:
            blur = blur_of(domain, column.name, figures.mean, quantiles[column.name], codes[column.name])
        columns.append(_column(column, figures, domain, texts, blur))
    person = None
    if schema.unit is not None:
        step(STEPS[2])
        person = _person(looks, schema)
    step(STEPS[3])
    made = Check(
        table=table.name,
        rows=rows,
        draft=schema.status == DRAFT,
        protects=PrivacyUnit.of(schema).protects,
        columns=tuple(columns),
        left_out=tuple(c.name for c in schema if not c.modelled),
        person=person,
        rules=tuple(_rules(schema, known, broken)),
        noise=_noise(schema, _counting(person, rows)),
    )
    made = dataclasses.replace(made, issues=issues_of(made))
    return dataclasses.replace(made, verdict=verdict(made))


def _column(
    column: Column, counts: ColumnCounts, domain: Domain, strange: Sequence[Strange], blur: Blur | None
) -> ColumnCheck:
    private = column.private
    ends = [None if v is None else value_text(domain[column.name].column, v) for v in (counts.least, counts.most)]
    return ColumnCheck(
        name=column.name,
        type=column.type,
        cells=None if private else domain.size(column.name),
        missing=counts.missing,
        missing_declared=column.missing,
        unreadable=counts.unreadable,
        undeclared=0 if private else counts.stray,
        other=column.other if isinstance(column, Categorical) else None,
        below=0 if private else counts.below,
        above=0 if private else counts.above,
        least=ends[0],
        most=ends[1],
        strange=tuple(strange),
        blur=blur,
    )


def _strange(column: Column, texts: Sequence[tuple[str, int]]) -> list[Strange]:
    labels: list[str] = []
    if isinstance(column, Categorical) and column.values is not None:
        labels = [str(v) for v in column.labels]
    if isinstance(column, Boolean):
        labels = [*Boolean.TRUE, *Boolean.FALSE]
    return [Strange(text, rows, meant(text, labels)) for text, rows in texts]


def _person(looks: Looks, schema: Schema) -> PersonCheck:
    assert schema.unit is not None
    stated = schema.unit.max_rows
    persons, nobody, sizes = looks.people(stated)
    most = max(sizes, default=0)
    # One beyond the largest tells nothing more, except for the one that is stated.
    tried = sorted({stated, *(c for c in CAPS if c < most)})
    caps = tuple(
        Cap(
            cap,
            rows_lost=sum((n - cap) * people for n, people in sizes.items() if n > cap),
            persons_cut=sum(people for n, people in sizes.items() if n > cap),
        )
        for cap in tried
    )
    return PersonCheck(schema.unit.column, stated, persons, without_id=nobody, most=most, caps=caps)


def _counting(person: PersonCheck | None, rows: int) -> int:
    """The rows that a release counts: those beyond a person's cap, and those of nobody, are none of them."""
    if person is None:
        return rows
    return max(1, rows - person.without_id - person.stated.rows_lost)


def _quantiles(looks: Looks, found: Mapping[str, ColumnCounts], rows: int) -> dict[str, list[float]]:
    """Exact ones, unless there are so many numbers that an engine could not keep them all."""
    on_line = {name: c.quantiles for name, c in found.items() if c.quantiles is not None}
    if on_line and rows * len(on_line) <= EXACTLY:
        return looks.quantiles()
    return {name: [float(v) for v in estimated] for name, estimated in on_line.items()}


def _rules(schema: Schema, known: set[str], broken: Sequence[int]) -> list[RuleCheck]:
    counts, found = iter(broken), []
    for rule, parsed in zip(schema.rules, schema.constraints, strict=True):
        text = f"if {rule.condition} then {rule.then}" if rule.condition else rule.then
        found.append(RuleCheck(text, next(counts) if parsed.columns <= known else None))
    return found


def _noise(schema: Schema, rows: int) -> NoiseCheck | None:
    """By the method that `auto` would take, on as many rows as there are."""
    budget = Budget(NOISE_AT, DEFAULT_DELTA)
    method = choose(AUTO, Options(), schema, budget).method
    if coefficients_of(method) is None:
        return None
    (expected,) = forecasts(schema, budget, rows, [method])
    sizes = [c.size for c in Domain.of(provisional(schema))]
    pairs = len(sizes) * (len(sizes) - 1) / 2
    crossed = (sum(sizes) ** 2 - sum(s * s for s in sizes)) / 2
    return NoiseCheck(
        method.name,
        expected.error,
        low=expected.low,
        high=expected.high,
        cells=sum(sizes),
        pair_cells=crossed / pairs if pairs else float(sum(sizes)),
    )
