"""The counts behind a check, as aggregates of the engine: no row comes here, and memory does not grow with them.

Values are read and coded by the very expressions that releases use (`Rows.looks`), so that a check can't disagree with
a release about what is clamped, undeclared or unreadable.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
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
PASS_COLUMNS = 40
"""That one scan looks at: of two hundred the engine would take more than a gigabyte to plan and to hold its answers."""


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


FIGURES = len(fields(ColumnCounts))


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
        """The rows, what stands in each column, and the rows that break each rule: a scan for each forty columns."""
        counts: list[ColumnCounts] = []
        asked = ["count(*)", *(self._broken(rule) for rule in rules)]
        general: list[int] = []
        for part in _parts(range(len(self.codings))):
            columns = [aggregate for i in part for aggregate in self._column(i, self.codings[i])]
            (found,) = self._ask([*asked, *columns])
            general, figures = general or list(found[: len(asked)]), found[len(asked) :]
            counts += [_counts(figures[j : j + FIGURES]) for j in range(0, len(figures), FIGURES)]
            asked = []
        total, *broken = general
        return total, counts, broken

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
        found: list[Any] = []
        for part in _parts(places):
            # Without special values, whose codes are those above the levels.
            own = ((i, f"code_{i} >= 0 AND code_{i} < {self.codings[i].levels}") for i in part)
            (counted,) = self._ask([f"histogram(code_{i}) FILTER ({condition})" for i, condition in own])
            found += counted
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
        lines = [i for i, c in enumerate(self.codings) if c.edges is not None]
        found: list[Any] = []
        for part in _parts(lines):
            there = ((i, f"FILTER (code_{i} >= 0 AND isfinite(value_{i}))") for i in part)
            (exact,) = self._ask([f"quantile_cont(value_{i}, {list(QUANTILES)!r}) {t}" for i, t in there])
            found += exact
        return {self.codings[i].name: [float(v) for v in f] for i, f in zip(lines, found, strict=True) if f is not None}

    def strange(self, columns: Sequence[str]) -> dict[str, list[tuple[str, int]]]:
        """The commonest texts of these columns that are on no list or can't be read, with their rows."""
        places = [i for i, c in enumerate(self.codings) if c.name in columns]
        found = [texts for part in _parts(places) for texts in self._oddest(part)]
        return {self.codings[i].name: [(t, n) for p, t, n in found if p == i] for i in places}

    def _oddest(self, places: Sequence[int]) -> list[tuple[Any, ...]]:
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
        return self.rows.query(f"{ranked} {best} ORDER BY place, n DESC, t")

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


def _parts(places: Sequence[int]) -> Iterator[Sequence[int]]:
    return (places[i : i + PASS_COLUMNS] for i in range(0, len(places), PASS_COLUMNS))


def _counts(figures: Sequence[Any]) -> ColumnCounts:
    return ColumnCounts(**dict(zip((f.name for f in fields(ColumnCounts)), figures, strict=True)))
