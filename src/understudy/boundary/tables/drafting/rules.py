"""Rules that every row obeys, columns that follow from two others, and ids that come back: proposals for a person.

Candidates come from a sample, and are counted over all rows. How much a rule says is how many rows would break it if
its columns had nothing to do with each other; what nobody would break is no rule.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray

from understudy.boundary.schema.column import Boolean, Categorical, Column, Datetime, Integer, Number
from understudy.boundary.tables.connection import quoted_name
from understudy.boundary.tables.drafting.bounds import multiple, round_step
from understudy.boundary.tables.drafting.columns import Drafted
from understudy.boundary.tables.drafting.facts import Facts
from understudy.boundary.tables.drafting.names import PERSON
from understudy.boundary.tables.rows import Rows
from understudy.boundary.tables.sql import ROWS, select_read

MOST_RULES = 20
MOST_TRIED = 60
"""Candidates that are counted over all rows."""
PER_PAIR = 3
FEWEST_ROWS = 30
FEWEST_BROKEN = 15.0
"""Rows of the sample that would break a rule by chance."""
SAMPLE = 10_000
MOST_LABELS = 30
MOST_COLUMNS = 60
UNITS = 3


@dataclass(frozen=True)
class ProposedRule:
    """A rule in the words of the schema, and how many rows of the sample would break it by chance."""

    columns: tuple[str, str]
    condition: str | None
    consequence: str
    strength: float
    derived: str | None = None


@dataclass(frozen=True)
class _Values:
    """A column of the sample: numbers (dates in seconds), or codes of labels; NaN or -1 is missing."""

    column: Column
    numbers: NDArray[np.float64] | None = None
    codes: NDArray[np.int64] | None = None
    labels: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        return quoted_name(self.column.name)


def propose_rules(rows: Rows, columns: Sequence[Column], missing: Sequence[str]) -> list[str]:
    """Commented `[[constraints]]` and derived columns, the strongest first, in TOML."""
    modelled = [c for c in columns if c.modelled and not (isinstance(c, Categorical) and len(c.values or ()) < 2)]
    modelled = modelled[:MOST_COLUMNS]
    if len(modelled) < 2:
        return []
    sample = _sample(rows, modelled, missing)
    found = sorted(_candidates(sample), key=lambda c: -c.strength)
    kept: list[ProposedRule] = []
    for candidate in found:
        if sum(set(k.columns) == set(candidate.columns) for k in kept) < PER_PAIR and len(kept) < MOST_TRIED:
            kept.append(candidate)
    lines: list[str] = []
    proven = 0  # a line that begins with a space is prose
    for candidate, speaking, breaking in _counted(rows, modelled, missing, kept):
        if breaking or speaking < FEWEST_ROWS or proven == MOST_RULES:
            continue
        proven += 1
        lines += ["", f" {speaking:,} rows speak for it, none against:", "[[constraints]]"]
        lines += [f"if = {_toml(candidate.condition)}"] * (candidate.condition is not None)
        lines.append(f"then = {_toml(candidate.consequence)}")
        if candidate.derived:
            lines.append(f" or a column of its own, from which the later one is rebuilt: {candidate.derived}")
    if lines:
        opening = " Rules that every row obeys. Only what is true by definition or by law belongs into a schema:"
        return [opening, " uncomment those, and leave out the others.", *lines]
    return []


def _toml(text: str | None) -> str:
    """A text as TOML writes it: in single quotes where that leaves names in double ones as they are."""
    plain = text or ""
    if '"' in plain and "'" not in plain and plain.isprintable():
        return f"'{plain}'"
    escaped = plain.replace("\\", "\\\\").replace('"', '\\"')
    return '"' + "".join(c if c.isprintable() else f"\\U{ord(c):08X}" for c in escaped) + '"'


# --- The sample -------------------------------------------------------------------------------------------------------


def _sample(rows: Rows, columns: Sequence[Column], missing: Sequence[str]) -> list[_Values]:
    query = select_read(rows.source, None, columns, missing).sql(dialect="duckdb")
    table = rows.fetch(f"SELECT * FROM ({query}) USING SAMPLE reservoir({SAMPLE} ROWS) REPEATABLE (7)")
    return [_values(c, table.column(i).to_pylist()) for i, c in enumerate(columns)]


def _values(column: Column, read: list[Any]) -> _Values:
    if isinstance(column, Integer | Number | Datetime):
        numbers = np.array([np.nan if v is None else v for v in read], dtype=np.float64)
        if isinstance(column, Datetime):  # units since its own start: all of them in seconds since one day
            numbers = (column.start - datetime(1970, 1, 1)).total_seconds() + numbers * column.unit_seconds
        return _Values(column, numbers=numbers)
    if isinstance(column, Boolean):
        truths = [None if v is None else v in Boolean.TRUE for v in read]
        return _Values(column, codes=np.array([-1 if v is None else int(v) for v in truths]), labels=("FALSE", "TRUE"))
    assert isinstance(column, Categorical)
    places = {(float(v) if column.numeric else v): i for i, v in enumerate(column.labels)}
    labels = tuple(str(v) if column.numeric else "'" + str(v).replace("'", "''") + "'" for v in column.labels)
    return _Values(column, codes=np.array([places.get(v, -1) for v in read]), labels=labels)


# --- Candidates -------------------------------------------------------------------------------------------------------


def _candidates(sample: Sequence[_Values]) -> Iterator[ProposedRule]:
    rng = np.random.Generator(np.random.PCG64(0))
    for a, b in itertools.combinations(sample, 2):
        if a.numbers is not None and b.numbers is not None:
            yield from _orders(a, b, rng)
            yield from _zeros(a, b)
            yield from _zeros(b, a)
        elif a.codes is not None and b.codes is not None:
            yield from _implied(a, b)
            yield from _implied(b, a)
        else:
            line, listed = (a, b) if a.numbers is not None else (b, a)
            yield from _thresholds(line, listed)


def _orders(a: _Values, b: _Values, rng: np.random.Generator) -> Iterator[ProposedRule]:
    """One never above the other, though their values overlap."""
    assert a.numbers is not None and b.numbers is not None
    dates = isinstance(a.column, Datetime)
    if dates != isinstance(b.column, Datetime):
        return
    both = ~np.isnan(a.numbers) & ~np.isnan(b.numbers)
    x, y = a.numbers[both], b.numbers[both]
    if len(x) < FEWEST_ROWS:
        return
    for low, high, small, large in ((a, b, x, y), (b, a, y, x)):
        if not (small <= large).all():
            continue
        broken = float(np.mean(rng.permutation(small) > large)) * len(small)
        if broken < FEWEST_BROKEN or broken < 0.02 * len(small):
            continue
        then = f"{high.name} >= {low.name}"
        difference = _toml(f"{high.name} - {low.name}")
        derived = f'type = "derived", of = {difference}, min = 0 and a max of your own' if dates else None
        # Dates in order are what a person would think of first.
        yield ProposedRule((low.column.name, high.column.name), None, then, broken * (10 if dates else 1), derived)
        return


def _zeros(a: _Values, b: _Values) -> Iterator[ProposedRule]:
    """Where one amount is zero, so is another."""
    assert a.numbers is not None and b.numbers is not None
    if isinstance(a.column, Datetime) or isinstance(b.column, Datetime):
        return
    both = ~np.isnan(a.numbers) & ~np.isnan(b.numbers)
    x, y = a.numbers[both], b.numbers[both]
    zero = x == 0
    if zero.sum() >= FEWEST_ROWS and x.min() >= 0 and (y[zero] == 0).all():
        broken = float(zero.sum() * np.mean(y != 0))
        if broken >= FEWEST_BROKEN:
            yield ProposedRule((a.column.name, b.column.name), f"{a.name} = 0", f"{b.name} = 0", broken)


def _implied(a: _Values, b: _Values) -> Iterator[ProposedRule]:
    """Where one column has a value, another has always the same."""
    assert a.codes is not None and b.codes is not None
    if len(a.labels) > MOST_LABELS or len(b.labels) > MOST_LABELS:
        return
    both = (a.codes >= 0) & (b.codes >= 0)
    counts = np.zeros((len(a.labels), len(b.labels)), dtype=np.int64)
    np.add.at(counts, (a.codes[both], b.codes[both]), 1)
    shares = counts.sum(axis=0) / max(1, counts.sum())
    for i, row in enumerate(counts):
        (values,) = row.nonzero()
        if len(values) == 1 and row.sum() >= FEWEST_ROWS:
            broken = float(row.sum() * (1 - shares[values[0]]))
            if broken >= FEWEST_BROKEN:
                condition = f"{a.name} = {a.labels[i]}"
                then = f"{b.name} = {b.labels[values[0]]}"
                yield ProposedRule((a.column.name, b.column.name), condition, then, broken)


def _thresholds(line: _Values, listed: _Values) -> Iterator[ProposedRule]:
    """Below (or from) a number, always the same value: who is under 15 is not married."""
    assert line.numbers is not None and listed.codes is not None
    both = np.isfinite(line.numbers) & (listed.codes >= 0)
    numbers, codes = line.numbers[both], listed.codes[both]
    if isinstance(line.column, Datetime) or len(listed.labels) > MOST_LABELS or len(numbers) < FEWEST_ROWS:
        return
    whole = isinstance(line.column, Integer)
    step = round_step(float(np.ptp(numbers)) / 100)
    step = max(1.0, step) if whole else step
    for code in np.unique(codes):
        same = codes == code
        if same.all():
            continue
        low = multiple(float(numbers[~same].min()), step, up=False)
        high = multiple(float(numbers[~same].max()), step, up=True)
        chance = 1 - float(np.mean(same))
        for side, inside in ((f"< {low:g}", numbers < low), (f"> {high:g}", numbers > high)):
            broken = float(inside.sum()) * chance
            if inside.sum() >= FEWEST_ROWS and broken >= FEWEST_BROKEN:
                names = (line.column.name, listed.column.name)
                yield ProposedRule(names, f"{line.name} {side}", f"{listed.name} = {listed.labels[code]}", broken)


# --- All rows ---------------------------------------------------------------------------------------------------------


def _counted(
    rows: Rows, columns: Sequence[Column], missing: Sequence[str], candidates: Sequence[ProposedRule]
) -> Iterator[tuple[ProposedRule, int, int]]:
    """How many rows each candidate speaks of, and how many break it."""
    if not candidates:
        return
    used = {n for c in candidates for n in c.columns}
    read = [c for c in columns if c.name in used]
    inner = select_read(rows.source, None, read, missing).sql(dialect="duckdb")
    named = ", ".join(f"{_comparable(c, f'value_{i}')} AS {quoted_name(c.name)}" for i, c in enumerate(read))
    asked = []
    for c in candidates:
        condition = c.condition or "TRUE"
        asked.append(f"count(*) FILTER (({condition}) AND ({c.consequence}))")
        asked.append(f"count(*) FILTER (({condition}) AND NOT ({c.consequence}))")
    (row,) = rows.query(f"SELECT {', '.join(asked)} FROM (SELECT {named} FROM ({inner}))")
    for i, candidate in enumerate(candidates):
        yield candidate, row[2 * i], row[2 * i + 1]


def _comparable(column: Column, value: str) -> str:
    if isinstance(column, Datetime):
        return f"{column.start.timestamp()!r} + {value} * {column.unit_seconds}"
    if isinstance(column, Boolean):
        return f"{value} IN ({', '.join(repr(t) for t in Boolean.TRUE)})"
    return value


# --- Whose rows -------------------------------------------------------------------------------------------------------


def propose_unit(rows: Rows, drafted: Sequence[Drafted], facts: Sequence[Facts]) -> list[str]:
    """A commented `[unit]` for the ids that come back, and what a cap would keep."""
    repeated = [
        f for d, f in zip(drafted, facts, strict=True)
        if d.person and not d.column.modelled and 1 < f.distinct < 0.95 * f.present
    ]  # fmt: skip
    # What is called after a person is more likely one than a phone number, or the name of their doctor.
    repeated = sorted(repeated, key=lambda f: PERSON.search(f.name) is None)[:UNITS]
    if not repeated:
        return [
            " Whom does the guarantee protect? As it stands each row is taken for a person of its own: no column of",
            ' ids comes back. If people have more, name the column that tells whose they are: [unit] column = "…"',
            "",
        ]
    lines = [
        " Whom does the guarantee protect? As it stands each row is taken for a person of its own. If these are",
        " people, uncomment one [unit]; a smaller max_rows takes less noise, and leaves out more rows.",
    ]
    for fact in repeated:
        kept = _kept(rows, fact)
        suggested = next((k for k, share in kept if share >= 0.9), kept[-1][0])
        shares = ", ".join(f"{k} would keep {100 * share:.0f} %" for k, share in kept)
        lines += ["", f" {fact.distinct:,} ids in {fact.present:,} rows; of the rows, max_rows = {shares}:"]
        lines += ["[unit]", f"column = {_toml(fact.name)}", f"max_rows = {suggested}"]
    return [*lines, ""]


def _kept(rows: Rows, fact: Facts) -> list[tuple[int, float]]:
    """For some caps, the share of rows that they keep."""
    text = f"{quoted_name(fact.name)}"
    counted = rows.query(  # an empty cell is nobody, and no person with many rows
        f"SELECT n, count(*) FROM (SELECT count(*) AS n FROM {rows.relation} AS {ROWS} "
        f"WHERE nullif(CAST({text} AS VARCHAR), '') IS NOT NULL "
        f"GROUP BY {text}) GROUP BY n ORDER BY n"
    )
    sizes = np.array([n for n, _ in counted], dtype=np.float64)
    people = np.array([k for _, k in counted], dtype=np.float64)
    total = float((sizes * people).sum())
    caps = [k for k in (1, 2, 3, 5, 10, 20, 50, 100, 200, 500, 1000) if k < sizes[-1]]
    caps += [int(sizes[-1])] if sizes[-1] <= 1000 else []
    shares = [(k, float((np.minimum(sizes, k) * people).sum()) / total) for k in caps]
    useful = [pair for i, pair in enumerate(shares) if i == 0 or shares[i - 1][1] < 0.99]
    return useful[:6] or [(int(sizes[-1]), 1.0)]
