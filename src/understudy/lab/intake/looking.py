"""The counts behind a check, as aggregates of the engine: no row comes here, and memory does not grow with them.

Values are read and coded by the very expressions that releases use (`Rows.looks`), so that a check can't disagree with
a release about what is clamped, undeclared or unreadable.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

from understudy.boundary.schema.column import Boolean, Categorical, Integer
from understudy.boundary.schema.domain import Coding
from understudy.boundary.schema.expression import Constraint
from understudy.boundary.schema.schema import Schema
from understudy.boundary.tables.rows import Rows

STRAY, NOTHING = -1, -2
QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)
MOST_EXAMPLES = 20
"""Texts of a column that are shown, the most frequent first."""
EXACTLY = 5_000_000
"""Numbers up to which quantiles are exact: an engine keeps all of a column for them. Of more they are estimated."""
CAPS = (1, 2, 3, 5, 10, 20, 50, 100)
"""Values of `max_rows` that are tried, beside the one of the schema."""
PERSON = "understudy_person"


class Telling(Coding):
    """The same codes, but a value that is on no list, and one that can't be read, take no other value's place."""

    @property
    def stray_code(self) -> int:
        return STRAY

    @property
    def null_code(self) -> int:
        return NOTHING


@dataclass(frozen=True)
class ColumnCounts:
    """What the engine counted of one column."""

    missing: int
    nothing: int
    """Missing or unreadable."""
    stray: int
    below: int
    above: int
    least: float | None
    most: float | None
    mean: float | None
    quantiles: list[float] | None
    """At `QUANTILES`, estimated."""

    @property
    def unreadable(self) -> int:
        return self.nothing - self.missing


@dataclass(frozen=True)
class Looks:
    """The rows of a table as a query that can be aggregated."""

    rows: Rows
    schema: Schema
    codings: tuple[Telling, ...]

    @classmethod
    def of(cls, rows: Rows, schema: Schema, codings: Sequence[Coding]) -> Looks:
        return cls(rows, schema, tuple(Telling(c.column, c.labels, c.edges) for c in codings))

    def count(self, rules: Sequence[Constraint]) -> tuple[int, list[ColumnCounts], list[int]]:
        """The rows, what stands in each column, and the rows that break each rule: all in one scan."""
        wanted = ["count(*)", *(self._broken(rule) for rule in rules)]
        for i, coding in enumerate(self.codings):
            wanted += self._column(i, coding)
        (found,) = self._ask(wanted)
        figures = list(found)
        total, broken = figures[0], figures[1 : 1 + len(rules)]
        each = figures[1 + len(rules) :]
        width = len(each) // max(1, len(self.codings))
        parts = [each[i * width : (i + 1) * width] for i in range(len(self.codings))]
        return total, [_counts(part) for part in parts], broken

    def _column(self, i: int, coding: Coding) -> list[str]:
        code, value = f"code_{i}", f"value_{i}"
        wanted = [f"count(*) FILTER (missing_{i})", *(f"count(*) FILTER ({code} = {c})" for c in (NOTHING, STRAY))]
        if coding.edges is None:
            wanted += ["0", "0", *["NULL"] * 4]
        else:
            low, high = _bounds(coding)
            there = f"FILTER ({code} >= 0 AND isfinite({value}))"
            wanted += [
                f"count(*) FILTER ({code} >= 0 AND {value} < {low!r})",
                f"count(*) FILTER ({code} >= 0 AND NOT {value} <= {high!r})",
                *(f"{f}({value}) {there}" for f in ("min", "max", "avg")),
                f"approx_quantile({value}, {list(QUANTILES)!r}) {there}",
            ]
        return wanted

    def codes(self, names: Sequence[str]) -> dict[str, dict[int, int]]:
        """The rows of each code of these columns, of those that have one of their own."""
        # A scan by itself: beside other aggregates these made the engine's memory grow with the rows.
        places = [i for i, c in enumerate(self.codings) if c.name in names]
        if not places:
            return {}
        # Without special values, whose codes are those above the levels.
        own = ((i, f"code_{i} >= 0 AND code_{i} < {self.codings[i].levels}") for i in places)
        (found,) = self._ask([f"histogram(code_{i}) FILTER ({condition})" for i, condition in own])
        return {
            self.codings[i].name: {int(code): int(n) for code, n in (counted or {}).items()}
            for i, counted in zip(places, found, strict=True)
        }

    def _broken(self, rule: Constraint) -> str:
        halves = [f"NOT ({self._written(rule.consequence.sql())})"]
        if rule.condition is not None:
            halves.append(f"({self._written(rule.condition.sql())})")
        return f"count(*) FILTER ({' AND '.join(halves)})"

    def _written(self, tree: Any) -> str:
        """A condition on cleaned values."""
        from sqlglot import exp

        for column in tree.find_all(exp.Column):
            column.this.set("this", f"clean {column.name}")
        return str(tree.sql())  # the plain dialect, which the engine of `Rows` reads as well

    def quantiles(self) -> dict[str, list[float]]:
        """Exact ones of every column on a line that has a finite value: another scan, which keeps the values."""
        lines = [(i, c) for i, c in enumerate(self.codings) if c.edges is not None]
        there = (f"FILTER (code_{i} >= 0 AND isfinite(value_{i}))" for i, _ in lines)
        asked = [f"quantile_cont(value_{i}, {list(QUANTILES)!r}) {t}" for (i, _), t in zip(lines, there, strict=True)]
        (found,) = self._ask(asked)
        return {c.name: [float(v) for v in f] for (_, c), f in zip(lines, found, strict=True) if f is not None}

    def strange(self, columns: Sequence[str]) -> dict[str, list[tuple[str, int]]]:
        """The commonest texts of these columns that are on no list or can't be read, with their rows."""
        places = [i for i, c in enumerate(self.codings) if c.name in columns]
        if not places:
            return {}
        # One scan for all columns, which for a CSV file is most of the work.
        odd = {i: f"(code_{i} = {STRAY} OR (code_{i} = {NOTHING} AND NOT missing_{i}))" for i in places}
        picked = ", ".join(f"CASE WHEN {odd[i]} THEN text_{i} END AS odd_{i}" for i in places)
        sets = ", ".join(f"(odd_{i})" for i in places)
        inner = f"SELECT {picked} FROM ({self._text}) AS looks WHERE {' OR '.join(odd.values())}"
        names = ", ".join(f"odd_{i}" for i in places)
        counted = f"SELECT {names}, count(*) AS n, coalesce({names}) AS t FROM ({inner}) AS odd "
        counted += f"GROUP BY GROUPING SETS ({sets}) HAVING t IS NOT NULL"
        place = "CASE " + " ".join(f"WHEN odd_{i} IS NOT NULL THEN {i}" for i in places) + " END"
        ranked = f"SELECT {place} AS place, t, n FROM ({counted}) AS counted"
        best = f"QUALIFY row_number() OVER (PARTITION BY place ORDER BY n DESC, t) <= {MOST_EXAMPLES}"
        found = self.rows.query(f"{ranked} {best} ORDER BY place, n DESC, t")
        return {self.codings[i].name: [(t, n) for p, t, n in found if p == i] for i in places}

    def people(self, stated: int) -> tuple[int, int, dict[int, int]]:
        """How many people there are, how many rows nobody's id is on, and how many people have how many rows."""
        each = f"SELECT {PERSON} AS person, count(*) AS n FROM ({self._text}) AS looks GROUP BY ALL"
        found = self.rows.query(f"SELECT person IS NULL, n, count(*) FROM ({each}) AS each_one GROUP BY ALL")
        nobody = sum(n * people for absent, n, people in found if absent)
        sizes = {n: people for absent, n, people in found if not absent}
        return sum(sizes.values()), nobody, sizes

    @property
    def _text(self) -> str:
        return self.rows.looks(self.schema, self.codings)

    def _ask(self, wanted: Sequence[str]) -> list[tuple[Any, ...]]:
        return self.rows.query(f"SELECT {', '.join(wanted)} FROM ({self._text}) AS looks")


def _bounds(coding: Coding) -> tuple[float, float]:
    """The least and the greatest number that is not clamped, as the encoder rounds."""
    edges = coding.edges or ()
    low, high = float(edges[0]), float(edges[-1])
    if isinstance(coding.column, Integer):
        return low - 0.5, _below(high - 0.5)
    if isinstance(coding.column, Categorical | Boolean):
        raise AssertionError(coding)
    # A date's units are floored: what is still in the last unit is in. The last bin of a number has its upper edge.
    return low, high if coding.column.type == "number" else _below(high)


def _below(number: float) -> float:
    return math.nextafter(number, -math.inf)


def _counts(figures: Sequence[Any]) -> ColumnCounts:
    return ColumnCounts(**dict(zip((f.name for f in fields(ColumnCounts)), figures, strict=True)))
